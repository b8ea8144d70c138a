//! Every metric name, every span and every field of a span, once. It holds
//! handles and counts nothing itself; when something counts is the
//! supervisor's to say, and never before its receipt.
//!
//! The names stand for users in `docs/metrics.md`, which a test compares with
//! the table here. Labels are only what this page lists: never an id, a key, a
//! path or an error's text. A handle is asked of the recorder once, when the
//! engine starts, so the recorder must be installed before.

use std::collections::BTreeMap;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label, Unit};
use procession_kernel::{Ending, Kind, LimitKey, LimitUse, ProcedureId, ProcedureState, Seq, WaitReason};
use tracing::Span;

/// What sort of series a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Counter,
    Gauge,
    Histogram,
}

/// One metric: all that the page says of it.
#[derive(Clone, Copy, Debug)]
struct Metric {
    name: &'static str,
    sort: Sort,
    labels: &'static [&'static str],
    unit: Unit,
    meaning: &'static str,
}

macro_rules! metrics {
    ($($constant:ident, $name:literal, $sort:ident, [$($label:literal),*], $unit:ident, $meaning:literal;)*) => {
        $(const $constant: Metric = Metric {
            name: $name,
            sort: Sort::$sort,
            labels: &[$($label),*],
            unit: Unit::$unit,
            meaning: $meaning,
        };)*
        /// All metrics, in the order of the page.
        const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    SUBMITTED, "procession_submitted_total", Counter, ["kind"], Count,
        "procedures born, roots and children";
    FINISHED, "procession_finished_total", Counter, ["kind", "outcome"], Count,
        "procedures ended; `outcome` is `success`, `rolled_back` or `failed`";
    FAILED, "procession_failed_total", Counter, ["kind"], Count,
        "procedures ended in any other way than success";
    PROCEDURE_SECONDS, "procession_procedure_seconds", Histogram, ["kind", "outcome"], Seconds,
        "from birth to end, one sample for each end";
    ACTIVE, "procession_active", Gauge, ["kind", "state"], Count,
        "procedures that have not ended; `failed` is being rolled back";
    STAGE_SECONDS, "procession_stage_seconds", Histogram, ["kind", "outcome"], Seconds,
        "user code of one stage; `outcome` is `ok`, `retry`, `failed` or `panicked`, and a call that yields is none";
    UNDO_SECONDS, "procession_undo_seconds", Histogram, ["kind", "outcome"], Seconds,
        "user code of one undo; `outcome` is `ok` or `failed`";
    WAIT_SECONDS, "procession_wait_seconds", Histogram, ["kind", "reason"], Seconds,
        "one wait, from its beginning to its end";
    RETRIES, "procession_retries_total", Counter, ["kind"], Count,
        "stages that are to be tried again after a backoff";
    LATE, "procession_late_total", Counter, [], Count,
        "reports and wakes that came too late and changed nothing";
    LIMITER_USED, "procession_limiter_used", Gauge, ["limit"], Count,
        "permits that are out";
    LIMITER_LIMIT, "procession_limiter_limit", Gauge, ["limit"], Count,
        "capacity; infinite for a limit that was lifted";
    LIMITER_WAITING, "procession_limiter_waiting", Gauge, ["limit"], Count,
        "requests that wait for a permit";
    COMMITS, "procession_journal_commits_total", Counter, [], Count,
        "commits that are on disk";
    BATCH_COMMITS, "procession_journal_batch_commits", Histogram, [], Count,
        "commits merged into one batch";
    BATCH_RECORDS, "procession_journal_batch_records", Histogram, [], Count,
        "puts and deletes of one batch";
    COMMIT_SECONDS, "procession_journal_commit_seconds", Histogram, [], Seconds,
        "one batch, from the append to its receipt";
    COMMITS_WAITING, "procession_commits_waiting", Gauge, [], Count,
        "commits decided and not yet on disk, read at each receipt";
    POISONED, "procession_journal_poisoned", Gauge, [], Count,
        "1 once the journal has failed, and no more commits are taken";
    RECOVERY_SECONDS, "procession_recovery_seconds", Gauge, [], Seconds,
        "the last start, from taking the store to opening for messages";
    RECOVERED, "procession_recovered", Gauge, ["state"], Count,
        "unfinished procedures that the last start found";
    QUARANTINED, "procession_quarantined", Gauge, [], Count,
        "families set aside";
    VERDICTS, "procession_verdicts", Gauge, ["rule"], Count,
        "verdicts that the last audit told";
    LOST_WAKES, "procession_lost_wakes_total", Counter, [], Count,
        "wakes that were lost, and made up for; anything but 0 is a defect";
    HOOKS_DROPPED, "procession_hooks_dropped_total", Counter, [], Count,
        "calls of `on_submit` and `on_finish` dropped because too many waited";
}

fn labels(metric: &Metric, values: &[&str]) -> Vec<Label> {
    let pairs = metric.labels.iter().zip(values);
    pairs
        .map(|(name, value)| Label::new(*name, (*value).to_owned()))
        .collect()
}

fn counter(metric: &Metric, values: &[&str]) -> Counter {
    metrics::counter!(metric.name, labels(metric, values))
}

fn gauge(metric: &Metric, values: &[&str]) -> Gauge {
    metrics::gauge!(metric.name, labels(metric, values))
}

fn histogram(metric: &Metric, values: &[&str]) -> Histogram {
    metrics::histogram!(metric.name, labels(metric, values))
}

fn describe() {
    for metric in ALL {
        match metric.sort {
            Sort::Counter => metrics::describe_counter!(metric.name, metric.unit, metric.meaning),
            Sort::Gauge => metrics::describe_gauge!(metric.name, metric.unit, metric.meaning),
            Sort::Histogram => metrics::describe_histogram!(metric.name, metric.unit, metric.meaning),
        }
    }
}

// Values of labels. Each list belongs to the function below it.

const LIVE: [&str; 5] = ["initializing", "runnable", "waiting", "waiting_timeout", "failed"];

/// Gives the place of a state in which a procedure has not ended.
pub(crate) const fn live_place(state: ProcedureState) -> Option<usize> {
    match state {
        ProcedureState::Initializing => Some(0),
        ProcedureState::Runnable => Some(1),
        ProcedureState::Waiting => Some(2),
        ProcedureState::WaitingTimeout => Some(3),
        ProcedureState::Failed => Some(4),
        ProcedureState::RolledBack | ProcedureState::Success => None,
    }
}

const WAITS: [&str; 14] = [
    "width",
    "permit",
    "children",
    "timer",
    "event",
    "backoff",
    "queue",
    "suspect",
    "poison",
    "rollback_failed",
    "quarantined",
    "lock",
    "paused",
    "circling",
];

/// Gives the place of a reason.
pub(crate) const fn wait_place(reason: &WaitReason) -> usize {
    match reason {
        WaitReason::Width => 0,
        WaitReason::Permit(_) => 1,
        WaitReason::Children => 2,
        WaitReason::Timer(_) => 3,
        WaitReason::Event(..) => 4,
        WaitReason::Backoff(..) => 5,
        WaitReason::Queue => 6,
        WaitReason::Suspect => 7,
        WaitReason::Poison => 8,
        WaitReason::RollbackFailed => 9,
        WaitReason::Quarantined => 10,
        WaitReason::Lock(_) => 11,
        WaitReason::Paused => 12,
        WaitReason::Circling => 13,
    }
}

const OUTCOMES: [&str; 3] = ["success", "rolled_back", "failed"];

const fn outcome_place(state: ProcedureState) -> Option<usize> {
    match state {
        ProcedureState::Success => Some(0),
        ProcedureState::RolledBack => Some(1),
        ProcedureState::Failed => Some(2),
        ProcedureState::Initializing
        | ProcedureState::Runnable
        | ProcedureState::Waiting
        | ProcedureState::WaitingTimeout => None,
    }
}

const RULES: [&str; 12] = [
    "overrun",
    "retry_storm",
    "no_progress",
    "lost_wake",
    "deadlock",
    "starved",
    "poison",
    "quarantined",
    "rollback_failed",
    "blocked_worker",
    "store_slow",
    "store_failed",
];

/// Handles of one kind.
pub(crate) struct KindMetrics {
    submitted: Counter,
    retries: Counter,
    failed: Counter,
    finished: [(Counter, Histogram); 3],
    active: [(u64, Gauge); 5],
    waits: [Histogram; 14],
    stage_ok: Histogram,
    stage_retry: Histogram,
    stage_failed: Histogram,
    stage_panicked: Histogram,
    undo_ok: Histogram,
    undo_failed: Histogram,
}

impl KindMetrics {
    fn new(kind: &str) -> Self {
        let stage = |outcome| histogram(&STAGE_SECONDS, &[kind, outcome]);
        let undo = |outcome| histogram(&UNDO_SECONDS, &[kind, outcome]);
        Self {
            submitted: counter(&SUBMITTED, &[kind]),
            retries: counter(&RETRIES, &[kind]),
            failed: counter(&FAILED, &[kind]),
            finished: OUTCOMES.map(|outcome| {
                let count = counter(&FINISHED, &[kind, outcome]);
                (count, histogram(&PROCEDURE_SECONDS, &[kind, outcome]))
            }),
            active: LIVE.map(|state| (0, gauge(&ACTIVE, &[kind, state]))),
            waits: WAITS.map(|reason| histogram(&WAIT_SECONDS, &[kind, reason])),
            stage_ok: stage("ok"),
            stage_retry: stage("retry"),
            stage_failed: stage("failed"),
            stage_panicked: stage("panicked"),
            undo_ok: undo("ok"),
            undo_failed: undo("failed"),
        }
    }

    pub(crate) fn born(&self) {
        self.submitted.increment(1);
    }

    pub(crate) fn retried(&self) {
        self.retries.increment(1);
    }

    pub(crate) fn finished(&self, state: ProcedureState, elapsed: Duration) {
        let place = outcome_place(state).and_then(|place| self.finished.get(place));
        if let Some((count, time)) = place {
            count.increment(1);
            time.record(elapsed);
        }
        if state != ProcedureState::Success {
            self.failed.increment(1);
        }
    }

    pub(crate) fn waited(&self, place: usize, took: Duration) {
        if let Some(wait) = self.waits.get(place) {
            wait.record(took);
        }
    }

    pub(crate) fn ran(&self, ending: Ending, took: Duration) {
        match ending {
            Ending::Next | Ending::Done | Ending::Spawn | Ending::Sleep | Ending::Wait => self.stage_ok.record(took),
            Ending::Retry => self.stage_retry.record(took),
            Ending::Fail => self.stage_failed.record(took),
            Ending::Panic => self.stage_panicked.record(took),
            Ending::Undone => self.undo_ok.record(took),
            Ending::UndoFailed => self.undo_failed.record(took),
            // No user code ran.
            Ending::UndoSkipped => {}
        }
    }

    /// One procedure of this kind left the state at one place, and entered that at another.
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

/// All handles but the limiter's; the supervisor's own.
pub(crate) struct Telemetry {
    places: BTreeMap<Kind, usize>,
    kinds: Vec<KindMetrics>,
    recovered: [Gauge; 5],
    pub(crate) late: Counter,
    pub(crate) commits: Counter,
    pub(crate) batch_commits: Histogram,
    pub(crate) batch_records: Histogram,
    pub(crate) commit_seconds: Histogram,
    pub(crate) commits_waiting: Gauge,
    pub(crate) poisoned: Gauge,
    pub(crate) recovery_seconds: Gauge,
    pub(crate) quarantined: Gauge,
    pub(crate) hooks_dropped: Counter,
    pub(crate) lost_wakes: Counter,
    verdicts: [Gauge; 12],
}

impl Telemetry {
    /// Asks the recorder for every handle; `kinds` are those registered.
    pub(crate) fn new<'a>(kinds: impl IntoIterator<Item = &'a Kind>) -> Self {
        describe();
        let (mut places, mut of) = (BTreeMap::new(), Vec::new());
        for kind in kinds {
            places.insert(kind.clone(), of.len());
            of.push(KindMetrics::new(kind.as_str()));
        }
        let new = Self {
            places,
            kinds: of,
            recovered: LIVE.map(|state| gauge(&RECOVERED, &[state])),
            late: counter(&LATE, &[]),
            commits: counter(&COMMITS, &[]),
            batch_commits: histogram(&BATCH_COMMITS, &[]),
            batch_records: histogram(&BATCH_RECORDS, &[]),
            commit_seconds: histogram(&COMMIT_SECONDS, &[]),
            commits_waiting: gauge(&COMMITS_WAITING, &[]),
            poisoned: gauge(&POISONED, &[]),
            recovery_seconds: gauge(&RECOVERY_SECONDS, &[]),
            quarantined: gauge(&QUARANTINED, &[]),
            hooks_dropped: counter(&HOOKS_DROPPED, &[]),
            lost_wakes: counter(&LOST_WAKES, &[]),
            verdicts: RULES.map(|rule| gauge(&VERDICTS, &[rule])),
        };
        new.poisoned.set(0.0);
        new.commits_waiting.set(0.0);
        new
    }

    /// Shows how many verdicts of each rule stand.
    pub(crate) fn verdicts(&self, told: &[&str]) {
        for (rule, gauge) in RULES.iter().zip(&self.verdicts) {
            gauge.set(told.iter().filter(|other| *other == rule).count() as f64);
        }
    }

    /// Gives the place of a kind's handles; none if it is not registered.
    pub(crate) fn place(&self, kind: &Kind) -> Option<usize> {
        self.places.get(kind).copied()
    }

    pub(crate) fn kind(&mut self, place: usize) -> Option<&mut KindMetrics> {
        self.kinds.get_mut(place)
    }

    /// Sets the gauges of what the start has found; the counters of a new process begin at zero.
    pub(crate) fn recovered<'a>(&mut self, live: impl Iterator<Item = (&'a Kind, ProcedureState)>) {
        let mut found = [0_u64; 5];
        for (kind, state) in live {
            let Some(state) = live_place(state) else { continue };
            if let Some(count) = found.get_mut(state) {
                *count += 1;
            }
            let kind = self.place(kind).and_then(|place| self.kinds.get_mut(place));
            if let Some((count, _)) = kind.and_then(|kind| kind.active.get_mut(state)) {
                *count += 1;
            }
        }
        for (gauge, count) in self.recovered.iter().zip(found) {
            gauge.set(count as f64);
        }
        for (count, gauge) in self.kinds.iter().flat_map(|kind| &kind.active) {
            gauge.set(*count as f64);
        }
    }
}

