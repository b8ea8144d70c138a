//! Handles of one kind, and of its stages.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, SharedString};
use procession_kernel::{Ending, Kind, KindRules, ProcedureState, Timestamp};

use super::labels::{LIVE, OUTCOMES, WAITS, outcome_place};
use super::names::{
    ACTIVE, ASKED, FAILED, FINISHED, LATE, LOST_WAKES, OLDEST_SIGNAL, PANICS, PROCEDURE_SECONDS, RETRIES,
    SIGNALS_WAITING, STAGE_SECONDS, SUBMITTED, UNDO_SECONDS, WAIT_SECONDS, counter, gauge, histogram, shared,
};
use super::passes::StagePasses;
use super::rates::Rates;
use super::stage_names::{ByStage, StageNames, StagePlace};
use super::times::Times;
use super::uses::{KindUse, StageUse};

/// Runs that are needed for a 99th percentile.
const ENOUGH: usize = 100;

/// Handles of one kind.
pub(crate) struct KindMetrics {
    submitted: Counter,
    retries: Counter,
    late: Counter,
    lost: Counter,
    failed: Counter,
    finished: [(Counter, Histogram); 3],
    pub(super) active: [(u64, Gauge); 5],
    waits: [Histogram; 16],
    panics: Counter,
    asked: Counter,
    signals: Gauge,
    oldest_signal: Gauge,
    /// The kind's name, for stages that appear later.
    name: SharedString,
    stage_names: StageNames,
    /// The stages that have run.
    stages: ByStage<StageMetrics>,
    passes: StagePasses,
    rates: Rates,
    tally: Tally,
}

/// The same figures as plain numbers, since a recorder may keep none.
#[derive(Default)]
struct Tally {
    submitted: u64,
    finished: [u64; 3],
    retries: u64,
    panics: u64,
}

impl KindMetrics {
    pub(super) fn new(kind: &str) -> Self {
        let kind = shared(kind);
        Self {
            submitted: counter(&SUBMITTED, [kind.clone()]),
            retries: counter(&RETRIES, [kind.clone()]),
            late: counter(&LATE, [kind.clone()]),
            lost: counter(&LOST_WAKES, [kind.clone()]),
            failed: counter(&FAILED, [kind.clone()]),
            finished: OUTCOMES.map(|outcome| {
                let count = counter(&FINISHED, [kind.clone(), outcome.into()]);
                (count, histogram(&PROCEDURE_SECONDS, [kind.clone(), outcome.into()]))
            }),
            active: LIVE.map(|state| (0, gauge(&ACTIVE, [kind.clone(), state.into()]))),
            waits: WAITS.map(|reason| histogram(&WAIT_SECONDS, [kind.clone(), reason.into()])),
            panics: counter(&PANICS, [kind.clone()]),
            asked: counter(&ASKED, [kind.clone()]),
            signals: gauge(&SIGNALS_WAITING, [kind.clone()]),
            oldest_signal: gauge(&OLDEST_SIGNAL, [kind.clone()]),
            name: kind,
            stage_names: StageNames::default(),
            stages: ByStage::default(),
            passes: StagePasses::default(),
            rates: Rates::default(),
            tally: Tally::default(),
        }
    }

    /// Returns the figures since the engine started, and those of the last minute.
    pub(super) fn uses(&self, kind: &Kind, rules: &KindRules, now: Timestamp) -> KindUse {
        let stages = self.stages.iter().map(|(stage, metrics)| StageUse {
            stage: self.stage_names.name(stage).to_owned(),
            ..metrics.taken.clone()
        });
        KindUse {
            kind: kind.clone(),
            version: rules.version,
            oldest: rules.oldest,
            submitted: self.tally.submitted,
            finished: self.tally.finished,
            retries: self.tally.retries,
            panics: self.tally.panics,
            last_minute: self.rates.of(now),
            stages: stages.collect(),
            passes: self.passes.all(&self.stage_names),
        }
    }

    /// Returns the place of a stage, by which it is counted.
    pub(super) fn stage_place(&mut self, stage: &str) -> StagePlace {
        self.stage_names.place(stage)
    }

    /// Records a procedure whose first stage this is.
    pub(crate) fn born(&mut self, stage: StagePlace, now: Timestamp) {
        self.rates.started(now);
        self.passes.begun(stage);
        self.tally.submitted += 1;
        self.submitted.increment(1);
    }

    pub(crate) fn retried(&mut self) {
        self.tally.retries += 1;
        self.retries.increment(1);
    }

    pub(crate) fn late(&self, count: u64) {
        self.late.increment(count);
    }

    pub(crate) fn lost(&self) {
        self.lost.increment(1);
    }

