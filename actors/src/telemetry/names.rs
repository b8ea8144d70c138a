//! The table of metrics in `docs/reference/metrics.md`; a test compares the two.

use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Label, SharedString, Unit};

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Counter,
    Gauge,
    Histogram,
}

/// One metric: all that the page says of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) sort: Sort,
    pub(super) labels: &'static [&'static str],
    pub(super) unit: Unit,
    pub(super) meaning: &'static str,
}

macro_rules! metrics {
    ($($constant:ident, $name:literal, $sort:ident, [$($label:literal),*], $unit:ident, $meaning:literal;)*) => {
        $(pub(super) const $constant: Metric = Metric {
            name: $name,
            sort: Sort::$sort,
            labels: &[$($label),*],
            unit: Unit::$unit,
            meaning: $meaning,
        };)*
        /// All metrics, in the order of the page.
        pub(super) const ALL: &[Metric] = &[$($constant),*];
    };
}

metrics! {
    SUBMITTED, "procession_submitted_total", Counter, ["kind"], Count,
        "procedures born, roots and children";
    REFUSED, "procession_refused_total", Counter, ["kind", "reason"], Count,
        "submissions that the engine refused";
    FINISHED, "procession_finished_total", Counter, ["kind", "outcome"], Count,
        "procedures ended; `outcome` is `success`, `rolled_back` or `failed`";
    FAILED, "procession_failed_total", Counter, ["kind"], Count,
        "procedures that ended without success";
    PROCEDURE_SECONDS, "procession_procedure_seconds", Histogram, ["kind", "outcome"], Seconds,
        "from birth to end, one sample for each end";
    ACTIVE, "procession_active", Gauge, ["kind", "state"], Count,
        "procedures that have not ended; `failed` is being rolled back";
    STAGE_SECONDS, "procession_stage_seconds", Histogram, ["kind", "stage", "outcome"], Seconds,
        "user code of one stage; `outcome` is `ok`, `retry`, `failed` or `panicked`, and yields are not counted";
    UNDO_SECONDS, "procession_undo_seconds", Histogram, ["kind", "stage", "outcome"], Seconds,
        "user code of one undo; `outcome` is `ok` or `failed`";
    WAIT_SECONDS, "procession_wait_seconds", Histogram, ["kind", "reason"], Seconds,
        "one wait, from its beginning to its end";
    RETRIES, "procession_retries_total", Counter, ["kind"], Count,
        "stages that are retried, after a backoff or at once";
    PANICS, "procession_panics_total", Counter, ["kind"], Count,
        "stages that panicked";
    ASKED, "procession_asked_total", Counter, ["kind"], Count,
        "questions that stages asked a person";
    LATE, "procession_late_wakes_total", Counter, ["kind"], Count,
        "reports and wakes that came too late and changed nothing";
    LIMITER_USED, "procession_limiter_used", Gauge, ["limit"], Count,
        "permits in use";
    LIMITER_LIMIT, "procession_limiter_limit", Gauge, ["limit"], Count,
        "capacity; infinite for a limit that was lifted or is a rate alone";
    LIMITER_WAITING, "procession_limiter_waiting", Gauge, ["limit"], Count,
        "requests that wait for a permit";
    LIMITER_HAD_TO_WAIT, "procession_limiter_had_to_wait_total", Counter, ["limit"], Count,
        "requests that arrived while the limit had no permit for them";
    LIMITER_RATE_LEFT, "procession_limiter_rate_left", Gauge, ["limit"], Count,
        "begins that the rate still allowed when the limit last changed; infinite without a rate";
    LOCK_WAITERS, "procession_lock_waiters", Gauge, [], Count,
        "procedures that wait for a lock, at the last health check";
    OLDEST_RUNNABLE, "procession_oldest_runnable_seconds", Gauge, [], Seconds,
        "longest current wait for a lock, a permit or a turn, at the last health check";
    SIGNALS_WAITING, "procession_signals_waiting", Gauge, ["kind"], Count,
        "signals that no stage has consumed, at the last health check";
    OLDEST_SIGNAL, "procession_oldest_signal_seconds", Gauge, ["kind"], Seconds,
        "age of the oldest signal that no stage has consumed, at the last health check";
    COMMITS, "procession_journal_commits_total", Counter, [], Count,
        "commits that are on disk";
    BATCH_COMMITS, "procession_journal_batch_commits", Histogram, [], Count,
        "commits merged into one batch";
    BATCH_RECORDS, "procession_journal_batch_records", Histogram, [], Count,
        "puts and deletes of one batch";
    COMMIT_SECONDS, "procession_journal_commit_seconds", Histogram, [], Seconds,
        "one batch, from the append to its receipt";
    SYNC_SECONDS, "procession_journal_sync_seconds", Histogram, [], Seconds,
        "one batch, written and synced by the embedded store";
    BYTES, "procession_journal_bytes", Gauge, [], Bytes,
        "size of the store on the disk, read at each health check";
    DISK_FREE, "procession_journal_disk_free_bytes", Gauge, [], Bytes,
        "free room on the disk of the journal";
    COMMITS_WAITING, "procession_commits_waiting", Gauge, [], Count,
        "commits decided and not yet on disk, read at each receipt";
    POISONED, "procession_journal_poisoned", Gauge, [], Count,
        "1 once the journal has failed, and no more commits are taken";
    RECOVERY_SECONDS, "procession_recovery_seconds", Gauge, [], Seconds,
        "the last start, from taking the store to opening for messages";
    RECOVERED, "procession_recovered", Gauge, ["state"], Count,
        "unfinished procedures that the last start found";
    QUARANTINED, "procession_quarantined", Gauge, [], Count,
        "quarantined families";
    STUCK, "procession_stuck", Gauge, ["rule"], Count,
        "verdicts of the last health check";
    ROLLBACK_FAILED, "procession_rollback_failed", Gauge, [], Count,
        "procedures whose rollback waits for an operator, at the last health check";
    WORKER_BLOCKED, "procession_worker_blocked_seconds", Gauge, [], Seconds,
        "longest time that user code has held a worker; 0 while none is blocked";
    MAILBOX_DEPTH, "procession_mailbox_depth", Gauge, ["actor"], Count,
        "messages that wait for an actor, read at most ten times a second; for workers, calls of stages and undos";
    TIMER_LAG, "procession_timer_lag_seconds", Gauge, [], Seconds,
        "how late the last timer was served";
    LOST_WAKES, "procession_lost_wakes_total", Counter, ["kind"], Count,
        "wakes that were lost and repaired; anything but 0 is a defect";
    HOOKS_DROPPED, "procession_hooks_dropped_total", Counter, [], Count,
        "calls of `on_submit` and `on_finish` that were dropped because too many waited";
    SCHEDULE_SKIPPED, "procession_schedule_skipped_total", Counter, ["policy"], Count,
        "ticks of schedules that were skipped because a run went on, by the policy on overlap";
    CALL_SECONDS, "procession_saga_call_seconds", Histogram, ["kind", "state", "status"], Seconds,
        "one call that a state of a saga makes, tries and compensators included; `status` is `SU`, `FA` or `UN`";
    DASHBOARD_STREAMS, "procession_dashboard_streams", Gauge, [], Count,
        "streams of the dashboard that are open";
    DASHBOARD_RESYNCS, "procession_dashboard_resyncs_total", Counter, [], Count,
        "streams of the dashboard that had to start over because they had missed too much";
}

