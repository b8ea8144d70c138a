//! An engine that has failed: it takes no more commits, stays up to say why, and owes nobody an answer.

use std::sync::{Arc, OnceLock};

use actix::prelude::*;

use super::Supervisor;
use crate::error::{AskError, SubmitError};
use crate::view::Rule;

/// Why an engine has failed, if it has: also for those whose answer can come from nobody any more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failure(Arc<OnceLock<String>>);

impl Failure {
    /// Notes it; the first reason stands.
    fn set(&self, why: &str) {
        self.0.set(why.to_owned()).ok();
    }

    pub(crate) fn why(&self) -> Option<String> {
        self.0.get().cloned()
    }

    /// Makes the answer to a question that nobody will answer.
    pub(crate) fn unanswered(&self) -> AskError {
        self.why().map_or(AskError::Stopped, AskError::JournalFailed)
    }

    /// Makes the answer to a submission that nobody will answer.
    pub(crate) fn unsubmitted(&self) -> SubmitError {
        self.why().map_or(SubmitError::Stopped, SubmitError::JournalFailed)
    }
}

/// Says that something that the supervisor cannot do without has ended in a panic.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Broken(pub(crate) String);

impl Handler<Broken> for Supervisor {
    type Result = ();

    fn handle(&mut self, Broken(why): Broken, _: &mut Self::Context) {
        self.fail(why);
    }
}

impl Supervised for Supervisor {
    /// What it knows may be half of a change, so nothing may be decided on it any more. Its futures
    /// are gone, and with them the turns of the limiter's answers and the next health check.
    fn restarting(&mut self, ctx: &mut Self::Context) {
        let why = self.panics.take("the supervisor");
        let is_first = self.poisoned.is_none();
        self.fail(why);
        self.admission.forget_answers();
        if is_first {
            self.begin_health_checks(ctx);
        }
    }
}

impl Supervisor {
    /// Takes no more commits, and tells everybody who waits for one.
    pub(super) fn fail(&mut self, why: String) {
        self.poison(why);
        self.fail_all();
    }

    fn poison(&mut self, why: String) {
        if self.poisoned.is_none() {
            tracing::error!(why, "the engine takes no more commits");
            self.failure.set(&why);
            self.metrics.telemetry().poisoned.set(1.0);
            self.poisoned = Some(why);
            self.health.note(Rule::StoreFailed, None, self.clock.now());
        }
    }

    /// Nothing decided from the failed commit on will ever be told to anyone.
    fn fail_all(&mut self) {
        let why = self.poisoned.clone().unwrap_or_default();
        self.pipeline.clear();
        self.watchers.clear();
        // Those who wait for the end of a drain find the reason in `failure`.
        self.drain = None;
        for (_, ticket) in self.tickets.drain() {
            ticket.send(Err(why.clone())).ok();
        }
        self.actors.clear();
        self.loads.clear();
        self.unreadable.clear();
        self.stack_reads.clear();
        if let Some(timer) = &self.timer {
            timer.arm(None);
        }
    }
}
