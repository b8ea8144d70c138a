//! When to wake a worker for the calls in its queue: at once, or once for many calls that the same receipt releases. A
//! worker that wakes takes the supervisor's processor, serves the few calls that are there by then, and sleeps again.

use std::sync::Arc;

use actix::prelude::*;

use crate::context::Call;
use crate::procedure_actor::ProcedureActor;
use crate::worker_inbox::CallQueue;

/// The maximum number of calls for which one wake is held back: enough to keep a worker busy while as many more are
/// collected.
const BATCH: usize = 64;

/// The workers that have calls in their queues and were not woken yet.
#[derive(Default)]
pub(super) struct WakeBatch {
    is_open: bool,
    asleep: Vec<Arc<CallQueue>>,
    /// The number of calls sent since the last wake.
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

    /// Puts a call into its worker's queue. Wakes the worker if the batch is full, or if no batch is open.
    pub(super) fn send(&mut self, queue: &Arc<CallQueue>, to: &Arc<Addr<ProcedureActor>>, call: Call) {
        if queue.push(to, call) {
            self.asleep.push(Arc::clone(queue));
        }
        self.calls += 1;
        if !self.is_open || self.calls >= BATCH {
            self.wake();
        }
    }

    fn wake(&mut self) {
        self.calls = 0;
        for queue in self.asleep.drain(..) {
            queue.wake();
        }
    }
}
