//! Requests of operators. All requests share one path. The same key takes effect once. A row that has changed is left
//! alone. A dry run decides and discards the result. What was done is journalled in its own commit, with the operator
//! and the reason.

use super::draft::Draft;
use crate::audit::{AUDIT_CHANGES, AUDIT_KEPT, AuditEntry, Changed, OperatorRequest, Reach, StateSnapshot};
use crate::cause::{Cause, CauseKind};
use crate::effect::{AdmissionEffect, Answer, NotNow, Operated, Refusal, RequestEffect};
use crate::event::StoredTarget;
use crate::failure::is_failure;
use crate::family::Scope;
use crate::history::HistoryEntry;
use crate::id::{Blob, EventName, Kind, LimitKey, ProcedureId, RequestId, Seq};
use crate::lifecycle::ProcedureState;
use crate::limit::Limit;
use crate::record::Record;
use crate::row::{Mark, Row};
use crate::verb::{AbortAnswer, Act, Verb};
use crate::wait::{SentSignal, WaitReason};

/// What an abort met. A refusal leaves everything unchanged.
pub(super) type Done = Result<Option<AbortAnswer>, Refusal>;

/// What a request is answered beyond its changes.
#[derive(Default)]
struct Obeyed {
    abort: Option<AbortAnswer>,
    submitted: Option<ProcedureId>,
    reach: Option<Reach>,
}

/// A request as its audit entry records it.
struct Recorded {
    act: Act,
    words: String,
    target: Option<ProcedureId>,
    digest: Option<u64>,
}

impl Recorded {
    fn new(verb: &Verb, by: &OperatorRequest, stored: &StoredTarget) -> Self {
        let value = || match stored {
            // The verb of a submission names the kind alone.
            StoredTarget::New(submission) => Some(submission.digest()),
            StoredTarget::None | StoredTarget::Row(_) | StoredTarget::Again(_) | StoredTarget::Archive(..) => {
                verb.value().map(Blob::digest)
            }
        };
        Self {
            act: Act::Operate(verb.clone().recorded()),
            words: verb.to_string(),
            target: verb.target(),
            // A value is compared only with the value of a repeat, which has the same key.
            digest: by.key.as_ref().and_then(|_| value()),
        }
    }
}

