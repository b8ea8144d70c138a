//! The lifecycle wing: how the engine starts, which instants wake it, which results it evicts, and how it ends.
//!
//! It owns the timer, the trust in the wall clock, the wakes in bulk, the drain, and what the start has found. Each
//! function takes the kernel by reference and returns an event, a future or a value. The wing decides nothing and
//! commits nothing.

pub(super) mod bulk;
pub(super) mod drain;
pub(crate) mod recovery;
pub(super) mod recovery_hooks;
pub(super) mod retention;
pub(super) mod start;
pub(super) mod timer;
pub(super) mod wall;

pub(crate) use drain::StopHere;
pub(crate) use start::Open;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::Recipient;
use procession_kernel::{Event, Kernel, Kind, ProcedureId, ProcedureState, Seq, Timestamp};
use tokio::sync::oneshot;

use crate::clock::Clock;
use crate::journal::encode::LastLook;
use crate::threads::Threads;
use crate::view::{DrainReport, Recovered};
use bulk::BulkWakes;
use drain::Draining;
use recovery::Loaded;
use retention::{Eviction, FoundDue, Retention};
use start::Start;
use timer::{TimeCame, Timer};
use wall::WallClockLead;

/// The lifecycle wing.
pub(super) struct Lifecycle {
    start: Start,
    /// `None` before the actor has started, and once it stops.
    timer: Option<Timer>,
    bulk: BulkWakes,
    retention: Retention,
    drain: Option<Draining>,
    threads: Threads,
}

impl Lifecycle {
    /// Takes what the start recorded for this wing out of `loaded`.
    pub(super) fn new(loaded: &mut Loaded, threads: Threads) -> Self {
        Self {
            start: Start::new(loaded),
            timer: None,
            bulk: BulkWakes::default(),
            retention: Retention::new(loaded),
            drain: None,
            threads,
        }
    }

    // The start.

    /// Takes the numbers of unfinished procedures, by kind and state.
    pub(super) fn take_unfinished(&mut self) -> BTreeMap<(Kind, ProcedureState), u64> {
        self.start.take_unfinished()
    }

    /// Takes the procedures that hold a permit or a lock, or wait for one, in order.
    pub(super) fn take_claimants(&mut self) -> Vec<ProcedureId> {
        self.start.take_claimants()
    }

    /// Moves a live family from the recovered families to the quarantined ones. Returns `false` if it is no longer
    /// live. Must run before the kernel forgets its rows.
    pub(super) fn quarantined_at_start(&mut self, kernel: &Kernel, family: u64, why: &str) -> bool {
        self.start.quarantined(kernel, family, why)
    }

    /// Logs what the start found, and how long it took. Returns the total time.
    pub(super) fn started(&mut self, opening: Duration) -> Duration {
        self.start.started(opening)
    }

    /// Returns what the start found.
    pub(super) const fn recovered(&self) -> &Recovered {
        self.start.report()
    }

    // Timers.

    /// Starts the timer's task. The task ends with [`Self::stop`], or when this value is dropped.
    pub(super) fn start_timer(&mut self, clock: Arc<dyn Clock>, to: Recipient<TimeCame>) {
        self.timer = Some(Timer::start(clock, to));
    }

    /// Returns `true` if the timer's task is running.
    pub(super) const fn has_timer(&self) -> bool {
        self.timer.is_some()
    }

    /// Arms the timer for the next deadline of a procedure, or the next result to evict.
    pub(super) fn arm(&self, kernel: &Kernel) {
        if let Some(timer) = &self.timer {
            let instants = kernel.next_deadline().into_iter().chain(self.retention.wakes_at());
            timer.arm(instants.min());
        }
    }

    /// Disarms the timer: an engine that has failed serves no instant.
    pub(super) fn disarm(&self) {
        if let Some(timer) = &self.timer {
            timer.arm(None);
        }
    }

    // Wakes in bulk.

    /// Returns `true` if more procedures may be woken in bulk. `on_its_way` counts the calls that have not begun and
    /// the reports that were not handled. It is asked last, because it costs the most.
    pub(super) fn has_credit(&self, durable: Seq, is_backed_up: bool, on_its_way: impl FnOnce() -> u64) -> bool {
        self.bulk.has_credit(durable, is_backed_up, on_its_way)
    }

    /// Records that this commit has woken procedures in bulk.
    pub(super) const fn woke_some(&mut self, newest: Seq) {
        self.bulk.woke_some(newest);
    }

    /// Records whether timers that are due wait for credit.
    pub(super) const fn timers_wait(&mut self, wait: bool) {
        self.bulk.timers_wait(wait);
    }

