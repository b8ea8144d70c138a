//! Callers that wait for the outcome of a procedure.

use std::sync::Arc;
use std::time::Duration;

use procession_kernel::{Ended, ProcedureId};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use crate::error::AskError;
use crate::view::Outcome;

/// Callers that may wait at once. A caller costs some 500 bytes with its channel and its answer, so all of them cost
/// 128 MiB. They are more than submissions may keep awake by default (200,000), so each of those can be awaited.
const WAITERS: usize = 1 << 18;

/// When a caller beyond the bound should ask again. Seats become free as procedures end, and a repeated request costs
/// the supervisor as much as any other, so this is longer than for a full queue.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Senders whose callers may have gone, beyond as many as there are callers, before all of them are looked through.
const SLACK: usize = 1024;

/// Callers that wait for an outcome, by procedure.
pub(super) struct OutcomeWaiters {
    waiting: FxHashMap<ProcedureId, Vec<oneshot::Sender<Outcome>>>,
    /// Senders in `waiting`, those of callers that have gone included.
    senders: usize,
    /// Every caller that still waits has a clone.
    seats: Arc<()>,
    max: usize,
}

/// A caller's wait. It has its seat until it is dropped.
pub(super) struct OutcomeWait {
    outcome: oneshot::Receiver<Outcome>,
    _seat: Arc<()>,
}

impl OutcomeWait {
    /// Returns how the procedure ended, or `None` if there will be no outcome.
    pub(super) async fn ended(self) -> Option<Outcome> {
        self.outcome.await.ok()
    }
}

impl OutcomeWaiters {
    /// Bounds the callers, so that all that submissions may keep awake can be awaited.
    pub(super) fn new(awake: usize) -> Self {
        Self {
            waiting: FxHashMap::default(),
            senders: 0,
            seats: Arc::default(),
            max: awake.max(WAITERS),
        }
    }

    /// Adds a caller, or refuses it as [`AskError::Busy`] if as many wait as may.
    pub(super) fn add(&mut self, id: ProcedureId) -> Result<OutcomeWait, AskError> {
        let callers = Arc::strong_count(&self.seats) - 1;
        if callers >= self.max {
            return Err(AskError::Busy {
                retry_after: RETRY_AFTER,
            });
        }
        // Callers that gave up must not pile up behind procedures that run for months. After a look at all there
        // are as many senders as callers, so the next is at least as many additions away.
        if self.senders > 2 * callers + SLACK {
            self.sweep();
        }
        let (sender, outcome) = oneshot::channel();
        self.waiting.entry(id).or_default().push(sender);
        self.senders += 1;
        Ok(OutcomeWait {
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
            return;
        };
        self.senders -= waiting.len();
        let outcome = Outcome::of(ended);
        for caller in waiting {
            // The caller may have gone.
            caller.send(outcome.clone()).ok();
        }
    }

    /// Ends the waits for all members of a family that was discharged.
    pub(super) fn forget_family(&mut self, family: u64) {
        self.waiting.retain(|id, _| id.family != family);
        self.senders = self.waiting.values().map(Vec::len).sum();
    }

    /// Ends all waits: the engine has failed.
    pub(super) fn clear(&mut self) {
        self.waiting.clear();
        self.senders = 0;
    }
}

#[cfg(test)]
mod tests {
    //! How many may wait, and what is kept of those that gave up.

    use futures::executor::block_on;

    use super::*;

    fn bounded(max: usize) -> OutcomeWaiters {
        OutcomeWaiters {
            max,
            ..OutcomeWaiters::new(0)
        }
    }

    #[test]
    fn callers_beyond_the_bound_are_busy_until_one_leaves() {
        let mut waiters = bounded(2);
        let (one, other) = (ProcedureId::root(1), ProcedureId::root(2));
        let first = waiters.add(one).expect("there is room");
        let second = waiters.add(other).expect("there is room");
        let refused = waiters.add(one).err();
        assert!(matches!(refused, Some(AskError::Busy { retry_after }) if retry_after == RETRY_AFTER));
        drop(first);
        let third = waiters.add(other).expect("one gave up");
        waiters.forget_family(2);
        assert!(waiters.add(one).is_err(), "two have not heard yet");
        assert!(block_on(second.ended()).is_none());
        assert!(waiters.add(one).is_ok());
        drop(third);
        assert_eq!(OutcomeWaiters::new(0).max, WAITERS);
        assert_eq!(OutcomeWaiters::new(WAITERS + 1).max, WAITERS + 1);
    }

    #[test]
    fn callers_that_gave_up_do_not_pile_up() {
        let mut waiters = bounded(2);
        for family in 0..10 * SLACK as u64 {
            drop(waiters.add(ProcedureId::root(family % 7 * 1_000 + family)));
        }
        assert!(waiters.senders <= SLACK + 1, "{}", waiters.senders);
        assert!(waiters.waiting.len() <= waiters.senders);
        waiters.clear();
        assert_eq!(waiters.senders, 0);
    }
}