impl Draft<'_> {
    pub(super) fn requested(&mut self, request: RequestId, verb: Verb, by: &OperatorRequest, stored: StoredTarget) {
        let recorded = Recorded::new(&verb, by, &stored);
        let is_noted = verb.is_always_noted();
        let planned = by.dry_run.then(|| verb.clone());
        let reaching = matches!(verb, Verb::Abort(_) | Verb::Bypass(..)).then(|| verb.clone());
        if let Err(refusal) = self.check_by(by) {
            return self.refuse(request, refusal);
        }
        if let Verb::Signal(id, name, payload) = &verb
            && let Err(refusal) = self.repeats(&signal_by(*id, name.clone(), payload.clone(), by))
        {
            return self.refuse(request, refusal);
        }
        if let Some(before) = by.key.as_ref().and_then(|key| self.kernel.requests.get(key)) {
            let answer = repeated(before, &recorded);
            return self.reply(request, answer);
        }
        if self.kernel.has_exhausted_numbers() {
            return self.refuse(request, Refusal::NumbersExhausted);
        }
        if let Some(refusal) = by.expected.and_then(|seq| self.check_revision(&verb, &stored, seq)) {
            return self.refuse(request, refusal);
        }
        let mut obeyed = match self.obey(verb, by, stored) {
            Ok(obeyed) => obeyed,
            Err(refusal) => {
                self.forget();
                return self.refuse(request, refusal);
            }
        };
        let plan = planned.map(|verb| Box::new(self.plan(&verb, obeyed.abort.as_ref())));
        obeyed.reach = reaching.map(|verb| self.reach(&verb));
        let mut operated = self.audited(recorded, by, obeyed, is_noted);
        operated.plan = plan;
        self.reply(request, Answer::Operated(Box::new(operated)));
    }

    fn check_by(&self, by: &OperatorRequest) -> Result<(), Refusal> {
        self.check_key(by.key.as_ref())?;
        let longest = self.kernel.rules.bounds.name;
        let sizes = [
            by.who.len(),
            by.why.len(),
            by.key.as_ref().map_or(0, |key| key.as_str().len()),
        ];
        match sizes.into_iter().find(|size| *size > longest) {
            Some(size) => Err(Refusal::TooLarge(size, longest)),
            None => Ok(()),
        }
    }

    fn check_revision(&self, verb: &Verb, stored: &StoredTarget, expected: Seq) -> Option<Refusal> {
        let row = match (self.row(self.planned_row(verb)?), stored) {
            (Some(row), _) => row,
            (None, StoredTarget::Row(row)) => row,
            (None, StoredTarget::Again(again)) => &again.row,
            (None, StoredTarget::None | StoredTarget::New(_) | StoredTarget::Archive(..)) => return None,
        };
        (row.revision != expected).then_some(Refusal::Revised(expected, row.revision, row.state))
    }

    /// Returns the procedure whose row says whether a plan still holds. An undo that failed is that of the rollback: the row
    /// of a member below stays as it is, while another undo takes the failed one's place.
    fn planned_row(&self, verb: &Verb) -> Option<ProcedureId> {
        let target = verb.target()?;
        let is_of_rollback = matches!(verb, Verb::RetryUndo(_) | Verb::SkipUndo(_));
        Some(self.scope_of(target).filter(|_| is_of_rollback).unwrap_or(target))
    }

    fn obey(&mut self, verb: Verb, by: &OperatorRequest, stored: StoredTarget) -> Result<Obeyed, Refusal> {
        let mut obeyed = Obeyed::default();
        match verb {
            Verb::Abort(id) => obeyed.abort = self.abort(id, by)?,
            Verb::Pause(what) => self.pause(what)?,
            Verb::Resume(what) => self.resume_what(&what)?,
            Verb::RetryNow(id) => self.retry_now(id)?,
            Verb::Bypass(id, scope, outcome) => self.bypass(id, scope, &outcome, by)?,
            Verb::RetryUndo(id) => self.retry_undo(id)?,
            Verb::SkipUndo(id) => self.skip_failed_undo(id, by)?,
            Verb::OverrideResult(id, output) => self.override_result(id, output, stored)?,
            Verb::SetPriority(id, priority) => self.set_priority(id, priority)?,
            Verb::SetLimit(key, limit) => self.set_limit(key, limit)?,
            Verb::Discharge(family) => self.discharge(family, stored)?,
            // The caller has read the data already; a finished procedure is not in memory.
            Verb::AuditReveal(..) => {}
            Verb::Signal(id, name, payload) => {
                self.take_signal(signal_by(id, name, payload, by))?;
            }
            Verb::Decide(id, answer) => self.decide_question(id, answer)?,
            Verb::Acknowledge(id) => self.acknowledge(id, stored)?,
            Verb::RunAgain(id) => obeyed.submitted = Some(self.run_again(id, stored)?),
            Verb::Submit(kind) => obeyed.submitted = Some(self.submit_by_request(&kind, stored)?),
            Verb::Drain(_) => self.drain_by_request()?,
        }
        Ok(obeyed)
    }

    /// Records the request in the audit log. A dry run is undone instead, and only answered.
    fn audited(&mut self, recorded: Recorded, by: &OperatorRequest, obeyed: Obeyed, is_noted: bool) -> Operated {
        let (changes, changed) = self.changed();
        let mut operated = Operated {
            number: None,
            changes,
            changed,
            submitted: obeyed.submitted,
            abort: obeyed.abort,
            plan: None,
            reach: obeyed.reach,
        };
        if by.dry_run {
            self.forget();
        } else if is_noted || self.leaves_records() {
            operated.number = Some(self.write_down(recorded, by, &operated));
        }
        operated
    }

    /// Records a broadcast with a key, so that its repeat is recognised.
    pub(super) fn note_broadcast(&mut self, act: Act, digest: Option<u64>, woken: u32, by: &OperatorRequest) {
        let operated = Operated {
            changed: woken,
            ..Operated::default()
        };
        let recorded = Recorded {
            words: act.to_string(),
            act,
            target: None,
            digest,
        };
        self.write_down(recorded, by, &operated);
    }

    fn write_down(&mut self, recorded: Recorded, by: &OperatorRequest, operated: &Operated) -> u64 {
        let number = self.kernel.next_audit;
        let entry = Box::new(AuditEntry {
            number,
            at: self.now,
            who: by.who.clone(),
            why: by.why.clone(),
            words: recorded.words,
            target: recorded.target,
            changes: operated.changes.clone(),
            changed: operated.changed,
            key: by.key.clone(),
            digest: recorded.digest,
            act: Some(recorded.act),
            abort: operated.abort.clone(),
            submitted: operated.submitted,
            reach: operated.reach,
        });
        self.record(Record::Audit(entry.clone()));
        self.effect(RequestEffect::Operated(entry));
        if self.kernel.audits.len() >= AUDIT_KEPT
            && let Some(oldest) = self.kernel.audits.front()
        {
            self.record(Record::AuditDropped(*oldest));
        }
        number
    }

    fn changed(&self) -> (Vec<Changed>, u32) {
        let mut changes = Vec::new();
        // Members that are evicted with their whole family are only counted.
        let mut changed = self.evicted_members();
        for (before, after) in self.changes() {
            // One that was just submitted has not changed.
            let Some(before) = before else { continue };
            changed = changed.saturating_add(1);
            if changes.len() < AUDIT_CHANGES {
                let (id, before, after) = (after.id, snapshot_of(before), snapshot_of(after));
                changes.push(Changed { id, before, after });
            }
        }
        (changes, changed)
    }

    fn abort(&mut self, id: ProcedureId, by: &OperatorRequest) -> Done {
        let Some(row) = self.row(id).filter(|row| !row.is_ended()) else {
            return Err(Refusal::NotLive(id));
        };
        if let Some(stage) = &row.rare().past_no_return {
            let text = format!("it passed its point of no return with stage {stage}");
            return Ok(Some(AbortAnswer::TooLate(text)));
        }
        if let Some(scope) = self.scope_of(id) {
            let cause = self
                .row(scope)
                .and_then(|row| row.rare().cause.as_ref())
                .map(|cause| cause.kind);
            let answer = if cause == Some(CauseKind::Aborted) {
                AbortAnswer::WillRollBack
            } else {
                AbortAnswer::AlreadyRollingBack
            };
            return Ok(Some(answer));
        }
        let cause = Cause::new(CauseKind::Aborted, format!("aborted by {}: {}", by.who, by.why), id);
        if let Some(row) = self.take(id) {
            // A dispatched stage keeps running, and reports first.
            self.fail(row, cause);
        }
        Ok(Some(AbortAnswer::WillRollBack))
    }

    /// Puts a quarantined family into the archive. The archive is read only for a quarantined family.
    fn discharge(&mut self, family: u64, stored: StoredTarget) -> Result<(), Refusal> {
        let StoredTarget::Archive(archive, doomed) = stored else {
            return Err(match self.family(family) {
                Some(_) => Refusal::NotNow(
                    NotNow::NotQuarantined,
                    format!("the family {family} is not quarantined; abort or bypass it instead"),
                ),
                None => Refusal::NotLive(ProcedureId::root(family)),
            });
        };
        self.record(Record::Archived(family, archive));
        self.record(Record::Evicted(doomed));
        self.tell_limiter(AdmissionEffect::ReleaseFamily(family));
        self.effect(RequestEffect::Discharged(family));
        Ok(())
    }

    fn set_limit(&mut self, key: LimitKey, limit: Limit) -> Result<(), Refusal> {
        let longest = self.kernel.rules.bounds.name;
        if key.as_str().len() > longest {
            return Err(Refusal::TooLarge(key.as_str().len(), longest));
        }
        limit.check().map_err(|why| Refusal::NotNow(NotNow::Invalid, why))?;
        if limit.rate().is_none() && self.kernel.rates.window(&key).is_some() {
            self.record(Record::RateWindow(key.clone(), Box::default()));
        }
        self.record(Record::Limit(key.clone(), limit));
        self.tell_limiter(AdmissionEffect::SetLimit(key, limit));
        Ok(())
    }

    fn set_priority(&mut self, id: ProcedureId, priority: i16) -> Result<(), Refusal> {
        if self.row(id).is_none_or(Row::is_ended) {
            return Err(Refusal::NotLive(id));
        }
        self.change(id, |row| row.priority = priority);
        if let Some(asker) = self.asks_with_priority_of(id) {
            self.tell_limiter(AdmissionEffect::SetPriority(asker, priority));
        }
        Ok(())
    }

    /// Returns the member whose place in the queues follows the priority of a procedure: the procedure itself or, while
    /// it rolls back, the member whose undo waits. One that a failure above it stops asks for nothing.
    fn asks_with_priority_of(&self, id: ProcedureId) -> Option<ProcedureId> {
        if !self.is_stopped(id) {
            return Some(id);
        }
        let (stack, ..) = self.held(id)?;
        let member = ProcedureId::new(id.family, stack.last()?.member);
        self.undo_waits_for(id, member).then_some(member)
    }

    /// Ends a backoff, or the rest of a procedure that waits for an operator. The attempt or the undo begins at once.
    /// Failures stay counted. The gate of a child opens, whatever stands before it. One that asks a person goes on without
    /// an answer.
    fn retry_now(&mut self, id: ProcedureId) -> Result<(), Refusal> {
        let Some(row) = self.row(id).filter(|row| !row.is_ended()) else {
            return Err(Refusal::NotLive(id));
        };
        if row.wait == Some(WaitReason::Poison) {
            return self.run_parked(id);
        }
        if row.wait == Some(WaitReason::Gate) {
            return self.open_by_request(id);
        }
        if matches!(row.wait, Some(WaitReason::Decision(_))) {
            return self.end_question(id, None);
        }
        if !matches!(row.wait, Some(WaitReason::Backoff(..) | WaitReason::RollbackFailed)) {
            return Err(Refusal::NotNow(
                NotNow::NothingToRetry,
                format!("{id} is in no backoff, and asks nothing; there is nothing to retry"),
            ));
        }
        if self.scope_of(id) == Some(id) {
            self.try_undo_again(id);
        } else if self.is_stopped(id) {
            return Err(Refusal::NotNow(
                NotNow::Failing,
                format!("the family of {id} fails; it does not run again"),
            ));
        } else if let Some(mut row) = self.take(id) {
            self.set_going(&mut row, None);
            self.put(row);
        }
        Ok(())
    }

    fn retry_undo(&mut self, id: ProcedureId) -> Result<(), Refusal> {
        let scope = self.rollback_failed(id)?;
        self.change(scope, |row| row.clear_rare(|rare| rare.undo_attempts = 0));
        self.try_undo_again(scope);
        Ok(())
    }

    fn skip_failed_undo(&mut self, id: ProcedureId, by: &OperatorRequest) -> Result<(), Refusal> {
        let scope = self.rollback_failed(id)?;
        match self.top_of(scope) {
            Some(top) => {
                self.skip_undo(scope, top, by);
                Ok(())
            }
            // After a restart the rollback stack must be read first.
            None => {
                let text = "its rollback stack is being read; skip the undo again in a moment".to_owned();
                Err(Refusal::NotNow(NotNow::UnderWay, text))
            }
        }
    }

    pub(super) fn top_of(&self, scope: ProcedureId) -> Option<HistoryEntry> {
        match self.family(scope.family)?.scopes.get(&scope.member)? {
            Scope::Held { stack, .. } => stack.last().cloned(),
            Scope::Loading => None,
        }
    }

    fn rollback_failed(&self, id: ProcedureId) -> Result<ProcedureId, Refusal> {
        if self.row(id).is_none() {
            return Err(Refusal::NotLive(id));
        }
        let failed = |scope: &ProcedureId| {
            self.row(*scope)
                .is_some_and(|row| row.wait == Some(WaitReason::RollbackFailed))
        };
        self.scope_of(id).filter(failed).ok_or_else(|| {
            Refusal::NotNow(
                NotNow::RollbackNotFailed,
                format!("the rollback of {id} has not failed; there is no undo to retry or skip"),
            )
        })
    }

    /// Acknowledges the result of a finished root.
    fn acknowledge(&mut self, id: ProcedureId, stored: StoredTarget) -> Result<(), Refusal> {
        let StoredTarget::Row(row) = stored else {
            return Err(Refusal::NotLive(id));
        };
        self.take_note_of(*row);
        Ok(())
    }

    /// Submits a failed root again, and takes its failure off the list. A repeat finds the first one's procedure under
    /// its key.
    fn run_again(&mut self, id: ProcedureId, stored: StoredTarget) -> Result<ProcedureId, Refusal> {
        let row = match stored {
            StoredTarget::Again(again) if is_failure(&again.row) => {
                let submitted = self.submit_again(again.submission)?;
                self.take_note_of(*again.row);
                return Ok(submitted);
            }
            StoredTarget::Again(again) => again.row,
            StoredTarget::Row(row) => row,
            StoredTarget::None | StoredTarget::New(_) | StoredTarget::Archive(..) => return Err(Refusal::NotLive(id)),
        };
        let text = format!(
            "{id} is {}; only a root that failed or was rolled back runs again",
            row.state
        );
        Err(Refusal::NotNow(NotNow::NotFailed, text))
    }

    /// Submits a root. A repeat of its key and value finds the first one.
    fn submit_by_request(&mut self, kind: &Kind, stored: StoredTarget) -> Result<ProcedureId, Refusal> {
        match stored {
            StoredTarget::New(submission) => self.submit_one(*submission),
            StoredTarget::None | StoredTarget::Row(_) | StoredTarget::Again(_) | StoredTarget::Archive(..) => {
                let text = format!("the value of the new \"{kind}\" is missing");
                Err(Refusal::NotNow(NotNow::Invalid, text))
            }
        }
    }

    /// Replaces the output of a procedure that succeeded. Callers that ask for it from now on get the new output.
    fn override_result(&mut self, id: ProcedureId, output: Blob, stored: StoredTarget) -> Result<(), Refusal> {
        let limit = self.kernel.rules.bounds.payload;
        if output.len() > limit {
            return Err(Refusal::TooLarge(output.len(), limit));
        }
        let (mut row, in_memory) = match (self.row(id), stored) {
            (Some(row), _) => (Box::new(row.clone()), true),
            (None, StoredTarget::Row(row)) => (row, false),
            (None, StoredTarget::None | StoredTarget::Again(_) | StoredTarget::New(_) | StoredTarget::Archive(..)) => {
                return Err(Refusal::NotLive(id));
            }
        };
        if row.state != ProcedureState::Success {
            let text = format!(
                "{id} is {}; only the result of one that succeeded can be replaced",
                row.state
            );
            return Err(Refusal::NotNow(NotNow::NotSucceeded, text));
        }
        row.rare_mut().mark.get_or_insert(Mark::Overridden);
        self.record(Record::Output(id, output));
        if in_memory {
            self.put(row);
        } else {
            row.revision = self.seq;
            self.record(Record::FinishedRow(row));
        }
        Ok(())
    }
}

