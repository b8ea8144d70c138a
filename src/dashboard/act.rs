//! What operators do, as `POST`: each verb through the engine's own message, with who asks, why,
//! and what it was meant for. `?dry_run=true` tells what it would do.

use actix_web::{HttpRequest, HttpResponse, ResponseError, web};
use procession_actors::AskError;
use procession_kernel::{AbortAnswer, By, BypassAs, Kind, Operated, Pause, ProcedureId, Reach, Seq};
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::{Grant, Right};
use super::params::{Params, id_of};
use super::problem::{Answer, Problem};
use super::routes::BODY_MAX;
use super::state::{State, caller};
use super::whole::changed;
use crate::executor::Executor;

/// Longest reason, in bytes: it is kept with the entry of the audit.
const REASON_MAX: usize = 1024;
/// Longest key, in bytes.
const KEY_MAX: usize = 256;

/// The body of a request.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Wish {
    /// Why.
    reason: String,
    /// The revision that the plan was made for.
    expected: Option<String>,
    /// The same key, and the same request, takes effect once.
    key: Option<String>,
    /// The id, typed by hand, where nothing can be undone.
    confirm: Option<String>,
    /// Those below it, too.
    recursive: bool,
    /// For `priority`.
    priority: Option<i16>,
    /// For limits.
    limit: Option<u32>,
    /// For limits: as many as may come.
    unlimited: bool,
}

/// What can be asked for of one procedure.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Pause,
    Resume,
    Retry,
    Abort,
    RetryUndo,
    SkipUndo,
    Bypass,
    Priority,
}

impl Verb {
    fn of(word: &str) -> Option<Self> {
        match word {
            "pause" => Some(Self::Pause),
            "resume" => Some(Self::Resume),
            "retry" => Some(Self::Retry),
            "abort" => Some(Self::Abort),
            "retry-undo" => Some(Self::RetryUndo),
            "skip-undo" => Some(Self::SkipUndo),
            "bypass" => Some(Self::Bypass),
            "priority" => Some(Self::Priority),
            _ => None,
        }
    }

    const fn right(self) -> Right {
        match self {
            Self::Pause | Self::Resume | Self::Retry | Self::RetryUndo => Right::Operate,
            Self::Abort => Right::Abort,
            Self::SkipUndo | Self::Bypass => Right::Repair,
            Self::Priority => Right::Configure,
        }
    }

    /// Tells whether a plan must be seen first: what it does cannot be taken back.
    const fn needs_plan(self) -> bool {
        matches!(self, Self::Abort | Self::RetryUndo | Self::SkipUndo | Self::Bypass)
    }
}

/// One request that was read and may be made.
struct Request {
    wish: Wish,
    by: By,
}

impl Request {
    fn read(request: &HttpRequest, body: &[u8], grant: &Grant) -> Result<Self, Problem> {
        let params = Params::of(request, &["dry_run"])?;
        let dry_run = match params.text("dry_run") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(wrong("\"dry_run\" is true or false.")),
        };
        if body.len() > BODY_MAX {
            return Err(Problem::too_large("The body", body.len(), BODY_MAX));
        }
        let wish = if body.is_empty() {
            Ok(Wish::default())
        } else {
            serde_json::from_slice::<Wish>(body)
        };
        let wish = wish.map_err(|error| wrong(format!("The body cannot be read: {error}.")))?;
        let by = wish.by(grant, dry_run)?;
        Ok(Self { wish, by })
    }

    fn must_be_planned(&self) -> Result<(), Problem> {
        if self.by.dry_run || self.by.expected.is_some() {
            return Ok(());
        }
        let remedy = "Ask with `?dry_run=true` first, and send its `revision` as `expected`.";
        Err(Problem::request(
            "This needs the revision that its plan was made for.",
            remedy,
        ))
    }

    fn must_be_confirmed(&self, id: ProcedureId) -> Result<(), Problem> {
        if self.by.dry_run || self.wish.confirm.as_deref() == Some(id.to_string().as_str()) {
            return Ok(());
        }
        let remedy = "Send the id, typed by hand, as `confirm`.";
        Err(Problem::request(
            "This cannot be undone, and needs the id once more.",
            remedy,
        ))
    }
}

