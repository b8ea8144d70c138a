//! Errors as replies have them: `application/problem+json` with what sort of error it is,
//! one sentence, and a remedy.

use std::fmt;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use actix_web::{HttpResponse, ResponseError};
use procession_actors::{AskError, ReadError, StoreError, SubmitError};
use procession_kernel::{NotNow, ProcedureId, Seq};
use serde_json::{Value, json};

use super::access::Right;
use super::act::bulk::Difference;
use super::hosts::Hosts;

/// An error that is sent. Results are as small as what they are without it.
#[derive(Debug)]
pub(super) struct Problem(Box<Parts>);

#[derive(Debug)]
struct Parts {
    status: StatusCode,
    kind: &'static str,
    /// One sentence.
    text: String,
    remedy: String,
    /// Seconds until it may be tried again.
    retry_after: Option<u64>,
    /// More that programs go by.
    more: Vec<(&'static str, Value)>,
}

pub(super) type Answer = Result<HttpResponse, Problem>;

impl Problem {
    fn new(status: StatusCode, kind: &'static str, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            status,
            kind,
            text: text.into(),
            remedy: remedy.into(),
            retry_after: None,
            more: Vec::new(),
        }))
    }

    fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.0.more.push((name, value.into()));
        self
    }

    fn again_after(mut self, time: Duration) -> Self {
        self.0.retry_after = Some(time.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX));
        self
    }

    pub(super) fn strange_host(asked: &str, hosts: &Hosts) -> Self {
        let text = format!("This dashboard was asked for {asked}; it is reached as {hosts}.");
        let remedy =
            "Ask for it by such a name, or have the host's code add one: `Dashboard::builder(..).hosts([..])`.";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "host", text, remedy)
    }

    pub(super) fn denied() -> Self {
        let text = "This request may not see the dashboard.";
        let remedy = "Ask from this machine, to localhost and through no proxy, or let the host's resolver grant it.";
        Self::new(StatusCode::FORBIDDEN, "denied", text, remedy)
    }

    pub(super) fn right(right: Right) -> Self {
        let text = format!("This needs the right \"{right}\".");
        let remedy = "Ask someone who has it, or have the host's resolver grant it.";
        Self::new(StatusCode::FORBIDDEN, "right", text, remedy).with("right", right.as_str())
    }

    pub(super) fn unsafe_write(text: &str, remedy: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, "cross_site", text, remedy)
    }

    pub(super) fn not_json() -> Self {
        let text = "The body of a request that changes something is JSON.";
        let remedy = "Send it with the header `Content-Type: application/json`.";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", text, remedy)
    }

    pub(super) fn request(text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "request", text, remedy)
    }

    pub(super) fn filter(text: impl Into<String>, position: usize) -> Self {
        let remedy = "Correct it there; docs/reference/dashboard.md lists the terms of a filter.";
        Self::new(StatusCode::BAD_REQUEST, "filter", text, remedy).with("position", position)
    }

    pub(super) fn no_such_path() -> Self {
        let text = "The API has no such path.";
        Self::new(
            StatusCode::NOT_FOUND,
            "path",
            text,
            "See docs/reference/dashboard.md for the paths there are.",
        )
    }

    pub(super) fn method(allowed: &'static str) -> Self {
        let text = "The path does not take this method.";
        let remedy = format!("It takes {allowed}.");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method", text, remedy).with("allow", allowed)
    }

    pub(super) fn unknown(id: ProcedureId) -> Self {
        Self::no_such(
            &format!("procedure {id}"),
            "Check the id; results go some time after the end.",
        )
    }

    /// Refuses the id of a procedure that is not of the sort that the path is about, such as a stream.
    pub(super) fn other_sort(sort: &str, id: ProcedureId, list: &str) -> Self {
        Self::no_such(
            &format!("{sort} {id}"),
            &format!("Check the id; {list} lists what there is."),
        )
    }

    pub(super) fn unknown_kind(kind: &str) -> Self {
        let remedy = "Check the name; `kinds` lists those that the engine has.";
        Self::no_such(&format!("kind \"{}\"", kind.escape_debug()), remedy)
    }

    pub(super) fn unknown_entry(id: ProcedureId, number: u32) -> Self {
        let remedy = "Check the number; `history` lists the entries, and the oldest of a long history go.";
        Self::no_such(&format!("entry {number} in the history of {id}"), remedy)
    }

    fn no_such(what: &str, remedy: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown", format!("There is no {what}."), remedy)
    }

    pub(super) fn unknown_key(key: &str) -> Self {
        let text = format!("No procedure with the key \"{}\" is known.", key.escape_debug());
        let remedy = "Check the key; it goes with the result, unless the submission keeps it longer.";
        Self::new(StatusCode::NOT_FOUND, "unknown", text, remedy)
    }

    /// The connection ends with it: what is left of the body may never come.
    pub(super) fn slow_body(limit: Duration) -> Self {
        let text = format!("The body did not come whole in {} s.", limit.as_secs());
        let remedy = "See to the network, or send less, and send it again.";
        Self::new(StatusCode::REQUEST_TIMEOUT, "slow", text, remedy)
    }

    pub(super) fn too_large(what: &str, size: usize, limit: usize) -> Self {
        let text = format!("{what} has {size} bytes or more, and {limit} are the limit.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text, "Send less.").with("limit", limit)
    }

    pub(super) fn too_many(what: &str, remedy: &str, retry_after: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", what, remedy).again_after(retry_after)
    }

    pub(super) fn too_many_at_once(found: usize, limit: usize) -> Self {
        let text = format!("The filter admits {found} procedures or more, and {limit} are the limit.");
        let remedy = "Narrow the filter, or send a higher `limit`: 5000 at most.";
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text, remedy).with("limit", limit)
    }

    pub(super) fn uncounted(found: usize) -> Self {
        let text = format!("Counting took too long: the filter admits at least {found} procedures.");
        let remedy = "Narrow the filter, or ask again when the engine is less busy.";
        Self::too_many(&text, remedy, Duration::from_secs(1))
    }

    /// Refuses what cannot be taken back, and comes without the revision of its plan.
    pub(super) fn unplanned() -> Self {
        let remedy = "Ask with `?dry_run=true` first, and send its `revision` as `expected`.";
        Self::request("This needs the revision that its plan was made for.", remedy)
    }

    /// Refuses a bulk for procedures that its plan did not have.
    pub(super) fn of_others(count: usize, revision: String, difference: Option<&Difference>) -> Self {
        let remedy = "Look at the plan again, and ask with the new revision.";
        let text = match difference {
            Some(Difference { came, went }) => format!(
                "The filter admits other procedures than when it was planned: {came} came and {went} went, and {count} \
                 are admitted by now."
            ),
            None => format!(
                "The filter admits other procedures than when it was planned: {count} by now. The plan is too old to say \
                 which came and which went."
            ),
        };
        let problem = Self::new(StatusCode::CONFLICT, "revised", text, remedy)
            .with("revision", revision)
            .with("count", count);
        match difference {
            Some(Difference { came, went }) => problem.with("came", *came).with("went", *went),
            None => problem,
        }
    }

    #[cfg(feature = "saga")]
    pub(super) fn superseded() -> Self {
        let text = "Another decision came first, or another member of the saga has come to rest.";
        let remedy = "Look at the plan again, and ask with the new revision.";
        Self::new(StatusCode::CONFLICT, "revised", text, remedy)
    }

    #[cfg(feature = "saga")]
    pub(super) fn not_now(text: &str) -> Self {
        let remedy = "See how it stands, and ask again.";
        Self::new(StatusCode::CONFLICT, "not_now", sentence(text), remedy)
    }

    #[cfg(feature = "saga")]
    pub(super) fn saga_rests(id: ProcedureId) -> Self {
        let text = format!("Saga {id} rests, and takes no answer.");
        let remedy = "Send it on with `forward` and new params, or with `skip` and the results of the state where it rests; \
                      `abort` undoes it.";
        Self::new(StatusCode::CONFLICT, "not_now", text, remedy)
    }

    pub(super) fn restarted(planned: Seq, found: Seq) -> Self {
        let text = format!("The engine has epoch {found} by now, not {planned}: it was started anew.");
        let remedy = "Look at the plan again, and ask with the new revision.";
        Self::new(StatusCode::CONFLICT, "revised", text, remedy).with("revision", found.to_string())
    }

    pub(super) fn key_conflict(id: ProcedureId) -> Self {
        let text = format!("The key was used with another request, for {id}.");
        Self::new(StatusCode::CONFLICT, "not_now", text, "Use a new key.")
    }

    pub(super) fn recovering() -> Self {
        let text = "The dashboard is still reading what the journal holds.";
        let remedy = "Ask again in a moment.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "recovering", text, remedy).again_after(Duration::from_secs(1))
    }

    pub(super) fn closing() -> Self {
        let text = "The engine drains, or has stopped.";
        let remedy = "Ask its successor.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", text, remedy)
    }

    pub(super) fn silent() -> Self {
        let text = "The engine has not answered in time.";
        let remedy = "Ask again; if it lasts, see `attention` and the engine's log: the disk may not answer.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "silent", text, remedy).again_after(Duration::from_secs(1))
    }

    fn body(&self) -> Value {
        let mut body = json!({
            "type": "about:blank",
            "title": self.0.status.canonical_reason().unwrap_or("Error"),
            "status": self.0.status.as_u16(),
            "kind": self.0.kind,
            "detail": self.0.text,
            "remedy": self.0.remedy,
        });
        if let Some(body) = body.as_object_mut() {
            body.extend(
                self.0
                    .more
                    .iter()
                    .map(|(name, value)| ((*name).to_owned(), value.clone())),
            );
        }
        body
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl ResponseError for Problem {
    fn status_code(&self) -> StatusCode {
        self.0.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut response = HttpResponse::build(self.0.status);
        response.insert_header((CONTENT_TYPE, "application/problem+json"));
        if self.0.status == StatusCode::REQUEST_TIMEOUT {
            response.force_close();
        }
        if let Some(seconds) = self.0.retry_after {
            response.insert_header((RETRY_AFTER, seconds.to_string()));
        }
        for (name, value) in &self.0.more {
            if let ("allow", Value::String(allowed)) = (*name, value) {
                response.insert_header((ALLOW, allowed.as_str()));
            }
        }
        response.body(self.body().to_string())
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        let text = sentence(&error.to_string());
        match &error {
            AskError::Unknown(id) => Self::unknown(*id),
            AskError::Finished { revision, .. } => {
                let remedy = "It has ended; there is nothing to do.";
                Self::new(StatusCode::CONFLICT, "finished", text, remedy).with("revision", revision.to_string())
            }
            AskError::TooLarge { size, limit } => Self::too_large("The value", *size, *limit),
            AskError::SignalConflict { .. } => {
                let remedy = "Use a new key, or send the same signal.";
                Self::new(StatusCode::CONFLICT, "not_now", text, remedy)
            }
            AskError::Closed { .. } => {
                Self::new(StatusCode::CONFLICT, "not_now", text, "Use another name for the event.")
            }
            AskError::NotAccepted { .. } => Self::request(text, "Send what the procedure's kind takes."),
            AskError::BatchTooLarge { .. } => Self::request(text, "Send fewer at once."),
            AskError::BadKey { .. } => Self::request(text, "Give a key, or leave it out."),
            AskError::NotNow {
                kind: NotNow::Invalid, ..
            } => Self::request(text, "Correct it, and send it again."),
            AskError::NotNow { .. } => Self::new(
                StatusCode::CONFLICT,
                "not_now",
                text,
                "See how it stands, and ask again.",
            ),
            AskError::Revised { found, state, .. } => {
                let remedy = "Look at it again, and ask with the new revision.";
                Self::new(StatusCode::CONFLICT, "revised", text, remedy)
                    .with("revision", found.to_string())
                    .with("state", state.to_string())
            }
            AskError::Busy { retry_after } => Self::too_many(&text, "Ask again later.", *retry_after),
            AskError::NotYet => Self::silent(),
            AskError::JournalFailed(_) => {
                let remedy = "See to the disk, then restart the engine.";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "journal_failed", text, remedy)
            }
            AskError::Moved { .. } => {
                let remedy = "Ask the engine that has the journal now.";
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "moved", text, remedy)
            }
            AskError::Stopped | AskError::Read(ReadError::Store(StoreError::Closed { .. })) => Self::closing(),
            AskError::Read(ReadError::TooLarge { limit, .. }) => {
                let remedy = "Copy the journal's directory, and use `procession export` on the copy.";
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text, remedy).with("limit", *limit)
            }
            // One that is not known here yet is one of the engine's.
            AskError::Read(_) | _ => Self::unreadable(text),
        }
    }
}

