//! Success and failure: how the end of one member moves its parent and its family.

use std::time::Duration;

use super::draft::Draft;
use crate::cause::Cause;
use crate::effect::{AdmissionEffect, DispatchEffect, Ended, RequestEffect, StageTask};
use crate::failure::{FailureEntry, is_failure};
use crate::id::{Blob, ProcedureId};
use crate::lifecycle::ProcedureState;
use crate::outstanding::call_of;
use crate::record::Record;
use crate::row::Row;
use crate::wait::WaitReason;

impl Draft<'_> {
    pub(super) fn done(&mut self, mut row: Box<Row>, output: Blob) {
        let id = row.id;
        row.state = ProcedureState::Success;
        row.wait = None;
        row.since = self.now;
        self.record(Record::Output(id, output.clone()));
        if row.locks_for_life {
            // The end releases these locks; a compensation takes them again.
            row.locks.clone_from(&row.locked);
        }
        self.ended(&mut row, Some(output));
        self.put(row);
        if let Some(parent) = self.child_moved(id) {
            self.fail_upwards(parent, id);
        }
        self.stop_formerly_shielded(id);
        // A rollback may have waited for this member, which was past its point of no return and allowed to end first.
        self.begin_rollback_if_quiet(id);
        self.end_family_if_over(id.family);
    }

    /// A member past its point of no return shields its descendants from a failure above. When it ends, they fail with
    /// that scope and must leave the limiter's queues.
    pub(super) fn stop_formerly_shielded(&mut self, id: ProcedureId) {
        let was_shield = self.row(id).is_some_and(|row| row.rare().past_no_return.is_some());
        if let Some(scope) = self.scope_of(id).filter(|_| was_shield) {
            self.leave_queues(scope);
        }
    }

    /// Does what every end has in common: sets the time, stops the actor, releases permits and locks, and notifies
    /// callers that wait for the outcome.
    pub(super) fn ended(&mut self, row: &mut Row, output: Option<Blob>) {
        row.ended = Some(self.now);
        row.in_flight = None;
        row.clear_rare(|rare| rare.output = None);
        row.ready = None;
        self.effect(DispatchEffect::Stop(row.id));
        self.release(row);
        if self.rules_of(&row.kind).is_some_and(|rules| rules.cleanup) {
            row.rare_mut().cleaning = true;
            self.effect(DispatchEffect::call(call_of(row, StageTask::CleanUp)));
        }
        self.effect(RequestEffect::Ended(Box::new(Ended {
            id: row.id,
            kind: row.kind.clone(),
            state: row.state,
            cause: row.rare().cause.as_deref().cloned(),
            not_undone: row.rare().not_undone.to_vec(),
            output,
            mark: row.rare().mark,
            submitted: row.submitted,
        })));
    }

    /// Releases everything that an ending procedure held or waited for.
    pub(super) fn release(&mut self, row: &mut Row) {
        row.holds = false;
        row.stage_permits = false;
        row.stage_limits.clear();
        row.unlock_all();
        // Also of one that holds nothing any more: it may have a claim from a time when it did.
        self.tell_limiter(AdmissionEffect::Release(row.id));
    }

    /// Completes an end after its code has cleaned up.
    pub(super) fn cleaned_up(&mut self, id: ProcedureId) {
        if self.row(id).is_none_or(|row| !row.rare().cleaning) {
            self.late(id);
            return;
        }
        self.change(id, |row| row.clear_rare(|rare| rare.cleaning = false));
        self.end_family_if_over(id.family);
    }

    /// Fails a member and with it its part of the family. The parent fails too if its join policy can no longer be
    /// met, and so on upwards.
    pub(super) fn fail(&mut self, mut row: Box<Row>, cause: Cause) {
        let id = row.id;
        row.state = ProcedureState::Failed;
        row.rare_mut().cause = Some(cause.into());
        row.since = self.now;
        row.clear_rare(|rare| rare.output = None);
        row.ready = None;
        // A waiting suspect is in doubt: it runs before anything is undone. A poisoned stage is in doubt as well, but
        // is undone without being run again.
        let in_doubt = |wait: &WaitReason| matches!(wait, WaitReason::Suspect | WaitReason::Poison);
        row.wait = row.wait.take().filter(in_doubt);
        if row.in_flight.is_none() && row.wait.is_none() {
            self.attempts_settled(&mut row);
        }
        // A stage that is out keeps its actor, because it reports before anything is undone.
        if row.in_flight.is_none() {
            self.effect(DispatchEffect::Stop(id));
        }
        self.put(row);
        let mut top = id;
        while let Some(parent) = self.child_moved(top) {
            self.mark_failed(parent, top);
            top = parent;
        }
        self.leave_queues(top);
        self.begin_rollback_if_quiet(top);
    }

    pub(super) fn fail_upwards(&mut self, parent: ProcedureId, child: ProcedureId) {
        self.mark_failed(parent, child);
        let mut top = parent;
        while let Some(above) = self.child_moved(top) {
            self.mark_failed(above, top);
            top = above;
        }
        self.leave_queues(top);
        self.begin_rollback_if_quiet(top);
    }

    fn mark_failed(&mut self, parent: ProcedureId, child: ProcedureId) {
        let cause = self.cause_by_child(parent, child);
        let now = self.now;
        self.change(parent, |row| {
            row.state = ProcedureState::Failed;
            row.rare_mut().cause = Some(cause.into());
            row.since = now;
            row.wait = None;
            row.clear_rare(|rare| rare.output = None);
        });
    }

    /// Ends a family once every member has ended. Its result is then kept for a while.
    pub(super) fn end_family_if_over(&mut self, number: u64) {
        if self.has_live_members(number) || self.ends_family(number) {
            return;
        }
        let root = ProcedureId::root(number);
        let due = self.now.after(self.keep_after_end(root));
        let mut end_signal = None;
        self.change(root, |row| {
            row.due = Some(due);
            end_signal = row.rare_if_any().and_then(|rare| rare.end_signal.take());
        });
        self.close_with(Record::FamilyEnded(number, due));
        if let Some(failure) = self.failure_of(root) {
            self.close_with(Record::FailureListed(Box::new(failure)));
        }
        if let Some(signal) = end_signal {
            self.send_end_signal(number, *signal);
        }
    }

    /// Returns how long the result of a root is kept. A failure is kept for longer than a success, so that people find
    /// it; a kind that keeps its successes even longer keeps its failures as long.
    fn keep_after_end(&self, root: ProcedureId) -> Duration {
        let rules = &self.kernel.rules;
        let Some(row) = self.row(root) else {
            return rules.keep_after_end;
        };
        let own = self.rules_of(&row.kind);
        let success = own.and_then(|own| own.keep_after_end);
        if is_failure(row) {
            let failure = own.and_then(|own| own.keep_after_failure);
            return failure.unwrap_or_else(|| rules.keep_after_failure.max(success.unwrap_or_default()));
        }
        success.unwrap_or(rules.keep_after_end)
    }

    fn failure_of(&self, root: ProcedureId) -> Option<FailureEntry> {
        let row = self.row(root)?;
        let origin = row.rare().cause.as_ref().and_then(|cause| self.row(cause.origin));
        FailureEntry::of(row, origin.map(|origin| &origin.kind))
    }
}
