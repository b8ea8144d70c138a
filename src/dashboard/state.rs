//! What all request handlers share.

use std::sync::Arc;

use actix_web::{HttpMessage, HttpRequest, HttpResponse};
use procession_actors::Engine;
use procession_actors::clock::Clock;
use procession_kernel::Timestamp;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

use super::access::{Access, Grant, Right};
use super::act::bulk::Plans;
use super::engines::Listed;
use super::feed::Shared;
use super::gate::Caller;
use super::hosts::Hosts;
use super::live::Live;
use super::logs::StageLogs;
use super::model::Moment;
use super::pauses::Pauses;
use super::prints::Prints;
use super::problem::{Answer, Problem};
use super::redact::{Part, Redact};
use super::streams::Streams;
use super::turns::Turns;
use crate::executor::Executor;
use crate::views::Reply;

/// One dashboard.
pub(super) struct State {
    pub(super) executor: Executor,
    pub(super) shared: Shared,
    pub(super) live: Live,
    pub(super) pauses: Pauses,
    pub(super) prints: Prints,
    /// What the newest plans of bulks were for.
    pub(super) plans: Plans,
    pub(super) streams: Arc<Streams>,
    pub(super) turns: Turns,
    pub(super) hosts: Hosts,
    pub(super) access: Box<dyn Access>,
    pub(super) redact: Box<dyn Redact>,
    /// What stages log, if the host has the layer.
    pub(super) logs: Option<StageLogs>,
    /// Where a trace can be looked at.
    pub(super) trace_url: Option<String>,
    /// The engines that its page leads to.
    pub(super) engines: Vec<Listed>,
    /// It was closed: streams end, and no more begin.
    pub(super) closed: watch::Sender<bool>,
    /// The thread of the read model.
    pub(super) arbiter: actix::Arbiter,
}

impl Drop for State {
    fn drop(&mut self) {
        self.arbiter.stop();
    }
}

impl State {
    pub(super) fn engine(&self) -> &Engine {
        self.executor.engine()
    }

    pub(super) fn clock(&self) -> &Arc<dyn Clock> {
        self.engine().clock()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock().now()
    }

    /// Returns the moment that is shown, once there is one.
    pub(super) fn moment(&self) -> Result<Moment, Problem> {
        let model = self.shared.read();
        if model.is_ready() {
            Ok(model.moment())
        } else {
            Err(Problem::recovering())
        }
    }

    /// Refuses an act while there is no moment to answer with. It would be on disk, and its caller would be told to ask
    /// again.
    pub(super) fn can_tell(&self) -> Result<(), Problem> {
        self.moment().map(drop)
    }

    /// Replies with what an act did, or would do, as of its own commit at least: the rows that are shown may
    /// be a moment behind it.
    pub(super) fn reply_acted(&self, is_dry: bool, body: impl Serialize) -> Answer {
        // What only would be done makes no reading old.
        if !is_dry {
            self.live.acted();
        }
        let mut moment = self.moment()?;
        moment.seq = moment.seq.max(self.engine().durable());
        self.reply(moment, body)
    }

    /// Replies with a body, as of a moment that was read before the body was.
    pub(super) fn reply(&self, moment: Moment, body: impl Serialize) -> Answer {
        Ok(HttpResponse::Ok().json(Reply::new(self.now(), (moment.epoch, moment.seq), body)))
    }

    /// Passes a text of users' through the redaction.
    pub(super) fn redact_text(&self, kind: &str, part: Part, text: &str, grant: &Grant) -> Value {
        let mut value = Value::from(text);
        self.redact.redact(kind, part, &mut value, grant);
        value
    }
}

/// Returns what the caller may do, if it may look at all.
pub(super) fn viewer(request: &HttpRequest) -> Result<Grant, Problem> {
    let caller = caller(request)?;
    caller.need(Right::View)?;
    Ok(caller.0)
}

/// Returns the caller.
pub(super) fn caller(request: &HttpRequest) -> Result<Caller, Problem> {
    request
        .extensions()
        .get::<Caller>()
        .cloned()
        .ok_or_else(Problem::denied)
}