struct LimitMetrics {
    used: Gauge,
    limit: Gauge,
    waiting: Gauge,
}

/// Handles of limits; the limiter's own.
#[derive(Default)]
pub(crate) struct LimiterMetrics(BTreeMap<LimitKey, LimitMetrics>);

impl LimiterMetrics {
    pub(crate) fn new(limits: &[LimitUse]) -> Self {
        let mut new = Self::default();
        for limit in limits {
            new.set(limit);
        }
        new
    }

    /// Shows a limit as it stands; one that is new gets its handles here.
    pub(crate) fn set(&mut self, limit: &LimitUse) {
        let of = self.0.entry(limit.key.clone()).or_insert_with(|| {
            let name = [limit.key.as_str()];
            LimitMetrics {
                used: gauge(&LIMITER_USED, &name),
                limit: gauge(&LIMITER_LIMIT, &name),
                waiting: gauge(&LIMITER_WAITING, &name),
            }
        });
        of.used.set(limit.used);
        of.limit.set(limit.limit.map_or(f64::INFINITY, f64::from));
        of.waiting.set(limit.waiting as f64);
    }
}

/// What a span says of one call of user code.
pub(crate) struct Marks<'a> {
    pub(crate) procedure: ProcedureId,
    pub(crate) kind: &'a Kind,
    pub(crate) state: ProcedureState,
    pub(crate) seq: Seq,
    pub(crate) attempt: u32,
}

