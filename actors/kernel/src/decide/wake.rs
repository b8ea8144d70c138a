//! What ends a wait: time, and the limiter's grant.

use super::draft::Draft;
use crate::effect::Effect;
use crate::id::ProcedureId;
use crate::record::{Cause, CauseKind, Record};
use crate::wait::{WaitReason, Wake};

impl Draft<'_> {
    pub(super) fn timer_due(&mut self, id: ProcedureId) {
        let Some(row) = self.row(id) else {
            self.late(id);
            return;
        };
        if row.deadline.is_some_and(|deadline| deadline <= self.now) && !row.is_failing() {
            self.out_of_time(id);
            return;
        }
        let due = row
            .wait
            .clone()
            .filter(|wait| wait.deadline().is_some_and(|at| at <= self.now));
        if row.is_failing() {
            self.undo_backoff_over(id, due.is_some());
            return;
        }
        match due {
            None => self.late(id),
            Some(_) if self.scope_of(id).is_some() => self.disarm(id),
            Some(wait) => self.woken_by_time(id, wait),
        }
    }

    fn woken_by_time(&mut self, id: ProcedureId, wait: WaitReason) {
        let Some(mut row) = self.take(id) else { return };
        match wait {
            WaitReason::Event(name, _) => row.wake = Some(Wake::Timeout(name)),
            WaitReason::Timer(_)
            | WaitReason::Backoff(..)
            | WaitReason::Width
            | WaitReason::Permit(_)
            | WaitReason::Children
            | WaitReason::Queue
            | WaitReason::Suspect
            | WaitReason::Poison
            | WaitReason::RollbackFailed
            | WaitReason::Quarantined => {}
        }
        self.set_going(&mut row, None);
        self.put(row);
    }

    fn undo_backoff_over(&mut self, id: ProcedureId, due: bool) {
        if due && self.scope_of(id) == Some(id) && !self.kernel.draining {
            self.try_undo_again(id);
        } else if due {
            self.disarm(id);
        } else {
            self.late(id);
        }
    }

    /// A sleeper of a failing family stops: its timer has nothing to wake.
    fn disarm(&mut self, id: ProcedureId) {
        self.late(id);
        self.record(Record::Disarmed(id));
    }

    /// The procedure's own time is up.
    fn out_of_time(&mut self, id: ProcedureId) {
        let Some(mut row) = self.take(id) else { return };
        let deadline = row.deadline.take();
        if row.is_ended() || self.scope_of(id).is_some() {
            self.put(row);
            self.late(id);
            return;
        }
        let allowed = deadline.unwrap_or(self.now).since(row.submitted);
        let text = format!("its time of {} s was up", allowed.as_secs_f64());
        let cause = Cause::new(CauseKind::TimedOut, text, id);
        self.fail(row, cause);
    }

    pub(super) fn granted(&mut self, id: ProcedureId) {
        let waits = self
            .row(id)
            .is_some_and(|row| matches!(row.wait, Some(WaitReason::Permit(_))));
        if !waits || self.scope_of(id).is_some() {
            self.late(id);
            self.effect(Effect::Release(id));
            return;
        }
        let Some(mut row) = self.take(id) else { return };
        row.holds = true;
        self.set_going(&mut row, None);
        self.put(row);
    }
}
