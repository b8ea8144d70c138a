//! Rows of finished families: they are in the store alone, so they are read
//! before anything is decided on them. What is decided of the same family
//! meanwhile, an eviction or another such request, makes what was read old: it
//! is read again, so that no decision brings back what has gone.

use std::collections::BTreeMap;

use actix::prelude::*;
use procession_kernel::{ProcedureId, Row};

use super::Supervisor;
use crate::error::AskError;

/// Reads under way, each with its family and whether it was overtaken.
#[derive(Default)]
pub(super) struct FinishedReads {
    next: u64,
    under_way: BTreeMap<u64, (u64, bool)>,
}

impl FinishedReads {
    fn begin(&mut self, family: u64) -> u64 {
        self.next += 1;
        self.under_way.insert(self.next, (family, false));
        self.next
    }

    /// Tells whether it was overtaken.
    fn end(&mut self, read: u64) -> bool {
        self.under_way.remove(&read).is_some_and(|(_, overtaken)| overtaken)
    }

    /// Something is decided of this finished family.
    pub(super) fn overtake(&mut self, family: u64) {
        let of_family = self.under_way.values_mut().filter(|(other, _)| *other == family);
        of_family.for_each(|(_, overtaken)| *overtaken = true);
    }
}

impl Supervisor {
    /// Reads a row as the newest decision leaves it; none of one that is live or not
    /// there. Nothing is decided between the answer and what is done with it at once.
    pub(super) fn finished_row(&mut self, id: ProcedureId) -> ResponseActFuture<Self, Result<Option<Row>, AskError>> {
        let number = self.finished.begin(id.family);
        let live = self.kernel.row(id).is_some();
        let (settled, committed) = (self.settled(), self.committed());
        let read = async move {
            settled.await?;
            if live { Ok(None) } else { committed.row(id).await }
        };
        Box::pin(read.into_actor(self).then(move |row, supervisor, _| {
            let has_ended = live && supervisor.kernel.row(id).is_none();
            if (supervisor.finished.end(number) || has_ended) && row.is_ok() {
                supervisor.finished_row(id)
            } else {
                Box::pin(actix::fut::ready(row))
            }
        }))
    }
}
