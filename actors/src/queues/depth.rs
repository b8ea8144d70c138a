//! The number of messages that wait in one mailbox: the number sent minus the number taken.
//!
//! Each count is one relaxed operation on a cache line of its own. Nothing depends on it but what operators are
//! shown, and whether a decision goes at once or behind the messages that wait.

use std::sync::atomic::{AtomicU64, Ordering};

/// A counter on its own cache line, so that senders do not slow down the taker.
#[repr(align(128))]
#[derive(Debug, Default)]
struct Count(AtomicU64);

/// The counts of one mailbox.
#[derive(Debug, Default)]
pub(crate) struct Depth {
    sent: Count,
    taken: Count,
}

impl Depth {
    /// Counts a message that is sent.
    pub(crate) fn sent(&self) {
        self.sent.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a message that was taken, or that never will be.
    pub(crate) fn taken(&self) {
        self.taken_all(1);
    }

    /// Counts this many messages that were taken, or that never will be.
    pub(crate) fn taken_all(&self, count: u64) {
        self.taken.0.fetch_add(count, Ordering::Relaxed);
    }

    /// Returns how many messages wait, approximately.
    pub(crate) fn waiting(&self) -> u64 {
        let taken = self.taken.0.load(Ordering::Relaxed);
        self.sent.0.load(Ordering::Relaxed).saturating_sub(taken)
    }
}
