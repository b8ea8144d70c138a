//! Defines every metric name, every span and every field of a span, once. It holds handles and counts nothing itself.
//! The supervisor decides when something counts, and never before its receipt.
//!
//! `docs/reference/metrics.md` lists the names for users; a test compares it with the table here. Labels are restricted to what
//! that page lists: never an id, a key, a path or an error's text. Handles are requested from the recorder once, when
//! the engine starts, so the recorder must be installed before.

mod calls;
mod kinds;
mod labels;
mod limits;
mod names;
mod passes;
mod rates;
mod refused;
mod signals;
mod spans;
mod stage_names;
mod times;
mod uses;

pub use calls::CallTelemetry;
pub(crate) use labels::{live_place, wait_place};
pub(crate) use limits::LimiterMetrics;
pub use passes::StagePass;
pub use rates::KindRate;
pub(crate) use signals::SignalsWaiting;
pub(crate) use spans::{ERRORS, FailedSpan, Marks, record_outcome, stage_span, undo_span};
pub(crate) use stage_names::StagePlace;
pub use times::SyncTimes;
pub(crate) use times::Times;
pub use uses::{KindUse, StageUse};

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};
use procession_kernel::{Kind, KindRules, ProcedureState, Timestamp};

use kinds::KindMetrics;
use labels::{LIVE, MAILBOXES, RULES, UNKNOWN};
use names::{
    BATCH_COMMITS, BATCH_RECORDS, BYTES, COMMIT_SECONDS, COMMITS, COMMITS_WAITING, DASHBOARD_RESYNCS,
    DASHBOARD_STREAMS, DISK_FREE, HOOKS_DROPPED, LATE, LOCK_WAITERS, LOST_WAKES, MAILBOX_DEPTH, OLDEST_RUNNABLE,
    POISONED, QUARANTINED, RECOVERED, RECOVERY_SECONDS, ROLLBACK_FAILED, SCHEDULE_SKIPPED, STUCK, SYNC_SECONDS,
    TIMER_LAG, WORKER_BLOCKED, counter, describe, gauge, histogram,
};
use refused::Refused;

/// Where the embedded store records each of its syncs; the newest are remembered.
pub(crate) struct SyncSeconds {
    all: Histogram,
    newest: Mutex<Times>,
}

impl SyncSeconds {
    /// Requests the handle from the recorder.
    pub(crate) fn new() -> Self {
        Self {
            all: histogram(&SYNC_SECONDS, []),
            newest: Mutex::default(),
        }
    }

    pub(crate) fn record(&self, took: Duration) {
        self.all.record(took);
        self.newest().note(took);
    }

    /// Returns how long the newest syncs took; `None` if there was no sync.
    pub(crate) fn times(&self) -> Option<SyncTimes> {
        SyncTimes::of(&self.newest())
    }

    fn newest(&self) -> MutexGuard<'_, Times> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Metrics of a dashboard's streams. Cheap to clone.
#[derive(Clone)]
pub struct StreamTelemetry {
    streams: Gauge,
    resyncs: Counter,
}

impl Default for StreamTelemetry {
    /// Requests the handles from the recorder, which must be installed before.
    fn default() -> Self {
        Self {
            streams: gauge(&DASHBOARD_STREAMS, []),
            resyncs: counter(&DASHBOARD_RESYNCS, []),
        }
    }
}

impl StreamTelemetry {
    /// Sets the number of open streams.
    pub fn open(&self, streams: usize) {
        self.streams.set(streams as f64);
    }

