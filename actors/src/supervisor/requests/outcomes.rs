//! Callers that wait for the outcome of a procedure.

use procession_kernel::{Ended, ProcedureId};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::view::Outcome;

/// The callers, by procedure.
#[derive(Default)]
pub(super) struct OutcomeWatchers(FxHashMap<ProcedureId, Vec<oneshot::Sender<Outcome>>>);

impl OutcomeWatchers {
    /// Adds a caller. Callers that have gone are dropped here, so callers that ask again and again leave nothing.
    pub(super) fn watch(&mut self, id: ProcedureId) -> oneshot::Receiver<Outcome> {
        let (sender, receiver) = oneshot::channel();
        let watchers = self.0.entry(id).or_default();
        watchers.retain(|watcher| !watcher.is_closed());
        watchers.push(sender);
        receiver
    }

    pub(super) fn ended(&mut self, ended: Ended) {
        let Some(watchers) = self.0.remove(&ended.id) else {
            return;
        };
        let outcome = Outcome::of(ended);
        for watcher in watchers {
            // The caller may have gone.
            watcher.send(outcome.clone()).ok();
        }
    }

    /// Drops the callers that wait for a member of a discharged family: they learn that there will be no outcome.
    pub(super) fn discharged(&mut self, family: u64) {
        self.0.retain(|id, _| id.family != family);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
