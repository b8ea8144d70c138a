//! The newest updates, for streams: each reads on from its own place, so the ring is
//! the bounded queue of all of them, and one that is slow holds up none.

use std::collections::VecDeque;
use std::sync::Arc;

use procession_kernel::Seq;

use super::Update;

/// Updates kept: several seconds of an engine, however busy.
const UPDATES_KEPT: usize = 4_096;
/// Rows in them: one update may have many.
const ROWS_KEPT: usize = 32_768;

/// What is asked for has left the ring, or was never in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dashboard) struct Missed;

/// A bounded run of updates without a gap.
#[derive(Default)]
pub(in crate::dashboard) struct Ring {
    updates: VecDeque<Arc<Update>>,
    /// All updates after this commit are in the ring.
    from: Seq,
    newest: Seq,
    rows: usize,
}

impl Ring {
    /// Forgets all updates: those after this commit follow.
    pub(in crate::dashboard) fn begin(&mut self, from: Seq) {
        self.updates.clear();
        self.rows = 0;
        self.from = from;
        self.newest = from;
    }

    pub(in crate::dashboard) fn push(&mut self, update: Update) {
        self.rows += update.len();
        self.newest = update.moment.seq;
        self.updates.push_back(Arc::new(update));
        while self.updates.len() > UPDATES_KEPT || self.rows > ROWS_KEPT {
            let Some(oldest) = self.updates.pop_front() else { return };
            self.rows -= oldest.len();
            self.from = oldest.moment.seq;
        }
    }

    /// Returns at most so many updates after a commit, the oldest first.
    pub(in crate::dashboard) fn after(&self, seq: Seq, limit: usize) -> Result<Vec<Arc<Update>>, Missed> {
        if seq < self.from || seq > self.newest {
            return Err(Missed);
        }
        let first = self.updates.partition_point(|update| update.moment.seq <= seq);
        Ok(self.updates.range(first..).take(limit).map(Arc::clone).collect())
    }
}
