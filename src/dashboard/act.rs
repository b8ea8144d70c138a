//! Requests of operators, as `POST`: each verb is sent to the engine with who sends it, why, and the revision that it
//! was planned for. With `?dry_run=true` the answer is the plan, and nothing changes.

pub(super) mod bulk;
mod reveal;
mod setting;
mod submit;
mod verb;
mod wish;

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, ResponseError, web};
use procession_actors::AskError;
use procession_actors::journal::codec;
use procession_actors::messages::Operate;
use procession_actors::view::Status;
use procession_kernel::{
    AbortAnswer, Blob, BypassAs, BypassScope, EventName, Kind, Limit, Operated, PauseScope, Plan, ProcedureId, Seq,
    Verb, VerbName, WaitReason,
};
use serde_json::{Value, json};

use self::setting::Setting;
pub(super) use self::submit::is_own;
use self::verb::Caution;
use self::wish::wrong;
pub(super) use self::wish::{Body, Request, Wish};
use super::access::Right;
use super::params::{id_of, name_of};
use super::problem::{Answer, Problem};
use super::state::{State, caller};
use crate::views::{ChangedView, PlanView, millis, time};

/// How long running stages may take when the engine drains, unless something else is sent.
const DEADLINE: Duration = Duration::from_secs(30);
/// The same, at most.
const DEADLINE_MAX: Duration = Duration::from_hours(1);
/// Entries of a family's history that name the undos of a plan, at most.
const HISTORY_MAX: usize = 100_000;

/// `procedures/{id}/{verb}`.
pub(super) async fn procedure(request: HttpRequest, body: Body, state: web::Data<State>) -> Answer {
    let caller = caller(&request)?;
    let (verb, terms) = verb::named(word(&request, "verb")).ok_or_else(Problem::no_such_path)?;
    caller.need(terms.right)?;
    state.can_tell()?;
    let id = id_of(&request)?;
    let asked = Request::read_with(&request, body, &caller.0, terms.needs_reason)?;
    if terms.caution != Caution::None {
        asked.must_be_planned()?;
    }
    if terms.caution == Caution::PlanAndId {
        asked.must_be_confirmed(id)?;
    }
    if verb == VerbName::Reveal {
        return reveal::reveal(&state, id, asked).await;
    }
    if verb == VerbName::Export {
        return reveal::export(&state, id, asked).await;
    }
    #[cfg(feature = "saga")]
    super::saga::must_be_no_answer(&state, id, verb, &asked.wish).await?;
    // Read before the request is decided: a request that expects it is refused if anything happened in between.
    let row = row_of(&state, verb, id).await?;
    if verb == VerbName::RunAgain {
        submit::may_run_again(row.as_ref())?;
    }
    let revision = row.as_ref().map(|row| row.revision).unwrap_or_default();
    let is_dry = asked.by.dry_run;
    let setting = setting::of_one(verb, row.as_ref(), &asked.wish);
    let operated = operate(&state, verb, id, asked).await?;
    let mut body = shown(&operated, is_dry, Some(revision));
    sets(&mut body, setting.filter(|_| is_dry));
    if let (Some(plan), Some(shown)) = (&operated.plan, body.get_mut("plan")) {
        *shown = planned(&state, id, plan).await?;
    }
    state.reply_acted(is_dry, body)
}

/// Returns the row that a verb concerns; `None` if it is not there or cannot be read. Its revision is that of the plan.
async fn row_of(state: &State, verb: VerbName, id: ProcedureId) -> Result<Option<Status>, Problem> {
    let of_root = matches!(verb, VerbName::Discharge | VerbName::Acknowledge | VerbName::RunAgain);
    let id = if of_root { ProcedureId::root(id.family) } else { id };
    if matches!(verb, VerbName::RetryUndo | VerbName::SkipUndo) {
        return rolled_back(state, id).await;
    }
    let row = state.engine().committed().status(id).await;
    Ok(if verb == VerbName::Discharge {
        // The family is quarantined, perhaps because this row cannot be read.
        row.ok().flatten()
    } else {
        row?
    })
}

/// Returns the row whose rollback has failed, of a procedure or above it: an undo that failed is one of that rollback, and
/// other undos come and go while the rows of its members stay as they are. If none has failed, its own row.
async fn rolled_back(state: &State, id: ProcedureId) -> Result<Option<Status>, Problem> {
    let committed = state.engine().committed();
    let Some(own) = committed.status(id).await? else {
        return Ok(None);
    };
    let mut above = own.parent;
    let mut found = own.clone();
    while found.wait != Some(WaitReason::RollbackFailed) {
        let Some(parent) = above else { return Ok(Some(own)) };
        match committed.status(parent).await? {
            // Children have higher numbers than their parents, so a damaged tree is no circle either.
            Some(row) if row.id < found.id => (above, found) = (row.parent, row),
            Some(_) | None => return Ok(Some(own)),
        }
    }
    Ok(Some(found))
}

