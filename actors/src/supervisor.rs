//! `Supervisor`: the one that holds the kernel. A message becomes an event, the
//! event a decision, the decision part of the next commit; what follows from it
//! leaves only with the receipt. It runs no user code, and never holds anybody up.

mod admission;
pub(crate) mod asks;
mod blocked;
mod changes;
pub(crate) mod claimants;
mod commits;
mod credit;
mod dispatch;
pub(crate) mod drain;
mod effects;
mod exports;
pub(crate) mod failure;
mod finished;
pub(crate) mod flush;
mod foresee;
mod handlers;
pub(crate) mod health;
mod in_turn;
pub(crate) mod kept;
mod loads;
pub(crate) mod metrics;
mod newest;
pub(crate) mod opening;
mod operate;
mod orphaned_calls;
mod outputs;
pub(crate) mod recovery;
mod recovery_hooks;
mod reports;
mod restore;
mod retention;
#[cfg(feature = "testkit")]
pub(crate) mod reveal;
mod submits;
pub(crate) mod tickets;
mod timer;
mod unread;
mod unstarted;
pub(crate) mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{
    Answer, Commit, Decision, Effect, Event, HistoryEntry, Kernel, LimitKey, ProcedureId, Receipt, Record, Row, Ticket,
    Timestamp,
};
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;

use self::metrics::Metrics;
use self::metrics::mailboxes::MailboxGauges;
use crate::actor_loop::LastPanic;
use crate::clock::{Clock, machine_now};
use crate::context::Host;
use crate::engine::Settings;
use crate::journal::encode::{self, META_STORE};
use crate::journal::{Appended, Journal, Reader, Space};
use crate::limiter::Limiter;
use crate::mail::{Counted, Gathering, Ordered};
use crate::procedure_actor::Reported;
use crate::registry::Registry;
use crate::telemetry::Telemetry;
use crate::threads::Threads;
use crate::view::{BatchUse, Outcome, Recovered};
use blocked::Actors;
use changes::Changes;
use commits::{Commits, Waiting};
use credit::Bulk;
use dispatch::Dispatch;
use failure::Failure;
use finished::FinishedReads;
use flush::InPlace;
use health::Health;
use in_turn::Turns;
use kept::Quarantined;
use loads::Loads;
use newest::Followers;
use orphaned_calls::OrphanedCalls;
use outputs::Outputs;
use recovery::{Loaded, Survey};
use tickets::Tickets;
use timer::Timer;
use unread::Unreadable;
use unstarted::Unstarted;
use workers::Workers;

/// Messages that may wait for the supervisor before senders are held up: room
/// for a report of every stage of a busy engine.
const MAILBOX: usize = 16_384;

/// What a request gets in the end: its answer, or why the journal failed.
pub(crate) type Answered = Result<Answer, String>;

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
    pub(crate) telemetry: Telemetry,
}

