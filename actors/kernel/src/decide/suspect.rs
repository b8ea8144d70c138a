//! Suspects: procedures whose stage may be what kills the process. They run one at a time.

use super::draft::Draft;
use crate::id::ProcedureId;
use crate::row::Row;
use crate::wait::WaitReason;

impl Draft<'_> {
    /// Starts the next suspect alone, once the previous one has reported.
    pub(super) fn next_suspect(&mut self, ended: ProcedureId) {
        if self.kernel.alone == Some(ended) {
            self.let_suspect_go();
        }
    }

    /// Starts the next suspect if a quarantined family contained the one that ran alone.
    pub(super) fn family_forgotten(&mut self) {
        if self.kernel.alone.is_none() {
            self.let_suspect_go();
        }
    }

    /// Starts the first suspect that is not paused, even if its family fails: its stage is in doubt, and whatever it
    /// began must be undone.
    #[cold]
    pub(super) fn let_suspect_go(&mut self) {
        if self.next_suspect_taken || self.kernel.draining {
            return;
        }
        let next = self.kernel.suspects.iter().copied().find(|id| {
            let waits = |row: &Row| row.wait == Some(WaitReason::Suspect) && !self.is_paused(row);
            self.row(*id).is_some_and(waits)
        });
        if let Some(next) = next {
            self.next_suspect_taken = true;
            self.set_alone(next);
        }
    }

    fn set_alone(&mut self, id: ProcedureId) {
        let Some(mut row) = self.take(id) else { return };
        self.set_going(&mut row, None);
        if let Some(in_flight) = &mut row.in_flight {
            in_flight.alone = true;
        }
        self.put(row);
    }
}
