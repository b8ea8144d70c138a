//! A run: the pure stages that a worker goes through in one call. Each has nothing but the value to leave, so one report, and
//! one commit, holds them all.
//!
//! A stage that is not followed by another gives the run its value and its outcome. One that fails gives none: then the run
//! is taken back, and begins again, and ends before that stage. The stage then has a call of its own, so that its failure
//! counts, and is marked on disk, as any other. Nothing of a run has left before its report, so it can be taken back whole.

use std::time::Duration;

use procession_kernel::{EarlierStage, StageCall, StageEnded, StageOutcome, Timestamp};

use crate::context::Call;

/// How long a run goes on. Others wait for its worker meanwhile.
const RUN_TIME: Duration = Duration::from_millis(1);

/// How far a run has come.
pub(super) struct Course {
    /// When the stage began that runs.
    begun: Timestamp,
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

impl Course {
    pub(super) fn new(begun: Timestamp, call: &mut Call) -> Self {
        call.run_until = begun.after(RUN_TIME);
        Self {
            begun,
            first: None,
            passed: Vec::new(),
        }
    }

    /// Returns when the stage began that runs.
    pub(super) const fn begun(&self) -> Timestamp {
        self.begun
    }

    /// Returns `true` if the stage that runs is the first.
    pub(super) const fn is_alone(&self) -> bool {
        self.passed.is_empty()
    }

    /// Makes the call the one of the stage that follows.
    pub(super) fn follow(&mut self, report: Box<StageEnded>, call: &mut Call) {
        let StageOutcome::Next(next) = report.outcome else {
            return;
        };
        self.first.get_or_insert_with(|| {
            Box::new(First {
                stage: (*call.stage).clone(),
                is_speculative: call.is_speculative,
            })
        });
        call.stage.stage = next.clone();
        call.stage.visit += 1;
        call.stage.ready = report.ended;
        call.stage.ahead = call.stage.ahead.saturating_sub(1);
        // The stage before it is not on disk.
        call.is_speculative = true;
        self.begun = report.ended;
        self.passed.push(EarlierStage {
            begun: report.begun,
            ended: report.ended,
            next,
            nothing_to_undo: report.nothing_to_undo,
        });
    }

    /// Makes the call the first one again, for a run that ends before the stage that has just failed.
    pub(super) fn begin_again(&mut self, now: Timestamp, call: &mut Call) {
        let Some(first) = self.first.take() else { return };
        let First { stage, is_speculative } = *first;
        *call.stage = stage;
        call.stage.ahead = u32::try_from(self.passed.len() - 1).unwrap_or(0);
        call.is_speculative = is_speculative;
        self.passed.clear();
        call.run_until = now.after(RUN_TIME);
        self.begun = now;
    }

    /// Completes the report of the last stage to that of the run.
    pub(super) fn end(self, mut report: Box<StageEnded>) -> Box<StageEnded> {
        report.earlier = self.passed;
        report
    }
}
