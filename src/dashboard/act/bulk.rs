//! One verb for all that a filter admits, as a procedure of the kind `procession.bulk`: so it
//! survives a crash, and has a page. A dry run lists the first of them, and how many there are.

mod plans;

use std::future::IntoFuture;
use std::time::Duration;

use actix_web::{HttpRequest, web};
use procession_actors::Procedure;
use procession_actors::journal::codec;
use procession_kernel::{ProcedureId, VerbName};
use serde_json::{Value, json};

pub(in crate::dashboard) use self::plans::{Difference, Plans};
use self::plans::{Fits, revision};
use super::submit::may_run_again;
use super::verb::named;
use super::wish::{Body, Request, wrong};
use super::word;
use crate::bulk::{Bulk, BulkReport, BulkVerb};
use crate::dashboard::access::{Grant, Right};
use crate::dashboard::list::{Order, SCAN_MAX, Search};
use crate::dashboard::params::{Params, id_of};
use crate::dashboard::problem::{Answer, Problem};
use crate::dashboard::state::{State, caller, viewer};

/// Procedures of one bulk at most, unless more are asked for.
const LIMIT: usize = 1_000;
/// Procedures of one bulk at most: what each of them said must fit in one payload.
const LIMIT_MAX: usize = 5_000;
/// How long the procedures of one bulk are looked for, at most: callers wait for the answer.
const COUNT_TIME: Duration = Duration::from_secs(5);
/// Procedures that a dry run shows.
const SHOWN: usize = 100;

/// `bulk/{verb}`.
pub(in crate::dashboard) async fn begin(request: HttpRequest, body: Body, state: web::Data<State>) -> Answer {
    let caller = caller(&request)?;
    let (verb, terms) = named(word(&request, "verb")).ok_or_else(Problem::no_such_path)?;
    caller.need(terms.right)?;
    // It tells which procedures there are.
    caller.need(Right::View)?;
    let (asked, planned) = Request::read_of_many(&request, body, &caller.0, terms.needs_reason)?;
    let verb = of_many(verb, &asked)?;
    if let Some(id) = repeated(&state, verb, &asked).await? {
        return begun(&state, id, None);
    }
    let planned = match planned {
        None if !asked.by.dry_run => return Err(Problem::unplanned()),
        planned => planned.unwrap_or_default(),
    };
    let chosen_by = chosen_by(&asked);
    if chosen_by.is_empty() {
        return Err(wrong("`filter` is missing: a bulk says which procedures it is for."));
    }
    let (filter, limit) = (Params::filter_of(chosen_by)?, limit(&asked)?);
    let moment = state.moment()?;
    let mut search = Search::new(&state, &caller.0, &filter, LIMIT_MAX + 1).await?;
    count(&state, &caller.0, &mut search).await?;
    if verb == BulkVerb::RunAgain {
        for id in &search.ids {
            let row = state.engine().committed().status(*id).await?;
            may_run_again(row.as_ref())?;
        }
    }
    let (count, over) = (search.ids.len(), search.ids.len() > limit);
    let revision = revision(&search.ids);
    if asked.by.dry_run {
        state.plans.keep(&revision, &search.ids);
        search.items.truncate(SHOWN);
        let body = json!({
            "dry_run": true,
            "revision": revision,
            "id": null,
            "count": count,
            "over": over,
            "truncated": search.truncated,
            "scanned": search.scanned,
            "items": search.items,
        });
        return state.reply(moment, body);
    }
    if over {
        return Err(Problem::too_many_at_once(count, limit));
    }
    if search.truncated {
        return Err(Problem::uncounted(count));
    }
    match state.plans.compare(&planned, &search.ids) {
        Fits::Within => {}
        Fits::Beyond(difference) => return Err(Problem::of_others(count, revision, difference.as_ref())),
    }
    let ids = std::mem::take(&mut search.ids);
    let bulk = Bulk::new(verb, ids, asked.by.who.as_str(), asked.by.why.as_str()).chosen_by(chosen_by);
    let mut submission = state.executor.submit(bulk);
    if let Some(key) = key(&asked) {
        submission = submission.key(key);
    }
    let handle = submission.into_future().await?;
    begun(&state, handle.id(), Some(count))
}

/// Finds all that the filter admits. One turn may look for a moment only, and on a busy machine that is a few rows: it
/// takes turn after turn, for some seconds.
async fn count(state: &State, grant: &Grant, search: &mut Search<'_>) -> Result<(), Problem> {
    let begun = state.now();
    let mut next = None;
    loop {
        let turn = match state.turns.take(grant).await {
            Ok(turn) => turn,
            // What was found so far is told, as what it is.
            Err(_) if next.is_some() => return Ok(()),
            Err(problem) => return Err(problem),
        };
        next = search.fill(state, next, Order::ById).await?;
        drop(turn);
        let is_over = search.ids.len() > LIMIT_MAX;
        search.truncated = next.is_some() && !is_over;
        if !search.truncated || search.scanned >= SCAN_MAX || state.now().since(begun) > COUNT_TIME {
            return Ok(());
        }
        search.items.truncate(SHOWN);
    }
}

