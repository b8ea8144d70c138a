//! Bounds how many procedures are woken at once if many wait for the same thing.
//!
//! A woken procedure has its full row in memory, then a call or a read that waits for its turn, then an actor. That
//! is some three kilobytes; a procedure at rest takes a quarter of a kilobyte. So every bulk wake (a broadcast, or an
//! hour until which all sleep) proceeds in chunks. It wakes a chunk and waits until that is on disk. It continues
//! only while fewer calls than the credit are on their way to user code. Running stages are not counted: a stage may
//! take an hour, and wait for another procedure that is yet to be woken.

use procession_kernel::{Event, Kernel, Seq};

/// Nothing more is woken in bulk beyond this many calls on their way to user code and reports on their way back. This
/// is some ten milliseconds of work for two workers, so they do not run dry while a chunk is being committed. It
/// costs 25 MB of memory.
const CREDIT: u64 = 8_192;

/// The bulk wakes under way.
#[derive(Default)]
pub(super) struct BulkWakes {
    /// The broadcast that was served last.
    served: Seq,
    /// The newest commit that woke procedures in bulk. The next chunk waits until it is on disk.
    newest: Seq,
    /// Timers are due and wait for credit.
    timers_wait: bool,
}

impl BulkWakes {
    pub(super) fn has_credit(&self, durable: Seq, is_backed_up: bool, on_its_way: impl FnOnce() -> u64) -> bool {
        durable >= self.newest && !is_backed_up && on_its_way() < CREDIT
    }

    pub(super) const fn woke_some(&mut self, newest: Seq) {
        self.newest = newest;
    }

    pub(super) const fn timers_wait(&mut self, wait: bool) {
        self.timers_wait = wait;
    }

    pub(super) const fn do_timers_wait(&self) -> bool {
        self.timers_wait
    }

    /// Returns `true` if timers waited for credit. They no longer wait: the caller arms the timer for them.
    pub(super) const fn take_waiting_timers(&mut self) -> bool {
        std::mem::replace(&mut self.timers_wait, false)
    }

    /// Returns the event that wakes the next chunk. Unfinished broadcasts take turns.
    pub(super) fn next_wave(&mut self, kernel: &Kernel) -> Option<Event> {
        let seq = kernel.next_wave(self.served)?;
        self.served = seq;
        Some(Event::WaveDue(seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_more_is_woken_until_the_last_chunk_is_on_disk() {
        let mut bulk = BulkWakes::default();
        bulk.woke_some(Seq(7));
        assert!(!bulk.has_credit(Seq(6), false, || 0));
        assert!(bulk.has_credit(Seq(7), false, || CREDIT - 1));
        assert!(!bulk.has_credit(Seq(7), false, || CREDIT));
        assert!(!bulk.has_credit(Seq(7), true, || 0));
    }

    #[test]
    fn timers_that_waited_are_armed_once() {
        let mut bulk = BulkWakes::default();
        assert!(!bulk.take_waiting_timers());
        bulk.timers_wait(true);
        assert!(bulk.take_waiting_timers());
        assert!(!bulk.take_waiting_timers());
    }
}
