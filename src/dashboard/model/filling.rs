//! Rows that are being read from the store, while the engine goes on: pages are as old as their
//! reading, so what was heard of since must not be undone by them.

use std::collections::BTreeSet;
use std::sync::Arc;

use procession_actors::view::Status;
use procession_kernel::ProcedureId;

use super::{Moment, Rows, Update};

/// Rows that are being read, and what happened meanwhile.
#[derive(Default)]
pub(in crate::dashboard) struct Filling {
    pub(super) rows: Rows,
    /// Families that went meanwhile.
    gone: BTreeSet<u64>,
    /// Procedures that ended meanwhile: the newest of them are kept, so a page that has one as it was
    /// before finds nothing newer here.
    ended: BTreeSet<ProcedureId>,
    /// The newest commit that these rows contain.
    pub(super) moment: Moment,
}

impl Filling {
    /// Begins behind a commit that is on disk: all pages show it.
    pub(in crate::dashboard) fn reach(&mut self, moment: Moment) {
        self.moment = self.moment.max(moment);
    }

    /// Takes a page.
    pub(in crate::dashboard) fn take(&mut self, page: Vec<Status>) {
        for row in page {
            let is_stale = row.ended.is_none() && self.ended.contains(&row.id);
            if !is_stale && !self.gone.contains(&row.id.family) {
                self.rows.put(Arc::new(row));
            }
        }
    }

    /// Takes what happened meanwhile.
    pub(in crate::dashboard) fn fold(&mut self, update: &Update) {
        self.gone.extend(&update.gone);
        let ended = update.rows.iter().filter(|row| row.ended.is_some());
        self.ended
            .extend(ended.map(|row| row.id).chain(update.untold.iter().copied()));
        self.rows.fold(update);
        self.reach(update.moment);
    }
}
