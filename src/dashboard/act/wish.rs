//! A request as it is read: its body, with the bounds of each part, and what must be in it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::error::PayloadError;
use actix_web::{FromRequest, HttpRequest, web};
use futures::future::{Either, LocalBoxFuture, select};
use procession_actors::journal::codec;
use procession_kernel::{Blob, BypassAs, OperatorRequest, ProcedureId, Seq};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::dashboard::access::Grant;
use crate::dashboard::params::Params;
use crate::dashboard::problem::Problem;
use crate::dashboard::routes::BODY_MAX;
use crate::dashboard::state::State;

/// Longest reason, in bytes: it is kept with the entry of the audit.
const REASON_MAX: usize = 1024;
/// Longest key, in bytes.
const KEY_MAX: usize = 256;

/// How long a body may take to come: one of 64 KiB over a line of 64 kbit/s takes eight seconds.
const BODY_TIME: Duration = Duration::from_secs(10);

/// A body, or why it could not be taken.
pub(in crate::dashboard) struct Body(Result<web::Bytes, Problem>);

impl FromRequest for Body {
    type Error = Infallible;
    type Future = LocalBoxFuture<'static, Result<Self, Infallible>>;

    /// Takes it whole, or not at all: a few bytes now and then would hold the request, and what it has, for ever.
    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let clock = request
            .app_data::<web::Data<State>>()
            .map(|state| Arc::clone(state.clock()));
        let whole = web::Bytes::from_request(request, payload);
        Box::pin(async move {
            let Some(clock) = clock else {
                return Ok(Self(Err(Problem::closing())));
            };
            let late = clock.sleep_until(clock.now().after(BODY_TIME));
            Ok(Self(match select(whole, late).await {
                Either::Left((body, _)) => body.map_err(|error| not_taken(&error)),
                Either::Right(_) => Err(Problem::slow_body(BODY_TIME)),
            }))
        })
    }
}

/// The body of a request.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in crate::dashboard) struct Wish {
    /// Why.
    pub(super) reason: String,
    /// The revision that the plan was made for.
    pub(super) expected: Option<String>,
    /// The same key, and the same request, takes effect once.
    pub(super) key: Option<String>,
    /// The id, typed by hand, where nothing can be undone.
    pub(super) confirm: Option<String>,
    /// Those below it, too.
    pub(super) recursive: bool,
    /// For `bypass`: how it ends.
    #[serde(rename = "as")]
    pub(super) ends_as: EndsAs,
    /// For `priority` and `submit`.
    pub(super) priority: Option<i16>,
    /// For `bulk`: which procedures.
    pub(super) filter: Option<String>,
    /// For limits; for `bulk`: how many at most.
    pub(super) limit: Option<u32>,
    /// For limits: as many as may come.
    pub(super) unlimited: bool,
    /// For limits: how many may begin in `per_ms`.
    pub(super) begins: Option<u32>,
    /// For limits: the time of `begins`, in milliseconds.
    pub(super) per_ms: Option<u64>,
    /// For `signal`: name of the event. For `submit`: name of the procedure.
    pub(super) name: Option<String>,
    /// For `signal`: what is sent.
    pub(super) payload: Value,
    /// For `override-result`; `null` is an output, too.
    #[serde(deserialize_with = "that_is_there")]
    pub(super) output: Option<Value>,
    /// For `submit`; `null` is a value, too.
    #[serde(deserialize_with = "that_is_there")]
    pub(super) value: Option<Value>,
    /// For `submit`: the procedure's own key, which is not that of the request.
    pub(super) idempotency_key: Option<String>,
    /// For `submit`.
    pub(super) labels: BTreeMap<String, String>,
    /// For `decide`; `null` is an answer, too.
    #[serde(deserialize_with = "that_is_there")]
    pub(super) answer: Option<Value>,
    /// For `forward`: variables of the context.
    #[cfg(feature = "saga")]
    pub(in crate::dashboard) params: serde_json::Map<String, Value>,
    /// For `skip`: the same.
    #[cfg(feature = "saga")]
    pub(in crate::dashboard) results: serde_json::Map<String, Value>,
    /// For `drain`: how long running stages may take.
    pub(super) deadline_ms: Option<u64>,
}

/// How one ends that is bypassed.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum EndsAs {
    #[default]
    Success,
    Failed,
}

impl From<EndsAs> for BypassAs {
    fn from(ends_as: EndsAs) -> Self {
        match ends_as {
            EndsAs::Success => Self::Success,
            EndsAs::Failed => Self::Failed,
        }
    }
}

fn that_is_there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// One request that was read and may be made.
pub(in crate::dashboard) struct Request {
    pub(in crate::dashboard) wish: Wish,
    pub(in crate::dashboard) by: OperatorRequest,
}

