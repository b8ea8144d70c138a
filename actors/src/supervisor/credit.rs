//! How much is woken at once of what many wait for together.
//!
//! One that is woken has its row in memory as it is, a call or a read that waits for its turn, then an
//! actor: some three kilobytes, where one at rest takes a quarter of one. So whatever wakes many at
//! once, a broadcast or the hour at which they all sleep until, wakes a chunk, waits until that is
//! on disk, and goes on only while less than the credit is on its way to user code. Who is in user code
//! is not counted: a stage may take an hour, and wait for another that is yet to be woken.

use actix::prelude::*;
use procession_kernel::{Event, Seq};

use super::Supervisor;

/// Calls on their way to user code, and reports on their way back, beyond which nothing more is woken in
/// bulk. Some ten milliseconds of work of two workers, so that they do not run dry while a chunk is being
/// committed; and 25 MB of memory.
const CREDIT: u64 = 8_192;

/// What is being woken in bulk.
#[derive(Default)]
pub(super) struct Bulk {
    /// The broadcast that was served last.
    served: Seq,
    /// The newest commit that woke some; the next waits until it is on disk.
    newest: Seq,
    /// Timers are due, and wait for their turn.
    pub(super) timers_wait: bool,
}

impl Supervisor {
    /// Tells whether more may be woken in bulk.
    pub(super) fn has_credit(&self) -> bool {
        let is_durable = self.pipeline.durable() >= self.bulk.newest;
        is_durable && !self.pipeline.is_backed_up() && self.on_its_way() < CREDIT
    }

    /// Counts the calls that have not begun, and the reports that were not heard.
    fn on_its_way(&self) -> u64 {
        let (reads, reports) = (self.dispatch.pending_reads(), self.dispatch.pending_reports());
        reads as u64 + self.metrics.calls_waiting() + reports as u64
    }

    /// Notes that the newest commit has woken some of many.
    pub(super) fn woke_some(&mut self) {
        self.bulk.newest = self.kernel.seq();
    }

    /// Goes on with what is woken in bulk, if there is credit: with timers, and a chunk of one broadcast.
    pub(super) fn wake_more(&mut self, ctx: &mut Context<Self>) {
        if !self.status.decides() || !self.has_credit() {
            return;
        }
        if std::mem::take(&mut self.bulk.timers_wait) {
            self.arm();
        }
        if let Some(seq) = self.kernel.next_wave(self.bulk.served) {
            self.bulk.served = seq;
            self.decide(Event::WaveDue(seq), ctx);
            self.woke_some();
        }
    }
}