    /// Returns `true` if anything may wait to be woken in bulk. Each commit asks, and nearly always nothing does.
    pub(super) fn may_wake(&self, kernel: &Kernel) -> bool {
        self.bulk.do_timers_wait() || kernel.has_waves()
    }

    /// Continues waking in bulk once there is credit. Arms the timer if timers waited for credit, and returns the
    /// event that wakes the next chunk of a broadcast.
    pub(super) fn wake_more(&mut self, kernel: &Kernel) -> Option<Event> {
        if self.bulk.take_waiting_timers() {
            self.arm(kernel);
        }
        self.bulk.next_wave(kernel)
    }

    // Retention.

    /// Records when a committed result falls due, and rearms the timer if that is earlier than all others. Must run
    /// after the kernel has applied the commit, whose deadlines count as well.
    pub(super) fn note_due(&mut self, due: Option<Timestamp>, kernel: &Kernel) {
        if self.retention.note_due(due) {
            self.arm(kernel);
        }
    }

    /// Records how long a key is to be kept.
    pub(super) fn note_key(&mut self, keep: Duration) {
        self.retention.wall().note_key(keep);
    }

    /// Looks at the clocks if that is due at the time of a decision. Returns the look to write with its commit.
    pub(super) fn take_look(&mut self, clock: &dyn Clock, decided: Timestamp, is_draining: bool) -> Option<LastLook> {
        self.retention.wall().take_look(clock, decided, is_draining)
    }

    /// Looks at the clocks. Returns how far the wall clock is ahead of the machine's time, if it was set forward.
    pub(super) fn clock_ahead(&mut self, clock: &dyn Clock) -> Option<WallClockLead> {
        let wall = self.retention.wall();
        wall.look(clock);
        wall.ahead()
    }

    /// Begins an eviction if a result is due and none is under way. Returns the time up to which results may be
    /// evicted.
    pub(super) fn begin_eviction(&mut self, clock: &dyn Clock) -> Option<Timestamp> {
        self.retention.begin(clock)
    }

    /// Makes the next [`Self::begin_eviction`] look at once, because the last look could not read the store.
    pub(super) fn look_again(&mut self) {
        // Whatever the clock says: it may be ahead of the time up to which results are evicted.
        self.retention.note_due(Some(Timestamp(0)));
    }

    /// Ends an eviction. Returns what to do with its findings.
    pub(super) fn end_eviction(&mut self, found: FoundDue) -> Eviction {
        self.retention.end(found)
    }

    // The drain.

    /// Returns `true` if a drain is under way.
    pub(super) const fn is_draining(&self) -> bool {
        self.drain.is_some()
    }

    /// Adds a caller that waits for the drain. Returns the caller's sender if no drain is under way.
    pub(super) fn join_drain(
        &mut self,
        waiter: oneshot::Sender<DrainReport>,
    ) -> Result<(), oneshot::Sender<DrainReport>> {
        match &mut self.drain {
            Some(draining) => {
                draining.join(waiter);
                Ok(())
            }
            None => Err(waiter),
        }
    }

    /// Begins a drain.
    pub(super) fn begin_drain(&mut self, kernel: &Kernel, waiter: Option<oneshot::Sender<DrainReport>>) {
        tracing::info!(out = kernel.in_flight(), "the engine drains");
        self.drain = Some(Draining::begin(kernel, waiter));
    }

    /// Returns `true` if a drain is under way and no stage or undo is running.
    pub(super) fn is_drained(&self, kernel: &Kernel) -> bool {
        self.is_draining() && drain::out(kernel) == 0
    }

    /// Returns what the drain under way has finished, and what it leaves.
    pub(super) fn drain_report(&self, kernel: &Kernel, quarantined: usize) -> Option<DrainReport> {
        self.drain.as_ref().map(|draining| draining.report(kernel, quarantined))
    }

    /// Answers the callers that wait for the drain. They may open the store again, so it must have been given back
    /// before.
    pub(super) fn drained(&mut self, report: DrainReport) {
        if let Some(draining) = self.drain.take() {
            draining.answer(report);
        }
    }

    /// Abandons the drain, because the engine has failed. Callers that wait for it find the cause in their `Failure`.
    pub(super) fn abandon_drain(&mut self) {
        self.drain = None;
    }

    // The end.

    /// Ends the timer's task.
    pub(super) fn stop(&mut self) {
        self.timer = None;
    }

    /// Returns the task that ends the engine's threads, this one last, once the last answers have left it.
    pub(super) fn end_threads(&self) -> impl Future<Output = ()> + use<> {
        drain::end_threads(self.threads.clone())
    }
}