/// Answers a repeat of a request as the request itself was answered. Another request with its key is refused.
fn repeated(before: &AuditEntry, again: &Recorded) -> Answer {
    if !before.is_repeated_by(&again.act, &again.words, again.digest) {
        let text = format!("the key was used for another request: {}", before.words);
        return Answer::Refused(Refusal::NotNow(NotNow::KeyUsed, text));
    }
    Answer::Operated(Box::new(Operated {
        number: Some(before.number),
        changes: before.changes.clone(),
        changed: before.changed,
        submitted: before.submitted,
        abort: before.abort.clone(),
        plan: None,
        reach: before.reach,
    }))
}

fn snapshot_of(row: &Row) -> StateSnapshot {
    StateSnapshot {
        state: row.state,
        wait: row.wait.clone(),
        in_flight: row.in_flight.is_some(),
        ended: row.is_ended(),
    }
}

/// Returns the signal that an operator sends. The key of the request is the sender's key.
fn signal_by(to: ProcedureId, name: EventName, payload: Blob, by: &OperatorRequest) -> SentSignal {
    SentSignal {
        to,
        name,
        payload,
        key: by.key.clone(),
        last: false,
    }
}

#[cfg(test)]
mod tests {
    //! How a repeated request is answered.

    use super::*;
    use crate::id::Timestamp;

