//! What the model is told: rows as they stand after some commits, described once for all who show them.

use std::sync::Arc;

use procession_actors::view::{LatestRows, Status};
use procession_kernel::ProcedureId;

use super::Moment;

/// Rows that have changed since the update before.
#[derive(Clone, Debug, Default)]
pub(in crate::dashboard) struct Update {
    /// The newest commit in it.
    pub(in crate::dashboard) moment: Moment,
    pub(in crate::dashboard) rows: Vec<Arc<Status>>,
    /// Procedures that have ended, too, and of which nothing more is told.
    pub(in crate::dashboard) untold: Vec<ProcedureId>,
    /// Families of which nothing is left.
    pub(in crate::dashboard) gone: Vec<u64>,
}

impl Update {
    /// Counts what it tells of.
    pub(in crate::dashboard) fn len(&self) -> usize {
        self.rows.len() + self.untold.len() + self.gone.len()
    }
}

impl From<LatestRows> for Update {
    fn from(newest: LatestRows) -> Self {
        Self {
            moment: Moment {
                epoch: newest.epoch,
                seq: newest.seq,
            },
            rows: newest.describe().map(Arc::new).collect(),
            untold: newest.untold,
            gone: newest.gone,
        }
    }
}