impl Request {
    /// Reads one that needs a reason.
    pub(in crate::dashboard) fn read(request: &HttpRequest, body: Body, grant: &Grant) -> Result<Self, Problem> {
        Self::read_with(request, body, grant, true)
    }

    pub(super) fn read_with(
        request: &HttpRequest,
        body: Body,
        grant: &Grant,
        needs_reason: bool,
    ) -> Result<Self, Problem> {
        let (wish, dry_run) = read(request, body)?;
        let by = wish.by(grant, dry_run, needs_reason)?;
        Ok(Self { wish, by })
    }

    /// Reads one for many procedures, and the revision of its plan. That stands for a set, and is none of a row.
    pub(super) fn read_of_many(
        request: &HttpRequest,
        body: Body,
        grant: &Grant,
        needs_reason: bool,
    ) -> Result<(Self, Option<String>), Problem> {
        let (mut wish, dry_run) = read(request, body)?;
        let planned = wish.expected.take();
        let by = wish.by(grant, dry_run, needs_reason)?;
        Ok((Self { wish, by }, planned))
    }

    pub(in crate::dashboard) fn must_be_planned(&self) -> Result<(), Problem> {
        if self.by.dry_run || self.by.expected.is_some() {
            return Ok(());
        }
        Err(Problem::unplanned())
    }

    pub(super) fn must_be_confirmed(&self, id: ProcedureId) -> Result<(), Problem> {
        if self.by.dry_run || self.wish.confirm.as_deref() == Some(id.to_string().as_str()) {
            return Ok(());
        }
        let remedy = "Send the id, typed by hand, as `confirm`.";
        Err(Problem::request(
            "This cannot be undone, and needs the id once more.",
            remedy,
        ))
    }

    /// Refuses a key: each reveal has an audit entry of its own.
    pub(super) fn must_have_no_key(&self) -> Result<(), Problem> {
        if self.by.key.is_none() {
            return Ok(());
        }
        Err(Problem::request(
            "Whatever is shown is written down each time; a repeat is no other request.",
            "Leave out `key`.",
        ))
    }
}

/// Reads a body, and whether it is for a dry run.
fn read(request: &HttpRequest, body: Body) -> Result<(Wish, bool), Problem> {
    let params = Params::of(request, &["dry_run"])?;
    let dry_run = match params.text("dry_run") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(wrong("\"dry_run\" is true or false.")),
    };
    let body = body.0?;
    let wish = if body.is_empty() {
        Ok(Wish::default())
    } else {
        serde_json::from_slice::<Wish>(&body)
    };
    let wish = wish.map_err(|error| wrong(format!("The body cannot be read: {error}.")))?;
    Ok((wish, dry_run))
}

impl Wish {
    fn by(&self, grant: &Grant, dry_run: bool, needs_reason: bool) -> Result<OperatorRequest, Problem> {
        let who = grant.who().ok_or_else(Problem::denied)?;
        if needs_reason && self.reason.trim().is_empty() && !dry_run {
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
        let mut by = OperatorRequest::new(who, self.reason.as_str());
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

    /// Returns whether a bypass is to leave a failure.
    #[cfg(feature = "saga")]
    pub(in crate::dashboard) const fn fails(&self) -> bool {
        matches!(self.ends_as, EndsAs::Failed)
    }

    /// Returns the priority that is sent.
    pub(super) fn priority(&self) -> Result<i16, Problem> {
        self.priority.ok_or_else(|| wrong("`priority` is missing."))
    }

    /// Returns the answer that is sent, encoded as stages read it.
    pub(super) fn answer(&self) -> Result<Blob, Problem> {
        let answer = self.answer.as_ref();
        let answer = answer.ok_or_else(|| wrong("`answer` is missing; `null` is one, too."))?;
        codec::encode_user(answer).map_err(|error| wrong(format!("The answer cannot be kept: {error}.")))
    }

    /// Returns the output that is sent, encoded as stages leave theirs.
    pub(super) fn output(&self) -> Result<Blob, Problem> {
        let output = self.output.as_ref();
        let output = output.ok_or_else(|| wrong("`output` is missing; `null` is one, too."))?;
        codec::encode_user(output).map_err(|error| wrong(format!("The output cannot be kept: {error}.")))
    }
}

pub(super) fn wrong(text: impl Into<String>) -> Problem {
    Problem::request(text, "Correct it.")
}

/// Says why a body was not taken.
fn not_taken(error: &actix_web::Error) -> Problem {
    match error.as_error::<PayloadError>() {
        Some(PayloadError::Overflow) => Problem::too_large("The body", BODY_MAX + 1, BODY_MAX),
        Some(_) | None => Problem::request(format!("The body did not come whole: {error}."), "Send it again."),
    }
}