    /// Records an end, and the stage that the procedure had reached.
    pub(crate) fn finished(&mut self, state: ProcedureState, elapsed: Duration, stage: StagePlace, now: Timestamp) {
        self.rates.ended(state, now);
        self.passes.ended(stage, state);
        if let Some(count) = outcome_place(state).and_then(|place| self.tally.finished.get_mut(place)) {
            *count += 1;
        }
        let place = outcome_place(state).and_then(|place| self.finished.get(place));
        if let Some((count, time)) = place {
            count.increment(1);
            time.record(elapsed);
        }
        if state != ProcedureState::Success {
            self.failed.increment(1);
        }
    }

    /// Shows how many signals wait for procedures of this kind, and the age of the oldest.
    pub(super) fn signals(&self, waiting: u64, oldest: Duration) {
        self.signals.set(waiting as f64);
        self.oldest_signal.set(oldest);
    }

    pub(crate) fn waited(&self, place: usize, took: Duration) {
        if let Some(wait) = self.waits.get(place) {
            wait.record(took);
        }
    }

    /// Records that user code of this stage, or of its undo, has run, and which stage follows.
    pub(crate) fn ran(&mut self, stage: StagePlace, ending: Ending, took: Duration, next: Option<StagePlace>) {
        self.passes.ran(stage, ending, next);
        if ending == Ending::Panic {
            self.tally.panics += 1;
            self.panics.increment(1);
        }
        if ending == Ending::Asked {
            self.asked.increment(1);
        }
        let Some(stage) = self.stage(stage) else { return };
        match stage.of(ending) {
            Some(time) => time.record(took),
            None => return,
        }
        let taken = &mut stage.taken;
        taken.runs += 1;
        taken.total += took;
        taken.longest = taken.longest.max(took);
        if matches!(
            ending,
            Ending::Next | Ending::Done | Ending::Spawn | Ending::Sleep | Ending::Wait | Ending::Asked
        ) {
            stage.newest.note(took);
        }
    }

    /// Returns the 99th percentile of the newest runs of a stage. Returns `None` before a hundred runs, and for a
    /// stage without a series of its own.
    pub(crate) fn usual(&self, stage: &str) -> Option<Duration> {
        let newest = &self.stages.get(self.stage_names.known(stage)?)?.newest;
        newest.p99().filter(|_| newest.len() >= ENOUGH)
    }

    /// Returns the handles of a stage.
    fn stage(&mut self, stage: StagePlace) -> Option<&mut StageMetrics> {
        let new = || StageMetrics::new(&self.name, self.stage_names.name(stage));
        self.stages.of(stage, new)
    }

    /// Records that a procedure of this kind left one state and entered another.
    pub(crate) fn moved(&mut self, from: Option<usize>, to: Option<usize>) {
        if let Some((count, gauge)) = from.and_then(|place| self.active.get_mut(place)) {
            *count = count.saturating_sub(1);
            gauge.set(*count as f64);
        }
        if let Some((count, gauge)) = to.and_then(|place| self.active.get_mut(place)) {
            *count += 1;
            gauge.set(*count as f64);
        }
    }
}

/// Handles of one stage, requested from the recorder after its first run.
struct StageMetrics {
    ok: Histogram,
    retry: Histogram,
    failed: Histogram,
    panicked: Histogram,
    undo_ok: Histogram,
    undo_failed: Histogram,
    /// Total figures of the stage; its name is stored elsewhere.
    taken: StageUse,
    /// Times of the newest successful runs.
    newest: Times,
}

impl StageMetrics {
    fn new(kind: &SharedString, stage: &str) -> Self {
        let stage = shared(stage);
        let executed = |outcome| {
            histogram(
                &STAGE_SECONDS,
                [kind.clone(), stage.clone(), SharedString::const_str(outcome)],
            )
        };
        let undone = |outcome| {
            histogram(
                &UNDO_SECONDS,
                [kind.clone(), stage.clone(), SharedString::const_str(outcome)],
            )
        };
        Self {
            ok: executed("ok"),
            retry: executed("retry"),
            failed: executed("failed"),
            panicked: executed("panicked"),
            undo_ok: undone("ok"),
            undo_failed: undone("failed"),
            taken: StageUse::default(),
            newest: Times::default(),
        }
    }

    /// Returns the histogram for a call with this ending; `None` if no user code ran.
    const fn of(&self, ending: Ending) -> Option<&Histogram> {
        match ending {
            Ending::Next | Ending::Done | Ending::Spawn | Ending::Sleep | Ending::Wait | Ending::Asked => {
                Some(&self.ok)
            }
            Ending::Retry => Some(&self.retry),
            Ending::Fail => Some(&self.failed),
            Ending::Panic => Some(&self.panicked),
            Ending::Undone => Some(&self.undo_ok),
            Ending::UndoFailed => Some(&self.undo_failed),
            Ending::UndoSkipped => None,
            _ => None,
        }
    }
}
