//! `Supervisor`: the one that holds the kernel. A message becomes an event, the
//! event a decision, the decision part of the next commit; what follows from it
//! leaves only with the receipt. It runs no user code, and never holds anybody up.

pub(crate) mod admission;
pub(crate) mod asks;
mod blocked;
mod dispatch;
mod effects;
mod exports;
pub(crate) mod failure;
mod finished;
mod handlers;
pub(crate) mod health;
pub(crate) mod kept;
pub(crate) mod lifecycle;
mod loads;
pub(crate) mod metrics;
mod operate;
mod orphaned_calls;
mod outputs;
pub(crate) mod pipeline;
mod quarantine;
mod reports;
#[cfg(feature = "testkit")]
pub(crate) mod reveal;
mod stacks;
mod status;
mod submits;
mod unread;
mod unstarted;
pub(crate) mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{
    Answer, Commit, Decision, Doomed, Effect, Event, HistoryEntry, Kernel, LimitKey, Operated, ProcedureId, Receipt,
    Ticket, Timestamp, Verb,
};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use self::metrics::Metrics;
use self::metrics::mailboxes::MailboxGauges;
use crate::actor_loop::LastPanic;
use crate::clock::{Clock, machine_now};
use crate::context::Host;
use crate::engine::Settings;
use crate::error::{AskError, StartError, StoreError};
use crate::hooks::Moment;
use crate::journal::{Appended, Journal, Reader};
use crate::limiter::Limiter;
use crate::mail::{Counted, Gathering, Ordered};
use crate::messages::{Drain, DrainBy};
use crate::procedure_actor::Reported;
use crate::registry::Registry;
use crate::telemetry::Telemetry;
use crate::threads::Threads;
use crate::view::{BatchUse, DrainReport, Outcome, Rule};
use admission::Admission;
use blocked::Actors;
use dispatch::Dispatch;
use failure::{Broken, Failure, FailureCause};
use finished::FinishedReads;
use handlers::FlushTime;
use health::Health;
use lifecycle::Lifecycle;
use lifecycle::recovery::Loaded;
use lifecycle::recovery_hooks::{self, Failed};
use lifecycle::retention::{Eviction, FoundDue, due_of, find_due};
use lifecycle::timer::{TIMERS_AT_ONCE, TimeCame};
use lifecycle::{Open, StopHere};
use loads::Loads;
use orphaned_calls::OrphanedCalls;
use outputs::Outputs;
use pipeline::in_place::InPlace;
use pipeline::{Pipeline, PipelineSettings, Waiting};
use quarantine::Quarantine;
use stacks::Stacks;
use status::EngineStatus;
use unread::{Subject, Unread, Unreadable};
use unstarted::Unstarted;
use workers::Workers;

/// Messages that may wait for the supervisor before senders are held up: room
/// for a report of every stage of a busy engine.
const MAILBOX: usize = 16_384;

/// What a request gets in the end: its answer, or why the journal failed.
pub(crate) type Answered = Result<Answer, FailureCause>;

/// What is done with an answer of the limiter when its turn comes.
type Take = Box<dyn FnOnce(&mut Supervisor, &mut Context<Supervisor>)>;

/// What a supervisor is made of.
pub(crate) struct Parts {
    pub(crate) loaded: Loaded,
    pub(crate) limited: Vec<LimitKey>,
    pub(crate) limiter: Ordered<Limiter>,
    pub(crate) journal: Counted<Journal>,
    pub(crate) mailboxes: MailboxGauges,
    pub(crate) reports: Arc<Gathering<Reported>>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) workers: Workers,
    pub(crate) threads: Threads,
    pub(crate) failure: Failure,
    pub(crate) panics: LastPanic,
    pub(crate) settings: Settings,
    pub(crate) host: Arc<Host>,
    pub(crate) in_place: InPlace,
    pub(crate) in_flight: usize,
    pub(crate) telemetry: Telemetry,
}

