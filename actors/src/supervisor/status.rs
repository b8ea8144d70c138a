//! Whether the engine still decides. Every wing may read this value, but only the supervisor changes it.

use super::failure::{Failure, FailureCause};
use crate::error::AskError;

/// How far the engine has progressed towards its end. It never goes back.
pub(super) struct EngineStatus {
    /// Callers hold a copy too, because the supervisor may be gone before it can answer them.
    failure: Failure,
    is_last_decision_made: bool,
    is_stopped: bool,
}

impl EngineStatus {
    pub(super) const fn new(failure: Failure) -> Self {
        Self {
            failure,
            is_last_decision_made: false,
            is_stopped: false,
        }
    }

    /// Returns `true` if events are still decided. A drain's last decision stays the last, because the store is given
    /// back as soon as that decision is on disk.
    pub(super) fn decides(&self) -> bool {
        self.is_running() && !self.is_last_decision_made
    }

    /// Returns `true` until the engine fails or stops.
    pub(super) fn is_running(&self) -> bool {
        !self.is_stopped && !self.has_failed()
    }

    /// Returns `true` if the engine has failed. Nothing decided since its last receipt may be reported.
    pub(super) fn has_failed(&self) -> bool {
        self.cause().is_some()
    }

    /// Returns why the engine has failed.
    pub(super) fn cause(&self) -> Option<&FailureCause> {
        self.failure.cause()
    }

    /// Returns `true` if the supervisor is about to end.
    pub(super) const fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns the answer to a question that the engine no longer accepts.
    pub(super) fn refusal(&self) -> Option<AskError> {
        match self.cause() {
            Some(cause) => Some(cause.unanswered()),
            None => self.is_stopped.then_some(AskError::Stopped),
        }
    }

    /// Returns the failure, now or later, for a caller that may never be answered by the supervisor.
    pub(super) fn failure(&self) -> Failure {
        self.failure.clone()
    }

    /// Records that the engine has failed. Returns the cause if it is the first, because later causes only follow
    /// from it.
    pub(super) fn fail(&mut self, cause: FailureCause) -> Option<&FailureCause> {
        if self.has_failed() {
            return None;
        }
        self.failure.set(cause);
        self.cause()
    }

    /// Records that a drain has made its last decision.
    pub(super) const fn last_decision_made(&mut self) {
        self.is_last_decision_made = true;
    }

    /// Records that the supervisor is ending.
    pub(super) const fn stop(&mut self) {
        self.is_stopped = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> EngineStatus {
        EngineStatus::new(Failure::default())
    }

    #[test]
    fn nothing_is_decided_behind_the_last_decision_but_the_engine_still_answers() {
        let mut status = status();
        assert!(status.decides());
        status.last_decision_made();
        assert!(!status.decides());
        assert!(status.is_running());
        assert!(status.refusal().is_none());
        status.stop();
        assert!(matches!(status.refusal(), Some(AskError::Stopped)));
    }

    #[test]
    fn the_first_cause_stands_and_callers_hear_of_it() {
        let mut status = status();
        let callers = status.failure();
        assert!(status.fail(FailureCause::Failed("the disk".to_owned())).is_some());
        assert!(status.fail(FailureCause::Failed("the limiter".to_owned())).is_none());
        // A stopped engine that had failed says why.
        status.stop();
        let is_disk = |error: AskError| matches!(error, AskError::JournalFailed(why) if why == "the disk");
        assert!(status.refusal().is_some_and(is_disk));
        assert!(is_disk(callers.unanswered()));
        assert!(!status.decides());
    }
}
