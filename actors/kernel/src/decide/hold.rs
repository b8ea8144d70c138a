//! What a procedure holds of the limiter: taken before a stage, given back
//! when it is parked or ends, and never counted twice.

use super::draft::Draft;
use crate::effect::AdmissionEffect;
use crate::id::{ProcedureId, Timestamp};
use crate::needs::Needs;
use crate::row::{Hold, Row};
use crate::wait::WaitReason;

impl Draft<'_> {
    /// A parked procedure gives back what it does not hold for life.
    pub(super) fn give_back(&mut self, row: &mut Row, keeps_permits: bool) {
        let mut needs = Needs::default();
        if row.hold == Hold::WhileActive && row.holds && !keeps_permits {
            row.holds = false;
            needs.limits.clone_from(&row.limits);
        }
        if !row.locks_for_life {
            needs.locks = row.unlock_all();
        }
        if !needs.is_empty() {
            self.effect(AdmissionEffect::GiveBack(row.id, needs));
        }
    }

    /// A stage has ended, and the next follows without the limiter having been asked:
    /// what was held for it alone goes back, so that those who wait have their turn.
    pub(super) fn give_back_locks(&mut self, row: &mut Row) {
        if !row.locks_for_life && !row.locked.is_empty() {
            let (limits, locks) = (Vec::new(), row.unlock_all());
            self.effect(AdmissionEffect::GiveBack(row.id, Needs { limits, locks }));
        }
    }

    /// Locks of the stage before, which the one that starts does not need.
    pub(super) fn give_back_other_locks(&mut self, row: &mut Row) {
        if row.locks_for_life || row.locked.iter().all(|held| row.locks.contains(held)) {
            return;
        }
        let locks = row.unlock_others(|row, held| row.locks.contains(held));
        let limits = Vec::new();
        self.effect(AdmissionEffect::GiveBack(row.id, Needs { limits, locks }));
    }

    /// The limiter has granted all that a procedure waits for: its next stage, or its next undo.
    pub(super) fn granted(&mut self, id: ProcedureId) {
        let scope = self.scope_of(id);
        let waits = self
            .row(id)
            .is_some_and(|row| row.wait.as_ref().is_some_and(WaitReason::is_admission) && !self.is_stopping(row));
        if waits {
            let Some(mut row) = self.take(id) else { return };
            hold_all(&mut row, self.now);
            self.set_going(&mut row, None);
            self.put(row);
        } else if let Some(scope) = scope.filter(|scope| self.undo_waits_for(*scope, id)) {
            let now = self.now;
            self.change(id, |row| hold_locks(row, now));
            // The grant may be of the stage that it waited for before: an undo needs no permit.
            self.give_back_unheld(id);
            self.try_undo_again(scope);
        } else {
            self.late(id);
            self.settle(id);
        }
    }

    /// Gives back what the limiter granted to one who waits no more.
    fn settle(&mut self, id: ProcedureId) {
        match self.row(id) {
            None => self.effect(AdmissionEffect::Release(id)),
            Some(row) if row.is_ended() && row.locked.is_empty() => self.effect(AdmissionEffect::Release(id)),
            // What it asks for next may have been granted already.
            Some(row) if row.going.is_some() => {
                let limits = if row.holds { Vec::new() } else { row.limits.clone() };
                let locks = row.locks.iter().filter(|need| !row.locked.contains(need));
                let needs = Needs {
                    limits,
                    locks: locks.cloned().collect(),
                };
                self.effect(AdmissionEffect::Cancel(id));
                self.effect(AdmissionEffect::GiveBack(id, needs));
            }
            Some(row) => self.effect(AdmissionEffect::Keep(id, row.held())),
        }
    }

    /// Gives back the permits that its row does not hold, should the limiter have granted them.
    fn give_back_unheld(&mut self, id: ProcedureId) {
        let row = self.row(id).filter(|row| !row.holds && !row.limits.is_empty());
        if let Some(limits) = row.map(|row| row.limits.clone()) {
            let locks = Vec::new();
            self.effect(AdmissionEffect::GiveBack(id, Needs { limits, locks }));
        }
    }

    /// Takes those of a failing part off the limiter's queues: they run no more.
    pub(super) fn leave_queues(&mut self, scope: ProcedureId) {
        let outermost = self.scope_of(scope);
        let Some(family) = self.family(scope.family) else {
            return;
        };
        for row in family.within(scope.member) {
            let waits = row.wait.as_ref().is_some_and(WaitReason::is_admission);
            // Below one beyond its point of no return a part rolls back by itself: it goes on waiting.
            if waits && self.scope_of(row.id) == outermost && self.is_stopped(row.id) {
                // A smaller part that rolled back by itself waits with the member that it undoes.
                let top = self.held(row.id).and_then(|(stack, _, _)| stack.last());
                let member = top.filter(|_| row.is_failing()).map_or(row.id.member, |top| top.member);
                self.effect(AdmissionEffect::Cancel(ProcedureId::new(row.id.family, member)));
            }
        }
    }
}

fn hold_all(row: &mut Row, now: Timestamp) {
    row.holds = !row.limits.is_empty();
    hold_locks(row, now);
}

/// Those that it holds of other stages it keeps.
fn hold_locks(row: &mut Row, now: Timestamp) {
    let needs = std::mem::take(&mut row.locks);
    row.lock_all(&needs, now);
    row.locks = needs;
}
