//! Ordered shutdown: no new stage begins, the running stages finish, and the rest is left for the next start.

use actix::prelude::*;
use procession_kernel::Kernel;
use tokio::sync::oneshot;

use crate::threads::Threads;
use crate::view::DrainReport;

/// Turns of the event loop that the last answers need to leave the supervisor's thread.
const TURNS_FOR_ANSWERS: usize = 16;

/// Asks an engine on its host's thread to stop at once.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct StopHere;

/// A drain under way.
pub(super) struct Draining {
    out_at_begin: usize,
    /// Callers that wait for its end. Their number has the same bound as the messages in the mailbox.
    waiters: Vec<oneshot::Sender<DrainReport>>,
}

/// Returns how many stages and undos are running.
pub(super) fn out(kernel: &Kernel) -> usize {
    kernel.in_flight() + kernel.undoing()
}

impl Draining {
    pub(super) fn begin(kernel: &Kernel, waiter: Option<oneshot::Sender<DrainReport>>) -> Self {
        Self {
            out_at_begin: out(kernel),
            waiters: waiter.into_iter().collect(),
        }
    }

    pub(super) fn join(&mut self, waiter: oneshot::Sender<DrainReport>) {
        self.waiters.push(waiter);
    }

    /// Returns what has finished since the drain began, what is still running, and what has not ended.
    pub(super) fn report(&self, kernel: &Kernel, quarantined: usize) -> DrainReport {
        let cut_off = out(kernel);
        DrainReport {
            finished_calls: self.out_at_begin.saturating_sub(cut_off),
            cut_off_calls: cut_off,
            unfinished_families: kernel.families().len(),
            quarantined_families: quarantined,
        }
    }

    pub(super) fn answer(self, report: DrainReport) {
        for waiter in self.waiters {
            // The caller may have gone.
            waiter.send(report).ok();
        }
    }
}

/// Ends the engine's threads. The answers leave first, because their receivers wait on this thread's event loop.
pub(super) async fn end_threads(threads: Threads) {
    for _ in 0..TURNS_FOR_ANSWERS {
        tokio::task::yield_now().await;
    }
    threads.stop();
}
