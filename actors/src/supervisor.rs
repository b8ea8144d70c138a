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
use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{
    Answer, Claim, Commit, Decision, Effect, Event, Grant, HistoryEntry, Kernel, LimitKey, Operated, ProcedureId,
    Receipt, Record, StageEnded, Ticket, Timestamp,
};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use self::metrics::Metrics;
use self::metrics::mailboxes::MailboxGauges;
use crate::actor_loop::LastPanic;
use crate::clock::{Clock, machine_now};
use crate::context::Host;
use crate::engine::Settings;
use crate::error::AskError;
use crate::journal::{Appended, Journal, Reader};
use crate::limiter::{Acquired, Limiter, Served};
use crate::mail::{Counted, Gathering, Ordered};
use crate::procedure_actor::Reported;
use crate::registry::Registry;
use crate::telemetry::Telemetry;
use crate::threads::Threads;
use crate::view::{BatchUse, Outcome, Recovered, Rule};
use admission::{Admission, PendingDemand, admit_report, bound_by};
use blocked::Actors;
use credit::Bulk;
use dispatch::Dispatch;
use failure::{Broken, Failure, FailureCause};
use finished::FinishedReads;
use handlers::FlushTime;
use health::Health;
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
            health: Health::new(settings.audit_every, registry.measures(settings.thresholds)),
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
                self.admission.will_request(*id);
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

/// Why an engine stops when its limiter no longer answers. A panic of the limiter is reported before, with its cause.
const LIMITER_GONE: &str = "the limiter has ended, which is a defect of the engine";

/// The answer to an operator's request that was a dry run.
type DryRun = Result<Operated, AskError>;

impl Handler<Served> for Supervisor {
    type Result = ();

    fn handle(&mut self, Served { turn, claims }: Served, ctx: &mut Self::Context) {
        self.metrics.taken();
        self.turn(|supervisor| supervisor.sequence(turn, ctx, |supervisor, ctx| supervisor.grant(claims, ctx)));
    }
}

impl Supervisor {
    /// Takes an answer of the limiter after all earlier ones. One answer may rest on another: the limiter grants a lock
    /// that a stage's report has just given up, and the report must be committed first.
    fn sequence(
        &mut self,
        turn: u64,
        ctx: &mut Context<Self>,
        take: impl FnOnce(&mut Self, &mut Context<Self>) + 'static,
    ) {
        // Turn 0 means that no limiter answered. A failed engine may have lost an earlier answer, and decides nothing.
        if turn == 0 || self.status.has_failed() {
            return take(self, ctx);
        }
        self.admission.enqueue(turn, Box::new(take));
        while let Some(take) = self.admission.next_answer() {
            take(self, ctx);
        }
    }

    /// Waits for the limiter's answer and takes it in its turn.
    fn await_limiter(
        &self,
        answer: impl Future<Output = Result<Acquired, MailboxError>> + 'static,
        ctx: &mut Context<Self>,
        take: impl FnOnce(&mut Self, Acquired, &mut Context<Self>) + 'static,
    ) {
        ctx.spawn(answer.into_actor(self).map(move |acquired, supervisor, ctx| {
            let Ok(acquired) = acquired else {
                return supervisor.limiter_gone();
            };
            let turn = acquired.turn;
            let take_if_open = move |supervisor: &mut Self, ctx: &mut Context<Self>| {
                if supervisor.status.decides() {
                    take(supervisor, acquired, ctx);
                }
            };
            supervisor.turn(|supervisor| supervisor.sequence(turn, ctx, take_if_open));
        }));
    }

    /// Fails the engine: a decision made without the limiter could give away what another procedure holds.
    fn limiter_gone(&mut self) {
        if !self.status.is_stopped() {
            self.fail(FailureCause::Failed(LIMITER_GONE.to_owned()));
        }
    }