/// The engine's supervisor; send it the messages of [`messages`](crate::messages).
pub struct Supervisor {
    kernel: Kernel,
    commits: Commits,
    metrics: Metrics,
    journal: Counted<Journal>,
    /// What procedures' actors have reported.
    reports: Arc<Gathering<Reported>>,
    in_place: InPlace,
    limiter: Ordered<Limiter>,
    registry: Arc<Registry>,
    host: Arc<Host>,
    workers: Workers,
    threads: Threads,
    clock: Arc<dyn Clock>,
    reader: Reader,
    queued: usize,
    awake: usize,
    store: (u64, bool),
    timer: Option<Timer>,
    bulk: Bulk,
    changes: Changes,
    followers: Followers,
    tickets_of: Tickets,
    turns: Turns,
    /// What quarantined families hold, until it is restored.
    quarantined_holders: Vec<(ProcedureId, Row)>,
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
    stacks: BTreeMap<u64, Vec<HistoryEntry>>,
    report: Recovered,
    quarantined: Quarantined,
    /// Those of them whose discharge is being committed.
    discharging: BTreeSet<u64>,
    next_due: Option<Timestamp>,
    evicting: bool,
    finished: FinishedReads,
    drain: Option<drain::Draining>,
    health: Health,
    orphaned_calls: OrphanedCalls,
    poisoned: Option<String>,
    /// The same, for those who find out that they will get no answer.
    failure: Failure,
    panics: LastPanic,
    stopped: bool,
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
            telemetry,
        } = parts;
        Self {
            metrics: Metrics::new(&registry, telemetry, mailboxes),
            health: Health::new(settings.audit_every, registry.measures(settings.thresholds)),
            orphaned_calls: OrphanedCalls::default(),
            commits: Commits::new(loaded.epoch, settings.merge, settings.in_flight),
            kernel: loaded.kernel,
            journal,
            reports,
            in_place,
            limiter,
            registry,
            workers,
            threads,
            clock: settings.clock,
            reader: host.reader.clone(),
            host,
            queued: settings.queued,
            awake: settings.awake,
            store: loaded.store,
            timer: None,
            bulk: Bulk::default(),
            changes: Changes::default(),
            followers: Followers::default(),
            tickets_of: Tickets::new(limited),
            turns: Turns::default(),
            quarantined_holders: loaded.quarantined_holders,
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
            quarantined: Arc::new(loaded.report.quarantined.iter().cloned().collect()),
            report: loaded.report,
            discharging: BTreeSet::new(),
            next_due: loaded.next_due,
            evicting: false,
            finished: FinishedReads::default(),
            drain: None,
            poisoned: None,
            failure,
            panics,
            stopped: false,
        }
    }

    // From an event to the journal.

    fn decide(&mut self, event: Event, ctx: &mut Context<Self>) {
        if self.poisoned.is_none() {
            let decision = self.kernel.decide(self.clock.now(), event);
            self.commit(decision, ctx);
        }
    }

    fn commit(&mut self, decision: Decision, ctx: &mut Context<Self>) {
        for effect in decision.planned() {
            if let Effect::Ask(id) = effect {
                self.tickets_of.asks(*id);
            }
        }
        if decision.is_commit() {
            self.commit_records(decision, ctx);
        } else {
            self.commit_nothing(decision, ctx);
        }
    }

    fn commit_records(&mut self, decision: Decision, ctx: &mut Context<Self>) {
        let seq = self.kernel.seq().next();
        let ready = self.commits.open();
        // The old rows are needed, so this comes before the fold below.
        let observations = &mut ready.waiting.observations;
        self.metrics
            .observe(&self.kernel, &*self.clock, decision.records(), observations);
        encode::make_room(&mut ready.batch, decision.records());
        let encoded = decision
            .durable()
            .try_for_each(|record| encode::write(&mut ready.batch, record));
        ready.batch.advance_to(seq);
        if self.store.1 {
            // The store's own number goes with the first commit of its life.
            ready.batch.put(Space::Meta, META_STORE, &self.store.0.to_be_bytes());
            self.store.1 = false;
        }
        if !self.changes.is_empty() {
            ready
                .waiting
                .changes
                .push(Changes::describe(self.kernel.epoch(), seq, decision.durable()));
        }
        self.followers.note(&decision);
        let due = decision.durable().filter_map(due_of).min();
        self.unstarted.note(decision.records());
        self.outputs.note(decision.records());
        self.kernel.fold(decision, &mut ready.commit);
        self.metrics.decided();
        self.note_due(due);
        match encoded {
            Ok(()) => self.flush_soon(ctx),
            Err(error) => {
                self.fail(error.to_string());
            }
        }
    }

    /// A decision without records still waits for the newest commit it rests on.
    fn commit_nothing(&mut self, decision: Decision, ctx: &mut Context<Self>) {
        let mut commit = Commit::new();
        self.metrics.late(&self.kernel, decision.records());
        self.kernel.fold(decision, &mut commit);
        if let Some(commit) = self.commits.hold(commit) {
            let receipt = Receipt::new(self.kernel.epoch(), self.commits.durable);
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
                .chain(self.next_due.filter(|_| !self.evicting))
                .min();
            timer.arm(next);
        }
    }

    // From the receipt to the effects.

    fn appended(&mut self, Appended(result): Appended, ctx: &mut Context<Self>) {
        match result {
            Ok(receipt) => self.proved(&receipt, ctx),
            Err(error) => {
                self.fail(error.to_string());
            }
        }
    }

    fn proved(&mut self, receipt: &Receipt, ctx: &mut Context<Self>) {
        let Some(mut waiting) = self.commits.proved() else {
            return;
        };
        self.commits.durable = receipt.seq();
        self.metrics.durable(receipt.seq());
        // Commit, then publish, then reply.
        self.count(&mut waiting);
        self.call_hooks(ctx);
        let Waiting {
            commits,
            reads,
            changes,
            ..
        } = waiting;
        self.changes.reached(receipt.seq());
        for change in &changes {
            self.changes.publish(change);
        }
        self.followers.reached(&self.kernel, receipt.seq());
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
                self.fail(text);
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
        match &self.poisoned {
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
        if self.timer.is_some() || self.poisoned.is_some() {
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