async fn operate(
    state: &State,
    verb: VerbName,
    id: ProcedureId,
    Request { wish, by }: Request,
) -> Result<Operated, Problem> {
    let scope = if wish.recursive {
        BypassScope::Descendants
    } else {
        BypassScope::Alone
    };
    let verb = match verb {
        VerbName::Pause => Verb::Pause(PauseScope::One(id)),
        VerbName::Resume => Verb::Resume(PauseScope::One(id)),
        VerbName::RetryNow => Verb::RetryNow(id),
        VerbName::Abort => Verb::Abort(id),
        VerbName::RetryUndo => Verb::RetryUndo(id),
        VerbName::SkipUndo => Verb::SkipUndo(id),
        VerbName::Bypass => Verb::Bypass(id, scope, wish.ends_as.into()),
        VerbName::OverrideResult => with_output(state, id, scope, wish.output()?).await?,
        VerbName::Discharge => Verb::Discharge(id.family),
        VerbName::SetPriority => Verb::SetPriority(id, wish.priority()?),
        VerbName::Acknowledge => Verb::Acknowledge(id),
        VerbName::RunAgain => Verb::RunAgain(id),
        VerbName::Decide => Verb::Decide(id, wish.answer()?),
        VerbName::Signal => {
            let name = wish.name.filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| wrong("`name` is missing."))?;
            let payload = codec::encode_user(&wish.payload).map_err(AskError::from)?;
            Verb::Signal(id, EventName::from(name), payload)
        }
        // They are served elsewhere.
        VerbName::Reveal | VerbName::Export | VerbName::SetLimit | VerbName::Submit | VerbName::Drain => {
            return Err(Problem::no_such_path());
        }
    };
    Ok(state.executor.operate(Operate { verb, by }).await?)
}

/// Returns the verb that gives a procedure an output: a bypass if it lives, and an override if it has ended.
async fn with_output(state: &State, id: ProcedureId, scope: BypassScope, output: Blob) -> Result<Verb, Problem> {
    let row = state.engine().committed().status(id).await?;
    let row = row.ok_or_else(|| Problem::unknown(id))?;
    let fits = state.engine().check_output(&row.kind, &output);
    fits.map_err(|error| wrong(format!("The output is none of the kind \"{}\": {error}.", row.kind)))?;
    Ok(if row.ended.is_some() {
        Verb::OverrideResult(id, output)
    } else {
        Verb::Bypass(id, scope, BypassAs::Output(output))
    })
}

