//! How much waits in one mailbox: what was sent, less what was taken.
//!
//! Each count is one relaxed step on a line of memory of its own. Nothing rests on it
//! but what operators are shown.

use std::sync::atomic::{AtomicU64, Ordering};

/// Alone on its line: who sends does not slow who takes.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Count(AtomicU64);

/// Counts of one mailbox.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    sent: Count,
    taken: Count,
}

impl Depth {
    /// Counts one that is sent.
    pub(crate) fn sent(&self) {
        self.sent.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts one that was taken, or will never be.
    pub(crate) fn taken(&self) {
        self.taken_all(1);
    }

    /// Counts so many that were taken, or will never be.
    pub(crate) fn taken_all(&self, count: u64) {
        self.taken.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Gives how many wait, about now.
    pub(crate) fn waiting(&self) -> u64 {
        let taken = self.taken.0.load(Ordering::Relaxed);
        self.sent.0.load(Ordering::Relaxed).saturating_sub(taken)
    }
}
