//! Speculation: which stages are called before the decisions that they rest on are on disk.
//!
//! The journal is one sequence, so a decision is never on disk before those it was computed from. A stage that reaches
//! nothing but its report can therefore run ahead of the disk: what it reports is a later decision, and a crash loses
//! both. The rule is that of optimistic and speculative execution in general: nothing leaves before what it rests on is
//! durable.
//!
//! Such a call may also be the first of a *run*: the worker goes on by itself through the pure stages that follow, and
//! reports them together. A run is one call. What happens to the procedure meanwhile meets it at its end, as it meets a
//! stage that is out.

use super::draft::Draft;
use crate::effect::DispatchEffect;
use crate::event::{EarlierStage, StageEnded};
use crate::history::{Ending, HistoryEntry};
use crate::id::Blob;
use crate::kernel::{HistoryDetail, RUN_LENGTH_MAX};
use crate::outstanding::stage_of;
use crate::record::Record;
use crate::row::Row;

impl Draft<'_> {
    /// Issues the call of the stage that the row says is out: at once if it may run ahead of the disk.
    pub(super) fn advance_soon(&mut self, row: &Row, payload: Option<Blob>) {
        if !self.may_run_ahead(row, payload.is_some()) {
            return self.advance(row, payload);
        }
        if let Some(mut call) = stage_of(row, self.kernel.deaths, payload) {
            call.ahead = self.stages_after(row);
            self.speculate(call);
        }
    }

    /// Returns `true` if the call of a stage need not wait for the receipt. It may not if the store must be read for it:
    /// the store is behind this decision. It may not either if the stage is called again, so that whatever goes wrong
    /// repeatedly is marked on disk before.
    fn may_run_ahead(&self, row: &Row, brings_value: bool) -> bool {
        let is_allowed = self.kernel.rules.speculation && self.now >= self.kernel.speculation_from;
        let is_first_call = row.attempt == 0 && row.repeated == 0;
        let is_plain = row.wake.is_none() && !row.out_of_time;
        is_allowed && row.is_pure && is_first_call && is_plain && (brings_value || self.has_value_at_hand(row))
    }

    /// Returns `true` if the value of a procedure may be in memory: with its actor, which has just reported, or because
    /// the procedure was born by this engine and never ran.
    fn has_value_at_hand(&self, row: &Row) -> bool {
        let is_new = row.visit == 0 && row.history == 0;
        is_new || self.goes_on_with_actor(row.id)
    }

    // Runs.

    /// Returns how many stages may follow this one in its run: none if the limiter must be asked about each of them, or if
    /// each leaves more than its entry, because its kind keeps values or drops entries. The repeat limit stays out of reach.
    fn stages_after(&self, row: &Row) -> u32 {
        let Some(rules) = self.rules_of(&row.kind) else {
            return 0;
        };
        let holds = !row.locks.is_empty() || !row.stage_limits.is_empty();
        if holds || rules.keep_values > 0 || rules.history != HistoryDetail::Full {
            return 0;
        }
        let repeats = rules.repeat_limit.map(|bound| bound.saturating_sub(row.same_stage + 1));
        let length = self.kernel.rules.run_length.min(RUN_LENGTH_MAX);
        length.min(repeats.unwrap_or(length)).saturating_sub(1)
    }

    /// Records the stages of a run before its last one. The row is then as if the last one alone was out.
    #[inline(never)]
    pub(super) fn earlier_recorded(&mut self, row: &mut Row, earlier: Vec<EarlierStage>) {
        for stage in earlier {
            let number = self.next_history(row.id.family);
            let stands = !stage.nothing_to_undo;
            let again = row.stage == stage.next;
            self.record(Record::History(Box::new(HistoryEntry {
                family: row.id.family,
                number,
                member: row.id.member,
                stage: std::mem::replace(&mut row.stage, stage.next),
                visit: row.visit,
                attempt: row.attempt + 1,
                ending: Ending::Next,
                error: None,
                stands,
                queued: row.ready.unwrap_or(row.since),
                admitted: row.ready.map(|_| row.since),
                begun: stage.begun,
                ended: stage.ended,
                locks: None,
                limits: Vec::new(),
                note: None,
                value: None,
                submitted: None,
            })));
            row.standing += u32::from(stands);
            row.history = number;
            row.visit += 1;
            row.same_stage = if again { row.same_stage + 1 } else { 0 };
            row.ready = None;
            row.since = stage.ended;
        }
    }

    /// Gives up a run whose last stage was refused: the value before that stage is not known. The stages before it run once
    /// more, as a run without it. Then that stage has a call of its own, and its refusal counts.
    #[cold]
    pub(super) fn run_given_up(&mut self, report: &StageEnded) {
        let Some(mut row) = self.take(report.id) else { return };
        if report.admission.is_some() {
            self.admission_recorded(&mut row, report);
            self.withdraw_next_stage(&mut row);
        }
        if self.is_stopping(&row) {
            self.put(row);
            return self.stage_yielded(report);
        }
        // The actor has the value that the last stage left.
        self.effect(DispatchEffect::Stop(report.id));
        // Its stage does not run ahead of the disk now: that would begin the same run once more.
        row.is_pure = false;
        self.set_going(&mut row, None);
        let others = u32::try_from(report.earlier.len())
            .unwrap_or(u32::MAX)
            .saturating_sub(1);
        self.let_run(report.id, others);
        self.put(row);
    }
}
