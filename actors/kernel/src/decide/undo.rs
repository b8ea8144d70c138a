//! Undos, one after the other: each is a commit of its own, is retried for the same stage, and can be skipped by an
//! operator only.

use std::collections::BTreeSet;
use std::time::Duration;

use super::draft::Draft;
use crate::audit::OperatorRequest;
use crate::cause::{Cause, CauseKind};
use crate::effect::{AdmissionEffect, DispatchEffect, LifecycleEffect};
use crate::event::UndoEnded;
use crate::history::{Ending, HistoryEntry, LeftValue};
use crate::id::{Blob, ProcedureId};
use crate::outstanding::undo_call;
use crate::record::Record;
use crate::retry::RETRY_AFTER_MAX;
use crate::row::Row;
use crate::wait::WaitReason;

impl Draft<'_> {
    /// Starts the undo of the top of the stack. Returns `false` if it must wait, for an operator, for locks that the
    /// member no longer holds, or for the permits that its stage ran under.
    pub(super) fn undo(&mut self, scope: ProcedureId, entry: &HistoryEntry) -> bool {
        let id = ProcedureId::new(scope.family, entry.member);
        self.name_needs(id, entry);
        let Some(row) = self.row(id) else { return false };
        let held_back = if self.is_paused(row) {
            Some(WaitReason::Paused)
        } else {
            lacking(row)
        };
        if let Some(reason) = held_back {
            let asks = reason.is_admission();
            self.scope_waits(scope, reason);
            if asks {
                self.request(id);
            } else {
                // The grant may have met the pause.
                self.undo_needs_no_permits(id);
            }
            self.effect(DispatchEffect::Stop(id));
            return false;
        }
        let attempt = self.row(scope).map_or(0, |row| row.rare().undo_attempts) + 1;
        let Some(row) = self.row(id) else { return false };
        let call = undo_call(row, scope, entry, attempt);
        self.keep_reporter(id);
        self.effect(DispatchEffect::call(call));
        true
    }

    /// Returns `true` if the undo of this entry would start at once, with the locks that its member holds and no permit.
    pub(super) fn undo_can_begin(&self, entry: &HistoryEntry) -> bool {
        self.row(ProcedureId::new(entry.family, entry.member))
            .is_some_and(|row| names_needs(row, entry) && !self.is_paused(row) && lacking(row).is_none())
    }

    /// Makes the row name the locks and the limits that the undo needs. Locks of the stage undone before, which this
    /// stage did not have, are released at once: a member that holds one lock and waits for another can deadlock. The
    /// same goes for whatever the limiter may have granted for the stage that was waiting when this part of the family
    /// failed.
    fn name_needs(&mut self, id: ProcedureId, entry: &HistoryEntry) {
        let Some(row) = self.row(id) else { return };
        if names_needs(row, entry) {
            return;
        }
        let Some(mut row) = self.take(id) else { return };
        if let Some(locks) = &entry.locks {
            row.locks = locks.clone().into();
            row.unlock_others(|row, held| row.locks.contains(held));
        }
        row.stage_permits = false;
        row.stage_limits = entry.limits.clone().into();
        self.tell_limiter(AdmissionEffect::Keep(id, row.held()));
        self.put(row);
    }

    /// Releases the permits of an undo that has ended its attempt, or that does not start.
    fn undo_needs_no_permits(&mut self, id: ProcedureId) {
        if self.row(id).is_some_and(|row| row.stage_permits)
            && let Some(mut row) = self.take(id)
        {
            self.give_back_stage_permits(&mut row);
            self.put(row);
        }
    }

    fn scope_waits(&mut self, scope: ProcedureId, reason: WaitReason) {
        if self.row(scope).is_some_and(|row| row.wait.as_ref() == Some(&reason)) {
            return;
        }
        let now = self.now;
        self.change(scope, |row| {
            row.wait = Some(reason);
            row.since = now;
        });
    }

    /// Returns `true` if the rollback of a scope waits for a lock or a permit of this member.
    pub(super) fn undo_waits_for(&self, scope: ProcedureId, id: ProcedureId) -> bool {
        let waits = self
            .row(scope)
            .is_some_and(|row| row.wait.as_ref().is_some_and(WaitReason::is_admission));
        let top = self.held(scope).and_then(|(stack, _, _)| stack.last());
        waits && top.is_some_and(|top| top.member == id.member)
    }

    pub(super) fn undo_ended(&mut self, mut report: UndoEnded) {
        let scope = report.scope;
        let top = self
            .held(scope)
            .filter(|(stack, _, out)| *out && stack.last().is_some_and(|top| top.number == report.number))
            .and_then(|(stack, _, _)| stack.last().cloned());
        let Some(top) = top else {
            self.late(scope);
            return;
        };
        if let Err(text) = self.check_note(report.note.as_ref()) {
            report.outcome = Err(text);
            report.note = None;
        }
        self.check_value_of_undo(&mut report);
        if report.outcome.is_ok() {
            report.outcome = self.check_writes(&report.writes).map_err(|excess| excess.to_string());
        }
        let id = ProcedureId::new(scope.family, top.member);
        let (ending, error) = match &report.outcome {
            Ok(()) => (Ending::Undone, None),
            Err(text) => (Ending::UndoFailed, Some(text.clone())),
        };
        let times = Some((report.begun, report.ended));
        let changed = report.payload.as_ref().filter(|_| report.outcome.is_ok());
        let value = self.row(id).and_then(|row| self.value_left(row, changed));
        let left = (report.note.take(), value);
        let number = self.undo_recorded(&top, ending, error, times, scope, left);
        if let Some(mut row) = self.take(id) {
            row.history = number;
            let changed = report.payload.filter(|_| report.outcome.is_ok());
            if changed.is_some()
                && let Some(submitted) = self.take_submitted(&mut row, report.replaced)
            {
                self.record_submitted(id, submitted);
            }
            if let Some(value) = changed.or(report.upgraded) {
                self.value_recorded(&mut row, value, |_| top.stage.clone());
            }
            self.give_back_stage_permits(&mut row);
            self.put(row);
        }
        match report.outcome {
            Ok(()) => {
                self.write_user(report.writes);
                self.undone(scope, top);
            }
            Err(text) => self.undo_failed(scope, &top, &text, report.retry_after),
        }
    }

    /// Turns an undo that leaves too large a value into a failed one. The store keeps the value that it has, and the next
    /// attempt begins with that.
    fn check_value_of_undo(&self, report: &mut UndoEnded) {
        if report.outcome.is_err() {
            return;
        }
        let value = report.payload.as_ref().or(report.upgraded.as_ref());
        if let Err(text) = self.check_value(value.map_or(0, Blob::len)) {
            report.outcome = Err(text);
            report.upgraded = None;
        }
    }

    fn undo_recorded(
        &mut self,
        top: &HistoryEntry,
        ending: Ending,
        error: Option<String>,
        times: Option<(crate::id::Timestamp, crate::id::Timestamp)>,
        scope: ProcedureId,
        (note, value): (Option<Blob>, Option<Box<LeftValue>>),
    ) -> u32 {
        let number = self.next_history(top.family);
        let id = ProcedureId::new(top.family, top.member);
        if self.row(id).is_some_and(|row| self.keeps_only_stack(row)) {
            return number;
        }
        let (begun, ended) = times.unwrap_or((self.now, self.now));
        let (queued, admitted, attempt) = match self.row(scope) {
            // The undo had to wait for a lock, its backoff or an operator.
            Some(row) if row.ready.is_some() || row.rare().undo_attempts > 0 => (
                row.ready.unwrap_or(row.since),
                row.ready.map(|_| row.since),
                row.rare().undo_attempts + 1,
            ),
            Some(_) | None => (begun, None, 1),
        };
        self.record(Record::History(Box::new(HistoryEntry {
            family: top.family,
            number,
            member: top.member,
            stage: top.stage.clone(),
            visit: top.visit,
            attempt,
            ending,
            error: error.map(|text| Cause::new(CauseKind::Failed, text, scope).text),
            stands: false,
            queued: queued.min(begun),
            admitted,
            begun,
            ended,
            locks: None,
            limits: Vec::new(),
            note,
            value,
            submitted: None,
        })));
        number
    }

    /// Removes the top of the stack, and goes on with the next entry or ends the scope. The entry of the undo names the
    /// visit, so the one of the stage stays as it is.
    fn undone(&mut self, scope: ProcedureId, mut top: HistoryEntry) {
        let id = ProcedureId::new(scope.family, top.member);
        if self.row(id).is_some_and(|row| self.keeps_only_stack(row)) {
            // Older attempts of that visit are below this entry, and go with it.
            let row = self.row(id).filter(|row| row.visit == top.visit);
            let older = row.map(|row| row.rare().attempts_kept.clone()).unwrap_or_default();
            let mut dropped: BTreeSet<u32> = older.into_iter().chain([top.number]).collect();
            if top.locks.is_some() || top.submitted.is_some() {
                // It says under which locks the entries below it ran. Without it a start would take those of an entry
                // above it that the rollback has passed over. The same goes for an entry that has the value with which
                // the root was submitted, from when its kind still kept all entries.
                dropped.remove(&top.number);
                top.stands = false;
                self.record(Record::History(Box::new(top)));
            }
            for number in dropped {
                self.record(Record::HistoryDropped(scope.family, number));
            }
        }
        self.change(id, |row| {
            row.standing = row.standing.saturating_sub(1);
            row.clear_rare(|rare| rare.attempts_kept.clear());
        });
        self.change(scope, |row| {
            row.clear_rare(|rare| rare.undo_attempts = 0);
            row.wait = None;
            row.ready = None;
        });
        self.close_with(Record::StackPopped(scope));
        if self.scope_of(scope) != Some(scope) {
            // A larger part of the family has failed meanwhile, and its rollback continues from here.
            self.begin_rollback_if_quiet(scope);
            return;
        }
        let Some((stack, not_undone, _)) = self.held(scope) else {
            return;
        };
        match stack.iter().rev().nth(1).cloned() {
            Some(_) if self.kernel.draining => self.effect(DispatchEffect::Stop(id)),
            Some(entry) => {
                let same_member = entry.member == id.member;
                if !same_member {
                    self.effect(DispatchEffect::Stop(id));
                }
                let out = self.undo(scope, &entry);
                self.close_with(Record::UndoOut(scope, out));
            }
            None => {
                // The list may be long, so it is copied once, after the last undo.
                let not_undone = not_undone.to_vec();
                self.finish_scope(scope, not_undone);
            }
        }
    }

    /// Arms the next attempt of an undo, after the delay that its code chose, or else after its kind's backoff.
    fn undo_failed(&mut self, scope: ProcedureId, top: &HistoryEntry, text: &str, chosen: Option<Duration>) {
        self.close_with(Record::UndoOut(scope, false));
        let id = ProcedureId::new(scope.family, top.member);
        self.effect(DispatchEffect::Stop(id));
        let retry = self
            .row(id)
            .and_then(|row| self.rules_of(&row.kind))
            .map(|rules| rules.retry_undo)
            .unwrap_or_default();
        let now = self.now;
        let failed = self.row(scope).map_or(0, |row| row.rare().undo_attempts) + 1;
        let chosen = chosen
            .map(|delay| delay.min(RETRY_AFTER_MAX))
            .filter(|_| retry.allows_another(failed));
        let reason = if retry.allows_another(failed) {
            self.effect(LifecycleEffect::ArmTimer);
            let drawn = self.row(id).map_or(0, |row| self.drawn(row));
            let delay = chosen.unwrap_or_else(|| retry.jittered(failed, drawn));
            WaitReason::Backoff(failed, now.after(delay))
        } else {
            WaitReason::RollbackFailed
        };
        self.undo_attempt_kept(id, failed);
        self.change(scope, |row| {
            let rare = row.rare_mut();
            (rare.undo_attempts, rare.retry_after) = (failed, chosen);
            row.note_failure(text, now);
            row.wait = Some(reason);
            row.since = now;
            row.ready = None;
        });
        if self.scope_of(scope) != Some(scope) {
            self.begin_rollback_if_quiet(scope);
        } else if chosen.is_some_and(|delay| delay.is_zero()) {
            self.try_undo_again(scope);
        }
    }

    /// Keeps the last few failed attempts of an undo, as for a stage.
    fn undo_attempt_kept(&mut self, id: ProcedureId, failed: u32) {
        let Some(mut row) = self.take(id) else { return };
        if failed == 1 {
            // The numbers kept so far belong to the stage. Its entries stay, and the newest is being undone.
            row.clear_rare(|rare| rare.attempts_kept.clear());
        }
        if !self.keeps_only_stack(&row) {
            let newest = row.history;
            row.rare_mut().attempts_kept.push(newest);
            if row.rare().attempts_kept.len() > self.kernel.rules.bounds.attempts_kept
                && let Some(oldest) = row.rare_mut().attempts_kept.take_first()
            {
                self.record(Record::HistoryDropped(id.family, oldest));
            }
        }
        self.put(row);
    }

    /// Retries the undo on top of the stack after a backoff, a grant or an operator's request.
    pub(super) fn try_undo_again(&mut self, scope: ProcedureId) {
        let now = self.now;
        self.change(scope, |row| {
            let waited = row.wait.as_ref().is_some_and(WaitReason::is_admission);
            row.ready = waited.then(|| row.ready.unwrap_or(row.since));
            row.wait = None;
            row.since = now;
        });
        let top = self.held(scope).and_then(|(stack, _, _)| stack.last().cloned());
        match top {
            // The next start goes on.
            Some(_) if self.kernel.draining => {}
            Some(top) => {
                let out = self.undo(scope, &top);
                self.close_with(Record::UndoOut(scope, out));
            }
            None => self.begin_rollback_if_quiet(scope),
        }
    }

    pub(super) fn skip_undo(&mut self, scope: ProcedureId, top: HistoryEntry, by: &OperatorRequest) {
        let id = ProcedureId::new(scope.family, top.member);
        let said = format!("skipped by {}: {}", by.who, by.why);
        let member = self.row(ProcedureId::new(top.family, top.member));
        let value = member.and_then(|row| self.value_left(row, None));
        let number = self.undo_recorded(&top, Ending::UndoSkipped, Some(said), None, scope, (None, value));
        self.change(id, |row| row.history = number);
        self.undone(scope, top);
    }
}

/// Returns `true` if the row names the locks and the limits that the undo of this entry needs.
fn names_needs(row: &Row, entry: &HistoryEntry) -> bool {
    let has_locks = entry.locks.as_ref().is_none_or(|locks| row.locks == *locks);
    has_locks && row.stage_limits == entry.limits
}

/// Returns a lock or a permit that a member's undo needs and the member does not hold, as a reason to wait.
fn lacking(row: &Row) -> Option<WaitReason> {
    let lock = row.lacking_locks_of_undo().next();
    let lock = lock.map(|need| WaitReason::Lock(need.path.clone()));
    lock.or_else(|| row.lacking_stage_limits().next().cloned().map(WaitReason::Permit))
}