    /// Commits a decision that rests on an answer of the limiter, then grants what the same answer served to others.
    fn commit_admitted(
        &mut self,
        decision: Decision,
        pending: PendingDemand,
        served: Vec<Claim>,
        ctx: &mut Context<Self>,
    ) {
        let bound = bound_by(&decision);
        self.commit(decision, ctx);
        // Before the grants: a procedure that this decision created may be among them.
        self.admission
            .settle(&self.kernel, self.quarantine.families(), pending, bound);
        self.grant(served, ctx);
    }

    /// Asks the limiter for what a stage's report needs: limits and locks of new procedures, and locks of the next
    /// stage. Returns the report if it needs nothing.
    fn admit_report(&mut self, mut report: Box<StageEnded>, ctx: &mut Context<Self>) -> Option<Box<StageEnded>> {
        let demand = self.admission.demand_of_report(&self.kernel, &mut report);
        if demand.is_empty() {
            return Some(report);
        }
        let (mut pending, answer) = self.admission.ask(demand, Some(report.id));
        self.await_limiter(answer, ctx, move |supervisor, acquired, ctx| {
            admit_report(&mut report, &mut pending, acquired.exchanged, acquired.answers);
            let now = supervisor.clock.now();
            let decision = supervisor.kernel.decide(now, Event::StageEnded(report));
            supervisor.commit_admitted(decision, pending, acquired.served, ctx);
            supervisor.look_at_drain(ctx);
        });
        None
    }

    /// Asks the limiter for all that a procedure lacks for its next stage; for an undo, for its locks alone.
    fn request_admission(&mut self, id: ProcedureId, ctx: &mut Context<Self>) {
        if let Some(answer) = self.admission.request(&self.kernel, self.quarantine.families(), id) {
            self.await_limiter(answer, ctx, Self::answered);
        }
    }

    /// Queues again for the procedures that waited for a permit or a lock before the start.
    fn rejoin_queues(&mut self, waiting: Vec<ProcedureId>, ctx: &mut Context<Self>) {
        let answer = self.admission.rejoin_queues(&self.kernel, waiting);
        self.await_limiter(answer, ctx, Self::answered);
    }

    fn answered(&mut self, Acquired { answers, served, .. }: Acquired, ctx: &mut Context<Self>) {
        let granted = answers.into_iter().filter(|answer| answer.grant == Grant::Granted);
        self.grant(granted.map(|answer| answer.claim), ctx);
        self.grant(served, ctx);
    }

    /// Decides grants of the limiter. Each is accepted only after the grants before it are decided: such a decision
    /// may have the next procedure ask again, which makes its grant stale.
    fn grant(&mut self, claims: impl IntoIterator<Item = Claim>, ctx: &mut Context<Self>) {
        for claim in claims {
            if let Some(id) = self.admission.accept(claim) {
                self.decide(Event::Granted(id), ctx);
            }
        }
    }

    /// Completes the plan of a dry run: the limiter makes the plan's changes on a copy and says who would be served.
    fn dry_run(
        &self,
        operated: impl Future<Output = DryRun> + 'static,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<DryRun> {
        let (sender, receiver) = oneshot::channel();
        let simulated = operated.into_actor(self).then(|operated, supervisor: &mut Self, _| {
            let plan = operated.as_ref().ok().and_then(|operated| operated.plan.as_deref());
            let answer = plan.and_then(|plan| supervisor.admission.simulate(plan));
            let both = async move {
                match answer {
                    Some(answer) => (operated, Some(answer.await)),
                    None => (operated, None),
                }
            };
            both.into_actor(supervisor)
        });
        ctx.spawn(simulated.map(|(mut operated, answer), supervisor, _| {
            let plan = operated.as_mut().ok().and_then(|operated| operated.plan.as_deref_mut());
            if let Some((plan, simulated)) = plan.zip(answer) {
                supervisor.admission.complete_plan(simulated, plan);
            }
            // The caller may have gone.
            sender.send(operated).ok();
        }));
        Box::pin(async move { receiver.await.map_err(|_| AskError::Stopped)? })
    }
}

// Health: checks and verdicts.

// Metrics: what is counted.

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
