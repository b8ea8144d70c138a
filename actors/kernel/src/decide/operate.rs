//! Requests of operators: abort, limits, acknowledgement, undo by hand, drain.

use super::draft::Draft;
use crate::effect::{AbortAnswer, Answer, Effect, Refusal};
use crate::event::Operator;
use crate::family::Scope;
use crate::id::{LimitKey, ProcedureId, Ticket};
use crate::lifecycle::ProcedureState;
use crate::record::{Cause, CauseKind, Doomed, Going, HistoryEntry, Record, Row};
use crate::wait::WaitReason;

impl Draft<'_> {
    pub(super) fn abort_requested(&mut self, ticket: Ticket, id: ProcedureId, operator: Operator) {
        if self.row(id).is_none_or(Row::is_ended) {
            self.refuse(ticket, Refusal::NotLive(id));
            return;
        }
        if let Some(scope) = self.scope_of(id) {
            let by_abort = self
                .row(scope)
                .and_then(|row| row.cause.as_ref())
                .map(|cause| cause.kind)
                == Some(CauseKind::Aborted);
            let answer = if by_abort {
                AbortAnswer::WillRollBack
            } else {
                AbortAnswer::AlreadyRollingBack
            };
            self.reply(ticket, Answer::Aborted(answer));
            return;
        }
        let cause = Cause::new(
            CauseKind::Aborted,
            format!("aborted by {}: {}", operator.who, operator.why),
            id,
        );
        self.effect(Effect::Operated(id, operator));
        self.fail_in_place(id, cause);
        self.reply(ticket, Answer::Aborted(AbortAnswer::WillRollBack));
    }

    /// Fails a member from outside. A stage of it that is out goes on being out,
    /// and reports first.
    fn fail_in_place(&mut self, id: ProcedureId, cause: Cause) {
        if let Some(row) = self.take(id) {
            self.fail(row, cause);
        }
    }

    pub(super) fn limit_set(&mut self, ticket: Ticket, key: LimitKey, value: Option<u32>) {
        let longest = self.kernel.rules.bounds.name;
        if key.as_str().len() > longest {
            self.refuse(ticket, Refusal::TooLarge(key.as_str().len(), longest));
            return;
        }
        self.record(Record::Limit(key.clone(), value));
        self.effect(Effect::SetLimit(key, value));
        self.reply(ticket, Answer::Done);
    }

    /// Takes note that somebody has the result: it may go sooner.
    pub(super) fn acknowledged(&mut self, ticket: Ticket, mut row: Row) {
        let due = self.now.after(self.kernel.rules.keep_after_acknowledgement);
        if let Some(old) = row.due.filter(|old| *old > due) {
            self.record(Record::DueChanged(row.id.family, old, due));
            row.due = Some(due);
            row.revision = self.seq;
            // The family is not in memory any more: the row only goes to disk.
            self.record(Record::FinishedRow(Box::new(row)));
        }
        self.reply(ticket, Answer::Done);
    }

    pub(super) fn undo_retry_requested(&mut self, ticket: Ticket, id: ProcedureId, operator: Operator) {
        match self.rollback_failed(id) {
            Ok(scope) => {
                self.effect(Effect::Operated(scope, operator));
                self.change(scope, |row| row.undo_attempts = 0);
                self.try_undo_again(scope);
                self.reply(ticket, Answer::Done);
            }
            Err(refusal) => self.refuse(ticket, refusal),
        }
    }

    pub(super) fn undo_skip_requested(&mut self, ticket: Ticket, id: ProcedureId, operator: Operator) {
        let scope = match self.rollback_failed(id) {
            Ok(scope) => scope,
            Err(refusal) => return self.refuse(ticket, refusal),
        };
        match self.top_of(scope) {
            Some(top) => {
                self.skip_undo(scope, top, &operator);
                self.effect(Effect::Operated(scope, operator));
                self.reply(ticket, Answer::Done);
            }
            // After a restart it is read first.
            None => {
                let text = "its rollback stack is being read; skip the undo again in a moment".to_owned();
                self.refuse(ticket, Refusal::NotNow(text));
            }
        }
    }

    fn top_of(&self, scope: ProcedureId) -> Option<HistoryEntry> {
        match self.family(scope.family)?.scopes.get(&scope.member)? {
            Scope::Held { stack, .. } => stack.last().cloned(),
            Scope::Loading => None,
        }
    }

    fn rollback_failed(&self, id: ProcedureId) -> Result<ProcedureId, Refusal> {
        if self.row(id).is_none() {
            return Err(Refusal::NotLive(id));
        }
        self.scope_of(id)
            .filter(|scope| {
                self.row(*scope)
                    .is_some_and(|row| row.wait == Some(WaitReason::RollbackFailed))
            })
            .ok_or_else(|| {
                Refusal::NotNow(format!(
                    "the rollback of {id} has not failed; there is no undo to retry or skip"
                ))
            })
    }

    pub(super) fn resume_requested(&mut self, ticket: Ticket, id: ProcedureId, operator: Operator) {
        let Some(row) = self.row(id) else {
            return self.refuse(ticket, Refusal::NotLive(id));
        };
        if row.wait != Some(WaitReason::Poison) {
            let text = format!("{id} is not paused; there is nothing to resume");
            return self.refuse(ticket, Refusal::NotNow(text));
        }
        if let Some(scope) = self.scope_of(id) {
            let text = format!("{id} fails with {scope}; it is rolled back, and does not run again");
            return self.refuse(ticket, Refusal::NotNow(text));
        }
        if let Some(mut row) = self.take(id) {
            self.set_going(&mut row, None);
            self.put(row);
        }
        self.effect(Effect::Operated(id, operator));
        self.reply(ticket, Answer::Done);
    }

    pub(super) fn eviction_due(&mut self, doomed: Vec<Doomed>) {
        for family in doomed {
            self.record(Record::Evicted(Box::new(family)));
        }
    }

    pub(super) fn drain_began(&mut self) {
        self.record(Record::Draining);
    }

    /// What still runs loses its mark: the next start runs it, and counts nothing against it.
    pub(super) fn drain_ended(&mut self, ticket: Ticket) {
        let out: Vec<ProcedureId> = self
            .kernel
            .families
            .values()
            .filter(|family| family.going > 0)
            .flat_map(|family| &family.members)
            .filter(|row| row.going.is_some())
            .map(|row| row.id)
            .collect();
        for id in out {
            let now = self.now;
            self.change(id, |row| {
                if let Some(going) = &mut row.going {
                    going.deaths = Going::UNCOUNTED;
                    going.alone = false;
                }
                if row.state != ProcedureState::Failed {
                    row.since = now;
                }
            });
        }
        self.record(Record::Stopped(self.kernel.epoch));
        self.reply(ticket, Answer::Done);
    }
}
