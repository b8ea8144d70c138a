//! Callers that wait for the outcome of a procedure.

use procession_kernel::{Ended, ProcedureId};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::view::Outcome;

/// Callers that wait for an outcome, by procedure.
#[derive(Default)]
pub(super) struct OutcomeWaiters {
    waiting: FxHashMap<ProcedureId, Vec<oneshot::Sender<Outcome>>>,
}

impl OutcomeWaiters {
    /// Adds a caller. The receiver closes without an outcome if there will be none.
    pub(super) fn add(&mut self, id: ProcedureId) -> oneshot::Receiver<Outcome> {
        let (sender, receiver) = oneshot::channel();
        let waiting = self.waiting.entry(id).or_default();
        // Callers that gave up must not pile up behind a procedure that runs for months.
        waiting.retain(|waiting| !waiting.is_closed());
        waiting.push(sender);
        receiver
    }

    /// Tells the callers how the procedure ended.
    pub(super) fn ended(&mut self, ended: Ended) {
        let Some(waiting) = self.waiting.remove(&ended.id) else {
            return;
        };
        let outcome = Outcome::of(ended);
        for caller in waiting {
            // The caller may have gone.
            caller.send(outcome.clone()).ok();
        }
    }

    /// Ends the waits for all members of a family that was discharged.
    pub(super) fn forget_family(&mut self, family: u64) {
        self.waiting.retain(|id, _| id.family != family);
    }

    /// Ends all waits: the engine has failed.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}