/// The engine's supervisor; send it the messages of [`messages`](crate::messages).
pub struct Supervisor {
    kernel: Kernel,
    pipeline: Pipeline,
    metrics: Metrics,
    /// What procedures' actors have reported.
    reports: Arc<Gathering<Reported>>,
    admission: Admission<Take>,
    registry: Arc<Registry>,
    host: Arc<Host>,
    workers: Workers,
    lifecycle: Lifecycle,
    clock: Arc<dyn Clock>,
    reader: Reader,
    queued: usize,
    awake: usize,
    loads: Loads,
    unreadable: Unreadable,
    unstarted: Unstarted,
    outputs: Outputs,
    /// Join rules that are out, each with the question that comes next.
    judging: FxHashMap<ProcedureId, Option<loads::Load>>,
    actors: Actors,
    dispatch: Dispatch,
    tickets: FxHashMap<Ticket, oneshot::Sender<Answered>>,
    next_ticket: u64,
    calls: u64,
    watchers: FxHashMap<ProcedureId, Vec<oneshot::Sender<Outcome>>>,
    /// Those that the start read.
    stacks: BTreeMap<u64, Vec<HistoryEntry>>,
    stack_reads: Stacks,
    quarantine: Quarantine,
    /// Quarantined families whose discharge is being committed.
    discharging: BTreeSet<u64>,
    finished: FinishedReads,
    health: Health,
    orphaned_calls: OrphanedCalls,
    status: EngineStatus,
    panics: LastPanic,
}