fn begun(state: &State, id: ProcedureId, count: Option<usize>) -> Answer {
    let body = json!({ "dry_run": false, "id": id.to_string(), "count": count, "repeated": count.is_none() });
    state.reply_acted(false, body)
}

/// Returns the verb for many procedures. A verb that needs each id typed, or brings a value, is refused.
fn of_many(verb: VerbName, asked: &Request) -> Result<BulkVerb, Problem> {
    match verb {
        VerbName::Pause => Ok(BulkVerb::Pause),
        VerbName::Resume => Ok(BulkVerb::Resume),
        VerbName::RetryNow => Ok(BulkVerb::Retry),
        VerbName::Abort => Ok(BulkVerb::Abort),
        VerbName::RetryUndo => Ok(BulkVerb::RetryUndo),
        VerbName::SkipUndo => Ok(BulkVerb::SkipUndo),
        VerbName::Acknowledge => Ok(BulkVerb::Acknowledge),
        VerbName::RunAgain => Ok(BulkVerb::RunAgain),
        VerbName::SetPriority => Ok(BulkVerb::Priority(asked.wish.priority()?)),
        VerbName::Bypass
        | VerbName::OverrideResult
        | VerbName::Discharge
        | VerbName::Signal
        | VerbName::Decide
        | VerbName::Reveal
        | VerbName::Export
        | VerbName::SetLimit
        | VerbName::Submit
        | VerbName::Drain => {
            let text = format!("\"{verb}\" is not asked for of many at once.");
            Err(Problem::request(text, "Ask for it of one at a time."))
        }
    }
}

/// Returns the filter in the caller's words; empty if there is none.
fn chosen_by(asked: &Request) -> &str {
    asked.wish.filter.as_deref().unwrap_or_default().trim()
}

fn limit(asked: &Request) -> Result<usize, Problem> {
    let Some(limit) = asked.wish.limit else {
        return Ok(LIMIT);
    };
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    if (1..=LIMIT_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(wrong(format!("`limit` is a number from 1 to {LIMIT_MAX}.")))
    }
}

/// Keys of bulks are told apart from those of submissions.
fn key(asked: &Request) -> Option<String> {
    asked.by.key.as_ref().map(|key| format!("bulk {key}"))
}

/// Returns the bulk that a request has begun before: by now the filter may admit others.
async fn repeated(state: &State, verb: BulkVerb, asked: &Request) -> Result<Option<ProcedureId>, Problem> {
    let Some(key) = key(asked).filter(|_| !asked.by.dry_run) else {
        return Ok(None);
    };
    let Some(id) = state.engine().committed().key_entry(&key).await?.map(|entry| entry.id) else {
        return Ok(None);
    };
    let stored = state.engine().committed().values(id).await?;
    let stored = stored.payload.and_then(|bytes| codec::decode_user::<Bulk>(&bytes).ok());
    if stored.is_some_and(|stored| stored.is_for(verb, chosen_by(asked), &asked.by.who, &asked.by.why)) {
        return Ok(Some(id));
    }
    Err(Problem::key_conflict(id))
}

/// `procedures/{id}/bulk`: how far a bulk has got.
pub(in crate::dashboard) async fn progress(request: HttpRequest, state: web::Data<State>) -> Answer {
    viewer(&request)?;
    Params::of(&request, &[])?;
    let (id, moment) = (id_of(&request)?, state.moment()?);
    let committed = state.engine().committed();
    let row = committed
        .status(id)
        .await?
        .filter(|row| row.kind.as_str() == Bulk::KIND);
    let row = row.ok_or_else(|| Problem::other_sort("bulk", id, "`procedures?filter=kind:procession.bulk`"))?;
    let values = committed.values(id).await?;
    let bulk = values
        .payload
        .map(|bytes| codec::decode_user::<Bulk>(&bytes))
        .transpose();
    let output = values
        .output
        .map(|bytes| codec::decode_user::<BulkReport>(&bytes))
        .transpose();
    let (bulk, output) = (bulk.ok().flatten(), output.ok().flatten());
    let left = bulk.as_ref().map_or(0, Bulk::left);
    let report = output.as_ref().or_else(|| bulk.as_ref().map(Bulk::report));
    let report = report.cloned().unwrap_or_default();
    let outcomes: Vec<Value> = report
        .outcomes
        .iter()
        .map(|outcome| {
            json!({
                "id": outcome.id,
                "number": outcome.number.map(|number| number.to_string()),
                "refused": outcome.refused,
            })
        })
        .collect();
    let body = json!({
        "id": id.to_string(),
        "verb": bulk.as_ref().map(Bulk::words),
        "filter": bulk.as_ref().and_then(Bulk::filter),
        "who": bulk.as_ref().map(Bulk::who),
        "reason": bulk.as_ref().map(Bulk::why),
        "state": row.state.to_string(),
        "left": left,
        "done": report.done,
        "refused": report.refused,
        "items": outcomes,
    });
    state.reply(moment, body)
}
