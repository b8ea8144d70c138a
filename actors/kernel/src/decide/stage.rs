//! The end of a stage: one commit, whatever it asks for next.

use std::time::Duration;

use super::draft::Draft;
use crate::effect::Effect;
use crate::event::{Admission, Birth, StageEnded, StageOutcome};
use crate::id::{Blob, EventName};
use crate::lifecycle::ProcedureState;
use crate::record::{Cause, CauseKind, Ending, HistoryEntry, Record, Row};
use crate::wait::{WaitReason, Wake};

impl Draft<'_> {
    pub(super) fn stage_ended(&mut self, report: StageEnded) {
        let current = self.row(report.id).and_then(|row| row.going).map(|going| going.run);
        if current != Some(report.run) || report.epoch != self.kernel.epoch {
            self.late(report.id);
            return;
        }
        if report.outcome == StageOutcome::Yield {
            self.stage_yielded(&report);
            return;
        }
        let report = self.within_bounds(report);
        let id = report.id;
        let Some(mut row) = self.take(id) else { return };
        self.stage_recorded(&mut row, &report);
        if self.is_stopping(&row) {
            self.stage_settled(row, report);
        } else {
            self.stage_obeyed(row, report);
        }
        // Last, when it is known what this stage has moved.
        self.next_suspect(id);
    }

    /// Tells whether the family, or the part with this member, is failing.
    fn is_stopping(&self, row: &Row) -> bool {
        row.is_failing() || self.parent(row).is_some_and(|parent| self.scope_of(parent).is_some())
    }

    /// What is over a bound becomes a failure that names the bound, and leaves nothing.
    fn within_bounds(&self, mut report: StageEnded) -> StageEnded {
        if let Err(text) = self.check_report(&report) {
            report.outcome = StageOutcome::Refused(text);
            report.payload = None;
        }
        if !is_success(&report.outcome) {
            report.payload = None;
            report.writes.clear();
            report.submitted.clear();
        }
        report
    }

    fn check_report(&self, report: &StageEnded) -> Result<(), String> {
        let bounds = &self.kernel.rules.bounds;
        let payload = report.payload.as_ref().map_or(0, Blob::len);
        let output = match &report.outcome {
            StageOutcome::Done(output) => output.len(),
            StageOutcome::Next(_)
            | StageOutcome::Spawn { .. }
            | StageOutcome::Sleep(..)
            | StageOutcome::Wait(..)
            | StageOutcome::Yield
            | StageOutcome::Retry(_)
            | StageOutcome::Fail(_)
            | StageOutcome::Panicked(_)
            | StageOutcome::Refused(_) => 0,
        };
        if payload.max(output) > bounds.payload {
            return Err(format!(
                "a value of {} bytes is over the limit of {}",
                payload.max(output),
                bounds.payload
            ));
        }
        if report.submitted.len() > bounds.batch {
            return Err(format!(
                "{} submissions are over the limit of {}",
                report.submitted.len(),
                bounds.batch
            ));
        }
        if let StageOutcome::Wait(event, ..) = &report.outcome
            && event.as_str().len() > bounds.name
        {
            return Err(format!(
                "an event's name of {} bytes is over the limit of {}",
                event.as_str().len(),
                bounds.name
            ));
        }
        if let StageOutcome::Spawn { births, .. } = &report.outcome {
            self.check_spawn(report.id, births)?;
        }
        let born = report.submitted.iter().map(|(birth, _)| birth);
        for birth in born {
            self.check_birth(birth)?;
        }
        Ok(())
    }

    pub(super) fn check_birth(&self, birth: &Birth) -> Result<(), String> {
        if self.kernel.kind(&birth.kind).is_none() {
            return Err(format!("no procedure of kind \"{}\" is registered", birth.kind));
        }
        let limit = self.kernel.rules.bounds.payload;
        if birth.payload.len() > limit {
            return Err(format!(
                "a payload of {} bytes is over the limit of {limit}",
                birth.payload.len()
            ));
        }
        Ok(())
    }

    fn stage_yielded(&mut self, report: &StageEnded) {
        let Some(row) = self.row(report.id).cloned() else {
            return;
        };
        if self.is_stopping(&row) || self.kernel.draining {
            // A yielded call has not executed: nothing is left standing.
            let mut row = Box::new(row);
            row.going = None;
            row.wait = Some(WaitReason::Queue);
            row.since = self.now;
            let id = row.id;
            self.put(row);
            self.effect(Effect::Stop(id));
            self.next_suspect(id);
            self.begin_rollback_if_quiet(id);
        } else {
            self.advance(&row, None);
        }
    }

    /// Writes what the stage did: entry, value, user data, submissions.
    fn stage_recorded(&mut self, row: &mut Row, report: &StageEnded) {
        let number = self.next_history(row.id.family);
        let (ending, error) = ending_of(&report.outcome);
        self.record(Record::History(Box::new(HistoryEntry {
            family: row.id.family,
            number,
            member: row.id.member,
            stage: row.stage.clone(),
            visit: row.visit,
            attempt: row.attempt + 1,
            ending,
            error: error.map(|text| Cause::new(CauseKind::Failed, text, row.id).text),
            stands: true,
            queued: row.since,
            begun: report.begun,
            ended: report.ended,
        })));
        if row.attempt == 0 {
            row.standing += 1;
        }
        row.history = number;
        row.going = None;
        if !matches!(report.outcome, StageOutcome::Retry(_) | StageOutcome::Panicked(_)) {
            self.consume_wake(row);
        }
        if let Some(payload) = &report.payload {
            self.record(Record::Payload(row.id, payload.clone()));
            if let Some(rules) = self.kernel.kind(&row.kind) {
                row.version = rules.version;
            }
        }
        self.write_user(report.writes.clone());
        for (birth, admission) in &report.submitted {
            self.begin_family(birth, admission.clone(), None);
        }
    }

    fn stage_obeyed(&mut self, mut row: Box<Row>, report: StageEnded) {
        if is_success(&report.outcome) {
            row.visit += 1;
            row.attempt = 0;
            row.attempts_kept.clear();
        }
        match report.outcome {
            StageOutcome::Next(stage) => {
                row.stage = stage;
                self.set_going(&mut row, None);
                self.put(row);
            }
            StageOutcome::Done(output) => self.done(row, output),
            StageOutcome::Spawn {
                births,
                admissions,
                join,
                width,
                then,
            } => {
                row.stage = then;
                self.spawn(row, births, admissions, join, width);
            }
            StageOutcome::Sleep(until, then) => {
                row.stage = then;
                self.park(&mut row, ProcedureState::WaitingTimeout, WaitReason::Timer(until));
                self.put(row);
            }
            StageOutcome::Wait(event, timeout, then) => {
                row.stage = then;
                self.wait(row, event, timeout);
            }
            StageOutcome::Yield => self.put(row),
            StageOutcome::Retry(text) => self.try_again(row, CauseKind::AttemptsExhausted, text),
            StageOutcome::Panicked(text) => self.try_again(row, CauseKind::Panicked, text),
            StageOutcome::Fail(text) => self.failed(row, CauseKind::Failed, text),
            StageOutcome::Refused(text) => self.failed(row, CauseKind::OverBound, text),
        }
    }

    /// A stage that reports while its family is failing: what it did counts, what it asks does not.
    fn stage_settled(&mut self, mut row: Box<Row>, report: StageEnded) {
        let id = row.id;
        row.since = self.now;
        if is_success(&report.outcome) {
            row.visit += 1;
            row.attempt = 0;
        }
        self.effect(Effect::Stop(id));
        match report.outcome {
            StageOutcome::Done(output) if !row.is_failing() => self.done(row, output),
            StageOutcome::Fail(text)
            | StageOutcome::Retry(text)
            | StageOutcome::Panicked(text)
            | StageOutcome::Refused(text) => {
                row.cause.get_or_insert_with(|| Cause::new(CauseKind::Failed, text, id));
                row.state = ProcedureState::Failed;
                self.put(row);
            }
            StageOutcome::Next(_)
            | StageOutcome::Done(_)
            | StageOutcome::Spawn { .. }
            | StageOutcome::Sleep(..)
            | StageOutcome::Wait(..)
            | StageOutcome::Yield => {
                row.state = ProcedureState::Failed;
                self.put(row);
            }
        }
        self.begin_rollback_if_quiet(id);
    }

    fn wait(&mut self, mut row: Box<Row>, event: EventName, timeout: Option<Duration>) {
        match self.pending_signal(row.id, event.as_str()) {
            Some(number) => {
                row.wake = Some(Wake::Signal(event, number));
                self.set_going(&mut row, None);
            }
            None => {
                let until = timeout.map(|timeout| self.now.after(timeout));
                self.park(
                    &mut row,
                    ProcedureState::WaitingTimeout,
                    WaitReason::Event(event, until),
                );
            }
        }
        self.put(row);
    }

    fn try_again(&mut self, mut row: Box<Row>, exhausted: CauseKind, text: String) {
        let retry = self.kernel.kind(&row.kind).map(|rules| rules.retry).unwrap_or_default();
        row.attempt += 1;
        if !retry.allows_another(row.attempt) {
            self.failed(row, exhausted, text);
            return;
        }
        row.attempts_kept.push(row.history);
        if row.attempts_kept.len() > self.kernel.rules.bounds.attempts_kept {
            let oldest = row.attempts_kept.remove(0);
            self.record(Record::HistoryDropped(row.id.family, oldest));
        }
        let until = self.now.after(retry.delay(row.attempt));
        let reason = WaitReason::Backoff(row.attempt, until);
        self.park(&mut row, ProcedureState::WaitingTimeout, reason);
        self.put(row);
    }

    fn failed(&mut self, row: Box<Row>, kind: CauseKind, text: String) {
        let cause = Cause::new(kind, text, row.id);
        self.fail(row, cause);
    }

    /// Gives birth to detached families; children proper are counted by the caller.
    pub(super) fn detach(&mut self, births: &[Birth], admissions: Vec<Admission>) {
        let mut admissions = admissions.into_iter();
        for birth in births.iter().filter(|birth| birth.detached) {
            self.begin_family(birth, admissions.next().unwrap_or_default(), None);
        }
    }
}

const fn is_success(outcome: &StageOutcome) -> bool {
    match outcome {
        StageOutcome::Next(_)
        | StageOutcome::Done(_)
        | StageOutcome::Spawn { .. }
        | StageOutcome::Sleep(..)
        | StageOutcome::Wait(..) => true,
        StageOutcome::Yield
        | StageOutcome::Retry(_)
        | StageOutcome::Fail(_)
        | StageOutcome::Panicked(_)
        | StageOutcome::Refused(_) => false,
    }
}

fn ending_of(outcome: &StageOutcome) -> (Ending, Option<&str>) {
    match outcome {
        StageOutcome::Next(_) | StageOutcome::Yield => (Ending::Next, None),
        StageOutcome::Done(_) => (Ending::Done, None),
        StageOutcome::Spawn { .. } => (Ending::Spawn, None),
        StageOutcome::Sleep(..) => (Ending::Sleep, None),
        StageOutcome::Wait(..) => (Ending::Wait, None),
        StageOutcome::Retry(text) => (Ending::Retry, Some(text)),
        StageOutcome::Fail(text) | StageOutcome::Refused(text) => (Ending::Fail, Some(text)),
        StageOutcome::Panicked(text) => (Ending::Panic, Some(text)),
    }
}