    /// Counts a stream that had to start over.
    pub fn resynced(&self) {
        self.resyncs.increment(1);
    }
}

/// Counts ticks that schedules have skipped, by the policy that they met. Cheap to clone.
#[derive(Clone)]
pub struct ScheduleTelemetry {
    skipped: [(&'static str, Counter); 3],
}

impl Default for ScheduleTelemetry {
    /// Requests the handles from the recorder, which must be installed before.
    fn default() -> Self {
        Self {
            skipped: ["skip", "queue", "cancel"].map(|policy| (policy, counter(&SCHEDULE_SKIPPED, [policy.into()]))),
        }
    }
}

impl ScheduleTelemetry {
    /// Counts ticks that are known to be on disk as skipped. An unknown policy counts nothing.
    pub fn skipped(&self, policy: &str, ticks: u64) {
        if let Some((_, counter)) = self.skipped.iter().find(|(name, _)| *name == policy) {
            counter.increment(ticks);
        }
    }
}

/// All handles except the limiter's; owned by the supervisor.
pub(crate) struct Telemetry {
    places: BTreeMap<Kind, usize>,
    kinds: Vec<KindMetrics>,
    /// The kind looked up last, and its index. Mostly the next one is the same.
    at_hand: RefCell<Option<(Kind, usize)>>,
    recovered: [Gauge; 5],
    /// For procedures of an unknown kind.
    late_unknown: Counter,
    lost_unknown: Counter,
    pub(crate) commits: Counter,
    pub(crate) batch_commits: Histogram,
    pub(crate) batch_records: Histogram,
    pub(crate) commit_seconds: Histogram,
    pub(crate) commits_waiting: Gauge,
    pub(crate) poisoned: Gauge,
    pub(crate) recovery_seconds: Gauge,
    pub(crate) quarantined: Gauge,
    pub(crate) hooks_dropped: Counter,
    pub(crate) bytes: Gauge,
    pub(crate) disk_free: Gauge,
    pub(crate) lock_waiters: Gauge,
    pub(crate) oldest_runnable: Gauge,
    pub(crate) worker_blocked: Gauge,
    pub(crate) timer_lag: Gauge,
    mailboxes: [Gauge; 5],
    pub(crate) refused: Arc<Refused>,
    stuck: [Gauge; 19],
    rollback_failed: Gauge,
}

impl Telemetry {
    /// Requests every handle from the recorder; `kinds` are the registered kinds.
    pub(crate) fn new<'a>(kinds: impl IntoIterator<Item = &'a Kind>) -> Self {
        describe();
        let (mut places, mut of) = (BTreeMap::new(), Vec::new());
        for kind in kinds {
            places.insert(kind.clone(), of.len());
            of.push(KindMetrics::new(kind.as_str()));
        }
        let refused = Refused::new(places.keys());
        let new = Self {
            places,
            kinds: of,
            at_hand: RefCell::default(),
            recovered: LIVE.map(|state| gauge(&RECOVERED, [state.into()])),
            late_unknown: counter(&LATE, [UNKNOWN.into()]),
            lost_unknown: counter(&LOST_WAKES, [UNKNOWN.into()]),
            commits: counter(&COMMITS, []),
            batch_commits: histogram(&BATCH_COMMITS, []),
            batch_records: histogram(&BATCH_RECORDS, []),
            commit_seconds: histogram(&COMMIT_SECONDS, []),
            commits_waiting: gauge(&COMMITS_WAITING, []),
            poisoned: gauge(&POISONED, []),
            recovery_seconds: gauge(&RECOVERY_SECONDS, []),
            quarantined: gauge(&QUARANTINED, []),
            hooks_dropped: counter(&HOOKS_DROPPED, []),
            bytes: gauge(&BYTES, []),
            disk_free: gauge(&DISK_FREE, []),
            lock_waiters: gauge(&LOCK_WAITERS, []),
            oldest_runnable: gauge(&OLDEST_RUNNABLE, []),
            worker_blocked: gauge(&WORKER_BLOCKED, []),
            timer_lag: gauge(&TIMER_LAG, []),
            mailboxes: MAILBOXES.map(|actor| gauge(&MAILBOX_DEPTH, [actor.into()])),
            refused: Arc::new(refused),
            stuck: RULES.map(|rule| gauge(&STUCK, [rule.into()])),
            rollback_failed: gauge(&ROLLBACK_FAILED, []),
        };
        new.poisoned.set(0.0);
        new.commits_waiting.set(0.0);
        new
    }

    /// Sets how many messages wait for each actor, in the order of the labels.
    pub(crate) fn mailboxes(&self, waiting: [u64; 5]) {
        for (gauge, waiting) in self.mailboxes.iter().zip(waiting) {
            gauge.set(waiting as f64);
        }
    }

    /// Sets how many verdicts of each rule are active. One verdict may stand for several procedures.
    pub(crate) fn verdicts(&self, told: &[(&str, u64)]) {
        let of_rule = |rule: &str| {
            told.iter()
                .filter(move |(other, _)| *other == rule)
                .map(|(_, count)| count)
                .sum::<u64>()
        };
        let count = |rule: &str| of_rule(rule) as f64;
        for (rule, gauge) in RULES.iter().zip(&self.stuck) {
            gauge.set(count(rule));
        }
        self.rollback_failed.set(count("rollback_failed"));
    }

    /// Sets how many signals wait for the procedures of each kind, and the age of the oldest.
    pub(crate) fn signals(&self, waiting: &SignalsWaiting, now: Timestamp) {
        for (kind, place) in &self.places {
            let Some(metrics) = self.kinds.get(*place) else {
                continue;
            };
            let (count, oldest) = waiting.of(kind);
            metrics.signals(count, oldest.map_or(Duration::ZERO, |sent| now.since(sent)));
        }
    }

    /// Returns the usual upper bound of a stage's run time, once there are enough runs.
    pub(crate) fn usual(&self, kind: &Kind, stage: &str) -> Option<Duration> {
        self.kinds.get(self.place(kind)?)?.usual(stage)
    }

    /// Returns the index of a kind's handles; `None` if the kind is not registered.
    pub(crate) fn place(&self, kind: &Kind) -> Option<usize> {
        let mut at_hand = self.at_hand.borrow_mut();
        if let Some((known, place)) = &*at_hand
            && known == kind
        {
            return Some(*place);
        }
        let place = *self.places.get(kind)?;
        *at_hand = Some((kind.clone(), place));
        Some(place)
    }

    /// Returns the place of a stage of the kind with these handles; `None` if there are none.
    pub(crate) fn stage_place(&mut self, kind: usize, stage: &str) -> Option<StagePlace> {
        Some(self.kinds.get_mut(kind)?.stage_place(stage))
    }

    /// Returns the figures of each kind since the engine started, and those of the last minute.
    pub(crate) fn uses(&self, rules: &BTreeMap<Kind, KindRules>, now: Timestamp) -> Vec<KindUse> {
        let uses = self.places.iter().filter_map(|(kind, place)| {
            let (rules, metrics) = (rules.get(kind)?, self.kinds.get(*place)?);
            Some(metrics.uses(kind, rules, now))
        });
        uses.collect()
    }

    /// Counts this many late reports and wakes.
    pub(crate) fn late(&self, place: Option<usize>, count: u64) {
        match place.and_then(|place| self.kinds.get(place)) {
            Some(kind) => kind.late(count),
            None => self.late_unknown.increment(count),
        }
    }

    /// Counts a wake that was lost and repaired.
    pub(crate) fn lost(&self, place: Option<usize>) {
        match place.and_then(|place| self.kinds.get(place)) {
            Some(kind) => kind.lost(),
            None => self.lost_unknown.increment(1),
        }
    }

    pub(crate) fn kind(&mut self, place: usize) -> Option<&mut KindMetrics> {
        self.kinds.get_mut(place)
    }

    /// Sets the gauges from the result of the start; the counters of a new process begin at zero.
    pub(crate) fn recovered(&mut self, live: &BTreeMap<(Kind, ProcedureState), u64>) {
        let mut found = [0_u64; 5];
        for ((kind, state), procedures) in live {
            let Some(state) = live_place(*state) else { continue };
            if let Some(count) = found.get_mut(state) {
                *count += procedures;
            }
            let kind = self.place(kind).and_then(|place| self.kinds.get_mut(place));
            if let Some((count, _)) = kind.and_then(|kind| kind.active.get_mut(state)) {
                *count += procedures;
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

#[cfg(test)]
pub(crate) mod tests;
