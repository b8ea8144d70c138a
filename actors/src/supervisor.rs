//! `Supervisor`: the one that holds the kernel. A message becomes an event, the
//! event a decision, the decision part of the next commit; what follows from it
//! leaves only with the receipt. It runs no user code, and never holds anybody up.

pub(crate) mod admission;
pub(crate) mod asks;
mod blocked;
mod credit;
mod dispatch;
pub(crate) mod drain;
mod effects;
mod exports;
pub(crate) mod failure;
mod finished;
mod handlers;
pub(crate) mod health;
pub(crate) mod kept;
mod loads;
pub(crate) mod metrics;
pub(crate) mod opening;
mod operate;
mod orphaned_calls;
mod outputs;
pub(crate) mod pipeline;
mod quarantine;
pub(crate) mod recovery;
mod recovery_hooks;
mod reports;
mod retention;
#[cfg(feature = "testkit")]
pub(crate) mod reveal;
mod stacks;
mod status;
mod submits;
mod timer;
mod unread;
mod unstarted;
pub(crate) mod wall;
pub(crate) mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures::FutureExt;
use procession_kernel::{
    Answer, Commit, Decision, Effect, Event, HistoryEntry, Kernel, Lack, LimitKey, ProcedureId, Receipt, Record,
    Ticket, Timestamp,
};
use rustc_hash::{FxHashMap, FxHashSet};
use tokio::sync::oneshot;

use self::metrics::Metrics;
use self::metrics::hook_queue::HooksRan;
use self::metrics::mailboxes::MailboxGauges;
use crate::actor_loop::LastPanic;
use crate::clock::{Clock, machine_now};
use crate::context::Host;
use crate::engine::Settings;
use crate::error::AskError;
use crate::journal::{Appended, Journal, Reader};
use crate::limiter::{Limiter, Waiters};
use crate::mail::{Counted, Gathering, Ordered};
use crate::messages;
use crate::procedure_actor::Reported;
use crate::registry::Registry;
use crate::telemetry::Telemetry;
use crate::threads::Threads;
use crate::view::{BatchUse, Explanation, Outcome, Recovered, Rule, Verdict};
use admission::Admission;
use blocked::Actors;
use credit::Bulk;
use dispatch::Dispatch;
use failure::{Broken, Failure, FailureCause};
use finished::FinishedReads;
use handlers::FlushTime;
use health::check::{self, Check, Next, Repairs, Requester, still_uncalled};
use health::diagnosis_input::Queues;
use health::queue_reading::{PageRead, QueueReading, Reason};
use health::{EngineState, Findings, Health, HealthCheckDue, actor_lost, explain};
use loads::Loads;
use orphaned_calls::OrphanedCalls;
use outputs::Outputs;
use pipeline::in_place::InPlace;
use pipeline::{Pipeline, PipelineSettings, Waiting};
use quarantine::Quarantine;
use recovery::{Loaded, Survey};
use stacks::Stacks;
use status::EngineStatus;
use timer::Timer;
use unread::Unreadable;
use unstarted::Unstarted;
use wall::Wall;
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
    threads: Threads,
    clock: Arc<dyn Clock>,
    reader: Reader,
    queued: usize,
    awake: usize,
    timer: Option<Timer>,
    bulk: Bulk,
    /// What the start noted of all rows; spent when it opens.
    survey: Survey,
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
    report: Recovered,
    quarantine: Quarantine,
    /// Quarantined families whose discharge is being committed.
    discharging: BTreeSet<u64>,
    next_due: Option<Timestamp>,
    evicting: bool,
    wall: Wall,
    finished: FinishedReads,
    drain: Option<drain::Draining>,
    health: Health,
    orphaned_calls: OrphanedCalls,
    status: EngineStatus,
    panics: LastPanic,
}

