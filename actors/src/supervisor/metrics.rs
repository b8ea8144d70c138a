//! The metrics wing: owns the recorder's handles, the totals of this run, the pending calls of metric hooks, the log of
//! failures, and the depths of the mailboxes.
//!
//! It reads the kernel and decides nothing. What a commit means for the metrics is read from its records *before*
//! they are applied. A transition is the difference between the old row and the new one. It is counted *after* the
//! receipt, so every count is on disk and a crash never undoes a count that was shown.

/// A measurement of the store and its disk.
pub(super) struct Measured {
    pub(super) room: Option<DiskRoom>,
    /// Bytes that the store occupies.
    pub(super) bytes: Option<u64>,
}

mod failure_log;
pub(super) mod hook_queue;
pub(crate) mod mailboxes;
pub(super) mod observations;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use actix::ArbiterHandle;
use procession_kernel::{Kernel, Kind, ProcedureId, ProcedureState, Record, Seq, Timestamp};

use crate::charts::Charts;
use crate::clock::Clock;
use crate::journal::Batch;
use crate::journal::DiskRoom;
use crate::registry::Registry;
use crate::telemetry::{FailedSpan, SignalsWaiting, Telemetry, Times};
use crate::view::{BatchUse, Verdict};
use failure_log::FailureLog;
use hook_queue::HookQueue;
use mailboxes::MailboxGauges;
use observations::{Observation, Observer};

/// A longer turn is logged, because others wait for the supervisor meanwhile.
const LONG_TURN: Duration = Duration::from_millis(5);

/// Totals of this run.
#[derive(Default)]
struct Totals {
    commits: u64,
    batches: u64,
    writes: u64,
    bytes: u64,
    commit_times: Times,
}

/// Figures of this run, for a snapshot.
pub(super) struct Figures {
    pub(super) commits: u64,
    pub(super) batches: u64,
    pub(super) writes: u64,
    pub(super) bytes: u64,
    /// Of the newest 1,000 batches, 99 of 100 were on disk within this time.
    pub(super) commit_p99: Option<Duration>,
    pub(super) last_batch: BatchUse,
    pub(super) longest_turn: Duration,
}

/// The metrics wing.
pub(super) struct Metrics {
    telemetry: Telemetry,
    totals: Totals,
    last_batch: BatchUse,
    /// Late reports and wakes of procedures that the kernel no longer knows. The next report names their kind.
    late_unnamed: u64,
    hooks: HookQueue,
    failures: FailureLog,
    /// The span of the call whose report is being decided, if the call has failed.
    failed_span: FailedSpan,
    mailboxes: MailboxGauges,
    longest_turn: Duration,
    charts: Charts,
}

impl Metrics {
    pub(super) fn new(registry: &Registry, telemetry: Telemetry, mailboxes: MailboxGauges, charts: Charts) -> Self {
        Self {
            hooks: HookQueue::new(registry, &telemetry),
            failures: FailureLog::new(registry, &telemetry),
            failed_span: None,
            telemetry,
            totals: Totals::default(),
            last_batch: BatchUse::default(),
            late_unnamed: 0,
            mailboxes,
            longest_turn: Duration::ZERO,
            charts,
        }
    }

    /// Returns the recorder's handles, for gauges and counters that belong to a single place outside this wing.
    pub(super) const fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    // Commits.

