//! `Supervisor`: the one that holds the kernel. A message becomes an event, the
//! event a decision, the decision part of the next commit; what follows from it
//! leaves only with the receipt. It runs no user code, and never holds anybody up.

pub(crate) mod admission;
mod credit;
pub(crate) mod dispatch;
pub(crate) mod drain;
mod exports;
pub(crate) mod failure;
mod finished;
mod handlers;
pub(crate) mod health;
mod holes;
pub(crate) mod metrics;
pub(crate) mod opening;
mod operate;
mod outcome_waiters;
pub(crate) mod pipeline;
mod quarantine;
pub(crate) mod recovery;
mod recovery_hooks;
mod retention;
#[cfg(feature = "testkit")]
pub(crate) mod reveal;
mod status;
mod submits;
mod timer;
pub(crate) mod wall;

use std::collections::BTreeSet;
use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{
    Answer, AuditEntry, Commit, Decision, Effect, Ended, Event, HistoryEntry, Kernel, LifecycleEffect, LimitKey,
    LimitUse, ProcedureId, Receipt, Record, RequestEffect, Row, StageEnded, Ticket, Timestamp,
};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use self::metrics::Metrics;
use self::metrics::mailboxes::MailboxGauges;
use crate::actor_loop::LastPanic;
use crate::clock::{Clock, machine_now};
use crate::context::Host;
use crate::engine::Settings;
use crate::error::{AskError, CodecError, StoreError};
use crate::export::{EXPORT_MAX, FamilyExport};
use crate::journal::encode::LastLook;
use crate::journal::{Appended, Journal, Reader};
use crate::limiter::{Limiter, LocksHeld, Usage};
use crate::mail::{Counted, Gathering, Notice, Ordered};
use crate::messages::{
    Archived, Audit, AwaitOutcome, Export, History, Limits, List, Locks, PollLatest, Query, ReadArchive, Subscribe,
    SubscribeLatest, TakeSnapshot, Tree,
};
use crate::procedure_actor::{Report, Reported};
use crate::read::CommittedReader;
use crate::read::pages::PAGE_MAX;
use crate::registry::Registry;
use crate::telemetry::Telemetry;
use crate::threads::Threads;
use crate::view::{ArchivedFamily, BatchUse, LockView, Outcome, Page, Recovered, Rule, Snapshot, Status};
use admission::Admission;
use admission::tickets::Tickets;
use credit::Bulk;
use dispatch::failed_reads::FailedRead;
use dispatch::revival::{GroupRead, ReadsDue};
use dispatch::rollback_stacks::StackRead;
use dispatch::workers::{WorkerCheckDue, Workers, check_workers_every};
use dispatch::{Dispatch, DispatchParts, EngineView, Revived};
use failure::{Broken, Failure, FailureCause};
use finished::FinishedReads;
use handlers::FlushTime;
use health::Health;
use health::diagnosis_input::{limit_views, lock_views};
use holes::Holes;
use outcome_waiters::OutcomeWaiters;
use pipeline::in_place::InPlace;
use pipeline::{Pipeline, PipelineSettings, SUBSCRIBERS, Waiting};
use quarantine::Quarantine;
use recovery::{Loaded, Survey};
use status::EngineStatus;
use timer::Timer;
use wall::Wall;

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
    dispatch: Dispatch,
    admission: Admission<Take>,
    registry: Arc<Registry>,
    threads: Threads,
    clock: Arc<dyn Clock>,
    reader: Reader,
    queued: usize,
    awake: usize,
    timer: Option<Timer>,
    bulk: Bulk,
    /// What the start noted of all rows; spent when it opens.
    survey: Survey,
    tickets: FxHashMap<Ticket, oneshot::Sender<Answered>>,
    next_ticket: u64,
    outcome_waiters: OutcomeWaiters,
    holes: Holes,
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
        let reader = host.reader.clone();
        let dispatch = DispatchParts {
            workers,
            registry: Arc::clone(&registry),
            host,
            reports,
            store_number: loaded.store.0,
            stacks: loaded.stacks,
        };
        let pipeline = PipelineSettings {
            epoch: loaded.epoch,
            merge: settings.merge,
            in_flight,
            store: loaded.store,
        };
        Self {
            metrics: Metrics::new(&registry, telemetry, mailboxes),
            health: Health::new(settings.audit_every, registry.measures(settings.thresholds)),
            pipeline: Pipeline::new(&pipeline, journal, in_place),
            dispatch: Dispatch::new(dispatch),
            kernel: loaded.kernel,
            admission: Admission::new(limiter, limited, loaded.quarantined_holders),
            registry,
            threads,
            clock: settings.clock,
            reader,
            queued: settings.queued,
            awake: settings.awake,
            timer: None,
            bulk: Bulk::default(),
            survey: loaded.survey,
            tickets: FxHashMap::default(),
            next_ticket: 0,
            outcome_waiters: OutcomeWaiters::new(settings.awake),
            holes: Holes::default(),
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
        // Before anything else: the next message may be an answer of the limiter, and the receipt is still far.
        self.admission.bind(decision.bindings());
        if decision.is_commit() {
            self.commit_records(decision, ctx);
        } else {
            self.commit_nothing(decision, ctx);
        }
    }

    fn commit_records(&mut self, decision: Decision, ctx: &mut Context<Self>) {
        let look = self.wall.take_look(&*self.clock, self.kernel.is_draining());
        let (encoded, due) = self.visit_records(&decision, look);
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

    /// Shows each record, once, to every wing that needs it. Must run before the fold: metrics compare new rows with
    /// the old ones. Returns whether all could be encoded, and when the first result falls due that the records set.
    fn visit_records(
        &mut self,
        decision: &Decision,
        look: Option<LastLook>,
    ) -> (Result<(), CodecError>, Option<Timestamp>) {
        let (mut recording, observations) = self.pipeline.begin(decision, self.kernel.seq().next());
        let mut observer = self.metrics.observer(&self.kernel, &*self.clock, observations);
        let mut notes = self.dispatch.begin_records(decision.records());
        let mut due: Option<Timestamp> = None;
        for record in decision.records() {
            observer.take(record);
            recording.take(record);
            notes.take(record);
            due = due.into_iter().chain(due_of(record)).min();
        }
        (recording.end(look), due)
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
        let here = self.pipeline.may_commit_here(self.dispatch.active());
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
        // One wake a worker for the calls of all these commits.
        self.dispatch.begin_batch();
        for commit in commits {
            self.release(commit, receipt, ctx);
        }
        self.dispatch.end_batch();
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
            && let Some(worker) = self.dispatch.next_worker()
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

    /// Does what a receipt releases.
    /// Acts on an effect that a receipt has released: one arm for each wing.
    fn act(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Dispatch(effect) => {
                if let Some(scope) = self.call(ctx, |dispatch, view| dispatch.act(view, effect)) {
                    self.load_stack(scope, ctx);
                }
            }
            Effect::Admission(effect) => {
                if let Some(id) = self.admission.act(effect, self.quarantine.families()) {
                    self.ask_for(id, ctx);
                }
            }
            Effect::Requests(effect) => self.act_on_request(effect),
            Effect::Lifecycle(LifecycleEffect::ArmTimer) => self.arm(),
        }
    }

    fn act_on_request(&mut self, effect: RequestEffect) {
        match effect {
            RequestEffect::Reply(ticket, answer) => self.answer(ticket, Ok(answer)),
            RequestEffect::Ended(ended) => self.ended(*ended),
            RequestEffect::Discharged(family) => self.discharged(family),
            RequestEffect::Operated(entry) => {
                tracing::info!(who = entry.who, why = entry.why, what = entry.verb, "an operator acted");
            }
        }
    }

    fn ended(&mut self, ended: Ended) {
        // A procedure that held something earlier, and nothing at its end, has its ticket still.
        self.admission.release(ended.id);
        self.dispatch.ended(ended.id);
        self.outcome_waiters.ended(ended);
    }

    fn answer(&mut self, ticket: Ticket, answer: Answered) {
        if let Some(sender) = self.tickets.remove(&ticket) {
            // The caller may have gone.
            sender.send(answer).ok();
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
        if let Some(time) = self.dispatch.check_workers_every() {
            check_workers_every(time, ctx.address().downgrade().recipient());
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

type Queried<T> = ResponseFuture<Result<T, AskError>>;

impl Supervisor {
    /// Returns the wait that every question begins with: until all that is decided now is on disk.
    fn settled(&mut self) -> impl Future<Output = Result<(), AskError>> + use<> {
        let refused = self.status.refusal();
        let barrier = if refused.is_none() {
            self.pipeline.barrier()
        } else {
            None
        };
        let failure = self.status.failure();
        async move {
            match (refused, barrier) {
                (Some(refused), _) => Err(refused),
                (None, Some(done)) => done.await.map_err(|_| failure.unanswered()),
                (None, None) => Ok(()),
            }
        }
    }

    /// Returns the reader of committed state, which knows what is quarantined now.
    fn committed(&self) -> CommittedReader {
        CommittedReader::new(self.reader.clone(), self.quarantine.shared())
    }

    /// Answers a question from the store. The barrier is taken now and the read begins after it, so the answer shows
    /// every commit decided before the question came.
    fn query<T: 'static, F>(&mut self, read: impl FnOnce(CommittedReader) -> F + 'static) -> Queried<T>
    where
        F: Future<Output = Result<T, AskError>> + 'static,
    {
        let (settled, committed) = (self.settled(), self.committed());
        Box::pin(async move {
            settled.await?;
            read(committed).await
        })
    }

    /// Returns locks or limits as the limiter named them. What the limiter granted and nobody has decided on is not shown:
    /// its earlier answers are decided first, and are on disk when this answer is given.
    fn shown<T: 'static, V: 'static, F: FnOnce(Vec<T>, &Tickets, &Kernel) -> Vec<V> + 'static>(
        &mut self,
        told: Result<(u64, Vec<T>), AskError>,
        views: F,
        ctx: &mut Context<Self>,
    ) -> impl Future<Output = Result<Vec<V>, AskError>> + use<T, V, F> {
        let (sender, receiver) = oneshot::channel();
        let failure = self.status.failure();
        match told {
            Ok((turn, told)) => self.in_turn(turn, ctx, |supervisor, _| {
                let views = views(told, supervisor.admission.tickets(), &supervisor.kernel);
                // The caller may have gone.
                sender.send(Ok((views, supervisor.settled()))).ok();
            }),
            Err(error) => drop(sender.send(Err(error))),
        }
        async move {
            let (views, settled) = receiver.await.map_err(|_| failure.unanswered())??;
            settled.await?;
            Ok(views)
        }
    }

    /// Answers a request for a subscription. Returns `true` if it is accepted; it is refused if as many subscribers
    /// and followers exist as may.
    fn admit_subscriber(&mut self) -> (bool, Queried<()>) {
        let settled = self.settled();
        let is_full = !self.pipeline.takes_subscribers();
        let answer = Box::pin(async move {
            settled.await?;
            if is_full {
                let text = format!("{SUBSCRIBERS} subscribers are the limit; end one first");
                return Err(AskError::NotNow(text));
            }
            Ok(())
        });
        (self.status.refusal().is_none() && !is_full, answer)
    }

    /// Collects the figures of all wings at this moment.
    fn snapshot(&mut self) -> Snapshot {
        let figures = self.metrics.figures();
        let quarantined = self.quarantine.families().iter();
        Snapshot {
            epoch: self.kernel.epoch(),
            decided: self.kernel.seq(),
            durable: self.pipeline.durable(),
            commits: figures.commits,
            batches: figures.batches,
            appended_writes: figures.writes,
            appended_bytes: figures.bytes,
            live_families: self.kernel.families().len() + self.quarantine.len(),
            going: self.kernel.going(),
            actors: self.dispatch.active(),
            workers: self.dispatch.current_worker_statuses(&self.kernel, machine_now()),
            late: self.kernel.late(),
            lost_wakes: self.health.lost_wakes(&self.kernel),
            poisoned: self.status.cause().map(ToString::to_string),
            draining: self.kernel.is_draining(),
            recovered: self.report.clone(),
            quarantined: quarantined.map(|(family, why)| (*family, why.clone())).collect(),
            size_bytes: self.reader.size_bytes(),
            disk_room: self.health.disk_room(),
            commit_p99: figures.commit_p99,
            sync_times: self.reader.sync_times(),
            paused: self.kernel.pauses().iter().cloned().collect(),
            last_batch: figures.last_batch,
            longest_turn: figures.longest_turn,
            kinds: self.metrics.telemetry().uses(&self.kernel.rules().kinds),
        }
    }
}

impl Handler<Query> for Supervisor {
    type Result = Queried<Status>;

    fn handle(&mut self, Query(id): Query, _: &mut Self::Context) -> Self::Result {
        self.query(move |committed| async move { committed.status(id).await?.ok_or(AskError::Unknown(id)) })
    }
}

impl Handler<Tree> for Supervisor {
    type Result = Queried<Vec<Status>>;

    fn handle(&mut self, Tree(id): Tree, _: &mut Self::Context) -> Self::Result {
        self.query(move |committed| async move {
            let family = committed.family(id.family, 0, usize::MAX).await?;
            if family.is_empty() {
                Err(AskError::Unknown(id))
            } else {
                Ok(family)
            }
        })
    }
}

impl Handler<History> for Supervisor {
    type Result = Queried<Vec<HistoryEntry>>;

    fn handle(&mut self, History(id): History, _: &mut Self::Context) -> Self::Result {
        self.query(move |committed| async move {
            let root = committed.row(ProcedureId::root(id.family)).await?;
            root.ok_or(AskError::Unknown(id))?;
            committed.history(id.family, usize::MAX).await
        })
    }
}

impl Handler<List> for Supervisor {
    type Result = Queried<Page>;

    fn handle(&mut self, list: List, _: &mut Self::Context) -> Self::Result {
        let List { filter, cursor, limit } = list;
        self.query(move |committed| async move { committed.list(filter, cursor, limit).await })
    }
}

impl Handler<AwaitOutcome> for Supervisor {
    type Result = Queried<Outcome>;

    fn handle(&mut self, AwaitOutcome(id): AwaitOutcome, _: &mut Self::Context) -> Self::Result {
        let has_ended = self.kernel.row(id).is_none_or(Row::is_ended) && !self.quarantine.contains(id.family);
        if has_ended || self.status.refusal().is_some() {
            return self
                .query(move |committed| async move { committed.outcome(id).await?.ok_or(AskError::Unknown(id)) });
        }
        let waiting = match self.outcome_waiters.add(id) {
            Ok(waiting) => waiting,
            Err(busy) => return Box::pin(async move { Err(busy) }),
        };
        let (failure, committed) = (self.status.failure(), self.committed());
        Box::pin(async move {
            match waiting.ended().await {
                Some(outcome) => Ok(outcome),
                // The journal failed, the engine stopped, or the family was discharged.
                None => match (failure.why(), committed.row(id).await) {
                    (None, Ok(None)) => Err(AskError::Unknown(id)),
                    _ => Err(failure.unanswered()),
                },
            }
        })
    }
}

impl Handler<Limits> for Supervisor {
    type Result = ResponseActFuture<Self, Result<Vec<LimitUse>, AskError>>;

    fn handle(&mut self, _: Limits, _: &mut Self::Context) -> Self::Result {
        let limiter = self.admission.limiter().clone();
        let limits = self.query(|_| async move { limiter.ask(Usage).await.map_err(|_| AskError::Stopped) });
        Box::pin(
            limits
                .into_actor(self)
                .then(|limits, supervisor, ctx| supervisor.shown(limits, limit_views, ctx).into_actor(supervisor)),
        )
    }
}

impl Handler<Locks> for Supervisor {
    type Result = ResponseActFuture<Self, Result<Vec<LockView>, AskError>>;

    fn handle(&mut self, _: Locks, _: &mut Self::Context) -> Self::Result {
        let limiter = self.admission.limiter().clone();
        let locks = self.query(|_| async move { limiter.ask(LocksHeld).await.map_err(|_| AskError::Stopped) });
        Box::pin(
            locks
                .into_actor(self)
                .then(|locks, supervisor, ctx| supervisor.shown(locks, lock_views, ctx).into_actor(supervisor)),
        )
    }
}

impl Handler<Audit> for Supervisor {
    type Result = Queried<Vec<AuditEntry>>;

    fn handle(&mut self, Audit { before, limit }: Audit, _: &mut Self::Context) -> Self::Result {
        let (first, last) = self.kernel.audited();
        let before = before.unwrap_or(last).min(last);
        self.query(move |committed| async move { committed.audit(first, before, limit.clamp(1, PAGE_MAX)).await })
    }
}

impl Handler<Export> for Supervisor {
    type Result = Queried<FamilyExport>;

    fn handle(&mut self, Export(id): Export, _: &mut Self::Context) -> Self::Result {
        self.query(move |committed| async move {
            let export = committed.export(id.family, EXPORT_MAX).await?;
            export.ok_or(AskError::Unknown(ProcedureId::root(id.family)))
        })
    }
}

impl Handler<Archived> for Supervisor {
    type Result = Queried<Vec<ArchivedFamily>>;

    fn handle(&mut self, _: Archived, _: &mut Self::Context) -> Self::Result {
        self.query(|committed| async move { committed.archive().await })
    }
}

impl Handler<ReadArchive> for Supervisor {
    type Result = Queried<FamilyExport>;

    fn handle(&mut self, ReadArchive(family): ReadArchive, _: &mut Self::Context) -> Self::Result {
        self.query(move |committed| async move {
            let export = committed.archived(family).await?;
            export.ok_or(AskError::Unknown(ProcedureId::root(family)))
        })
    }
}

impl Handler<Subscribe> for Supervisor {
    type Result = Queried<()>;

    fn handle(&mut self, Subscribe(to): Subscribe, _: &mut Self::Context) -> Self::Result {
        let (is_admitted, answer) = self.admit_subscriber();
        if is_admitted {
            self.pipeline.subscribe(to, self.kernel.seq());
        }
        answer
    }
}

impl Handler<SubscribeLatest> for Supervisor {
    type Result = Queried<()>;

    fn handle(&mut self, SubscribeLatest(to): SubscribeLatest, _: &mut Self::Context) -> Self::Result {
        let (is_admitted, answer) = self.admit_subscriber();
        if is_admitted {
            self.pipeline.subscribe_latest(to, &self.kernel);
        }
        answer
    }
}

impl Handler<PollLatest> for Supervisor {
    type Result = ();

    fn handle(&mut self, PollLatest(subscriber): PollLatest, _: &mut Self::Context) {
        self.pipeline.poll_latest(&subscriber, &self.kernel);
    }
}

impl Handler<TakeSnapshot> for Supervisor {
    type Result = Queried<Snapshot>;

    /// Answered also when the journal has failed: it is how one learns why.
    fn handle(&mut self, _: TakeSnapshot, _: &mut Self::Context) -> Self::Result {
        let settled = self.settled();
        let has_failed = self.status.has_failed();
        let snapshot = self.snapshot();
        Box::pin(async move {
            if !has_failed {
                settled.await?;
            }
            Ok(snapshot)
        })
    }
}

// Dispatch: calls of user code.

/// Reports heard for one notice, before other messages have their turn.
const REPORTS_AT_ONCE: usize = 256;

/// Says that actors were found gone. It waits behind their last reports.
#[derive(Message)]
#[rtype(result = "()")]
struct ActorsGone(Vec<ProcedureId>);

impl Supervisor {
    /// Has the dispatch wing make calls, and sees to the reads that it needs for them.
    fn call<R>(&mut self, ctx: &mut Context<Self>, work: impl FnOnce(&mut Dispatch, EngineView<'_>) -> R) -> R {
        let view = EngineView {
            kernel: &self.kernel,
            quarantined: self.quarantine.families(),
        };
        let done = work(&mut self.dispatch, view);
        if self.dispatch.take_read_notice() {
            // Behind the effects of the same receipt, so that their reads are done together.
            ctx.notify(ReadsDue);
        }
        done
    }

    fn begin_reads(&mut self, ctx: &mut Context<Self>) {
        while let Some(reads) = self.dispatch.next_reads(&self.kernel, self.pipeline.durable()) {
            ctx.spawn(reads.into_actor(self).map(|read, supervisor, ctx| {
                supervisor.turn(|supervisor| supervisor.reads_ended(read, ctx));
            }));
        }
    }

    fn reads_ended(&mut self, read: GroupRead, ctx: &mut Context<Self>) {
        self.dispatch.end_reads(read);
        while let Some(group) = self.dispatch.next_group() {
            for (call, inputs) in group {
                match self.call(ctx, |dispatch, view| dispatch.revive(view, call, inputs)) {
                    Revived::Done => {}
                    Revived::TryAgain(read, why) => self.read_again(read, &why, ctx),
                    // At once: the calls behind this one may be of the same family.
                    Revived::Damaged(family, why) => self.quarantine_family(family, why, ctx),
                }
            }
        }
        self.begin_reads(ctx);
        self.wake_more(ctx);
    }

    fn load_stack(&mut self, scope: ProcedureId, ctx: &mut Context<Self>) {
        match self.dispatch.load_stack(&self.kernel, scope) {
            Some(entries) => self.stack_loaded(scope, entries, None, ctx),
            None => self.begin_stacks(scope.family, ctx),
        }
    }

    fn stack_loaded(
        &mut self,
        scope: ProcedureId,
        entries: Vec<HistoryEntry>,
        damage: Option<String>,
        ctx: &mut Context<Self>,
    ) {
        let hole = damage.or_else(|| holes::missing(&self.kernel, scope, &entries));
        self.decide(Event::StackLoaded(scope, entries), ctx);
        if let Some(hole) = hole {
            self.holes.note(&self.kernel, scope, hole);
        }
    }

    fn begin_stacks(&mut self, family: u64, ctx: &mut Context<Self>) {
        if let Some(stacks) = self.dispatch.next_stacks(&self.kernel, family) {
            ctx.spawn(stacks.into_actor(self).map(move |read, supervisor, ctx| {
                supervisor.turn(|supervisor| supervisor.stacks_ended(family, read, ctx));
            }));
        }
    }

    fn stacks_ended(&mut self, family: u64, read: StackRead, ctx: &mut Context<Self>) {
        for (scope, entries) in self.dispatch.end_stacks(read) {
            match self.dispatch.stack_entries(scope, entries) {
                Ok((entries, damage)) => self.stack_loaded(scope, entries, damage, ctx),
                Err(why) => self.read_again(FailedRead::Stack(scope), &why, ctx),
            }
        }
        self.begin_stacks(family, ctx);
    }

    /// Tries a failed read again after a while.
    fn read_again(&mut self, read: FailedRead, why: &StoreError, ctx: &mut Context<Self>) {
        self.dispatch.read_failed(read, why, self.clock.now());
        self.await_retry(ctx);
    }

    fn await_retry(&mut self, ctx: &mut Context<Self>) {
        let Some(wait) = self.dispatch.next_retry() else { return };
        let sleep = self.clock.sleep_until(self.clock.now().after(wait));
        ctx.spawn(
            sleep
                .into_actor(self)
                .map(|(), supervisor, ctx| supervisor.retry_reads(ctx)),
        );
    }

    fn retry_reads(&mut self, ctx: &mut Context<Self>) {
        for read in self.dispatch.take_retries() {
            match read {
                FailedRead::Call(call) => self.call(ctx, |dispatch, _| dispatch.read_again(call)),
                FailedRead::Stack(scope) => self.load_stack(scope, ctx),
                FailedRead::Due => self.evict_again(ctx),
            }
        }
        self.await_retry(ctx);
    }

    /// Hears all reports that were made by now. A notice that waits then finds newer ones, or none.
    fn hear_all(&mut self, ctx: &mut Context<Self>) {
        for reported in self.dispatch.take_reports(usize::MAX) {
            self.hear(reported, ctx);
        }
    }

    fn hear(&mut self, Reported(kind, report): Reported, ctx: &mut Context<Self>) {
        self.call_ended(report, ctx);
        self.metrics.name_late(&kind);
    }

    fn call_ended(&mut self, report: Report, ctx: &mut Context<Self>) {
        match report {
            Report::Stage(report) => self.stage_ended(report, ctx),
            Report::Undo(report) => self.decide(Event::UndoEnded(report), ctx),
            Report::CleanedUp(id) => {
                self.dispatch.cleaned_up(id);
                self.decide(Event::CleanedUp(id), ctx);
            }
            Report::Join(parent, first, seen, ruling) => {
                let next = self.dispatch.join_ruled(parent);
                let ruled = Event::JoinRuled {
                    parent,
                    first,
                    seen,
                    ruling,
                };
                self.decide(ruled, ctx);
                if let Some(next) = next {
                    self.call(ctx, |dispatch, view| dispatch.judge_next(view.kernel, next));
                }
            }
            Report::Unloadable(id, why) => self.quarantine_family(id.family, format!("{id}: {why}"), ctx),
        }
    }

    fn stage_ended(&mut self, report: Box<StageEnded>, ctx: &mut Context<Self>) {
        if let Some(report) = self.admit_report(report, ctx) {
            self.decide(Event::StageEnded(report), ctx);
        }
    }

    /// Has the calls of these actors replaced, which are gone with their threads, and sends the calls again that
    /// found no worker.
    fn replace_lost_calls(&mut self, gone: Vec<ProcedureId>, ctx: &mut Context<Self>) {
        if !gone.is_empty() {
            // If the mailbox has no room, the next health check finds them again.
            ctx.address().try_send(ActorsGone(gone)).ok();
        }
        self.call(ctx, Dispatch::call_stranded);
    }

    fn check_workers(&mut self, ctx: &mut Context<Self>) {
        let now = machine_now();
        let blocked = self.dispatch.check_workers(&self.kernel, now);
        self.metrics.telemetry().worker_blocked.set(blocked);
        self.metrics.show_mailboxes_soon(self.clock.now());
        if self.status.is_running() {
            self.call(ctx, |dispatch, view| dispatch.rebalance(view, now));
            // Calls that waited for their worker may have begun, which gives credit.
            self.wake_more(ctx);
        }
    }
}

impl Handler<ReadsDue> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: ReadsDue, ctx: &mut Self::Context) {
        self.turn(|supervisor| {
            supervisor.dispatch.reads_due();
            supervisor.begin_reads(ctx);
        });
    }
}

impl Handler<Notice> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: Notice, ctx: &mut Self::Context) {
        self.turn(|supervisor| {
            for reported in supervisor.dispatch.take_reports(REPORTS_AT_ONCE) {
                supervisor.hear(reported, ctx);
            }
            supervisor.wake_more(ctx);
            supervisor.look_at_drain(ctx);
        });
    }
}

impl Handler<ActorsGone> for Supervisor {
    type Result = ();

    fn handle(&mut self, ActorsGone(found): ActorsGone, ctx: &mut Self::Context) {
        if !self.status.is_running() {
            return;
        }
        // First what these actors had still reported: only a call without a report is lost.
        self.hear_all(ctx);
        self.dispatch.replace_ended_workers();
        for id in found {
            for call in self.dispatch.take_lost_calls(id) {
                let now = self.clock.now();
                let report = self.call(ctx, |dispatch, view| dispatch.replace_call(view, id, &call, now));
                if let Some(report) = report {
                    self.call_ended(report, ctx);
                }
            }
        }
        self.look_at_drain(ctx);
    }
}

impl Handler<WorkerCheckDue> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: WorkerCheckDue, ctx: &mut Self::Context) {
        self.turn(|supervisor| supervisor.check_workers(ctx));
    }
}

// Admission: claims, and the limiter's answers.

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
        self.dispatch.forget_family(family);
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
        self.outcome_waiters.clear();
        self.drain = None;
        if let Some(cause) = self.status.cause() {
            for (_, ticket) in self.tickets.drain() {
                ticket.send(Err(cause.clone())).ok();
            }
        }
        self.dispatch.close();
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