    fn entry(recorded: &Recorded) -> AuditEntry {
        AuditEntry {
            number: 7,
            at: Timestamp(1),
            who: "ann".to_owned(),
            why: "wrong table".to_owned(),
            words: recorded.words.clone(),
            target: recorded.target,
            changes: Vec::new(),
            changed: 0,
            key: None,
            digest: recorded.digest,
            act: Some(recorded.act.clone()),
            abort: None,
            submitted: None,
            reach: None,
        }
    }

    fn abort_of(answer: Answer) -> Option<AbortAnswer> {
        let Answer::Operated(operated) = answer else {
            panic!("{answer:?}");
        };
        operated.abort
    }

    #[test]
    fn a_repeated_abort_is_answered_as_the_first_was() {
        let by = OperatorRequest::new("ann", "wrong table").key("a");
        let abort = Recorded::new(&Verb::Abort(ProcedureId::root(4)), &by, &StoredTarget::None);
        let answers = [
            AbortAnswer::WillRollBack,
            AbortAnswer::AlreadyRollingBack,
            AbortAnswer::TooLate("it passed its point of no return".to_owned()),
        ];
        for met in answers {
            let before = AuditEntry {
                abort: Some(met.clone()),
                ..entry(&abort)
            };
            assert_eq!(abort_of(repeated(&before, &abort)), Some(met));
        }
        // An entry of an older release has only words; such an abort began a rollback.
        let old = AuditEntry {
            act: None,
            ..entry(&abort)
        };
        assert_eq!(
            abort_of(repeated(&old.restored(7), &abort)),
            Some(AbortAnswer::WillRollBack)
        );
    }

    #[test]
    fn a_repeat_is_told_by_the_act_and_its_value() {
        let by = OperatorRequest::new("ann", "a signal").key("a");
        let signal = |value: &[u8]| {
            let verb = Verb::Signal(ProcedureId::root(4), "go".into(), Blob::from(value));
            Recorded::new(&verb, &by, &StoredTarget::None)
        };
        let before = entry(&signal(b"one"));
        assert!(matches!(repeated(&before, &signal(b"one")), Answer::Operated(_)));
        // The words are the same, because they contain only the size.
        assert!(matches!(repeated(&before, &signal(b"two")), Answer::Refused(_)));
        let old = AuditEntry {
            act: None,
            digest: None,
            ..entry(&signal(b"one"))
        };
        assert!(matches!(repeated(&old.clone(), &signal(b"two")), Answer::Operated(_)));
        assert!(matches!(repeated(&old, &signal(b"three")), Answer::Refused(_)));
    }
}