impl Supervisor {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            mut loaded,
            limited,
            limiter,
            journal,
            mailboxes,
            reports,
            registry,
            workers,
            threads,
            failure,
            panics,
            settings,
            host,
            in_place,
            in_flight,
            telemetry,
        } = parts;
        let quarantine = Quarantine::new(&loaded.report.quarantined);
        let lifecycle = Lifecycle::new(&mut loaded, threads);
        let pipeline = PipelineSettings {
            epoch: loaded.epoch,
            merge: settings.merge,
            in_flight,
            store: loaded.store,
        };
        Self {
            metrics: Metrics::new(&registry, telemetry, mailboxes),
            health: Health::new(settings.audit_every, registry.measures(settings.thresholds)),
            orphaned_calls: OrphanedCalls::default(),
            pipeline: Pipeline::new(&pipeline, journal, in_place),
            kernel: loaded.kernel,
            reports,
            admission: Admission::new(limiter, limited, loaded.quarantined_holders),
            registry,
            workers,
            lifecycle,
            clock: settings.clock,
            reader: host.reader.clone(),
            host,
            queued: settings.queued,
            awake: settings.awake,
            loads: Loads::default(),
            unreadable: Unreadable::default(),
            unstarted: Unstarted::default(),
            outputs: Outputs::default(),
            judging: FxHashMap::default(),
            actors: FxHashMap::default(),
            dispatch: Dispatch::default(),
            tickets: FxHashMap::default(),
            next_ticket: 0,
            calls: 0,
            watchers: FxHashMap::default(),
            stacks: loaded.stacks,
            stack_reads: Stacks::default(),
            quarantine,
            discharging: BTreeSet::new(),
            finished: FinishedReads::default(),
            status: EngineStatus::new(failure),
            panics,
        }
    }

    // From an event to the journal.

    fn decide(&mut self, event: Event, ctx: &mut Context<Self>) {
        if self.status.decides() {
            let decision = self.kernel.decide(self.clock.now(), event);
            self.commit(decision, ctx);
        }
    }

    fn commit(&mut self, decision: Decision, ctx: &mut Context<Self>) {
        for effect in decision.planned() {
            if let Effect::Ask(id) = effect {
                self.admission.asks(*id);
            }
        }
        if decision.is_commit() {
            self.commit_records(decision, ctx);
        } else {
            self.commit_nothing(decision, ctx);
        }
    }

    fn commit_records(&mut self, decision: Decision, ctx: &mut Context<Self>) {
        // Metrics need the old rows, so all of this comes before the fold.
        let (seq, observations) = (self.kernel.seq().next(), self.pipeline.observations());
        self.metrics
            .observe(&self.kernel, &*self.clock, decision.records(), observations);
        let look = self.lifecycle.take_look(&*self.clock, self.kernel.is_draining());
        let encoded = self.pipeline.record(&decision, look, seq);
        let due = decision.durable().filter_map(due_of).min();
        self.unstarted.note(decision.records());
        self.outputs.note(decision.records());
        self.stack_reads.note(decision.records());
        self.kernel.fold(decision, self.pipeline.open_commit());
        self.metrics.decided();
        self.lifecycle.note_due(due, &self.kernel);
        match encoded {
            Ok(()) => self.flush_soon(ctx),
            Err(error) => {
                self.fail(FailureCause::Failed(error.to_string()));
            }
        }
    }

    /// A decision without records still waits for the newest commit it rests on.
    fn commit_nothing(&mut self, decision: Decision, ctx: &mut Context<Self>) {
        let mut commit = Commit::new();
        self.metrics.late(&self.kernel, decision.records());
        self.kernel.fold(decision, &mut commit);
        if let Some((commit, receipt)) = self.pipeline.hold(commit) {
            self.release(commit, &receipt, ctx);
        }
    }

    // From a batch to the journal.

    /// Hands over what was decided: at once, unless it may be for the supervisor to commit. Whether it is shows behind
    /// the messages that wait in the mailbox now.
    fn flush_soon(&mut self, ctx: &mut Context<Self>) {
        let here = self.pipeline.may_commit_here(self.actors.len());
        if here && ctx.address().try_send(FlushTime).is_ok() {
            return;
        }
        self.flush();
    }

    fn flush(&mut self) {
        let metrics = &mut self.metrics;
        let flushed = self.pipeline.flush(&*self.clock, |batch| metrics.appended(batch));
        if flushed.is_err() {
            self.journal_gone();
        }
    }

    fn journal_gone(&mut self) {
        self.fail(FailureCause::Failed("the journal's thread has ended".to_owned()));
    }

    // From the receipt to the effects.

    fn appended(&mut self, Appended(result): Appended, ctx: &mut Context<Self>) {
        match result {
            Ok(receipt) => self.proved(&receipt, ctx),
            Err(error) => {
                self.fail(FailureCause::of(&error));
            }
        }
    }

    fn proved(&mut self, receipt: &Receipt, ctx: &mut Context<Self>) {
        let Some(mut waiting) = self.pipeline.proved(receipt) else {
            return;
        };
        self.metrics.durable(receipt.seq());
        // Commit, then publish, then reply.
        self.count(&mut waiting);
        self.call_hooks(ctx);
        self.pipeline.publish(&waiting, &self.kernel, receipt.seq());
        let Waiting { commits, reads, .. } = waiting;
        self.dispatch.begin();
        for commit in commits {
            self.release(commit, receipt, ctx);
        }
        self.dispatch.end();
        for read in reads {
            // A reader that has gone needs nothing.
            read.send(()).ok();
        }
        self.flush();
        let waiting = self.kernel.seq().0.saturating_sub(receipt.seq().0);
        self.metrics.telemetry().commits_waiting.set(waiting as f64);
        self.wake_more(ctx);
        self.look_at_drain(ctx);
    }

    /// Counts what a batch held, now that it is on disk.
    fn count(&mut self, waiting: &mut Waiting) {
        let now = self.clock.now();
        let batch = BatchUse {
            commits: waiting.commits.iter().map(Commit::decisions).sum(),
            writes: waiting.writes,
            took: now.since(waiting.appended),
        };
        self.metrics.committed(batch, std::mem::take(&mut waiting.observations));
        self.metrics.show_mailboxes_soon(now);
    }

    /// Sends the next batch of metric hooks to a worker, unless one is out.
    fn call_hooks(&mut self, ctx: &mut Context<Self>) {
        if self.metrics.may_call_hooks()
            && let Some((worker, ..)) = self.workers.next()
        {
            let done = ctx.address().recipient();
            self.metrics.call_hooks(worker, &self.registry, done);
        }
    }

    fn release(&mut self, commit: Commit, receipt: &Receipt, ctx: &mut Context<Self>) {
        match commit.release(receipt) {
            Ok(effects) => {
                for effect in effects {
                    self.act(effect, ctx);
                }
            }
            Err(commit) => {
                let text = format!(
                    "the store gave a receipt for {} where {} was due",
                    receipt.seq(),
                    commit.seq()
                );
                self.fail(FailureCause::Failed(text));
            }
        }
    }

    /// Does one thing while everybody else waits, and notes how long it took. A turn within a turn counts as part
    /// of it.
    fn turn<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let begun = machine_now();
        let done = work(self);
        self.metrics.turn_ended(begun.elapsed());
        done
    }

    fn ticket(&mut self) -> (Ticket, oneshot::Receiver<Answered>) {
        let (sender, receiver) = oneshot::channel();
        let ticket = self.new_ticket();
        match self.status.cause() {
            // Nothing is decided any more, so nothing would ever answer it.
            Some(why) => drop(sender.send(Err(why.clone()))),
            None => drop(self.tickets.insert(ticket, sender)),
        }
        (ticket, receiver)
    }

    fn new_ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        if self.lifecycle.has_timer() || self.status.has_failed() {
            // Started once more, after a panic.
            return;
        }
        let (clock, me) = (Arc::clone(&self.clock), ctx.address().recipient());
        self.lifecycle.start_timer(clock, me);
        if let Some(time) = self.workers.look_every() {
            blocked::look_every(time, ctx.address().downgrade().recipient());
        }
    }
}

