//! When to wake a worker for its calls: at once, or once for many calls that the same receipt releases. A worker that
//! wakes takes the supervisor's processor, serves the few calls that are there by then, and sleeps again.
//!
//! A batch of one call goes directly to its actor: the turn of the inbox was a seventh of a worker's time for a short
//! stage.

use std::sync::Arc;

use crate::worker_inbox::{CallQueue, OutgoingCall};

/// The maximum number of calls for which one wake is held back: enough to keep a worker busy while as many more are
/// collected.
const BATCH: usize = 64;

/// The calls that were not sent yet, and the workers that have calls in their queues and were not woken yet.
#[derive(Default)]
pub(super) struct WakeBatch {
    is_open: bool,
    /// The first call, as long as it may remain the only one.
    first: Option<OutgoingCall>,
    asleep: Vec<Arc<CallQueue>>,
    /// The number of calls since the last wake.
    calls: usize,
}

impl WakeBatch {
    /// Begins to hold back wakes.
    pub(super) const fn begin(&mut self) {
        self.is_open = true;
    }

    /// Wakes the workers that were not woken yet, and stops holding back wakes.
    pub(super) fn end(&mut self) {
        self.is_open = false;
        self.wake();
    }

    /// Sends a call. `may_go_directly`: all earlier calls of its actor have ended. Wakes the worker if the batch is
    /// full, or if no batch is open.
    pub(super) fn send(&mut self, call: OutgoingCall, may_go_directly: bool) {
        if self.calls == 0 && may_go_directly {
            self.first = Some(call);
        } else {
            if let Some(first) = self.first.take() {
                self.enqueue(first);
            }
            self.enqueue(call);
        }
        self.calls += 1;
        if !self.is_open || self.calls >= BATCH {
            self.wake();
        }
    }

    fn enqueue(&mut self, call: OutgoingCall) {
        self.asleep.extend(call.enqueue());
    }

    fn wake(&mut self) {
        self.calls = 0;
        if let Some(only) = self.first.take() {
            only.send_directly();
        }
        for queue in self.asleep.drain(..) {
            queue.wake();
        }
    }
}

#[cfg(test)]
mod tests;