impl Supervisor {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            loaded,
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
        let wall = Wall::new(loaded.last_look, loaded.kernel.rules());
        let pipeline = PipelineSettings {
            epoch: loaded.epoch,
            merge: settings.merge,
            in_flight,
            store: loaded.store,
        };
        Self {
            metrics: Metrics::new(&registry, telemetry, mailboxes),
            health: Health::new(settings.health_check_every, registry.measures(settings.thresholds)),
            orphaned_calls: OrphanedCalls::default(),
            pipeline: Pipeline::new(&pipeline, journal, in_place),
            kernel: loaded.kernel,
            reports,
            admission: Admission::new(limiter, limited, loaded.quarantined_holders),
            registry,
            workers,
            threads,
            clock: settings.clock,
            reader: host.reader.clone(),
            host,
            queued: settings.queued,
            awake: settings.awake,
            timer: None,
            bulk: Bulk::default(),
            survey: loaded.survey,
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
            quarantine: Quarantine::new(&loaded.report.quarantined),
            report: loaded.report,
            discharging: BTreeSet::new(),
            next_due: loaded.next_due,
            evicting: false,
            wall,
            finished: FinishedReads::default(),
            drain: None,
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
        let look = self.wall.take_look(&*self.clock, self.kernel.is_draining());
        let encoded = self.pipeline.record(&decision, look, seq);
        let due = decision.durable().filter_map(due_of).min();
        self.unstarted.note(decision.records());
        self.outputs.note(decision.records());
        self.stack_reads.note(decision.records());
        self.kernel.fold(decision, self.pipeline.open_commit());
        self.metrics.decided();
        self.note_due(due);
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

    /// The results' dues that a commit sets, so that eviction wakes in time.
    fn note_due(&mut self, due: Option<Timestamp>) {
        if let Some(due) = due
            && self.next_due.is_none_or(|next| due < next)
        {
            self.next_due = Some(due);
            self.arm();
        }
    }

    fn arm(&self) {
        if let Some(timer) = &self.timer {
            let next = self
                .kernel
                .next_deadline()
                .into_iter()
                .chain(
                    self.next_due
                        .filter(|_| !self.evicting)
                        .map(|due| self.wall.goes_at(due)),
                )
                .min();
            timer.arm(next);
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

    /// Does one thing while all others wait, and notes how long it took. A turn within a turn counts as part of it.
    /// The log names a long one by its place in the code.
    #[track_caller]
    fn turn<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        self.turn_of(Location::caller(), work)
    }

    /// Does the same, and has the log name a long turn so.
    fn turn_of<R>(&mut self, what: impl Display, work: impl FnOnce(&mut Self) -> R) -> R {
        let (begun, before) = (machine_now(), self.kernel.seq());
        let done = work(self);
        let decisions = self.kernel.seq().0.saturating_sub(before.0);
        self.metrics.turn_ended(what, begun.elapsed(), decisions);
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

/// Gives when something falls due that a record leaves behind.
fn due_of(record: &Record) -> Option<Timestamp> {
    if let Record::FamilyEnded(_, at) | Record::DueChanged(_, _, at) = record {
        Some(*at)
    } else if let Record::Evicted(doomed) = record {
        doomed.key_until
    } else {
        None
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        if self.timer.is_some() || self.status.has_failed() {
            // Started once more, after a panic.
            return;
        }
        self.timer = Some(Timer::start(Arc::clone(&self.clock), ctx.address().recipient()));
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

impl Handler<HealthCheckDue> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: HealthCheckDue, ctx: &mut Self::Context) {
        if !self.status.is_stopped() {
            self.turn(|supervisor| supervisor.check_health(Requester::Clock, ctx));
        }
    }
}

impl Handler<messages::Verdicts> for Supervisor {
    type Result = ResponseFuture<Result<Vec<Verdict>, AskError>>;

    /// Answered also when the journal has failed: that is a verdict, too.
    fn handle(&mut self, _: messages::Verdicts, ctx: &mut Self::Context) -> Self::Result {
        if self.status.is_stopped() {
            return Box::pin(async { Err(AskError::Stopped) });
        }
        let (sender, receiver) = oneshot::channel();
        self.check_health(Requester::Caller(sender), ctx);
        Box::pin(check::answer(receiver, self.status.failure()))
    }
}

impl Handler<messages::Explain> for Supervisor {
    type Result = ResponseFuture<Result<Explanation, AskError>>;

    fn handle(&mut self, messages::Explain(id): messages::Explain, ctx: &mut Self::Context) -> Self::Result {
        if let Some(refusal) = self.status.refusal() {
            return Box::pin(async move { Err(refusal) });
        }
        let (sender, receiver) = oneshot::channel();
        let reading = QueueReading::to_explain(id, sender, &self.kernel, self.admission.tickets());
        self.read_queues(reading, ctx);
        Box::pin(explain::answer(id, receiver, self.kept()))
    }
}

impl Supervisor {
    /// Returns what the health wing reads.
    fn engine_state(&self) -> EngineState<'_> {
        EngineState {
            kernel: &self.kernel,
            tickets: self.admission.tickets(),
            actors: &self.actors,
            quarantined: self.quarantine.families(),
            telemetry: self.metrics.telemetry(),
            now: self.clock.now(),
            durable: self.pipeline.durable(),
            failed: self.status.cause(),
            pending_reads: self.loads.len(),
        }
    }

    /// Begins the health checks on the engine's clock.
    fn begin_health_checks(&mut self, ctx: &mut Context<Self>) {
        self.health.begin(self.clock.now(), self.quarantine.families().keys());
        self.measure_disk(ctx);
        self.check_later(Duration::ZERO, ctx);
    }

    fn check_later(&self, took: Duration, ctx: &mut Context<Self>) {
        let me = ctx.address().downgrade().recipient();
        if let Some(next) = self.health.next_check(&*self.clock, took, me) {
            actix_rt::spawn(next);
        }
    }

    fn measure_disk(&mut self, ctx: &mut Context<Self>) {
        let Some(measured) = self.health.measure_disk(&self.reader) else {
            return;
        };
        ctx.spawn(measured.into_actor(self).map(|measured, supervisor, _| {
            supervisor.health.measured(&measured);
            supervisor.metrics.measured(&measured);
        }));
    }

    fn check_health(&mut self, requester: Requester, ctx: &mut Context<Self>) {
        self.measure_disk(ctx);
        let check = self.health.begin_check(requester, self.pipeline.durable());
        self.read_queues(QueueReading::for_check(check, self.admission.tickets()), ctx);
    }

    fn read_queues(&self, reading: QueueReading, ctx: &mut Context<Self>) {
        let page = self.admission.limiter().ask(reading.next_page());
        ctx.spawn(page.into_actor(self).map(move |page, supervisor, ctx| {
            // Without a limiter the queues are empty.
            let page = page.unwrap_or_default();
            supervisor.turn(|supervisor| {
                // In the limiter's turn, so that the kernel knows of every grant that was given before this page.
                supervisor.in_turn(page.turn, ctx, move |supervisor, ctx| {
                    supervisor.page_read(reading, page, ctx)
                });
            });
        }));
    }

    fn page_read(&mut self, reading: QueueReading, page: Waiters, ctx: &mut Context<Self>) {
        match reading.take(page, self.admission.tickets(), &self.kernel) {
            PageRead::More(reading) => self.read_queues(reading, ctx),
            PageRead::All(reason, queues, lack) => self.queues_read(reason, queues, lack, ctx),
        }
    }

    fn queues_read(&mut self, reason: Reason, queues: Queues, lack: Option<Lack>, ctx: &mut Context<Self>) {
        match reason {
            Reason::Check(check) => {
                // An engine that commits nothing may have thawed families all the same.
                self.kernel.cool();
                let next = self.health.start_check(check, queues, &self.engine_state());
                self.continue_check(next, ctx);
            }
            Reason::Recheck(check) => {
                let next = self.health.look_again(check, queues, &self.engine_state());
                self.continue_check(next, ctx);
            }
            Reason::Explain(id, sender) => {
                let explanation = self.health.explain(id, &queues, lack.as_ref(), &self.engine_state());
                // It rests on everything decided so far, and is told once that is on disk. The caller may have gone.
                sender.send((explanation, Box::pin(self.settled()))).ok();
            }
        }
    }

    /// Takes the next step of a check.
    fn continue_check(&mut self, next: Next, ctx: &mut Context<Self>) {
        match next {
            Next::Yield(check) => {
                let others = tokio::task::yield_now();
                ctx.spawn(others.into_actor(self).map(move |(), supervisor, ctx| {
                    supervisor.turn(|supervisor| {
                        let next = supervisor.health.proceed(check, &supervisor.engine_state());
                        supervisor.continue_check(next, ctx);
                    });
                }));
            }
            Next::Search(check, graph) => {
                let work = actix_rt::task::spawn_blocking(move || graph.deadlocks());
                ctx.spawn(work.into_actor(self).map(move |found, supervisor, ctx| {
                    supervisor.turn(|supervisor| {
                        // A search that panicked has found no deadlock.
                        let (found, state) = (found.unwrap_or_default(), supervisor.engine_state());
                        let next = supervisor.health.found_deadlocks(check, found, &state);
                        supervisor.continue_check(next, ctx);
                    });
                }));
            }
            Next::AskAgain(check) => {
                self.read_queues(QueueReading::for_recheck(check, self.admission.tickets()), ctx);
            }
            Next::Repair(check, repairs) => self.end_check(check, repairs, ctx),
        }
    }

    /// Repairs what was lost, and tells the verdicts.
    fn end_check(&mut self, mut check: Box<Check>, repairs: Repairs, ctx: &mut Context<Self>) {
        let begun = machine_now();
        let repaired = self.repair(repairs, ctx);
        self.metrics.lost_wakes(&self.kernel, &repaired);
        let (now, is_serving) = (self.clock.now(), !self.status.has_failed());
        self.health.look_for_unserved(&mut check, now, is_serving);
        let lost = self.orphaned_calls.lost(&self.kernel);
        self.wall.look(&*self.clock);
        let findings = Findings {
            actors_lost: lost.map(|(id, lost)| actor_lost(id, lost)).collect(),
            repaired: &repaired,
            workers: self.workers.statuses(&|id| self.called(id)),
            appending_since: self.pipeline.appending_since(),
            unreadable: self.unreadable.trouble(),
            clock_ahead: self.wall.ahead(),
        };
        self.health.conclude(&mut check, findings, &self.engine_state());
        let report = self.health.finish(check);
        let waiters = report.waiters;
        self.metrics
            .checked(&report.verdicts, waiters.locks, waiters.oldest, now);
        match report.requester {
            Requester::Clock => self.check_later(report.took + begun.elapsed(), ctx),
            Requester::Caller(sender) => {
                // What was repaired is told once it is on disk. The caller may have gone.
                let settled = (!repaired.is_empty()).then(|| self.settled().boxed_local());
                sender.send((report.verdicts, settled)).ok();
            }
        }
    }

    /// Sets going again what was lost; returns each procedure, with what it had waited for.
    fn repair(&mut self, mut repairs: Repairs, ctx: &mut Context<Self>) -> Vec<(ProcedureId, String)> {
        if !self.status.decides() {
            return Vec::new();
        }
        self.look_for_lost(std::mem::take(&mut repairs.gone), ctx);
        if self.kernel.is_draining() {
            return Vec::new();
        }
        self.arm();
        let mut repaired = if repairs.needs_wakes(&self.kernel) {
            self.wake_lost(repairs.unknown, ctx)
        } else {
            Vec::new()
        };
        let uncalled = still_uncalled(repairs.uncalled, &self.engine_state(), || self.pending_calls());
        repaired.extend(self.call_uncalled(uncalled, ctx));
        repaired
    }

    /// Wakes procedures that nothing would have woken; returns each, with what it waited for.
    fn wake_lost(&mut self, unknown: Vec<ProcedureId>, ctx: &mut Context<Self>) -> Vec<(ProcedureId, String)> {
        let event = Event::HealthCheckDue {
            granted: Vec::new(),
            unknown,
        };
        let decision = self.kernel.decide(self.clock.now(), event);
        let found = check::woken(&self.kernel, &decision);
        if !found.is_empty() {
            self.commit(decision, ctx);
        }
        found
    }

    /// Returns the procedures whose calls wait for a read or for a worker.
    fn pending_calls(&self) -> FxHashSet<ProcedureId> {
        let mut pending = self.loads.waiting();
        pending.extend(self.unreadable.calls());
        pending.extend(self.orphaned_calls.stranded());
        pending
    }

    /// Makes the calls that were never made; returns each, with what was lost.
    fn call_uncalled(&mut self, uncalled: Vec<ProcedureId>, ctx: &mut Context<Self>) -> Vec<(ProcedureId, String)> {
        for id in &uncalled {
            self.health.recalled();
            for call in self.kernel.calls_of(*id) {
                self.act(call, ctx);
            }
        }
        let lost = |id| (id, "the call of its stage".to_owned());
        uncalled.into_iter().map(lost).collect()
    }
}

// Metrics: what is counted.

impl Supervisor {
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
}

impl Handler<HooksRan> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: HooksRan, ctx: &mut Self::Context) {
        self.metrics.hooks_ran();
        self.call_hooks(ctx);
        self.look_at_drain(ctx);
    }
}

// Lifecycle: start, timers, retention, drain, failure.

impl Supervisor {
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
        self.drain = None;
        if let Some(cause) = self.status.cause() {
            for (_, ticket) in self.tickets.drain() {
                ticket.send(Err(cause.clone())).ok();
            }
        }
        self.actors.clear();
        self.loads.clear();
        self.unreadable.clear();
        self.stack_reads.clear();
        if let Some(timer) = &self.timer {
            timer.arm(None);
        }
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
