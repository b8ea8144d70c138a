//! The end of a stage: one commit, whatever it asks for next.

use std::time::Duration;

use super::draft::Draft;
use super::signal::words;
use super::spawn::{ListRules, check_join};
use super::submit::oversized_end_signal;
use crate::cause::{Cause, CauseKind};
use crate::effect::{AdmissionEffect, DispatchEffect};
use crate::event::{Birth, StageEffects, StageEnded, StageOutcome, Submission};
use crate::history::{Ending, HistoryEntry, LeftValue, SUBMITTED_ENTRY_LAST, SUBMITTED_IN_ENTRY_MAX, SubmittedValue};
use crate::id::{Blob, EventName, ProcedureId};
use crate::kernel::HistoryDetail;
use crate::label::Labels;
use crate::lifecycle::ProcedureState;
use crate::needs::Lacking;
use crate::record::Record;
use crate::retry::RETRY_AFTER_MAX;
use crate::row::{JoinPolicy, Row};
use crate::wait::{END_SIGNAL_MAX, WaitReason, Wake};

/// How many entries leave the window in one commit, at most. It is more than one, so that a kind whose code keeps less
/// than before catches up, and few, so that no commit is large.
const WINDOW_STEP: u32 = 8;

impl Draft<'_> {
    pub(super) fn stage_ended(&mut self, report: Box<StageEnded>) {
        let current = self
            .row(report.id)
            .and_then(|row| row.in_flight)
            .map(|in_flight| in_flight.run);
        if current != Some(report.run) || report.epoch != self.kernel.epoch {
            self.late(report.id);
            return;
        }
        if report.outcome == StageOutcome::Yield && report.earlier.is_empty() {
            self.stage_yielded(&report);
            return;
        }
        let id = report.id;
        let left_effects = report.outcome.leaves_effects();
        let mut report = self.within_bounds(self.without_failure_past_return(report));
        if !report.outcome.leaves_effects() && !report.earlier.is_empty() {
            self.run_given_up(&report);
            return;
        }
        // The actor goes on with the value that it has reported. If that is refused, the store has the last one.
        let is_refused = matches!(report.outcome, StageOutcome::Refused(_));
        if !is_refused && left_effects == report.outcome.leaves_effects() {
            self.value_is_with_actor(id);
        }
        let Some(mut row) = self.take(id) else { return };
        if !report.earlier.is_empty() {
            self.earlier_recorded(&mut row, std::mem::take(&mut report.earlier));
        }
        self.stage_recorded(&mut row, &mut report);
        let signals = report
            .effects
            .as_mut()
            .map(|effects| std::mem::take(&mut effects.signals));
        if self.is_stopping(&row) {
            self.stage_settled(row, report);
        } else {
            self.stage_obeyed(row, report);
        }
        // Receivers of the same family are woken once it is known whether this stage lets the family fail.
        if let Some(signals) = signals {
            self.deliver_all(signals);
        }
        // This comes last, when the moves of this stage are known.
        self.next_suspect(id);
    }

    /// Turns a failure that the stage decided on into a plain one, past the point of no return: the stage runs again,
    /// so what it did must not be kept.
    fn without_failure_past_return(&self, mut report: Box<StageEnded>) -> Box<StageEnded> {
        if let StageOutcome::GiveUp(text) = &mut report.outcome
            && self
                .row(report.id)
                .is_some_and(|row| row.rare().past_no_return.is_some())
        {
            report.outcome = StageOutcome::Fail(std::mem::take(text));
        }
        report
    }

    /// Turns a report that exceeds a bound into a failure that names the bound. A failed stage writes, submits and
    /// spawns nothing.
    fn within_bounds(&self, mut report: Box<StageEnded>) -> Box<StageEnded> {
        if let Err(text) = self.check_report(&report) {
            report.outcome = StageOutcome::Refused(text);
            report.payload = None;
            report.upgraded = None;
            report.note = report.note.filter(|note| note.len() <= self.kernel.rules.bounds.note);
        }
        if report.outcome.leaves_effects()
            && let Some(effects) = &mut report.effects
            && let Err(text) = self.admit_effects(effects)
        {
            report.outcome = StageOutcome::Retry(text);
        }
        if !report.outcome.leaves_effects() {
            report.payload = None;
            report.effects = None;
            report.nothing_to_undo = false;
        }
        report
    }

    /// Checks what may be refused now and taken later, so that a refusal counts as a failed attempt: the receiver of a
    /// signal may take it then, and a key is free again once the result of its procedure has gone. Drops signals that
    /// repeat earlier ones.
    #[inline(never)]
    fn admit_effects(&self, effects: &mut StageEffects) -> Result<(), String> {
        self.admit_all(&mut effects.signals)?;
        self.check_keys(&effects.submitted)
    }

    fn check_report(&self, report: &StageEnded) -> Result<(), String> {
        let value = report.payload.as_ref().or(report.upgraded.as_ref());
        let payload = value.map_or(0, Blob::len);
        let output = match &report.outcome {
            StageOutcome::Done(output) => output.len(),
            StageOutcome::Next(_)
            | StageOutcome::Spawn { .. }
            | StageOutcome::Sleep(..)
            | StageOutcome::Wait(..)
            | StageOutcome::Ask(..)
            | StageOutcome::Yield
            | StageOutcome::Retry(_)
            | StageOutcome::RetryAfter(..)
            | StageOutcome::TimedOut(_)
            | StageOutcome::GiveUp(_)
            | StageOutcome::Fail(_)
            | StageOutcome::Panicked(_)
            | StageOutcome::Refused(_) => 0,
        };
        self.check_value(payload.max(output))?;
        self.check_note(report.note.as_ref())?;
        self.check_event_name(&report.outcome)?;
        if let Some(effects) = &report.effects {
            self.check_effects(effects, report.outcome.leaves_effects())?;
        }
        self.check_children(report)?;
        report
            .effects
            .as_ref()
            .map_or(Ok(()), |effects| self.check_submissions(report.id, &effects.submitted))
    }

    fn check_event_name(&self, outcome: &StageOutcome) -> Result<(), String> {
        let limit = self.kernel.rules.bounds.name;
        if let StageOutcome::Wait(event, ..) = outcome
            && event.as_str().len() > limit
        {
            let size = event.as_str().len();
            return Err(format!("an event's name of {size} bytes is over the limit of {limit}"));
        }
        Ok(())
    }

    /// Checks how much a stage submits, sends and writes. A stage that fails writes nothing.
    #[inline(never)]
    fn check_effects(&self, effects: &StageEffects, are_kept: bool) -> Result<(), String> {
        let (submissions, limit) = (effects.submitted.len(), self.kernel.rules.bounds.batch);
        if submissions > limit {
            return Err(format!("{submissions} submissions are over the limit of {limit}"));
        }
        if let Err(refusal) = self.check_batch(&effects.signals) {
            return Err(format!("its signals were refused: {}", words(&refusal)));
        }
        if are_kept {
            self.check_writes(&effects.writes)
                .map_err(|excess| excess.to_string())?;
        }
        Ok(())
    }

    /// Checks the children that a stage spawns or has added.
    fn check_children(&self, report: &StageEnded) -> Result<(), String> {
        let added = report.children();
        match &report.outcome {
            StageOutcome::Spawn { births, join, .. } => {
                self.check_spawn(report.id, births, added)?;
                check_join(join, births, added)
            }
            StageOutcome::Next(_) | StageOutcome::Done(_) if !added.is_empty() => {
                self.check_spawn(report.id, &[], added)
            }
            StageOutcome::Sleep(..) | StageOutcome::Wait(..) | StageOutcome::Ask(..) if !added.is_empty() => {
                Err("children were added, and the stage went to sleep or to wait; \
                     return Next, Spawn or Done, which wait for them"
                    .to_owned())
            }
            StageOutcome::GiveUp(text) if !added.is_empty() => Err(format!(
                "children were added, and the stage failed with \"{text}\"; \
                 return Next, Spawn or Done, which wait for them"
            )),
            StageOutcome::Next(_)
            | StageOutcome::Done(_)
            | StageOutcome::Sleep(..)
            | StageOutcome::Wait(..)
            | StageOutcome::Ask(..)
            | StageOutcome::Yield
            | StageOutcome::Retry(_)
            | StageOutcome::RetryAfter(..)
            | StageOutcome::TimedOut(_)
            | StageOutcome::GiveUp(_)
            | StageOutcome::Fail(_)
            | StageOutcome::Panicked(_)
            | StageOutcome::Refused(_) => Ok(()),
        }
    }

    #[inline(never)]
    fn check_submissions(&self, creator: ProcedureId, submissions: &[Submission]) -> Result<(), String> {
        let labels = self.row(creator).map(|row| row.labels.clone()).unwrap_or_default();
        let mut submissions = submissions.iter();
        submissions.try_for_each(|submission| self.check_submission_of_stage(submission, &labels))
    }

    /// Checks the size of a value that a stage or an undo leaves, or of an output.
    pub(super) fn check_value(&self, size: usize) -> Result<(), String> {
        let limit = self.kernel.rules.bounds.payload;
        if size > limit {
            return Err(format!("a value of {size} bytes is over the limit of {limit}"));
        }
        Ok(())
    }

    /// Checks the size of a note of a stage or an undo.
    pub(super) fn check_note(&self, note: Option<&Blob>) -> Result<(), String> {
        let (size, limit) = (note.map_or(0, Blob::len), self.kernel.rules.bounds.note);
        if size > limit {
            return Err(format!("a note of {size} bytes is over the limit of {limit}"));
        }
        Ok(())
    }

    /// Checks what a procedure with these labels creates.
    pub(super) fn check_birth(&self, birth: &Birth, creator: &Labels) -> Result<(), String> {
        if self.rules_of(&birth.kind).is_none() {
            return Err(format!("no procedure of kind \"{}\" is registered", birth.kind));
        }
        let limit = self.kernel.rules.bounds.payload;
        if birth.payload.len() > limit {
            return Err(format!(
                "a payload of {} bytes is over the limit of {limit}",
                birth.payload.len()
            ));
        }
        if let Some(size) = oversized_end_signal(birth) {
            return Err(format!(
                "a signal at the end of {size} bytes is over the limit of {END_SIGNAL_MAX}"
            ));
        }
        // The creator's own labels were checked before.
        if birth.labels.is_empty() {
            return Ok(());
        }
        let labels = birth.labels_below(creator);
        labels.check().map_err(|why| why.to_string())
    }

    #[inline(never)]
    pub(super) fn stage_yielded(&mut self, report: &StageEnded) {
        let Some(row) = self.row(report.id).cloned() else {
            return;
        };
        let row = Box::new(row);
        if self.is_stopping(&row) || self.kernel.draining {
            self.held_back_at_yield(row, WaitReason::Queue);
        } else if self.is_paused(&row) {
            self.held_back_at_yield(row, WaitReason::Paused);
        } else {
            self.called_again(row);
        }
    }

    /// Stops a stage that has yielded. A yielded call has not executed, so nothing is added to the rollback stack.
    fn held_back_at_yield(&mut self, mut row: Box<Row>, reason: WaitReason) {
        // The call reported nothing about earlier ones that were cut off, so they still count.
        row.repeated = row.repeated_at(self.kernel.deaths);
        row.in_flight = None;
        row.since = self.now;
        if reason == WaitReason::Paused {
            // A pause may last, so others get what it holds. A drain ends with the engine, and an undo needs the locks.
            self.give_back(&mut row, false);
        }
        row.wait = Some(reason);
        let id = row.id;
        self.put(row);
        self.effect(DispatchEffect::Stop(id));
        self.next_suspect(id);
        self.begin_rollback_if_quiet(id);
    }

    /// Calls a stage that has yielded again. Nothing is stored, unless its deadline has passed since the call before: the
    /// stage is told so, once that is on disk.
    fn called_again(&mut self, mut row: Box<Row>) {
        let is_told_now = row.out_of_time && row.deadline.take().is_some();
        self.advance(&row, None);
        if is_told_now {
            self.put(row);
        }
    }

    /// Records what the stage did: history entry, value, user data, submissions.
    fn stage_recorded(&mut self, row: &mut Row, report: &mut StageEnded) {
        let number = self.next_history(row.id.family);
        let window = self.window(row);
        let stands = window.is_none() && !report.nothing_to_undo;
        let submitted = self.keep_submitted(row, report, stands.then_some(number));
        let (ending, error) = ending_of(&report.outcome);
        let locks = locks_go_on(row, report).then(|| {
            let next = report.next_needs.locks.clone();
            Vec::from(std::mem::replace(&mut row.locks, next.into()))
        });
        // The undo of an older stage needs to know these locks, so the entry must stay.
        report.nothing_to_undo &= locks.is_none();
        self.record(Record::History(Box::new(HistoryEntry {
            family: row.id.family,
            number,
            member: row.id.member,
            stage: row.stage.clone(),
            visit: row.visit,
            attempt: row.attempt + 1,
            ending,
            error: error.map(|text| error_text(text, row.id)),
            stands,
            queued: row.ready.unwrap_or(row.since),
            admitted: row.ready.map(|_| row.since),
            begun: report.begun,
            ended: report.ended,
            locks: locks.filter(|_| !row.locks_for_life),
            limits: if stands { row.stage_limits.to_vec() } else { Vec::new() },
            note: report.note.take(),
            value: self.value_left(row, report.payload.as_ref()),
            submitted,
        })));
        match (row.attempt, stands) {
            (0, true) => row.standing += 1,
            // The visit stood for its failed attempts, and the newest attempt replaces these.
            (1.., false) => row.standing = row.standing.saturating_sub(1),
            (1.., true) => attempt_stands(row),
            (0, false) => {}
        }
        row.history = number;
        if let Some(entries) = window {
            self.window_moved(row, entries);
        }
        row.ready = None;
        row.in_flight = None;
        row.repeated = 0;
        if report.outcome.leaves_effects() {
            row.next_is_no_return = report.next_needs.next_is_no_return.as_deref().map(Box::from);
            row.expected = report.next_needs.expected;
            row.is_pure = report.next_needs.is_pure;
            if report.lifts_timeout {
                // It may have passed while this stage ran, and the next one must not be told so.
                row.deadline = None;
                row.out_of_time = false;
            }
        }
        self.admission_recorded(row, report);
        if !runs_again(row, &report.outcome) {
            self.consume_wake(row);
        }
        if let Some(value) = report.payload.as_ref().or(report.upgraded.as_ref()) {
            self.value_recorded(row, value.clone(), |row| row.stage.clone());
        }
        if let Some(effects) = &mut report.effects {
            self.effects_recorded(row, effects);
        }
    }

    /// Records what the stage did through its context, except the signals to others and the children: these follow with the
    /// stage's next move.
    #[inline(never)]
    fn effects_recorded(&mut self, row: &mut Row, effects: &mut StageEffects) {
        self.write_user(std::mem::take(&mut effects.writes));
        self.submit_of_stage(std::mem::take(&mut effects.submitted), &row.labels);
        self.keep_own(row, &mut effects.signals);
    }

    /// Returns what the history entry of a call says of the value, which it changed to this one or left as it was, if
    /// its kind keeps values.
    pub(super) fn value_left(&self, row: &Row, value: Option<&Blob>) -> Option<Box<LeftValue>> {
        let most = self.rules_of(&row.kind).map_or(0, |rules| rules.keep_values);
        let left = || value.map_or_else(LeftValue::default, |value| LeftValue::within(value, most));
        (most > 0).then(|| Box::new(left()))
    }

    /// Ends the hold on the permits of the stage that has reported, and names the limits of the next.
    fn stage_limits_recorded(&mut self, row: &mut Row, report: &StageEnded) {
        if report.admission.is_none() {
            self.give_back_stage_permits(row);
        }
        row.stage_permits = false;
        if is_followed(report) {
            row.name_stage_limits(&report.next_needs.limits);
        }
    }

    /// Records the limiter's answer for the next stage. The limiter was asked before this decision, so the previous
    /// stage's locks and permits are released already.
    #[inline]
    pub(super) fn admission_recorded(&mut self, row: &mut Row, report: &StageEnded) {
        self.stage_limits_recorded(row, report);
        let Some(admission) = &report.admission else { return };
        row.stage_permits = admission.is_granted() && is_followed(report) && !row.stage_limits.is_empty();
        // Permits held only while the procedure is active were part of the exchange.
        if !admission.limits.is_empty() {
            row.holds = admission.is_granted();
        }
        if row.stage_permits {
            self.begin_in(&row.stage_limits);
        }
        if admission.is_granted() {
            self.begin_in(&admission.limits);
        }
        // These belong to the stage that was to follow, even if the report has been refused since.
        match (row.locks_for_life, admission.is_granted()) {
            (true, true) => row.lock_all(&report.next_needs.locks, self.now),
            (true, false) => {}
            (false, true) => row.exchange_locks(&report.next_needs.locks, self.now),
            (false, false) => drop(row.unlock_all()),
        }
    }

    /// Records a value written by the current code, so the row's version follows the code. `stage` returns the stage
    /// that wrote the value, or whose undo did.
    pub(super) fn value_recorded(&mut self, row: &mut Row, value: Blob, stage: impl FnOnce(&Row) -> Blob) {
        row.note_size(value.len(), self.kernel.rules.bounds.payload, |row| Some(stage(row)));
        self.record(Record::Payload(row.id, value));
        if let Some(rules) = self.rules_of(&row.kind) {
            row.version = rules.version;
        }
    }

    /// Notes that another value is about to replace the one that a root was submitted with. Returns that one, which must
    /// be kept so that the root can be run again.
    pub(super) fn take_submitted(&self, row: &mut Row, submitted: Option<Blob>) -> Option<SubmittedValue> {
        if !std::mem::take(&mut row.as_submitted) {
            return None;
        }
        let version = self.rules_of(&row.kind).map_or(row.version, |rules| rules.version);
        submitted.map(|value| SubmittedValue { version, value })
    }

    /// Keeps the value that a root was submitted with under a key of its own.
    pub(super) fn record_submitted(&mut self, root: ProcedureId, submitted: SubmittedValue) {
        let SubmittedValue { version, value } = submitted;
        self.record(Record::Submitted(root, version, value));
    }

    /// Returns the value that a root was submitted with if this stage replaces it and its history entry, whose number is
    /// given if it stands, is to keep it. Otherwise records a replaced value under a key of its own.
    ///
    /// An entry that stands goes no earlier than the root's result, whatever later code says of its kind: a kind that keeps
    /// only its stack leaves it behind the undo, and a window does not begin while an entry stands.
    fn keep_submitted(
        &mut self,
        row: &mut Row,
        report: &mut StageEnded,
        entry: Option<u32>,
    ) -> Option<Box<SubmittedValue>> {
        if !row.as_submitted || report.payload.is_none() {
            return None;
        }
        // A root that succeeds now never fails, so it is never run again. One that is stopped fails whatever its
        // last stage says.
        let succeeds = matches!(report.outcome, StageOutcome::Done(_)) && !self.is_stopping(row);
        let is_needed = !succeeds || !row.rounds.is_empty() || !report.children().is_empty();
        let submitted = self.take_submitted(row, report.replaced.take().filter(|_| is_needed))?;
        let is_early = entry.is_some_and(|number| number <= SUBMITTED_ENTRY_LAST);
        if is_early && self.keeps_whole_history(row) && submitted.value.len() <= SUBMITTED_IN_ENTRY_MAX {
            return Some(Box::new(submitted));
        }
        self.record_submitted(row.id, submitted);
        None
    }

    fn stage_obeyed(&mut self, mut row: Box<Row>, report: Box<StageEnded>) {
        if report.outcome.leaves_effects() {
            row.visit += 1;
            row.attempt = 0;
            self.attempts_settled(&mut row);
            self.entry_passes(&mut row, &report);
            let again = next_stage(&report.outcome).is_some_and(|next| *next == row.stage);
            row.same_stage = if again { row.same_stage + 1 } else { 0 };
        }
        // Past the point of no return the outcome is obeyed; the procedure then waits before that stage runs once
        // more.
        if let Some(bound) = self
            .reached_repeat_limit(&row)
            .filter(|_| row.rare().past_no_return.is_none())
        {
            self.fail_at_repeat_limit(row, bound, &report);
            return;
        }
        let id = row.id;
        let StageEnded {
            outcome,
            effects,
            keep_places,
            admission,
            ..
        } = *report;
        let children = effects.map(|effects| effects.children).unwrap_or_default();
        let list = |join, width| ListRules {
            join,
            width,
            keep_places,
        };
        if admission.is_some() && !outcome.leaves_effects() {
            // A refusal has overruled the step for which the limiter was asked. The limiter may have granted the
            // request by now, and the grant is stale once the procedure asks again: it must not keep what it got.
            self.withdraw_next_stage(&mut row);
        }
        let lacking = admission.and_then(|admission| admission.lacking);
        match outcome {
            StageOutcome::Next(then) if !children.is_empty() => {
                row.stage = then;
                self.spawn(row, children, list(JoinPolicy::AllSucceeded, 0));
            }
            StageOutcome::Next(stage) => {
                row.stage = stage;
                self.next_stage_starts(&mut row, lacking);
                self.put(row);
            }
            StageOutcome::Done(output) if !children.is_empty() => {
                row.rare_mut().output = Some(output);
                self.spawn(row, children, list(JoinPolicy::AllSucceeded, 0));
            }
            StageOutcome::Done(output) => self.done(row, output),
            StageOutcome::Spawn {
                mut births,
                join,
                width,
                then,
            } => {
                row.stage = then;
                births.extend(children);
                self.spawn(row, births, list(join, width));
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
            StageOutcome::Ask(question, timeout, then) => {
                row.stage = then;
                self.ask_person(row, &question, timeout);
            }
            StageOutcome::Yield => self.put(row),
            StageOutcome::Retry(text) => self.try_again(row, CauseKind::AttemptsExhausted, text, None),
            StageOutcome::RetryAfter(delay, text) => {
                self.try_again(row, CauseKind::AttemptsExhausted, text, Some(delay));
            }
            StageOutcome::TimedOut(text) => self.try_again(row, CauseKind::StageTimedOut, text, None),
            StageOutcome::Panicked(text) => self.try_again(row, CauseKind::Panicked, text, None),
            StageOutcome::Fail(text) | StageOutcome::GiveUp(text) => self.failed(row, CauseKind::Failed, text),
            StageOutcome::Refused(text) => self.failed(row, CauseKind::OverBound, text),
        }
        self.tell_if_overdue(id);
    }

    /// Notes the entry of a stage that does not stand, if its kind keeps only the stack. The next commit drops it: one
    /// commit must not write an entry and delete it.
    fn entry_passes(&self, row: &mut Row, report: &StageEnded) {
        if report.nothing_to_undo && self.keeps_only_stack(row) {
            let newest = row.history;
            row.rare_mut().attempts_kept.push(newest);
        }
    }

    /// Ends the attempts of a visit. If the kind keeps only its stack, the entries of failed attempts are dropped,
    /// except the newest, which is on the stack.
    pub(super) fn attempts_settled(&mut self, row: &mut Row) {
        let attempts = row.rare_if_any().map(|rare| std::mem::take(&mut rare.attempts_kept));
        if self.keeps_only_stack(row) {
            for number in attempts.into_iter().flatten().filter(|number| *number != row.history) {
                self.record(Record::HistoryDropped(row.id.family, number));
            }
        }
    }

    /// Returns `true` if the kind keeps all entries, except those of old attempts.
    fn keeps_whole_history(&self, row: &Row) -> bool {
        self.rules_of(&row.kind)
            .is_some_and(|rules| rules.history == HistoryDetail::Full)
    }

    /// Returns `true` if the kind keeps only the entries on the rollback stack.
    pub(super) fn keeps_only_stack(&self, row: &Row) -> bool {
        self.rules_of(&row.kind)
            .is_some_and(|rules| rules.history == HistoryDetail::Stack)
    }

    /// Returns how many entries the family keeps, if its kind keeps only the newest. Nothing of such a procedure
    /// stands, so no entry that is dropped can be missing from a rollback stack. One that has stages on the stack, which
    /// an earlier version of its code put there, keeps all its entries.
    pub(super) fn window(&self, row: &Row) -> Option<u32> {
        let rules = self.rules_of(&row.kind)?;
        let HistoryDetail::Newest(entries) = rules.history else {
            return None;
        };
        let is_alone = row.id.is_root()
            && self
                .family(row.id.family)
                .is_some_and(|family| family.members.len() == 1);
        (is_alone && !rules.rollback && row.standing == 0).then_some(entries.max(1))
    }

    /// Drops the entries that the newest one has pushed out of the window.
    #[inline(never)]
    fn window_moved(&mut self, row: &mut Row, entries: u32) {
        let first = row.history_from.max(1);
        let wanted = (row.history + 1).saturating_sub(entries);
        let until = wanted.clamp(first, first + WINDOW_STEP);
        for number in first..until {
            self.record(Record::HistoryDropped(row.id.family, number));
        }
        row.history_from = until;
    }

    /// Runs the next stage, or leaves it in the limiter's queue, where it already waits.
    fn next_stage_starts(&mut self, row: &mut Row, lacking: Option<Lacking>) {
        let held_back = self.is_paused(row) || self.kernel.draining || self.waits_at_repeat_limit(row);
        match lacking.filter(|_| !row.is_admitted() && !held_back) {
            Some(lacking) => {
                row.state = ProcedureState::Runnable;
                row.since = self.now;
                row.wait = Some(lacking.into());
                self.effect(DispatchEffect::Stop(row.id));
            }
            None => {
                if !row.is_admitted() {
                    // It leaves the queue, and asks again once it may go on.
                    self.tell_limiter(AdmissionEffect::Cancel(row.id));
                }
                self.set_going(row, None);
            }
        }
    }

    /// Settles a stage that reports while its family is failing: its effects count, its request for a next step does
    /// not.
    #[inline(never)]
    fn stage_settled(&mut self, mut row: Box<Row>, report: Box<StageEnded>) {
        let id = row.id;
        row.since = self.now;
        if report.outcome.leaves_effects() {
            row.visit += 1;
            row.attempt = 0;
        }
        self.attempts_settled(&mut row);
        self.entry_passes(&mut row, &report);
        self.effect(DispatchEffect::Stop(id));
        if report.admission.is_some() {
            self.withdraw_next_stage(&mut row);
        }
        match report.outcome {
            StageOutcome::Done(output) if !row.is_failing() && report.children().is_empty() => self.done(row, output),
            StageOutcome::Fail(text)
            | StageOutcome::GiveUp(text)
            | StageOutcome::Retry(text)
            | StageOutcome::RetryAfter(_, text)
            | StageOutcome::TimedOut(text)
            | StageOutcome::Panicked(text)
            | StageOutcome::Refused(text) => {
                row.rare_mut()
                    .cause
                    .get_or_insert_with(|| Cause::new(CauseKind::Failed, text, id).into());
                row.state = ProcedureState::Failed;
                self.put(row);
            }
            StageOutcome::Next(_)
            | StageOutcome::Done(_)
            | StageOutcome::Spawn { .. }
            | StageOutcome::Sleep(..)
            | StageOutcome::Wait(..)
            | StageOutcome::Ask(..)
            | StageOutcome::Yield => {
                row.state = ProcedureState::Failed;
                self.put(row);
            }
        }
        self.begin_rollback_if_quiet(id);
    }

    #[inline(never)]
    fn wait(&mut self, mut row: Box<Row>, event: EventName, timeout: Option<Duration>) {
        match self.pending_signal(row.id, event.as_str()) {
            Some(number) => {
                row.wake = Some(Wake::Signal(event, number));
                row.same_stage = 0;
                // Others that wait for its permit have their turn between two signals.
                self.give_back(&mut row, false);
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

    /// Runs the stage again, after the delay that its code chose, or else after its kind's backoff.
    #[inline(never)]
    fn try_again(&mut self, mut row: Box<Row>, exhausted: CauseKind, text: String, chosen: Option<Duration>) {
        let rules = self.rules_of(&row.kind);
        let retry = rules.map(|rules| rules.retry).unwrap_or_default();
        row.attempt = row.attempt.saturating_add(1);
        row.note_failure(&text, self.now);
        let allowed = retry.allows_another(row.attempt);
        if !allowed && row.rare().past_no_return.is_none() {
            let cause = Cause::new(exhausted, text, row.id);
            self.fail(row, cause);
            return;
        }
        if self.window(&row).is_none() {
            self.attempt_kept(&mut row);
        }
        let drawn = self.drawn(&row);
        let chosen = chosen.map(|delay| delay.min(RETRY_AFTER_MAX));
        let (delay, chosen) = match chosen {
            Some(delay) if allowed => (delay, chosen),
            None if allowed => (retry.jittered(row.attempt, drawn), None),
            // Past its point of no return a procedure retries forever, and never fails on its own. A short delay that
            // its code chose would make it commit without pause.
            Some(delay) if delay > retry.longest(drawn) => (delay, chosen),
            Some(_) | None => (retry.longest(drawn), None),
        };
        if delay.is_zero() && chosen.is_some() {
            // As if it was parked: procedures that wait for its locks or permits get their turn first.
            self.give_back(&mut row, false);
            self.set_going(&mut row, None);
        } else {
            let reason = WaitReason::Backoff(row.attempt, self.now.after(delay));
            self.park(&mut row, ProcedureState::WaitingTimeout, reason);
            row.rare_mut().retry_after = chosen;
        }
        self.put(row);
    }

    /// Keeps the entry of a failed attempt, and drops the oldest one beyond the bound.
    fn attempt_kept(&mut self, row: &mut Row) {
        let newest = row.history;
        row.rare_mut().attempts_kept.push(newest);
        let kept = if self.keeps_only_stack(row) {
            1
        } else {
            self.kernel.rules.bounds.attempts_kept
        };
        if row.rare().attempts_kept.len() > kept
            && let Some(oldest) = row.rare_mut().attempts_kept.take_first()
        {
            self.record(Record::HistoryDropped(row.id.family, oldest));
        }
    }

    /// Returns the seed of this attempt's jitter. It is unique to the attempt and the same whenever the decision is
    /// repeated.
    pub(super) fn drawn(&self, row: &Row) -> u64 {
        let place = (row.id.family << 20) ^ (u64::from(row.id.member) << 8) ^ u64::from(row.history);
        self.kernel.rules.seed ^ place ^ (u64::from(row.attempt) << 56)
    }

    pub(super) fn failed(&mut self, row: Box<Row>, kind: CauseKind, text: String) {
        if row.rare().past_no_return.is_some() {
            self.try_again(row, kind, text, None);
            return;
        }
        let cause = Cause::new(kind, text, row.id);
        self.fail(row, cause);
    }

    /// Begins the detached families of a list, whose creator has these labels; the caller counts attached children.
    pub(super) fn detach(&mut self, births: &[Birth], creator: &Labels) {
        for birth in births.iter().filter(|birth| birth.detached) {
            self.begin_family(birth, None, creator);
        }
    }
}

/// Returns the stage to run next, if any.
const fn next_stage(outcome: &StageOutcome) -> Option<&Blob> {
    match outcome {
        StageOutcome::Next(then)
        | StageOutcome::Spawn { then, .. }
        | StageOutcome::Sleep(_, then)
        | StageOutcome::Wait(_, _, then)
        | StageOutcome::Ask(_, _, then) => Some(then),
        StageOutcome::Done(_)
        | StageOutcome::Yield
        | StageOutcome::Retry(_)
        | StageOutcome::RetryAfter(..)
        | StageOutcome::TimedOut(_)
        | StageOutcome::GiveUp(_)
        | StageOutcome::Fail(_)
        | StageOutcome::Panicked(_)
        | StageOutcome::Refused(_) => None,
    }
}

/// Returns `true` if the next stage needs other locks than the one that has ended. No stage follows the last one, or
/// one that failed: it is undone under its own locks.
fn locks_go_on(row: &Row, report: &StageEnded) -> bool {
    is_followed(report) && row.locks != report.next_needs.locks
}

/// Returns `true` if the outcome asks for a further stage.
const fn is_followed(report: &StageEnded) -> bool {
    report.outcome.leaves_effects() && !matches!(report.outcome, StageOutcome::Done(_) | StageOutcome::GiveUp(_))
}

/// Returns `true` if the stage is attempted again, unless its attempts are used up. Past the point of no return every
/// failure is, so the next attempt needs the wake of this one.
const fn runs_again(row: &Row, outcome: &StageOutcome) -> bool {
    is_retry(outcome) || (row.rare().past_no_return.is_some() && !outcome.leaves_effects())
}

const fn is_retry(outcome: &StageOutcome) -> bool {
    matches!(
        outcome,
        StageOutcome::Retry(_) | StageOutcome::RetryAfter(..) | StageOutcome::TimedOut(_) | StageOutcome::Panicked(_)
    )
}

/// Counts a later attempt of a visit on the rollback stack. The failed attempts before it were counted, unless the kind
/// kept only the newest entries then: nothing of such a procedure stood.
pub(super) fn attempt_stands(row: &mut Row) {
    row.standing = row.standing.max(1);
}

/// Returns the text of a failure as it is kept in an entry.
#[cold]
fn error_text(text: &str, id: ProcedureId) -> String {
    Cause::new(CauseKind::Failed, text, id).text
}

fn ending_of(outcome: &StageOutcome) -> (Ending, Option<&str>) {
    match outcome {
        StageOutcome::Next(_) | StageOutcome::Yield => (Ending::Next, None),
        StageOutcome::Done(_) => (Ending::Done, None),
        StageOutcome::Spawn { .. } => (Ending::Spawn, None),
        StageOutcome::Sleep(..) => (Ending::Sleep, None),
        StageOutcome::Wait(..) => (Ending::Wait, None),
        StageOutcome::Ask(question, ..) => (Ending::Asked, Some(question)),
        StageOutcome::Retry(text) | StageOutcome::RetryAfter(_, text) | StageOutcome::TimedOut(text) => {
            (Ending::Retry, Some(text))
        }
        StageOutcome::Fail(text) | StageOutcome::GiveUp(text) | StageOutcome::Refused(text) => {
            (Ending::Fail, Some(text))
        }
        StageOutcome::Panicked(text) => (Ending::Panic, Some(text)),
    }
}
