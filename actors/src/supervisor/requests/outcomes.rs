//! Callers that wait for the outcome of a procedure.

use std::sync::Arc;
use std::time::Duration;

use procession_kernel::{Ended, ProcedureId};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use super::newest_ends::NewestEnds;
use crate::error::AskError;
use crate::view::Outcome;

/// Bounds the waiting callers. A caller costs some 500 bytes with its channel and its answer, so all of them cost 128
/// MiB. The bound exceeds the procedures that submissions may keep awake by default (200,000), so each of those
/// procedures can be awaited.
const WAITERS: usize = 1 << 18;

/// When a caller beyond the bound should ask again. Seats become free as procedures end, and a repeated request costs
/// the supervisor as much as any other. So this is longer than for a full queue.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Senders whose callers may have gone, in excess of the number of callers, before all senders are looked through.
const SLACK: usize = 1024;

/// Callers that wait for an outcome, by procedure.
pub(super) struct OutcomeWatchers {
    waiting: FxHashMap<ProcedureId, Vec<oneshot::Sender<Outcome>>>,
    /// Senders in `waiting`, including senders whose callers have gone.
    senders: usize,
    /// Every caller that still waits has a clone.
    seats: Arc<()>,
    max: usize,
    newest: NewestEnds,
}

/// A caller that waits. It keeps its seat until it is dropped.
pub(in crate::supervisor) struct OutcomeWatch {
    outcome: oneshot::Receiver<Outcome>,
    _seat: Arc<()>,
}

impl OutcomeWatch {
    /// Returns how the procedure ended, or `None` if there will be no outcome.
    pub(in crate::supervisor) async fn ended(self) -> Option<Outcome> {
        self.outcome.await.ok()
    }
}

impl OutcomeWatchers {
    /// Bounds the callers, so that every procedure that submissions may keep awake can be awaited.
    pub(super) fn new(awake: usize) -> Self {
        Self {
            waiting: FxHashMap::default(),
            senders: 0,
            seats: Arc::default(),
            max: awake.max(WAITERS),
            newest: NewestEnds::default(),
        }
    }

    /// Adds a caller. Refuses it as [`AskError::Busy`] if the bound is reached.
    pub(super) fn watch(&mut self, id: ProcedureId) -> Result<OutcomeWatch, AskError> {
        let callers = Arc::strong_count(&self.seats) - 1;
        if callers >= self.max {
            return Err(AskError::Busy {
                retry_after: RETRY_AFTER,
            });
        }
        // Senders of callers that gave up must not pile up behind procedures that run for months. After a pass over
        // all senders there are as many senders as callers, so the next pass is at least as many additions away.
        if self.senders > 2 * callers + SLACK {
            self.sweep();
        }
        let (sender, outcome) = oneshot::channel();
        self.waiting.entry(id).or_default().push(sender);
        self.senders += 1;
        Ok(OutcomeWatch {
            outcome,
            _seat: Arc::clone(&self.seats),
        })
    }

    fn sweep(&mut self) {
        self.waiting.retain(|_, waiting| {
            waiting.retain(|waiting| !waiting.is_closed());
            !waiting.is_empty()
        });
        self.senders = self.waiting.values().map(Vec::len).sum();
    }

    /// Tells the callers how the procedure ended.
    pub(super) fn ended(&mut self, ended: Ended) {
        let Some(waiting) = self.waiting.remove(&ended.id) else {
            self.newest.keep(Outcome::of(ended));
            return;
        };
        self.senders -= waiting.len();
        let outcome = Outcome::of(ended);
        for caller in waiting {
            // The caller may have gone.
            caller.send(outcome.clone()).ok();
        }
    }

    /// Begins to keep outcomes that nobody was waiting for, because a stage runs ahead of the disk.
    pub(super) const fn keep_newest(&mut self) {
        self.newest.begin();
    }

    /// Takes the outcome of a procedure that ended a moment ago, if nobody was waiting for it.
    pub(super) fn newest_end(&mut self, id: ProcedureId) -> Option<Outcome> {
        self.newest.take(id)
    }

    /// Notes that something is decided on a finished family, so that its end is read anew.
    pub(super) fn overtake(&mut self, family: u64) {
        self.newest.forget(family);
    }

    /// Ends the waits for all members of a family that was discharged.
    pub(super) fn discharged(&mut self, family: u64) {
        self.waiting.retain(|id, _| id.family != family);
        self.senders = self.waiting.values().map(Vec::len).sum();
    }

    /// Ends all waits: the engine has failed.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.newest.clear();
        self.senders = 0;
    }
}

#[cfg(test)]
mod tests {
    //! How many callers may wait, and what is kept of callers that gave up.

    use futures::executor::block_on;

    use super::*;

    fn bounded(max: usize) -> OutcomeWatchers {
        OutcomeWatchers {
            max,
            ..OutcomeWatchers::new(0)
        }
    }

    #[test]
    fn callers_beyond_the_bound_are_busy_until_one_leaves() {
        let mut watchers = bounded(2);
        let (one, other) = (ProcedureId::root(1), ProcedureId::root(2));
        let first = watchers.watch(one).expect("there is room");
        let second = watchers.watch(other).expect("there is room");
        let refused = watchers.watch(one).err();
        assert!(matches!(refused, Some(AskError::Busy { retry_after }) if retry_after == RETRY_AFTER));
        drop(first);
        let third = watchers.watch(other).expect("one gave up");
        watchers.discharged(2);
        assert!(watchers.watch(one).is_err(), "two have not heard yet");
        assert!(block_on(second.ended()).is_none());
        assert!(watchers.watch(one).is_ok());
        drop(third);
        assert_eq!(OutcomeWatchers::new(0).max, WAITERS);
        assert_eq!(OutcomeWatchers::new(WAITERS + 1).max, WAITERS + 1);
    }

    #[test]
    fn callers_that_gave_up_do_not_pile_up() {
        let mut watchers = bounded(2);
        for family in 0..10 * SLACK as u64 {
            drop(watchers.watch(ProcedureId::root(family % 7 * 1_000 + family)));
        }
        assert!(watchers.senders <= SLACK + 1, "{}", watchers.senders);
        assert!(watchers.waiting.len() <= watchers.senders);
        watchers.clear();
        assert_eq!(watchers.senders, 0);
    }
}
