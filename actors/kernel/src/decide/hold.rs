//! Permits and locks of a procedure: taken before a stage, released when it is parked or ends, and never counted
//! twice.

use super::draft::Draft;
use crate::effect::AdmissionEffect;
use crate::id::{ProcedureId, Timestamp};
use crate::lock::LockNeed;
use crate::needs::Needs;
use crate::row::{Hold, Row};
use crate::wait::WaitReason;

impl Draft<'_> {
    /// Releases what a parked procedure does not hold for life.
    pub(super) fn give_back(&mut self, row: &mut Row, keeps_permits: bool) {
        let mut needs = Needs::default();
        if row.hold == Hold::WhileActive && row.holds && !keeps_permits {
            row.holds = false;
            needs.limits = row.limits.to_vec();
        }
        needs.limits.extend(row.drop_stage_permits());
        if !row.locks_for_life {
            needs.locks = row.unlock_all();
        }
        if !needs.is_empty() {
            self.tell_limiter(AdmissionEffect::GiveBack(row.id, needs));
        }
    }

    /// Releases the permits of a stage or an undo whose attempt has ended.
    pub(super) fn give_back_stage_permits(&mut self, row: &mut Row) {
        let limits = row.drop_stage_permits();
        if !limits.is_empty() {
            let locks = Vec::new();
            self.tell_limiter(AdmissionEffect::GiveBack(row.id, Needs { limits, locks }));
        }
    }

    /// Withdraws the request for a next stage that does not follow after all. The limiter may have granted it: then the
    /// permits go back, and the locks stay for the undo if the row names them. If the report was refused, the row names
    /// those of the stage before: the undo must not wait for these while it holds others.
    #[cold]
    pub(super) fn withdraw_next_stage(&mut self, row: &mut Row) {
        drop(row.drop_stage_permits());
        if !row.locks_for_life {
            row.unlock_others(|row, held| row.locks.contains(held));
        }
        self.tell_limiter(AdmissionEffect::Keep(row.id, row.held()));
    }

    /// Releases the locks of an ended stage when the next stage follows without a request to the limiter, so that
    /// waiters get their turn.
    pub(super) fn give_back_locks(&mut self, row: &mut Row) {
        if !row.locks_for_life && !row.locked.is_empty() {
            let (limits, locks) = (Vec::new(), row.unlock_all());
            self.tell_limiter(AdmissionEffect::GiveBack(row.id, Needs { limits, locks }));
        }
    }

    /// Releases locks of the previous stage that the starting stage does not need.
    pub(super) fn give_back_other_locks(&mut self, row: &mut Row) {
        if row.locks_for_life || row.locked.iter().all(|held| row.locks.contains(held)) {
            return;
        }
        let locks = row.unlock_others(|row, held| row.locks.contains(held));
        let limits = Vec::new();
        self.tell_limiter(AdmissionEffect::GiveBack(row.id, Needs { limits, locks }));
    }

    /// Handles a grant of everything that a procedure waits for, for its next stage or its next undo.
    pub(super) fn granted(&mut self, id: ProcedureId) {
        let scope = self.scope_of(id);
        let waits = self
            .row(id)
            .is_some_and(|row| row.wait.as_ref().is_some_and(WaitReason::is_admission) && !self.is_stopping(row));
        if waits {
            let Some(mut row) = self.take(id) else { return };
            self.begin_in(row.lacking_limits());
            hold_all(&mut row, self.now);
            self.set_going(&mut row, None);
            self.put(row);
        } else if let Some(scope) = scope.filter(|scope| self.undo_waits_for(*scope, id)) {
            let now = self.now;
            if let Some(mut row) = self.take(id) {
                self.begin_in(row.lacking_stage_limits());
                hold_for_undo(&mut row, now);
                self.put(row);
            }
            // The grant may belong to the stage that it waited for before the failure. An undo needs no permit of the
            // procedure itself, and of a procedure that holds its locks for life no further lock, so those go back.
            self.give_back_unheld(id);
            self.try_undo_again(scope);
        } else {
            self.late(id);
            self.settle(id);
        }
    }

    /// Returns a late grant: the procedure no longer waits for it.
    fn settle(&mut self, id: ProcedureId) {
        match self.row(id) {
            None => self.tell_limiter(AdmissionEffect::Release(id)),
            Some(row) if row.is_ended() && row.held().is_empty() => self.tell_limiter(AdmissionEffect::Release(id)),
            // The stage's report asks the limiter before it is decided. So the limiter may already have queued, or even
            // granted, what the next stage needs: nothing is cancelled, and only what no stage holds goes back.
            Some(row) if row.in_flight.is_some() => {
                let needs = Needs {
                    limits: row.lacking_limits().cloned().collect(),
                    locks: row.lacking_locks().cloned().collect(),
                };
                if !needs.is_empty() {
                    self.tell_limiter(AdmissionEffect::GiveBack(id, needs));
                }
            }
            Some(row) => self.tell_limiter(AdmissionEffect::Keep(id, row.held())),
        }
    }

    /// Releases the permits and the locks that the row does not hold, in case the limiter has granted them.
    fn give_back_unheld(&mut self, id: ProcedureId) {
        let Some(row) = self.row(id) else { return };
        let needs = Needs {
            limits: if row.holds { Vec::new() } else { row.limits.to_vec() },
            locks: row.lacking_locks().cloned().collect(),
        };
        if !needs.is_empty() {
            self.tell_limiter(AdmissionEffect::GiveBack(id, needs));
        }
    }

    /// Removes the members of a failing part from the limiter's queues, because they run no more stages.
    pub(super) fn leave_queues(&mut self, scope: ProcedureId) {
        let outermost = self.scope_of(scope);
        let Some(family) = self.family(scope.family) else {
            return;
        };
        for row in family.within(scope.member) {
            let waits = row.wait.as_ref().is_some_and(WaitReason::is_admission);
            // Below a member past its point of no return, a part rolls back on its own and goes on waiting.
            if waits && self.scope_of(row.id) == outermost && self.is_stopped(row.id) {
                // A smaller part that was already rolling back waits under the name of the member that it undoes.
                let top = self.held(row.id).and_then(|(stack, _, _)| stack.last());
                let member = top.filter(|_| row.is_failing()).map_or(row.id.member, |top| top.member);
                self.tell_limiter(AdmissionEffect::Cancel(ProcedureId::new(row.id.family, member)));
            }
        }
    }
}

fn hold_all(row: &mut Row, now: Timestamp) {
    row.holds = !row.limits.is_empty();
    row.stage_permits = !row.stage_limits.is_empty();
    hold_locks(row, now);
}

/// Adds what an undo needs: the permits of its stage, and locks.
fn hold_for_undo(row: &mut Row, now: Timestamp) {
    row.stage_permits = !row.stage_limits.is_empty();
    let needs: Vec<LockNeed> = row.lacking_locks_of_undo().cloned().collect();
    row.lock_all(&needs, now);
}

/// Adds the needed locks; locks held from other stages are kept.
fn hold_locks(row: &mut Row, now: Timestamp) {
    let needs = std::mem::take(&mut row.locks);
    row.lock_all(&needs, now);
    row.locks = needs;
}