impl Wish {
    fn by(&self, grant: &Grant, dry_run: bool) -> Result<By, Problem> {
        let who = grant.who().ok_or_else(Problem::denied)?;
        if self.reason.trim().is_empty() && !dry_run {
            return Err(Problem::request(
                "This needs a reason.",
                "Send it as `reason`; the audit keeps it.",
            ));
        }
        for (name, text, most) in [
            ("The reason", self.reason.as_str(), REASON_MAX),
            ("The key", self.key.as_deref().unwrap_or_default(), KEY_MAX),
        ] {
            if text.len() > most {
                return Err(Problem::too_large(name, text.len(), most));
            }
        }
        let mut by = By::new(who, self.reason.as_str());
        by.dry_run = dry_run;
        if let Some(key) = &self.key {
            by = by.key(key.as_str());
        }
        if let Some(expected) = &self.expected {
            let revision = expected.parse().map_err(|_| wrong("\"expected\" is a revision."))?;
            by = by.expecting(Seq(revision));
        }
        Ok(by)
    }
}

fn wrong(text: impl Into<String>) -> Problem {
    Problem::request(text, "Correct it.")
}

/// `procedures/{id}/{verb}`.
pub(super) async fn procedure(request: HttpRequest, body: web::Bytes, state: web::Data<State>) -> Answer {
    let caller = caller(&request)?;
    let verb = Verb::of(word(&request, "verb")).ok_or_else(Problem::no_such_path)?;
    caller.need(verb.right())?;
    let id = id_of(&request)?;
    let asked = Request::read(&request, &body, &caller.0)?;
    if verb.needs_plan() {
        asked.must_be_planned()?;
    }
    if verb == Verb::Bypass {
        asked.must_be_confirmed(id)?;
    }
    // Read before it is asked: whoever goes by it is refused if anything came between.
    let revision = state.engine().beside().status(id).await?.map(|row| row.revision);
    let is_dry = asked.by.dry_run;
    let operated = make(&state.executor, verb, id, asked).await??;
    answer(&state, &operated, is_dry, revision)
}

async fn make(
    executor: &Executor,
    verb: Verb,
    id: ProcedureId,
    Request { wish, by }: Request,
) -> Result<Result<Operated, AskError>, Problem> {
    let operated = match verb {
        Verb::Pause => executor.pause(Pause::One(id), by).await,
        Verb::Resume => executor.resume(Pause::One(id), by).await,
        Verb::Retry => executor.retry_now(id, by).await,
        Verb::Abort => executor.abort_by(id, by).await,
        Verb::RetryUndo => executor.retry_undo(id, by).await,
        Verb::SkipUndo => executor.skip_undo(id, by).await,
        Verb::Bypass => {
            let reach = if wish.recursive {
                Reach::Descendants
            } else {
                Reach::Alone
            };
            executor.bypass(id, reach, BypassAs::Success, by).await
        }
        Verb::Priority => {
            let priority = wish.priority.ok_or_else(|| wrong("`priority` is missing."))?;
            executor.set_priority(id, priority, by).await
        }
    };
    Ok(operated)
}

/// `kinds/{kind}/{verb}` and `engine/{verb}`: to pause and to resume.
pub(super) async fn many(request: HttpRequest, body: web::Bytes, state: web::Data<State>) -> Answer {
    let caller = caller(&request)?;
    let pauses = match word(&request, "verb") {
        "pause" => true,
        "resume" => false,
        _ => return Err(Problem::no_such_path()),
    };
    caller.need(Right::Operate)?;
    let by = Request::read(&request, &body, &caller.0)?.by;
    let what = match request.match_info().get("kind") {
        Some(kind) => Pause::Kind(Kind::from(kind)),
        None => Pause::All,
    };
    let is_dry = by.dry_run;
    let operated = if pauses {
        state.executor.pause(what, by).await
    } else {
        state.executor.resume(what, by).await
    }?;
    answer(&state, &operated, is_dry, None)
}

/// `limits/{key}`: sets the capacity of a limit.
pub(super) async fn limit(request: HttpRequest, body: web::Bytes, state: web::Data<State>) -> Answer {
    let caller = caller(&request)?;
    caller.need(Right::Configure)?;
    let asked = Request::read(&request, &body, &caller.0)?;
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
    let is_known = match word(&request, "verb") {
        "" | "pause" | "resume" => true,
        verb => request.match_info().get("id").is_some() && Verb::of(verb).is_some(),
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
    let changes: Vec<Value> = operated.changes.iter().map(changed).collect();
    let body = json!({
        "dry_run": is_dry,
        "revision": revision.map(|revision| revision.to_string()),
        "number": operated.number.map(|number| number.to_string()),
        "changes": changes,
        "changed": operated.changed,
        "abort": operated.abort.as_ref().map(met),
    });
    state.reply(state.moment()?, body)
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
