//! The health check looks for lost wakes: procedures that are parked with nothing to wake them. It counts them and
//! resumes them. It finds something only if the engine has a defect.

use super::draft::Draft;
use crate::effect::LifecycleEffect;
use crate::families::arms;
use crate::family::{Family, deadlines};
use crate::id::{ProcedureId, Timestamp};
use crate::kernel::Kernel;
use crate::latch::Join;
use crate::record::Record;
use crate::row::Row;
use crate::wait::WaitReason;

/// How to make up for a lost wake.
enum Lost {
    /// The wait is over, so the procedure resumes.
    Over,
    /// The timer of the procedure is not armed.
    Timer,
    /// The children in the list that begins with this number let the procedure resume, or fail it.
    Children(u32),
    /// The gate is open, or can no longer open.
    Gate,
}

impl Kernel {
    /// Returns `true` if a member is parked with nothing to wake it. A health check is then due.
    #[must_use]
    pub fn has_lost_wake(&self, family: &Family, row: &Row) -> bool {
        !row.is_ended() && Draft::new(self, Timestamp::default()).lost(family, row).is_some()
    }
}

impl Draft<'_> {
    pub(super) fn health_check_due(&mut self, granted: Vec<ProcedureId>, unknown: Vec<ProcedureId>) {
        for id in granted {
            if self.waits_for_admission(id) {
                self.record(Record::WakeFound(id));
                self.granted(id);
            }
        }
        for id in unknown {
            if self.waits_for_admission(id) {
                self.record(Record::WakeFound(id));
                self.request(id);
            }
        }
        for (id, how) in self.all_lost() {
            // A member that this decision has moved already is not lost any more. A later check looks at it again.
            let is_stopped = !matches!(how, Lost::Timer) && self.is_stopped(id);
            if is_stopped || self.row_after(id).is_some() {
                continue;
            }
            self.record(Record::WakeFound(id));
            self.make_up_for(id, &how);
        }
    }

    /// Returns `true` if the procedure waits for admission. It waits for its next stage, or its undo is the next of a
    /// rollback that waits for its locks.
    pub(super) fn waits_for_admission(&self, id: ProcedureId) -> bool {
        let waits = self
            .row(id)
            .is_some_and(|row| row.wait.as_ref().is_some_and(WaitReason::is_admission));
        match self.scope_of(id) {
            Some(scope) if self.is_stopped(id) => self.undo_waits_for(scope, id),
            Some(_) | None => waits,
        }
    }

    /// Returns all lost wakes. A frozen family can only have lost timers, and these are counted.
    fn all_lost(&self) -> Vec<(ProcedureId, Lost)> {
        let (kernel, mut lost, mut armed) = (self.kernel, Vec::new(), 0);
        for family in kernel.families.awake() {
            for row in family.members.iter().filter(|row| !row.is_ended()) {
                armed += arms(row).filter(|at| kernel.timers.contains(&(*at, row.id))).count();
                if let Some(how) = self.lost(family, row) {
                    lost.push((row.id, how));
                }
            }
        }
        let frozen = kernel.families.frozen_without_timer(&kernel.timers, armed);
        lost.extend(frozen.map(|id| (id, Lost::Timer)));
        lost.sort_unstable_by_key(|(id, _)| *id);
        lost
    }

    fn lost(&self, family: &Family, row: &Row) -> Option<Lost> {
        let armed = |at| self.kernel.timers.contains(&(at, row.id));
        if self.is_stopping(row) {
            let undo_due = row.is_failing() && self.scope_of(row.id) == Some(row.id);
            let lost = undo_due && deadlines(row).into_iter().flatten().any(|at| !armed(at));
            return lost.then_some(Lost::Timer);
        }
        if deadlines(row).into_iter().flatten().any(|at| !armed(at)) {
            return Some(Lost::Timer);
        }
        match row.wait.as_ref()? {
            WaitReason::Children => {
                let round = row.rounds.last()?;
                let join = family.latches.get(&round.first)?.join(&round.join);
                matches!(join, Join::Met | Join::Unmeetable).then_some(Lost::Children(round.first))
            }
            WaitReason::Queue if !self.kernel.draining => Some(Lost::Over),
            WaitReason::Paused if !self.is_paused(row) => Some(Lost::Over),
            WaitReason::Suspect if self.kernel.alone.is_none() && !self.is_paused(row) => Some(Lost::Over),
            WaitReason::Width => {
                let round = family.round_of(row)?;
                let first = family.held.range(round.first..).next() == Some(&row.id.member);
                (first && family.latches.get(&round.first)?.has_room(round)).then_some(Lost::Over)
            }
            WaitReason::Gate => self.is_gate_overdue(family, row.id).then_some(Lost::Gate),
            WaitReason::Queue
            | WaitReason::Paused
            | WaitReason::Suspect
            | WaitReason::Permit(_)
            | WaitReason::Lock(_)
            | WaitReason::Timer(_)
            | WaitReason::Event(..)
            | WaitReason::Backoff(..)
            | WaitReason::Poison
            | WaitReason::RollbackFailed
            | WaitReason::RepeatLimit
            | WaitReason::Quarantined
            | WaitReason::Decision(_) => None,
        }
    }

    fn make_up_for(&mut self, id: ProcedureId, how: &Lost) {
        match how {
            Lost::Over if self.row(id).is_some_and(|row| row.wait == Some(WaitReason::Suspect)) => {
                self.let_suspect_go();
            }
            Lost::Over => {
                if let Some(mut row) = self.take(id) {
                    self.set_going(&mut row, None);
                    self.put(row);
                }
            }
            // Writing the row again arms the timers that it names.
            Lost::Timer => {
                self.change(id, |_| {});
                self.effect(LifecycleEffect::ArmTimer);
            }
            Lost::Gate => self.settle_gate(id),
            Lost::Children(first) => {
                let round = self
                    .row(id)
                    .and_then(|row| row.rounds.iter().find(|round| round.first == *first));
                if let Some(round) = round.cloned() {
                    self.joined_late(id, &round);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
