//! A run: the pure stages that a worker goes through in one call. Each has nothing but the value to leave, so one report, and
//! one commit, holds them all.
//!
//! A stage that fails has no value to end a run with. Then the run is taken back, and begins again, and ends before that
//! stage. The stage then has a call of its own, so that its failure counts, and is marked on disk, as any other. Nothing of a
//! run has left before its report, so it can be taken back as a whole.

use procession_kernel::{EarlierStage, StageCall, StageEnded, StageOutcome, Timestamp};

use crate::context::{Call, RunProgress};

/// How far a run has come.
pub(super) struct Run {
    /// The call of the first stage, once another has followed it.
    first: Option<Box<First>>,
    /// The stages that were followed by another.
    passed: Vec<EarlierStage>,
}

/// The call that a run began with.
struct First {
    stage: StageCall,
    is_speculative: bool,
}

impl Run {
    /// Begins a run with the stage of this call.
    pub(super) fn new(now: Timestamp, call: &mut Call) -> Self {
        call.run = RunProgress { since: now, passed: 0 };
        Self {
            first: None,
            passed: Vec::new(),
        }
    }

    /// Returns when the running stage began: at the end of the stage before it.
    pub(super) fn stage_begun(&self, call: &Call) -> Timestamp {
        self.passed.last().map_or(call.run.since, |stage| stage.ended)
    }

    /// Makes the call the one of the stage that follows.
    pub(super) fn follow(&mut self, passed: EarlierStage, call: &mut Call) {
        self.first.get_or_insert_with(|| {
            Box::new(First {
                stage: (*call.stage).clone(),
                is_speculative: call.is_speculative,
            })
        });
        call.stage.stage = passed.next.clone();
        call.stage.visit += 1;
        call.stage.ready = passed.ended;
        call.stage.ahead = call.stage.ahead.saturating_sub(1);
        // The stage before it is not on disk.
        call.is_speculative = true;
        self.passed.push(passed);
        call.run.passed = self.passed.len();
    }

    /// Returns `true` if a stage may end the run: it has left a value, or it is the only one and its failure counts.
    pub(super) const fn takes(&self, report: &StageEnded) -> bool {
        self.passed.is_empty() || report.outcome.leaves_effects()
    }

    /// Makes the call the first one again, for a run that ends before the stage that has just failed. If it failed because of
    /// the value, a stage before it may be to blame, so the run is half as long.
    pub(super) fn begin_again(&mut self, failed: &StageEnded, call: &mut Call) {
        let for_value = matches!(failed.outcome, StageOutcome::Refused(_));
        let stages = self.passed.len().div_ceil(if for_value { 2 } else { 1 });
        if let Some(first) = self.first.take() {
            *call.stage = first.stage;
            call.is_speculative = first.is_speculative;
        }
        call.stage.ahead = u32::try_from(stages).unwrap_or(u32::MAX).saturating_sub(1);
        *self = Self::new(failed.ended, call);
    }

    /// Completes the report of the last stage to that of the run.
    pub(super) fn end(self, mut report: Box<StageEnded>) -> Box<StageEnded> {
        report.earlier = self.passed;
        report
    }
}
