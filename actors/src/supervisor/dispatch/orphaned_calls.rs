//! Calls whose actors are gone with their threads: user code can stop the arbiter that it runs on. A call that was
//! running there has failed, just as if it had panicked. So a stage that always stops its arbiter exhausts its
//! attempts. A call that had not begun is sent again.

use std::collections::BTreeMap;

use procession_kernel::{Kernel, ProcedureId, Timestamp};

use super::actor_table::Issued;
use crate::view::UserCall;

/// The maximum number of procedures that are remembered, and of calls that wait for a worker.
const KEPT: usize = 1_000;

/// A call that a procedure lost with its actor's thread.
pub(in crate::supervisor) struct OrphanedCall {
    pub(in crate::supervisor) call: UserCall,
    pub(in crate::supervisor) stage: String,
    pub(in crate::supervisor) at: Timestamp,
    pub(in crate::supervisor) times: u32,
    /// The visit until whose end the loss is reported; `None` if one report is enough.
    visit: Option<u32>,
    is_reported: bool,
}

/// Calls that were lost, until they have been reported, and calls for which there was no worker.
#[derive(Default)]
pub(super) struct OrphanedCalls {
    lost: BTreeMap<ProcedureId, OrphanedCall>,
    stranded: Vec<(ProcedureId, Issued)>,
}

impl OrphanedCalls {
    /// Records that a procedure has lost a call.
    pub(super) fn note(&mut self, kernel: &Kernel, id: ProcedureId, (call, stage): (UserCall, String), now: Timestamp) {
        let visit = match call {
            UserCall::Stage | UserCall::Undo => kernel.row(id).map(|row| row.visit),
            UserCall::Join | UserCall::Gate | UserCall::CleanUp => None,
        };
        if self.lost.len() >= KEPT && !self.lost.contains_key(&id) {
            return;
        }
        let known = self.lost.remove(&id).filter(|known| known.visit == visit);
        let (at, times) = known.map_or((now, 1), |known| (known.at, known.times + 1));
        let orphaned = OrphanedCall {
            call,
            stage,
            at,
            times,
            visit,
            is_reported: false,
        };
        self.lost.insert(id, orphaned);
    }

    /// Returns the lost calls. Each is returned at least once, and until its stage is over.
    pub(super) fn lost(&mut self, kernel: &Kernel) -> impl Iterator<Item = (ProcedureId, &OrphanedCall)> {
        self.lost.retain(|id, lost| {
            let row = kernel.row(*id).filter(|row| !row.is_ended());
            let is_there = lost.visit.is_some() && row.map(|row| row.visit) == lost.visit;
            !std::mem::replace(&mut lost.is_reported, true) || is_there
        });
        self.lost.iter().map(|(id, lost)| (*id, lost))
    }

    /// Keeps a call for which there is no worker until the next health check. A stage beyond the bound is found by that
    /// check anyway, as a stage that was never called.
    pub(super) fn strand(&mut self, id: ProcedureId, issued: Issued) {
        tracing::error!(procedure = %id, "no worker can run a call; the next health check tries again");
        if self.stranded.len() < KEPT {
            self.stranded.push((id, issued));
        }
    }

    /// Returns the procedures whose calls wait for a worker.
    pub(super) fn stranded(&self) -> impl Iterator<Item = ProcedureId> {
        self.stranded.iter().map(|(id, _)| *id)
    }

    /// Takes the calls that wait for a worker, to be sent again.
    pub(super) fn take_stranded(&mut self) -> Vec<(ProcedureId, Issued)> {
        std::mem::take(&mut self.stranded)
    }
}

#[cfg(test)]
mod tests {
    //! How long a lost call is reported, and how many are remembered.

    use super::*;

    fn lose(calls: &mut OrphanedCalls, family: u64, call: UserCall, at: u64) {
        let id = ProcedureId::root(family);
        calls.note(&Kernel::default(), id, (call, String::new()), Timestamp(at));
    }

    fn reported(calls: &mut OrphanedCalls) -> Vec<(u64, u64, u32)> {
        let kernel = Kernel::default();
        let lost = calls.lost(&kernel);
        lost.map(|(id, lost)| (id.family, lost.at.0, lost.times)).collect()
    }

    #[test]
    fn a_call_that_is_over_is_reported_once_and_counted_from_its_first_loss() {
        let mut calls = OrphanedCalls::default();
        lose(&mut calls, 1, UserCall::Join, 7);
        lose(&mut calls, 1, UserCall::Join, 9);
        assert_eq!(reported(&mut calls), [(1, 7, 2)]);
        assert_eq!(reported(&mut calls), []);
    }

    #[test]
    fn the_calls_remembered_are_bounded_and_known_procedures_still_count() {
        let mut calls = OrphanedCalls::default();
        for family in 1..=KEPT as u64 + 1 {
            lose(&mut calls, family, UserCall::CleanUp, 1);
            calls.strand(ProcedureId::root(family), Issued::Join);
        }
        lose(&mut calls, 1, UserCall::CleanUp, 2);
        let reported = reported(&mut calls);
        assert_eq!(reported.len(), KEPT);
        assert_eq!(reported.first(), Some(&(1, 1, 2)));
        assert_eq!(calls.take_stranded().len(), KEPT);
        assert_eq!(calls.stranded().count(), 0);
    }
}