/// A start requests dozens of series for each kind, so a value that several of them have is shared, not copied.
fn labels<const N: usize>(metric: &Metric, values: [SharedString; N]) -> Vec<Label> {
    let pairs = metric.labels.iter().zip(values);
    pairs.map(|(name, value)| Label::new(*name, value)).collect()
}

/// Returns a label's value that is shared by all series that have it.
pub(super) fn shared(value: &str) -> SharedString {
    SharedString::from_shared(Arc::from(value))
}

pub(super) fn counter<const N: usize>(metric: &Metric, values: [SharedString; N]) -> Counter {
    metrics::counter!(metric.name, labels(metric, values))
}

pub(super) fn gauge<const N: usize>(metric: &Metric, values: [SharedString; N]) -> Gauge {
    metrics::gauge!(metric.name, labels(metric, values))
}

pub(super) fn histogram<const N: usize>(metric: &Metric, values: [SharedString; N]) -> Histogram {
    metrics::histogram!(metric.name, labels(metric, values))
}

pub(super) fn describe() {
    for metric in ALL {
        match metric.sort {
            Sort::Counter => metrics::describe_counter!(metric.name, metric.unit, metric.meaning),
            Sort::Gauge => metrics::describe_gauge!(metric.name, metric.unit, metric.meaning),
            Sort::Histogram => metrics::describe_histogram!(metric.name, metric.unit, metric.meaning),
        }
    }
}