impl Handler<Appended> for Supervisor {
    type Result = ();

    fn handle(&mut self, appended: Appended, ctx: &mut Self::Context) {
        self.metrics.taken();
        self.turn(|supervisor| supervisor.appended(appended, ctx));
    }
}

// Requests: a message becomes an event.

// Questions: answered from what is on disk.

// Dispatch: calls of user code.

// Admission: claims, and the limiter's answers.

// Health: checks and verdicts.

// Metrics: what is counted.

// Lifecycle: start, timers, retention, drain, failure.

impl Supervisor {
    /// Returns the calls of the hooks of recovery at this moment. They are user code, so they run on the workers.
    fn call_recovery_hooks(&mut self, moment: Moment) -> impl Future<Output = Result<Failed, StoreError>> + use<> {
        let wanted = recovery_hooks::wanted(&self.kernel, &self.registry);
        let mut worker = || self.workers.next().map(|(worker, ..)| worker.clone());
        let calls = wanted.into_iter().map(|hooked| (hooked, worker())).collect();
        recovery_hooks::call_all(calls, moment, self.reader.clone(), Arc::clone(&self.registry))
    }

    /// Restores what the limiter held, then calls the second hooks. Returns what these say, and the procedures that
    /// wait for permits or locks.
    fn restore_claims(
        &mut self,
        failed: Result<Failed, StoreError>,
    ) -> impl Future<Output = Result<(Failed, Vec<ProcedureId>), StoreError>> + use<> {
        // Before the families whose first hook failed are quarantined: they keep what they hold.
        let claimants = self.lifecycle.take_claimants();
        let waiting = self.turn(|supervisor| supervisor.admission.restore(&supervisor.kernel, &claimants));
        let after = failed.map(|failed| {
            self.quarantine_at_start(failed);
            self.call_recovery_hooks(Moment::After)
        });
        async move { Ok((after?.await?, waiting)) }
    }

    /// Quarantines families whose hooks failed. The start's own commit sets all others going.
    fn quarantine_at_start(&mut self, failed: Failed) {
        for (family, why) in failed {
            // Once for each family, however many of its hooks failed.
            if self.lifecycle.quarantined_at_start(&self.kernel, family, &why) {
                self.enter_quarantine(family, why);
            }
        }
    }

    /// Opens the engine, unless the store did not answer: that says nothing about the families, so the start fails
    /// instead.
    fn open_restored(
        &mut self,
        restored: Result<(Failed, Vec<ProcedureId>), StoreError>,
        ctx: &mut Context<Self>,
    ) -> ResponseActFuture<Self, Result<(), StartError>> {
        match restored {
            Ok((failed, waiting)) => {
                self.quarantine_at_start(failed);
                Box::pin(self.turn(|supervisor| supervisor.open(waiting, ctx)))
            }
            Err(error) => Box::pin(fut::err(StartError::Store(error))),
        }
    }

    /// Decides the start's own commit, and lets what waits for permits queue up behind it.
    fn open(
        &mut self,
        waiting: Vec<ProcedureId>,
        ctx: &mut Context<Self>,
    ) -> impl ActorFuture<Self, Output = Result<(), StartError>> + use<> {
        self.queue_again(waiting, ctx);
        self.decide(Event::Recovered, ctx);
        self.loads.expect(self.kernel.going());
        // After the decision: the start's own commit is not counted.
        self.metrics.restart_totals();
        // The reply rests on the start's commit as every other reply does.
        let (committed, failure) = (self.pipeline.barrier(), self.status.failure());
        let wait = async move {
            match committed {
                Some(committed) => committed.await.map_err(|_| failure.unstarted()),
                None if failure.cause().is_some() => Err(failure.unstarted()),
                None => Ok(()),
            }
        };
        wait.into_actor(self).map(|opened, supervisor, ctx| {
            supervisor.arm();
            supervisor.begin_health_checks(ctx);
            opened
        })
    }

