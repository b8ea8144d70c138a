//! Rows of finished families. Only the store has them, so they are read before anything is decided on them.
//!
//! A decision on the same family during the read, such as an eviction or another request, makes the row outdated. The
//! row is then read again, so that no decision brings back deleted data.

use std::collections::BTreeMap;

use procession_kernel::{Kernel, ProcedureId, Row};

use crate::error::AskError;
use crate::read::CommittedReader;

/// Reads under way, each with its family and whether a decision has overtaken it.
#[derive(Default)]
pub(super) struct FinishedReads {
    newest: u64,
    under_way: BTreeMap<u64, (u64, bool)>,
}

impl FinishedReads {
    fn begin(&mut self, family: u64) -> u64 {
        self.newest += 1;
        self.under_way.insert(self.newest, (family, false));
        self.newest
    }

    /// Returns `true` if a decision has overtaken the read.
    fn end(&mut self, read: u64) -> bool {
        self.under_way.remove(&read).is_some_and(|(_, overtaken)| overtaken)
    }

    pub(super) fn overtake(&mut self, family: u64) {
        let of_family = self.under_way.values_mut().filter(|(other, _)| *other == family);
        of_family.for_each(|(_, overtaken)| *overtaken = true);
    }
}

/// A finished row that was read.
pub(in crate::supervisor) struct FinishedRead {
    number: u64,
    id: ProcedureId,
    /// The procedure was live when the read began.
    was_live: bool,
    row: Result<Option<Row>, AskError>,
}

impl FinishedRead {
    pub(super) fn begin<S>(
        reads: &mut FinishedReads,
        kernel: &Kernel,
        id: ProcedureId,
        settled: S,
        committed: CommittedReader,
    ) -> impl Future<Output = Self> + use<S>
    where
        S: Future<Output = Result<(), AskError>>,
    {
        let number = reads.begin(id.family);
        let was_live = kernel.row(id).is_some();
        let row = async move {
            settled.await?;
            if was_live { Ok(None) } else { committed.row(id).await }
        };
        async move {
            Self {
                number,
                id,
                was_live,
                row: row.await,
            }
        }
    }

    pub(super) fn end(self, reads: &mut FinishedReads, kernel: &Kernel) -> Option<Result<Option<Row>, AskError>> {
        let has_ended = self.was_live && kernel.row(self.id).is_none();
        let is_old = reads.end(self.number) || has_ended;
        (!is_old || self.row.is_err()).then_some(self.row)
    }
}