/// `kinds/{kind}/{verb}` and `engine/{verb}`: to pause and to resume, to submit, and to drain.
pub(super) async fn many(request: HttpRequest, body: Body, state: web::Data<State>) -> Answer {
    let caller = caller(&request)?;
    let kind = request
        .match_info()
        .get("kind")
        .map(|_| Kind::from(name_of(&request, "kind")));
    let verb: VerbName = word(&request, "verb").parse().map_err(|_| Problem::no_such_path())?;
    state.can_tell()?;
    if verb == VerbName::Drain && kind.is_none() {
        caller.need(Right::Configure)?;
        let asked = Request::read(&request, body, &caller.0)?;
        return drain(&state, asked).await;
    }
    if let (VerbName::Submit, Some(kind)) = (verb, &kind) {
        caller.need(Right::Submit)?;
        let asked = Request::read_with(&request, body, &caller.0, false)?;
        return submit::submit(&state, kind, asked).await;
    }
    let make = if verb == VerbName::Pause {
        Verb::Pause
    } else if verb == VerbName::Resume {
        Verb::Resume
    } else {
        return Err(Problem::no_such_path());
    };
    caller.need(Right::Operate)?;
    let by = Request::read(&request, body, &caller.0)?.by;
    let what = kind.map_or(PauseScope::All, PauseScope::Kind);
    let is_dry = by.dry_run;
    let setting = match is_dry {
        true => Some(setting::of_many(&state, &what, verb == VerbName::Pause).await?),
        false => None,
    };
    let verb = make(what);
    let operated = state.executor.operate(Operate { verb, by }).await?;
    let mut body = shown(&operated, is_dry, None);
    sets(&mut body, setting);
    state.reply_acted(is_dry, body)
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
    let operated = state.executor.operate(Operate::drain(deadline, asked.by)).await?;
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

/// `limits/{key}`: sets what a limit allows.
pub(super) async fn limit(request: HttpRequest, body: Body, state: web::Data<State>) -> Answer {
    let caller = caller(&request)?;
    caller.need(Right::Configure)?;
    state.can_tell()?;
    let asked = Request::read(&request, body, &caller.0)?;
    let is_dry = asked.by.dry_run;
    let limit = limit_of(&asked.wish)?;
    let key = name_of(&request, "key");
    let key = key.as_str();
    // Read before it is set.
    let (setting, is_new) = setting::of_limit(&state, key, limit).await?;
    let operated = state.executor.set_limit(key, limit, asked.by).await?;
    let mut body = shown(&operated, is_dry, None);
    sets(&mut body, is_dry.then_some(setting));
    if let Some(body) = body.as_object_mut() {
        body.insert("new".to_owned(), is_new.into());
    }
    if let Some(Value::Array(warnings)) = body.pointer_mut("/plan/warnings").filter(|_| is_new) {
        warnings.push(format!("there is no limit {key} yet: it is made").into());
    }
    state.reply_acted(is_dry, body)
}

/// What a request asks of a limit: permits at once, a rate, both, or no limit.
fn limit_of(wish: &Wish) -> Result<Limit, Problem> {
    let rate = match (wish.begins, wish.per_ms) {
        (Some(begins), Some(per_ms)) => Some(Limit::per(begins, Duration::from_millis(per_ms))),
        (None, None) => None,
        (Some(_), None) | (None, Some(_)) => {
            return Err(wrong("Send `begins` and `per_ms` together: a rate needs both."));
        }
    };
    match (rate, wish.limit, wish.unlimited) {
        (None, None, true) => Ok(Limit::UNLIMITED),
        (None, Some(limit), false) => Ok(Limit::at_once(limit)),
        (Some(rate), None, false) => Ok(rate),
        (Some(rate), Some(limit), false) => Ok(rate.and_at_once(limit)),
        (_, _, true) | (None, None, false) => Err(wrong(
            "Send `limit`, a number, or `begins` and `per_ms`, a rate, or both; or else `unlimited`, true.",
        )),
    }
}

/// Any other method: there is such a path, or there is not.
pub(super) async fn other_method(request: HttpRequest) -> HttpResponse {
    let (verb, path) = (word(&request, "verb"), request.match_info());
    let is_known = match verb {
        "" | "pause" | "resume" => true,
        "drain" => path.get("id").is_none() && path.get("kind").is_none(),
        "submit" => path.get("kind").is_some(),
        verb => path.get("kind").is_none() && verb::named(verb).is_some(),
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

/// Puts what a plan sets into its body.
fn sets(body: &mut Value, setting: Option<Setting>) {
    if let (Some(body), Some(setting)) = (body.as_object_mut(), setting) {
        body.insert("sets".to_owned(), json!([setting]));
    }
}

fn answer(state: &State, operated: &Operated, is_dry: bool, revision: Option<Seq>) -> Answer {
    state.reply_acted(is_dry, shown(operated, is_dry, revision))
}

fn shown(operated: &Operated, is_dry: bool, revision: Option<Seq>) -> Value {
    let changes: Vec<ChangedView> = operated.changes.iter().map(ChangedView::from).collect();
    json!({
        "dry_run": is_dry,
        "revision": revision.map(|revision| revision.to_string()),
        "number": operated.number.map(|number| number.to_string()),
        "changes": changes,
        "changed": operated.changed,
        "submitted": operated.submitted.map(|id| id.to_string()),
        "abort": operated.abort.as_ref().map(met),
        "reach": operated.reach.map(|reach| json!({ "undone": reach.undone, "stays": reach.stays })),
        "plan": operated.plan.as_deref().map(|plan| PlanView::new(plan, &[])),
    })
}

/// Shows a plan, its stages named by the history; of a family that cannot be read none are.
async fn planned(state: &State, id: ProcedureId, plan: &Plan) -> Result<Value, Problem> {
    let history = if plan.undone.is_empty() && plan.stays.is_empty() {
        Vec::new()
    } else {
        state
            .engine()
            .committed()
            .history_outline(id.family, HISTORY_MAX)
            .await?
    };
    Ok(json!(PlanView::new(plan, &history)))
}

/// What an abort met.
fn met(abort: &AbortAnswer) -> Value {
    let (outcome, why) = match abort {
        AbortAnswer::WillRollBack => ("will_roll_back", None),
        AbortAnswer::AlreadyRollingBack => ("already_rolling_back", None),
        AbortAnswer::TooLate(why) => ("too_late", Some(why)),
        _ => ("other", None),
    };
    json!({ "outcome": outcome, "why": why })
}