    fn arm(&self) {
        self.lifecycle.arm(&self.kernel);
    }

    fn time_came(&mut self, was_set_back: bool, ctx: &mut Context<Self>) {
        let now = self.clock.now();
        if was_set_back && self.status.decides() {
            tracing::warn!(%now, "the wall clock was set back: backoffs are cut to what their policies allow");
            self.decide(Event::ClockSetBack, ctx);
        }
        if let Some(due) = self.kernel.next_deadline().filter(|due| *due <= now) {
            self.metrics.telemetry().timer_lag.set(now.since(due));
        }
        let may_be_more = !self.has_credit() || self.serve_timers(ctx);
        self.lifecycle.timers_wait(may_be_more);
        // Before the timer is armed: while an eviction is under way no result arms it, or it would fire at once.
        self.evict(ctx);
        // If more are due than have their turn now, the timer is armed when there is credit again.
        if self.status.decides() && !may_be_more {
            self.arm();
        }
    }

    /// Serves timers that are due. Returns `true` if there may be more.
    fn serve_timers(&mut self, ctx: &mut Context<Self>) -> bool {
        for _ in 0..TIMERS_AT_ONCE {
            match self.kernel.due(self.clock.now()) {
                Some(id) if self.status.decides() => self.decide(Event::TimerDue(id), ctx),
                Some(_) | None => return false,
            }
        }
        self.lifecycle.woke_some(self.kernel.seq());
        true
    }

    /// Returns `true` if more may be woken in bulk.
    fn has_credit(&self) -> bool {
        let on_its_way = || self.loads.len() as u64 + self.metrics.calls_waiting() + self.reports.len() as u64;
        let is_backed_up = self.pipeline.is_backed_up();
        self.lifecycle
            .has_credit(self.pipeline.durable(), is_backed_up, on_its_way)
    }

    /// Goes on with what is woken in bulk, if there is credit: with timers, and a chunk of one broadcast.
    fn wake_more(&mut self, ctx: &mut Context<Self>) {
        if !self.status.decides() || !self.has_credit() {
            return;
        }
        if let Some(event) = self.lifecycle.wake_more(&self.kernel) {
            self.decide(event, ctx);
            self.lifecycle.woke_some(self.kernel.seq());
        }
    }

    /// Begins an eviction if a result is due and none is under way.
    fn evict(&mut self, ctx: &mut Context<Self>) {
        if !self.status.decides() {
            return;
        }
        let Some(until) = self.lifecycle.begin_eviction(&*self.clock) else {
            return;
        };
        let work = find_due(self.settled(), self.reader.clone(), until);
        ctx.spawn(
            work.into_actor(self)
                .map(move |found, supervisor, ctx| supervisor.evict_found(found, until, ctx)),
        );
    }

    fn evict_found(&mut self, found: FoundDue, until: Timestamp, ctx: &mut Context<Self>) {
        match self.lifecycle.end_eviction(found) {
            Eviction::Families(doomed) => {
                self.unreadable.succeeded(Subject::Due);
                self.decide_evictions(doomed, until, ctx);
                self.arm();
            }
            Eviction::ReadAgain(why) => self.read_again(Unread::Due, &why, ctx),
            Eviction::Nothing => {}
        }
    }

    /// Decides as of the time up to which results go: by that time a key of theirs stays or goes, too.
    fn decide_evictions(&mut self, doomed: Vec<Doomed>, until: Timestamp, ctx: &mut Context<Self>) {
        // Before the decision: requests that are still reading these rows must read them again.
        for doomed in &doomed {
            self.finished.overtake(doomed.family);
        }
        // A drain may have made its last decision while the results were read: nothing is evicted after that.
        if !doomed.is_empty() && self.status.decides() {
            let decision = self.kernel.decide(until, Event::EvictionDue(doomed));
            self.commit(decision, ctx);
        }
    }

    /// Looks once more at the results that are due: the store could not be read.
    fn evict_again(&mut self, ctx: &mut Context<Self>) {
        self.lifecycle.look_again(self.clock.now());
        self.evict(ctx);
    }