impl Problem {
    fn unreadable(text: String) -> Self {
        let remedy = "See the engine's log; `procession export` reads what it can of a damaged family.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "unreadable", text, remedy)
    }
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        let text = sentence(&error.to_string());
        match &error {
            SubmitError::Busy { retry_after, .. } => Self::too_many(&text, "Ask again later.", *retry_after),
            SubmitError::KeyConflict { id, .. } => Self::key_conflict(*id),
            SubmitError::JournalFailed(why) => AskError::JournalFailed(why.clone()).into(),
            SubmitError::Moved { newer } => AskError::Moved { newer: *newer }.into(),
            SubmitError::Stopped | SubmitError::Draining => Self::closing(),
            SubmitError::KeyUnread { why, .. } => AskError::Read(why.clone()).into(),
            SubmitError::Unsupported { why } => {
                let text = sentence(&format!("the procedure cannot run here: {why}"));
                Self::request(text, "Correct it, or register what it needs.")
            }
            SubmitError::UnknownKind { .. }
            | SubmitError::BadKey { .. }
            | SubmitError::TooLarge { .. }
            | SubmitError::BatchTooLarge { .. }
            | SubmitError::BadChildren { .. }
            | SubmitError::BadName { .. }
            | SubmitError::BadLabels(_)
            | SubmitError::Codec(_)
            | _ => Self::request(text, "Correct it."),
        }
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        AskError::from(error).into()
    }
}

/// Errors begin small and end bare, as parts of a line do; here they stand alone.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string())
        .unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}