    /// Returns an observer for the records of one decision. It must take the records before the kernel applies them.
    pub(super) fn observer<'a>(
        &'a mut self,
        kernel: &'a Kernel,
        clock: &'a dyn Clock,
        into: &'a mut Vec<Observation>,
    ) -> Observer<'a> {
        let span = self.failed_span.take();
        Observer::new(
            &mut self.telemetry,
            &self.hooks,
            &self.failures,
            kernel,
            clock,
            span,
            into,
        )
    }

    /// Sets the span of the call whose report is decided next, if that call has failed.
    pub(super) fn set_failed_span(&mut self, span: FailedSpan) {
        self.failed_span = span;
    }

    /// Counts a decision that became part of a commit.
    pub(super) const fn decided(&mut self) {
        self.totals.commits += 1;
    }

    /// Counts a batch that is sent to the journal.
    pub(super) fn appended(&mut self, batch: &Batch) {
        self.totals.batches += 1;
        self.totals.writes += batch.len() as u64;
        self.totals.bytes += batch.size_bytes() as u64;
    }

    /// Resets the totals, because the start's own commit is not counted.
    pub(super) fn restart_totals(&mut self) {
        self.totals = Totals::default();
    }

    /// Counts a batch that is on disk, and what it changed.
    pub(super) fn committed(&mut self, batch: BatchUse, observations: Vec<Observation>, now: Timestamp) {
        self.telemetry.commits.increment(batch.commits as u64);
        self.telemetry.batch_commits.record(batch.commits as f64);
        self.telemetry.batch_records.record(batch.writes as f64);
        self.telemetry.commit_seconds.record(batch.took);
        self.totals.commit_times.note(batch.took);
        self.last_batch = batch;
        // No report arrived between these and the receipt, so their kinds can no longer be named.
        self.telemetry.late(None, std::mem::take(&mut self.late_unnamed));
        self.count(observations, now);
    }

    /// Counts observations that are on disk, and logs the failures among them.
    pub(super) fn count(&mut self, observations: Vec<Observation>, now: Timestamp) {
        self.charts
            .count(observations.iter().filter_map(Observation::sample), now);
        for observation in observations {
            observation.count(&mut self.telemetry, &mut self.hooks, &mut self.failures, now);
        }
    }

    // Late reports and wakes, and lost wakes.

    /// Counts reports and wakes that arrived late and changed nothing. Must run before the kernel applies these
    /// records.
    pub(super) fn late(&mut self, kernel: &Kernel, records: &[Record]) {
        for record in records {
            let Record::Late(id) = record else { continue };
            match kernel.row(*id) {
                Some(row) => self.telemetry.late(self.telemetry.place(&row.kind), 1),
                None => self.late_unnamed += 1,
            }
        }
    }

    /// Attributes late reports without a kind to the kind that has just reported.
    pub(super) fn name_late(&mut self, kind: &Kind) {
        if self.late_unnamed > 0 {
            let late = std::mem::take(&mut self.late_unnamed);
            self.telemetry.late(self.telemetry.place(kind), late);
        }
    }

    /// Counts lost wakes that were repaired, by the kinds of the procedures that waited.
    pub(super) fn lost_wakes(&self, kernel: &Kernel, found: &[(ProcedureId, String)]) {
        for (id, _) in found {
            let kind = kernel.row(*id).and_then(|row| self.telemetry.place(&row.kind));
            self.telemetry.lost(kind);
        }
    }

    // Families.

    /// Returns what to count when a family is quarantined: its members are no longer active. The caller counts it
    /// after everything decided before, or the gauges would fall before they rose.
    pub(super) fn quarantine(&self, kernel: &Kernel, family: u64) -> Vec<Observation> {
        observations::of_quarantine(&self.telemetry, kernel, family)
    }

    /// Shows how many families are quarantined.
    pub(super) fn show_quarantined(&self, families: usize) {
        self.telemetry.quarantined.set(families as f64);
    }

    /// Sets the gauges to the findings of the start.
    pub(super) fn recovered(&mut self, unfinished: &BTreeMap<(Kind, ProcedureState), u64>, quarantined: usize) {
        self.telemetry.recovered(unfinished);
        self.show_quarantined(quarantined);
    }

    // Metric hooks.

    /// Returns `true` if a batch of hook calls may be sent to a worker now.
    pub(super) fn may_call_hooks(&self) -> bool {
        self.hooks.is_ready()
    }

    /// Sends the next batch of hook calls to this worker. What it returns resolves once they were made.
    pub(super) fn call_hooks(
        &mut self,
        worker: &ArbiterHandle,
        registry: &Arc<Registry>,
    ) -> impl Future<Output = ()> + use<> {
        self.hooks.send(worker, Arc::clone(registry))
    }

    /// Records that the batch of hook calls was made.
    pub(super) const fn hooks_ran(&mut self) {
        self.hooks.ran();
    }

    /// Returns `true` if no hook call is left, or none will be left once the commits under way have their receipts.
    pub(super) fn hooks_are_over(&self, commits_are_quiet: bool) -> bool {
        self.hooks.is_over(commits_are_quiet)
    }

    // Mailboxes.

    /// Counts a message that the supervisor has taken from its mailbox.
    pub(super) fn taken(&self) {
        self.mailboxes.taken();
    }

    /// Publishes the newest commit on disk. Must run before anything that rests on it is reported.
    pub(super) fn durable(&self, seq: Seq) {
        self.mailboxes.durable(seq);
    }

    /// Returns how many messages wait for the supervisor, approximately.
    pub(super) fn waiting(&self) -> u64 {
        self.mailboxes.waiting()
    }

    /// Returns how many calls wait for a worker, approximately.
    pub(super) fn calls_waiting(&self) -> u64 {
        self.mailboxes.calls_waiting()
    }

    /// Sends the mailbox depths to the recorder, at most ten times a second.
    pub(super) fn show_mailboxes_soon(&mut self, now: Timestamp) {
        self.mailboxes.show_soon(&self.telemetry, now);
    }

    /// Sends the mailbox depths to the recorder.
    pub(super) fn show_mailboxes(&mut self, now: Timestamp) {
        self.mailboxes.show(&self.telemetry, now);
    }

    // Health checks.

    /// Shows the findings of a health check: how many procedures wait for a lock, and since when the oldest runnable
    /// procedure has waited.
    pub(super) fn checked(
        &mut self,
        verdicts: &[Verdict],
        lock_waiters: u32,
        oldest: Option<Timestamp>,
        now: Timestamp,
    ) {
        let told: Vec<(&str, u64)> = verdicts.iter().map(counted).collect();
        self.telemetry.verdicts(&told);
        self.telemetry.lock_waiters.set(lock_waiters);
        let waited = oldest.map_or(Duration::ZERO, |since| now.since(since));
        self.telemetry.oldest_runnable.set(waited);
        self.failures.tell_left_out(now);
        self.show_mailboxes(now);
    }

    /// Shows how many signals a health check found waiting, and how old the oldest is, of each kind.
    pub(super) fn show_signals(&self, signals: &SignalsWaiting, now: Timestamp) {
        self.telemetry.signals(signals, now);
    }

    /// Shows a measurement of the store and its disk.
    pub(super) fn measured(&self, measured: &Measured) {
        if let Some(room) = measured.room {
            self.telemetry.disk_free.set(room.free as f64);
        }
        if let Some(bytes) = measured.bytes {
            self.telemetry.bytes.set(bytes as f64);
        }
    }

    // Turns.

    /// Records how long one turn of the supervisor took while everything else waited. It is the machine's time. So a
    /// turn in which the thread was not scheduled counts in full, as it did for the messages that waited.
    pub(super) fn turn_ended(&mut self, what: impl Display, took: Duration, decisions: u64) {
        self.longest_turn = self.longest_turn.max(took);
        if took > LONG_TURN {
            tracing::debug!(%what, ?took, decisions, "a turn of the supervisor took long");
        }
    }

    /// Returns the figures of this run.
    pub(super) fn figures(&self) -> Figures {
        Figures {
            commits: self.totals.commits,
            batches: self.totals.batches,
            writes: self.totals.writes,
            bytes: self.totals.bytes,
            commit_p99: self.totals.commit_times.p99(),
            last_batch: self.last_batch,
            longest_turn: self.longest_turn,
        }
    }
}

/// Returns a verdict's rule, and how many it stands for: one, or as many as it only counts.
fn counted(verdict: &Verdict) -> (&'static str, u64) {
    let several = verdict.fact("more").or_else(|| verdict.fact("unacknowledged"));
    let several = several.and_then(|several| several.parse().ok());
    (verdict.rule.as_str(), several.unwrap_or(1))
}