    fn begin_drain(
        &mut self,
        deadline: Duration,
        waiter: Option<oneshot::Sender<DrainReport>>,
        ctx: &mut Context<Self>,
    ) {
        if self.status.has_failed() {
            // The decision that began the drain has failed, and so has the engine. A caller that waits finds the cause
            // in its `Failure`.
            return;
        }
        self.lifecycle.begin_drain(&self.kernel, waiter);
        let late = self.clock.sleep_until(self.clock.now().after(deadline));
        ctx.spawn(
            late.into_actor(self)
                .map(|(), supervisor, ctx| supervisor.end_drain(ctx)),
        );
        self.look_at_drain(ctx);
    }

    /// Ends the drain once nothing runs any more and no call of a metric hook is left.
    fn look_at_drain(&mut self, ctx: &mut Context<Self>) {
        let is_over = self.lifecycle.is_drained(&self.kernel)
            && self.status.decides()
            && self.metrics.hooks_are_over(self.pipeline.is_quiet());
        if is_over {
            self.end_drain(ctx);
        }
    }

    fn end_drain(&mut self, ctx: &mut Context<Self>) {
        // The deadline and the end of the last stage may both come: the first of them ends the drain.
        if !self.status.decides() {
            return;
        }
        let Some(report) = self.lifecycle.drain_report(&self.kernel) else {
            return;
        };
        // However many requests wait: a drain is never turned away.
        let (ticket, ended) = self.ticket();
        self.decide(Event::DrainEnded(ticket), ctx);
        // The drain's decision is the last. The store goes back as soon as it is on disk, so a commit behind it, such
        // as an eviction, would reach a store that is closed or belongs to another engine.
        self.status.last_decision_made();
        let committed = async move { matches!(ended.await, Ok(Ok(_))) };
        ctx.spawn(committed.into_actor(self).map(move |committed, supervisor, ctx| {
            // If it failed, the callers that wait were told with all others.
            if committed {
                supervisor.release_store(report, ctx);
            }
        }));
    }

    fn release_store(&mut self, report: DrainReport, ctx: &mut Context<Self>) {
        let released = self.pipeline.release();
        ctx.spawn(
            released
                .into_actor(self)
                .map(move |_, supervisor, ctx| supervisor.store_released(report, ctx)),
        );
    }

    fn store_released(&mut self, report: DrainReport, ctx: &mut Context<Self>) {
        self.stop(ctx);
        // Only now that the store is closed: callers that wait for the drain may open it again.
        self.lifecycle.drained(report);
        // Last, and not before the answers have left: the receivers of some wait on these threads.
        self.workers.stop();
        actix_rt::spawn(self.lifecycle.end_threads());
    }

    /// Ends the actor. Callers that still wait are answered when their channels are dropped with it.
    fn stop(&mut self, ctx: &mut Context<Self>) {
        self.status.stop();
        self.actors.clear();
        self.lifecycle.stop();
        ctx.stop();
    }

    /// Quarantines a family that cannot run. All others go on, also those that waited while it was suspected.
    fn quarantine_family(&mut self, family: u64, why: String, ctx: &mut Context<Self>) {
        self.enter_quarantine(family, why);
        self.decide(Event::FamilyForgotten, ctx);
    }

    /// Quarantines a family. The caller must resume whatever this unblocks.
    fn enter_quarantine(&mut self, family: u64, why: String) {
        tracing::warn!(family, why, "the family is quarantined");
        // Counted behind everything decided before, or the gauges would fall before they rose.
        let mut gone = self.metrics.quarantine(&self.kernel, family);
        match self.pipeline.last_observations() {
            Some(last) => last.append(&mut gone),
            None => self.metrics.count(gone),
        }
        // Before the kernel forgets the rows, which say what the family keeps.
        self.admission.withdraw_family(&self.kernel, family);
        self.kernel.forget(family);
        self.actors.retain(|id, _| id.family != family);
        self.unstarted.forget(family);
        self.outputs.forget(family);
        self.stack_reads.forget(family);
        // Before the next receipt: releases that it sets free find the family here, and leave it what it holds.
        self.quarantine.insert(family, why);
        let now = self.clock.now();
        self.health
            .note(Rule::Quarantined, Some(ProcedureId::root(family)), now);
        self.metrics.show_quarantined(self.quarantine.len());
    }

    /// Fails the engine: it takes no more commits, and tells all callers that wait for one.
    fn fail(&mut self, cause: FailureCause) {
        if let Some(cause) = self.status.fail(cause) {
            let why = cause.to_string();
            tracing::error!(why, "the engine takes no more commits");
            self.metrics.telemetry().poisoned.set(1.0);
            self.health.note(Rule::StoreFailed, None, self.clock.now());
        }
        // Also at a later cause: nothing may be left that waits for a commit.
        self.drop_waiting();
    }