// Values of fields are made only where somebody listens: the macro tests that
// before it evaluates them. A span has no parent: the one of its submitter
// would have to stay open as long as the procedure.

/// Makes the span of one attempt of a stage; `outcome` is recorded at its end.
pub(crate) fn stage_span(marks: &Marks<'_>, stage: impl Fn() -> String) -> Span {
    tracing::info_span!(
        target: "procession",
        parent: None,
        "stage",
        procedure = %marks.procedure,
        kind = %marks.kind,
        stage = %stage(),
        state = %marks.state,
        seq = marks.seq.0,
        attempt = marks.attempt,
        outcome = tracing::field::Empty,
    )
}

/// Makes the span of one attempt of an undo; `outcome` is recorded at its end.
pub(crate) fn undo_span(marks: &Marks<'_>, stage: impl Fn() -> String) -> Span {
    tracing::info_span!(
        target: "procession",
        parent: None,
        "undo",
        procedure = %marks.procedure,
        kind = %marks.kind,
        stage = %stage(),
        state = %marks.state,
        seq = marks.seq.0,
        attempt = marks.attempt,
        outcome = tracing::field::Empty,
    )
}

/// Says how the call of this span ended.
pub(crate) fn record_outcome(span: &Span, outcome: &'static str) {
    span.record("outcome", outcome);
}

#[cfg(test)]
mod tests;
