//! The newest changes, for streams: each reads on from its own place, so the ring is
//! the bounded queue of all of them, and one that is slow holds up none.

use std::collections::VecDeque;
use std::sync::Arc;

use procession_actors::view::Change;
use procession_kernel::Seq;

/// Changes kept: several seconds of a busy engine.
const CHANGES_KEPT: usize = 4_096;
/// Rows in them: one change may have many.
const ROWS_KEPT: usize = 32_768;

/// What is asked for has left the ring, or was never in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dashboard) struct Missed;

/// A bounded run of changes without a gap.
#[derive(Default)]
pub(in crate::dashboard) struct Ring {
    changes: VecDeque<Arc<Change>>,
    /// All changes after this one are in the ring.
    from: Seq,
    newest: Seq,
    rows: usize,
}

impl Ring {
    /// Forgets all changes: those after this commit follow.
    pub(in crate::dashboard) fn begin(&mut self, from: Seq) {
        self.changes.clear();
        self.rows = 0;
        self.from = from;
        self.newest = from;
    }

    pub(in crate::dashboard) fn push(&mut self, change: Arc<Change>) {
        self.rows += weight(&change);
        self.newest = change.seq;
        self.changes.push_back(change);
        while self.changes.len() > CHANGES_KEPT || self.rows > ROWS_KEPT {
            let Some(oldest) = self.changes.pop_front() else { return };
            self.rows -= weight(&oldest);
            self.from = oldest.seq;
        }
    }

    /// Gives at most so many changes after a commit, the oldest first.
    pub(in crate::dashboard) fn after(&self, seq: Seq, limit: usize) -> Result<Vec<Arc<Change>>, Missed> {
        if seq < self.from || seq > self.newest {
            return Err(Missed);
        }
        let first = self.changes.partition_point(|change| change.seq <= seq);
        Ok(self.changes.range(first..).take(limit).map(Arc::clone).collect())
    }
}

fn weight(change: &Change) -> usize {
    change.rows.len() + change.untold.len() + change.gone.len()
}