    /// Drops all that waits for a commit: nothing decided from the failed commit on is ever told to anyone.
    fn drop_waiting(&mut self) {
        // Callers that wait for an outcome, or for the end of a drain, find the cause in the `Failure` that they hold,
        // so the status is set before their channels are dropped.
        self.pipeline.clear();
        self.watchers.clear();
        self.lifecycle.abandon_drain();
        if let Some(cause) = self.status.cause() {
            for (_, ticket) in self.tickets.drain() {
                ticket.send(Err(cause.clone())).ok();
            }
        }
        self.actors.clear();
        self.loads.clear();
        self.unreadable.clear();
        self.stack_reads.clear();
        self.lifecycle.disarm();
    }
}

impl Handler<Open> for Supervisor {
    type Result = ResponseActFuture<Self, Result<(), StartError>>;

    /// Hooks, restored claims, hooks again, the start's own commit: in this order.
    fn handle(&mut self, _: Open, _: &mut Self::Context) -> Self::Result {
        let begun = self.clock.now();
        self.metrics
            .recovered(&self.lifecycle.take_unfinished(), self.quarantine.len());
        let before = self.call_recovery_hooks(Moment::Before).into_actor(self);
        let restored = before.then(|failed, supervisor, _| supervisor.restore_claims(failed).into_actor(supervisor));
        let opened = restored.then(|restored, supervisor, ctx| supervisor.open_restored(restored, ctx));
        Box::pin(opened.map(move |opened, supervisor, _| {
            if opened.is_ok() {
                let took = supervisor.lifecycle.started(supervisor.clock.now().since(begun));
                supervisor.metrics.telemetry().recovery_seconds.set(took);
            }
            opened
        }))
    }
}

impl Handler<TimeCame> for Supervisor {
    type Result = ();

    fn handle(&mut self, TimeCame { was_set_back }: TimeCame, ctx: &mut Self::Context) {
        self.turn(|supervisor| supervisor.time_came(was_set_back, ctx));
    }
}

impl Handler<Drain> for Supervisor {
    type Result = ResponseFuture<Result<DrainReport, AskError>>;

    fn handle(&mut self, Drain { deadline }: Drain, ctx: &mut Self::Context) -> Self::Result {
        if let Some(refusal) = self.status.refusal() {
            return Box::pin(async move { Err(refusal) });
        }
        let (sender, receiver) = oneshot::channel();
        if let Err(sender) = self.lifecycle.join_drain(sender) {
            self.decide(Event::DrainBegan, ctx);
            self.begin_drain(deadline, Some(sender), ctx);
        }
        let failure = self.status.failure();
        Box::pin(async move { receiver.await.map_err(|_| failure.unanswered()) })
    }
}

impl Handler<DrainBy> for Supervisor {
    type Result = ResponseFuture<Result<Operated, AskError>>;

    fn handle(&mut self, DrainBy { deadline, by }: DrainBy, ctx: &mut Self::Context) -> Self::Result {
        let operated = self.operate(Verb::Drain(deadline), by, ctx);
        // It was decided at once: a dry run or a refusal has left all as it was.
        if self.kernel.is_draining() && !self.lifecycle.is_draining() {
            self.begin_drain(deadline, None, ctx);
        }
        operated
    }
}

impl Handler<StopHere> for Supervisor {
    type Result = ();

    /// A stage that waits for something of its own goes on to its end, and nobody hears its report.
    fn handle(&mut self, _: StopHere, ctx: &mut Self::Context) {
        self.stop(ctx);
    }
}

impl Handler<Broken> for Supervisor {
    type Result = ();

    fn handle(&mut self, Broken(why): Broken, _: &mut Self::Context) {
        self.fail(FailureCause::Failed(why));
    }
}

impl Supervised for Supervisor {
    /// What it knows may be half of a change, so nothing may be decided on it any more. Its futures are gone, and with
    /// them the turns of the limiter's answers and the next health check.
    fn restarting(&mut self, ctx: &mut Self::Context) {
        let why = self.panics.take("the supervisor");
        let is_first = !self.status.has_failed();
        self.fail(FailureCause::Failed(why));
        self.admission.forget_answers();
        if is_first {
            self.begin_health_checks(ctx);
        }
    }
}
