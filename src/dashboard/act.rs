//! What operators do, as `POST`: each verb through the engine's own message, with who asks, why,
//! and what it was meant for. `?dry_run=true` tells what it would do.

pub(super) mod bulk;
mod reveal;
mod verb;
mod wish;

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, ResponseError, web};
use procession_actors::messages::{Bypass, OverrideResult};
use procession_kernel::{AbortAnswer, BypassAs, BypassScope, Kind, Operated, Pause, Plan, ProcedureId, Seq};
use serde_json::{Value, json};

use self::verb::Verb;
use self::wish::{Body, Request, wrong};
use super::access::Right;
use super::params::id_of;
use super::problem::{Answer, Problem};
use super::state::{State, caller};
use super::whole::changed;
use crate::views::{PlanView, millis, time};

/// How long running stages may take when the engine drains, unless something else is sent.
const DEADLINE: Duration = Duration::from_secs(30);
/// The same, at most.
const DEADLINE_MAX: Duration = Duration::from_hours(1);
/// Entries of a family's history that name the undos of a plan, at most.
const HISTORY_MAX: usize = 100_000;

/// `procedures/{id}/{verb}`.
pub(super) async fn procedure(request: HttpRequest, body: Body, state: web::Data<State>) -> Answer {
    let caller = caller(&request)?;
    let verb = Verb::of(word(&request, "verb")).ok_or_else(Problem::no_such_path)?;
    caller.need(verb.right())?;
    let id = id_of(&request)?;
    let asked = Request::read_with(&request, body, &caller.0, verb.needs_reason())?;
    if verb.needs_plan() {
        asked.must_be_planned()?;
    }
    if verb.needs_id() {
        asked.must_be_confirmed(id)?;
    }
    match verb {
        Verb::Reveal => reveal::reveal(&state, id, asked).await,
        Verb::Export => reveal::export(&state, id, asked).await,
        Verb::Pause
        | Verb::Resume
        | Verb::Retry
        | Verb::Abort
        | Verb::RetryUndo
        | Verb::SkipUndo
        | Verb::Bypass
        | Verb::OverrideResult
        | Verb::Discharge
        | Verb::Priority
        | Verb::Acknowledge
        | Verb::Signal => {
            // Read before it is asked: whoever goes by it is refused if anything came between.
            let revision = revision(&state, verb, id).await?;
            let is_dry = asked.by.dry_run;
            let operated = make(&state, verb, id, asked).await?;
            let mut body = shown(&operated, is_dry, Some(revision));
            if let (Some(plan), Some(shown)) = (&operated.plan, body.get_mut("plan")) {
                *shown = planned(&state, id, plan).await?;
            }
            state.reply_acted(is_dry, body)
        }
    }
}

/// Gives the revision of whom a verb concerns; 0 of one that is not there or cannot be read.
async fn revision(state: &State, verb: Verb, id: ProcedureId) -> Result<Seq, Problem> {
    let row = match verb {
        // Of the whole family, which is set aside, perhaps because this row cannot be read.
        Verb::Discharge => {
            let root = state.engine().committed().status(ProcedureId::root(id.family)).await;
            root.ok().flatten()
        }
        Verb::Acknowledge => state.engine().committed().status(ProcedureId::root(id.family)).await?,
        Verb::Pause
        | Verb::Resume
        | Verb::Retry
        | Verb::Abort
        | Verb::RetryUndo
        | Verb::SkipUndo
        | Verb::Bypass
        | Verb::OverrideResult
        | Verb::Priority
        | Verb::Signal
        | Verb::Reveal
        | Verb::Export => state.engine().committed().status(id).await?,
    };
    Ok(row.map(|row| row.revision).unwrap_or_default())
}

async fn make(state: &State, verb: Verb, id: ProcedureId, request: Request) -> Result<Operated, Problem> {
    let executor = &state.executor;
    let scope = if request.wish.recursive {
        BypassScope::Descendants
    } else {
        BypassScope::Alone
    };
    let Request { wish, by } = request;
    let operated = match verb {
        Verb::Pause => executor.pause(Pause::One(id), by).await,
        Verb::Resume => executor.resume(Pause::One(id), by).await,
        Verb::Retry => executor.retry_now(id, by).await,
        Verb::Abort => executor.abort_by(id, by).await,
        Verb::RetryUndo => executor.retry_undo(id, by).await,
        Verb::SkipUndo => executor.skip_undo(id, by).await,
        Verb::Bypass => executor.bypass(id, scope, BypassAs::Success, by).await,
        Verb::OverrideResult => return override_result(state, id, scope, Request { wish, by }).await,
        Verb::Discharge => executor.discharge(id.family, by).await,
        Verb::Priority => {
            let priority = wish.priority.ok_or_else(|| wrong("`priority` is missing."))?;
            executor.set_priority(id, priority, by).await
        }
        Verb::Acknowledge => executor.acknowledge_by(id, by).await,
        Verb::Signal => {
            let name = wish.name.filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| wrong("`name` is missing."))?;
            executor.signal_by(id, &name, &wish.payload, by).await
        }
        // They are told apart before.
        Verb::Reveal | Verb::Export => return Err(Problem::no_such_path()),
    };
    Ok(operated?)
}

/// One that has not ended ends as a success with the output; of one that succeeded it is replaced.
async fn override_result(
    state: &State,
    id: ProcedureId,
    scope: BypassScope,
    Request { wish, by }: Request,
) -> Result<Operated, Problem> {
    let output = wish.output()?;
    let row = state.engine().committed().status(id).await?;
    let row = row.ok_or_else(|| Problem::unknown(&format!("procedure {id}")))?;
    let fits = state.engine().check_output(&row.kind, &output);
    fits.map_err(|error| wrong(format!("The output is none of the kind \"{}\": {error}.", row.kind)))?;
    let operated = if row.ended.is_some() {
        state.executor.ask(OverrideResult::encoded(id, output, by)).await
    } else {
        let outcome = BypassAs::Output(output);
        state.executor.ask(Bypass { id, scope, outcome, by }).await
    };
    Ok(operated?)
}

