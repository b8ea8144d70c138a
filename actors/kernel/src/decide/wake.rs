//! Timers: waits that end, and deadlines that pass.

use super::draft::Draft;
use crate::cause::{Cause, CauseKind};
use crate::id::ProcedureId;
use crate::record::Record;
use crate::row::{OnTimeout, Row};
use crate::wait::{WaitReason, Wake};

impl Draft<'_> {
    pub(super) fn timer_due(&mut self, id: ProcedureId) {
        if self.wake_by_wave(id) {
            // If the deadline is what is due, it is still armed.
            return;
        }
        let Some(row) = self.row(id) else {
            self.late(id);
            return;
        };
        if row.deadline.is_some_and(|deadline| deadline <= self.now) && !row.is_failing() && !row.out_of_time {
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
            Some(_) if self.is_stopped(id) => self.disarm(id),
            Some(wait) => self.woken_by_time(id, wait),
        }
    }

    fn woken_by_time(&mut self, id: ProcedureId, wait: WaitReason) {
        let Some(mut row) = self.take(id) else { return };
        match wait {
            WaitReason::Event(name, _) => row.wake = Some(Wake::Timeout(name)),
            WaitReason::Decision(_) => {
                row.wake = Some(Wake::Decision(None));
                self.leave_question(&mut row);
                return self.put(row);
            }
            WaitReason::Timer(_)
            | WaitReason::Backoff(..)
            | WaitReason::Width
            | WaitReason::Permit(_)
            | WaitReason::Children
            | WaitReason::Queue
            | WaitReason::Suspect
            | WaitReason::Poison
            | WaitReason::RollbackFailed
            | WaitReason::Lock(_)
            | WaitReason::Paused
            | WaitReason::RepeatLimit
            | WaitReason::Quarantined
            | WaitReason::Gate => {}
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

    /// Disarms the timers of a stopped procedure, because they have nothing to wake.
    fn disarm(&mut self, id: ProcedureId) {
        self.late(id);
        self.record(Record::Disarmed(id));
    }

    /// Handles a deadline that has passed.
    fn out_of_time(&mut self, id: ProcedureId) {
        let Some(mut row) = self.take(id) else { return };
        let allowed = row.deadline.unwrap_or(self.now).since(row.submitted);
        let stopped = row.is_ended() || self.is_stopping(&row);
        if stopped || (row.rare().on_timeout == OnTimeout::Fail && row.rare().past_no_return.is_some()) {
            // The procedure is already failing, or can no longer fail.
            row.deadline = None;
            self.put(row);
            self.late(id);
            return;
        }
        match row.rare().on_timeout {
            OnTimeout::Fail => {
                row.deadline = None;
                let text = format!("its timeout of {} s has passed", allowed.as_secs_f64());
                let cause = Cause::new(CauseKind::TimedOut, text, id);
                self.fail(row, cause);
            }
            OnTimeout::Execute => {
                row.out_of_time = true;
                self.tell_out_of_time(row);
            }
        }
    }

    /// Tells the next stage that the deadline passed while this stage ran. If the procedure parks, its next stage runs
    /// at once.
    pub(super) fn tell_if_overdue(&mut self, id: ProcedureId) {
        let overdue = |row: &Row| row.out_of_time && row.deadline.is_some() && !row.is_ended();
        if self.row(id).is_some_and(overdue)
            && !self.is_stopped(id)
            && let Some(row) = self.take(id)
        {
            self.tell_out_of_time(row);
        }
    }

    /// Marks the next stage to be told that the deadline has passed. A sleeping procedure is woken for it.
    #[cold]
    fn tell_out_of_time(&mut self, mut row: Box<Row>) {
        row.wake = match &row.wait {
            Some(WaitReason::Event(name, _)) => Some(Wake::Timeout(name.clone())),
            Some(WaitReason::Decision(_)) => {
                row.wake = Some(Wake::Decision(None));
                self.leave_question(&mut row);
                return self.put(row);
            }
            Some(WaitReason::Timer(_) | WaitReason::Backoff(..)) => row.wake.take(),
            // Its children, its turn or an operator will resume it. It is told then.
            Some(_) | None => {
                self.put(row);
                return;
            }
        };
        self.set_going(&mut row, None);
        self.put(row);
    }
}