/// `kinds/{kind}/{verb}` and `engine/{verb}`: to pause and to resume, and to drain.
pub(super) async fn many(request: HttpRequest, body: Body, state: web::Data<State>) -> Answer {
    let caller = caller(&request)?;
    let kind = request.match_info().get("kind").map(Kind::from);
    let pauses = match (word(&request, "verb"), &kind) {
        ("pause", _) => true,
        ("resume", _) => false,
        ("drain", None) => {
            caller.need(Right::Configure)?;
            let asked = Request::read(&request, body, &caller.0)?;
            return drain(&state, asked).await;
        }
        _ => return Err(Problem::no_such_path()),
    };
    caller.need(Right::Operate)?;
    let by = Request::read(&request, body, &caller.0)?.by;
    let what = kind.map_or(Pause::All, Pause::Kind);
    let is_dry = by.dry_run;
    let operated = if pauses {
        state.executor.pause(what, by).await
    } else {
        state.executor.resume(what, by).await
    }?;
    answer(&state, &operated, is_dry, None)
}

/// `engine/drain`. Its plan was made for this engine: one that was started since is another.
async fn drain(state: &State, mut asked: Request) -> Answer {
    asked.must_be_planned()?;
    let deadline = asked.wish.deadline_ms.map_or(DEADLINE, Duration::from_millis);
    if deadline > DEADLINE_MAX {
        return Err(wrong(format!(
            "\"deadline_ms\" is at most {}.",
            DEADLINE_MAX.as_millis()
        )));
    }
    let snapshot = state.executor.snapshot().await?;
    let this = Seq(snapshot.epoch.0);
    if let Some(expected) = asked.by.expected.take().filter(|expected| *expected != this) {
        return Err(Problem::restarted(expected, this));
    }
    let is_dry = asked.by.dry_run;
    let until = state.now().after(deadline);
    state.moment()?;
    let operated = state.executor.drain_by(deadline, asked.by).await?;
    let mut body = shown(&operated, is_dry, Some(this));
    if let Some(body) = body.as_object_mut() {
        let drain = json!({
            "deadline_ms": millis(deadline),
            "until": time(until),
            "going": snapshot.going,
            "live_families": snapshot.live_families,
        });
        body.insert("drain".to_owned(), drain);
    }
    state.reply_acted(is_dry, body)
}

/// `limits/{key}`: sets the capacity of a limit.
pub(super) async fn limit(request: HttpRequest, body: Body, state: web::Data<State>) -> Answer {
    let caller = caller(&request)?;
    caller.need(Right::Configure)?;
    let asked = Request::read(&request, body, &caller.0)?;
    let is_dry = asked.by.dry_run;
    let limit = match (asked.wish.limit, asked.wish.unlimited) {
        (Some(limit), false) => Some(limit),
        (None, true) => None,
        (Some(_), true) | (None, false) => return Err(wrong("Send either `limit`, a number, or `unlimited`, true.")),
    };
    let operated = state.executor.set_limit(word(&request, "key"), limit, asked.by).await?;
    answer(&state, &operated, is_dry, None)
}

/// Any other method: there is such a path, or there is not.
pub(super) async fn other_method(request: HttpRequest) -> HttpResponse {
    let (verb, path) = (word(&request, "verb"), request.match_info());
    let is_known = match verb {
        "" | "pause" | "resume" => true,
        "drain" => path.get("id").is_none() && path.get("kind").is_none(),
        verb => path.get("kind").is_none() && Verb::of(verb).is_some(),
    };
    let problem = if is_known {
        Problem::method("POST")
    } else {
        Problem::no_such_path()
    };
    problem.error_response()
}

fn word<'a>(request: &'a HttpRequest, name: &str) -> &'a str {
    request.match_info().get(name).unwrap_or_default()
}

fn answer(state: &State, operated: &Operated, is_dry: bool, revision: Option<Seq>) -> Answer {
    state.reply_acted(is_dry, shown(operated, is_dry, revision))
}

fn shown(operated: &Operated, is_dry: bool, revision: Option<Seq>) -> Value {
    let changes: Vec<Value> = operated.changes.iter().map(changed).collect();
    json!({
        "dry_run": is_dry,
        "revision": revision.map(|revision| revision.to_string()),
        "number": operated.number.map(|number| number.to_string()),
        "changes": changes,
        "changed": operated.changed,
        "abort": operated.abort.as_ref().map(met),
        "plan": operated.plan.as_deref().map(|plan| PlanView::new(plan, &[])),
    })
}

/// Shows a plan, its stages named by the history; of a family that cannot be read none are.
async fn planned(state: &State, id: ProcedureId, plan: &Plan) -> Result<Value, Problem> {
    let history = if plan.undone.is_empty() && plan.stays.is_empty() {
        Vec::new()
    } else {
        state.engine().committed().history(id.family, HISTORY_MAX).await?
    };
    Ok(json!(PlanView::new(plan, &history)))
}

/// What an abort met.
fn met(abort: &AbortAnswer) -> Value {
    let (outcome, why) = match abort {
        AbortAnswer::WillRollBack => ("will_roll_back", None),
        AbortAnswer::AlreadyRollingBack => ("already_rolling_back", None),
        AbortAnswer::TooLate(why) => ("too_late", Some(why)),
    };
    json!({ "outcome": outcome, "why": why })
}
