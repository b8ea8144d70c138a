//! The engine's one loop: the `Supervisor` actor, which owns the kernel.
//!
//! A message becomes an event, the event a decision, and the decision part of the next commit. Effects of a decision
//! leave only with the receipt of its commit. The supervisor runs no user code and never blocks.
//!
//! This file is the table of contents of the engine. The first three sections are the loop itself:
//!
//! - **From an event to the journal**: applies a decision to the kernel, and adds its records to the next batch.
//! - **From a batch to the journal** (`pipeline`): decides when a batch is appended.
//! - **From the receipt to the effects**: publishes a commit, then releases its effects, each to its wing.
//!
//! Each further section drives one or more submodules. A wing is a submodule that owns its own state; it reads the
//! kernel, and only the supervisor decides and commits:
//!
//! - **Requests** (`requests`): turns messages of callers and operators into events, and returns their replies.
//! - **Questions**: answers reads from what is on disk.
//! - **Dispatch** (`dispatch`): calls user code on the workers, and takes the reports.
//! - **Admission** (`admission`): asks the limiter for permits and locks, and takes its answers in order.
//! - **Health** (`health`): checks what is stuck, repairs lost wakes, and reports verdicts.
//! - **Metrics** (`metrics`): counts what is on disk.
//! - **Lifecycle** (`lifecycle`, `quarantine`, `failure`, `status`): start, timers, retention, drain, quarantine and
//!   failure.
//! - **Counted requests**: counts requests, so that the depth of the mailbox is known.

pub(crate) mod admission;
pub(crate) mod dispatch;
pub(crate) mod failure;
pub(crate) mod health;
pub(crate) mod lifecycle;
pub(crate) mod metrics;
pub(crate) mod pipeline;
mod quarantine;
mod requests;
#[cfg(feature = "testkit")]
pub(crate) mod reveal;
mod status;

use std::fmt::Display;
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures::FutureExt;
use procession_kernel::{
    AdmissionEffect, AuditEntry, Claim, Commit, Decision, Effect, Ended, Event, EventName, EvictedFamily, Grant,
    HistoryEntry, Immediate, Kernel, Kind, LifecycleEffect, LimitKey, LimitUse, Missing, NotNow, Operated,
    OperatorRequest, ProcedureId, Receipt, Record, RequestEffect, RequestId, Row, SpeculativeCall, StageEnded,
    StoredTarget, Timestamp, Verb,
};
use tokio::sync::oneshot;

use self::metrics::Metrics;
use self::metrics::mailboxes::MailboxGauges;
use self::metrics::observations::Observation;
use crate::actor_loop::LastPanic;
use crate::charts::Charts;
use crate::clock::{Clock, machine_now};
use crate::context::Host;
use crate::engine::Settings;
use crate::error::{AskError, CodecError, StartError, StoreError, SubmitError};
use crate::export::{EXPORT_MAX, FamilyExport};
use crate::hooks::HookPoint;
use crate::journal::encode::LastLook;
use crate::journal::{Appended, Batch, Journal, Reader};
use crate::limiter::{Acquired, Limiter, LocksHeld, Served, Usage, Waiters};
use crate::messages::{
    self, Acknowledge, Archived, Audit, AwaitOutcome, Broadcast, Drain, Export, Failures, History, Limits, List, Locks,
    Operate, PollLatest, Query, ReadArchive, ReadHistoryPage, SendSignal, SendSignals, Submit, SubmitBatch, SubmitBy,
    Subscribe, SubscribeLatest, TakeSnapshot, Tree, WriteUserData,
};
use crate::procedure_actor::{Report, Reported};
use crate::queues::{BatchedInbox, CountedAddr, CountedMessage, InboxWake, Ordered, handle_counted};
use crate::read::CommittedReader;
use crate::read::pages::PAGE_MAX;
use crate::registry::Registry;
use crate::submission_key::longest_key;
use crate::telemetry::{FailedSpan, Telemetry};
use crate::threads::Threads;
use crate::view::{
    self, ArchivedFamily, BatchUse, DrainReport, Explanation, FailurePage, LockView, Outcome, Page, Rule, Snapshot,
    Status, Verdict,
};
use admission::claims::Claims;
use admission::{Admission, Demand, PendingDemand, admit_births, admit_report, needs_nothing};
use dispatch::failed_reads::{FailedRead, ReadSubject};
use dispatch::revival::{GroupRead, ReadsDue};
use dispatch::rollback_stacks::{StackRead, holes};
use dispatch::workers::{WorkerCheckDue, Workers, check_workers_every};
use dispatch::{Dispatch, DispatchParts, EngineView, Revived};
use failure::{Broken, Failure, FailureCause};
use health::check::{self, Check, Next, Repairs, Requester, still_uncalled};
use health::diagnosis_input::{Queues, limit_views, lock_views};
use health::failures::changes_list;
use health::queue_reading::{PageRead, QueueReading, Reason};
use health::{EngineState, Findings, Health, HealthCheckDue, actor_lost, explain};
use lifecycle::Lifecycle;
use lifecycle::recovery::Loaded;
use lifecycle::recovery_hooks::{self, Failed};
use lifecycle::retention::{Eviction, FoundDue, due_of, find_due};
use lifecycle::timer::{TIMERS_AT_ONCE, TimeCame};
use lifecycle::{Open, StopHere};
use pipeline::in_place::InPlace;
use pipeline::{AwaitingReceipt, GATHERING_TIME, Gathering, JournalGone, Pipeline, PipelineSettings, SUBSCRIBERS};
use quarantine::Quarantine;
use requests::Requests;
use requests::again::{not_ended, read_again, read_new};
use requests::discharge::{being_quarantined, why_quarantined};
use requests::finished::FinishedRead;
use requests::operate::{ToRead, to_read};
use requests::replies::{self, Reply};
use requests::submissions::{AcceptedSubmissions, submitted};
use status::EngineStatus;

/// Messages that may wait in the supervisor's mailbox before senders block. There is room for a report of every stage
/// of a busy engine.
const MAILBOX: usize = 16_384;

/// Handles an answer of the limiter when its turn arrives.
type TakeAnswer = Box<dyn FnOnce(&mut Supervisor, &mut Context<Supervisor>)>;

/// The parts from which a supervisor is built.
pub(crate) struct Parts {
    pub(crate) loaded: Loaded,
    pub(crate) limited: Vec<LimitKey>,
    pub(crate) limiter: Ordered<Limiter>,
    pub(crate) journal: CountedAddr<Journal>,
    pub(crate) mailboxes: MailboxGauges,
    pub(crate) reports: Arc<BatchedInbox<Reported>>,
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
    pub(crate) charts: Charts,
}

/// The engine's supervisor; send it the messages of [`messages`](crate::messages).
pub struct Supervisor {
    kernel: Kernel,
    pipeline: Pipeline,
    metrics: Metrics,
    dispatch: Dispatch,
    admission: Admission<TakeAnswer>,
    registry: Arc<Registry>,
    lifecycle: Lifecycle,
    clock: Arc<dyn Clock>,
    reader: Reader,
    requests: Requests,
    quarantine: Quarantine,
    health: Health,
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
            charts,
        } = parts;
        let quarantine = Quarantine::new(&loaded.report.quarantined);
        let lifecycle = Lifecycle::new(&mut loaded, threads);
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
            metrics: Metrics::new(&registry, telemetry, mailboxes, charts),
            health: Health::new(settings.health_check_every, registry.measures(settings.thresholds)),
            pipeline: Pipeline::new(&pipeline, journal, in_place),
            dispatch: Dispatch::new(dispatch),
            kernel: loaded.kernel,
            admission: Admission::new(limiter, limited, loaded.quarantined_holders),
            registry,
            lifecycle,
            clock: settings.clock,
            reader,
            requests: Requests::new(settings.queued, settings.awake),
            quarantine,
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
        let may_serve = self.take_in(decision, ctx);
        self.flush_after(may_serve, ctx);
    }

    /// Takes a decision in; the caller flushes. Returns `true` if others may be served by the limiter because of what it
    /// has put into the open batch.
    fn take_in(&mut self, decision: Decision, ctx: &mut Context<Self>) -> bool {
        if decision.is_commit() {
            return self.commit_records(decision, ctx);
        }
        self.commit_nothing(decision, ctx);
        false
    }

    fn commit_records(&mut self, decision: Decision, ctx: &mut Context<Self>) -> bool {
        let look = self
            .lifecycle
            .take_look(&*self.clock, decision.made(), self.kernel.is_draining());
        let (encoded, due) = self.visit_records(&decision, look);
        let Immediate { admission, calls } = self.kernel.fold(decision, self.pipeline.open_commit());
        self.metrics.decided();
        self.lifecycle.note_due(due, &self.kernel);
        if let Err(error) = encoded {
            self.fail(FailureCause::Failed(error.to_string()));
            return false;
        }
        self.speculate(calls, ctx);
        self.tell_limiter(admission, ctx)
    }

    /// Calls pure stages at once. Their decision stands in the open batch, so whatever they report is decided behind it. A
    /// call that must wait after all goes with the other effects of its decision.
    fn speculate(&mut self, calls: Vec<SpeculativeCall>, ctx: &mut Context<Self>) {
        if calls.is_empty() {
            // Nearly every decision, where no stage is pure.
            return self.pipeline.overtaken(false);
        }
        // So many decisions wait for the disk that running further ahead would only fill the memory.
        let is_late = self.pipeline.is_backed_up();
        let mut is_overtaken = false;
        for call in calls {
            let called = match is_late {
                true => Err(call),
                false => self.call(ctx, |dispatch, view| dispatch.speculate(view, call)),
            };
            match called {
                Ok(()) => is_overtaken = true,
                Err(call) => self.pipeline.open_commit().defer(call),
            }
        }
        self.pipeline.overtaken(is_overtaken);
        if is_overtaken {
            self.requests.keep_newest_ends();
        }
    }

    /// Tells the limiter what a decision says. It stands in the open batch, so whatever the limiter answers is decided
    /// behind it. Returns `true` if others may be served because of it.
    fn tell_limiter(&mut self, admission: Vec<AdmissionEffect>, ctx: &mut Context<Self>) -> bool {
        let mut may_serve = false;
        for effect in admission {
            may_serve |= self.admission.may_serve(&effect);
            if let Some(id) = self.admission.act(effect, self.quarantine.families()) {
                self.request_admission(id, ctx);
            }
        }
        may_serve
    }

    /// Flushes soon. If the limiter may serve others and somebody probably waits, it does so once the limiter has said
    /// whom: then the end of the one and the beginning of the other take one sync.
    fn flush_after(&mut self, may_serve: bool, ctx: &mut Context<Self>) {
        let waits = may_serve && self.pipeline.is_idle();
        let Some((number, answer)) = waits.then(|| self.admission.pass_on()).flatten() else {
            return self.flush_soon(ctx);
        };
        self.await_limiter(answer, ctx, move |supervisor, _, ctx| {
            if supervisor.admission.passed_on(number) {
                supervisor.flush_soon(ctx);
            }
        });
    }

    /// Shows each record, once, to every wing that needs it. Must run before the fold, because metrics compare new
    /// rows with the old ones. Returns whether all records could be encoded, and the earliest time at which a result
    /// in them falls due.
    fn visit_records(
        &mut self,
        decision: &Decision,
        look: Option<LastLook>,
    ) -> (Result<(), CodecError>, Option<Timestamp>) {
        let (mut recording, observations) = self.pipeline.begin(decision, self.kernel.seq().next());
        let mut observer = self.metrics.observer(&self.kernel, &*self.clock, observations);
        let mut notes = self.dispatch.begin_records(decision.records());
        let mut due: Option<Timestamp> = None;
        let mut lists_failures = false;
        for record in decision.records() {
            observer.take(record);
            recording.take(record);
            notes.take(record);
            // Nearly all records say nothing of ends and failures.
            if !matches!(record, Record::Row(_) | Record::History(_) | Record::Payload(..)) {
                lists_failures |= changes_list(record);
                due = due.into_iter().chain(due_of(record)).min();
            }
        }
        if lists_failures {
            self.health.failures_changed(self.kernel.seq().next());
        }
        (recording.end(look), due)
    }

    /// Queues a decision without records. It still waits for the newest commit that it rests on.
    fn commit_nothing(&mut self, decision: Decision, ctx: &mut Context<Self>) {
        let mut commit = Commit::new();
        self.metrics.late(&self.kernel, decision.records());
        let Immediate { admission, calls } = self.kernel.fold(decision, &mut commit);
        calls.into_iter().for_each(|call| commit.defer(call));
        self.tell_limiter(admission, ctx);
        if let Some((commit, receipt)) = self.pipeline.hold(commit) {
            self.release(commit, &receipt, ctx);
        }
    }

    // From a batch to the journal.

    /// Appends the current batch at once, unless the supervisor may commit it itself. That is decided only behind the
    /// messages that wait in the mailbox now.
    fn flush_soon(&mut self, ctx: &mut Context<Self>) {
        match self.pipeline.gather(self.dispatch.active(), &*self.clock) {
            Gathering::No => {}
            Gathering::Begun(hold) => return self.flush_late(hold, ctx),
            Gathering::GoesOn => return,
        }
        let here = self.pipeline.may_commit_here(self.dispatch.active());
        if here && (self.pipeline.leave_to_turn() || ctx.address().try_send(FlushTime).is_ok()) {
            return;
        }
        self.flush();
    }

    /// Ends a turn that reports made, and commits the decision that was left to its end: at once if no message waits, else
    /// behind those that do.
    fn end_reports(&mut self, ctx: &mut Context<Self>) {
        if !self.pipeline.end_turn() {
            return;
        }
        if self.metrics.waiting() == 0 {
            self.commit_here(ctx);
        } else if ctx.address().try_send(FlushTime).is_err() {
            self.flush();
        }
    }

    /// Commits the open decision on this thread, if it is still alone; otherwise flushes.
    fn commit_here(&mut self, ctx: &mut Context<Self>) {
        if self.status.has_failed() {
            return;
        }
        let metrics = &mut self.metrics;
        let append = |batch: &Batch| metrics.appended(batch);
        match self.pipeline.commit_here(self.dispatch.active(), &*self.clock, append) {
            Ok(Some(appended)) => {
                self.appended(appended, ctx);
                self.pipeline.settle();
            }
            Ok(None) => {}
            Err(JournalGone) => self.journal_gone(),
        }
    }

    /// Appends the batch that is held back after a while, should nothing have made it go before.
    fn flush_late(&self, hold: u64, ctx: &mut Context<Self>) {
        let late = self.clock.sleep_until(self.clock.now().after(GATHERING_TIME));
        ctx.spawn(late.into_actor(self).map(move |(), supervisor, _| {
            if supervisor.pipeline.end_hold(hold) {
                supervisor.flush();
            }
        }));
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
        // Commit, then publish, then reply. Whoever is answered finds counted what the answer is about; the next stage
        // need not wait for that.
        let counted = self.use_of(&waiting);
        let is_answered = !waiting.commits.iter().all(Commit::answers_nobody);
        let mut observations = Some(std::mem::take(&mut waiting.observations));
        if let Some(observations) = observations.take_if(|_| is_answered) {
            self.count(counted, observations, ctx);
        }
        self.pipeline.publish(&waiting, &self.kernel, receipt.seq());
        let AwaitingReceipt { commits, reads, .. } = waiting;
        // Wake each worker once for the calls of all these commits.
        self.dispatch.begin_batch();
        for commit in commits {
            self.release(commit, receipt, ctx);
        }
        self.dispatch.end_batch();
        if let Some(observations) = observations {
            self.count(counted, observations, ctx);
        }
        for read in reads {
            // The reader may have gone.
            read.send(()).ok();
        }
        match self.pipeline.is_gathered() {
            true => self.flush_soon(ctx),
            false => self.flush(),
        }
        let waiting = self.kernel.seq().0.saturating_sub(receipt.seq().0);
        self.metrics.telemetry().commits_waiting.set(waiting as f64);
        self.count_failures(false, ctx);
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
                    "the store returned a receipt for {}, but {} was due",
                    receipt.seq(),
                    commit.seq()
                );
                self.fail(FailureCause::Failed(text));
            }
        }
    }

    /// Acts on an effect that a receipt has released. Each wing has one arm.
    fn act(&mut self, effect: Effect, ctx: &mut Context<Self>) {
        match effect {
            Effect::Dispatch(effect) => {
                if let Some(scope) = self.call(ctx, |dispatch, view| dispatch.act(view, effect)) {
                    self.load_stack(scope, ctx);
                }
            }
            Effect::Requests(effect) => self.act_on_request(effect),
            Effect::Lifecycle(LifecycleEffect::ArmTimer) => self.arm(),
        }
    }

    fn act_on_request(&mut self, effect: RequestEffect) {
        match effect {
            RequestEffect::Reply(request, answer) => self.requests.reply(request, Ok(answer)),
            RequestEffect::Ended(ended) => self.ended(*ended),
            RequestEffect::Discharged(family) => self.discharged(family),
            RequestEffect::Operated(entry) => {
                tracing::info!(
                    who = entry.who,
                    why = entry.why,
                    what = entry.words,
                    "an operator acted"
                );
            }
        }
    }

    fn ended(&mut self, ended: Ended) {
        self.dispatch.ended(ended.id);
        self.requests.ended(ended);
    }

    /// Runs one piece of work and records how long all others had to wait for it. A nested turn counts as part of the
    /// outer one. A long turn is logged by its place in the code.
    #[track_caller]
    fn turn<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        self.turn_of(Location::caller(), work)
    }

    /// Runs one piece of work as a turn, and logs a long one under this name.
    fn turn_of<R>(&mut self, what: impl Display, work: impl FnOnce(&mut Self) -> R) -> R {
        let (begun, before) = (machine_now(), self.kernel.seq());
        let done = work(self);
        let decisions = self.kernel.seq().0.saturating_sub(before.0);
        self.metrics.turn_ended(what, begun.elapsed(), decisions);
        done
    }
}

impl Actor for Supervisor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        if self.lifecycle.has_timer() || self.status.has_failed() {
            // Restarted after a panic.
            return;
        }
        let (clock, me) = (Arc::clone(&self.clock), ctx.address().recipient());
        self.lifecycle.start_timer(clock, me);
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

/// Says that all messages that waited at the time of a decision have been handled. Its batch may be committed now.
#[derive(Message)]
#[rtype(result = "()")]
struct FlushTime;

impl Handler<FlushTime> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: FlushTime, ctx: &mut Self::Context) {
        self.commit_here(ctx);
    }
}

// Requests: a message becomes an event.

/// The answer to a caller, which arrives after the decision.
type AskFuture<T> = ResponseFuture<Result<T, AskError>>;

/// The answer to an operator. The store may have to be read before the decision.
type Operating = ResponseActFuture<Supervisor, Result<Operated, AskError>>;

impl Handler<Submit> for Supervisor {
    type Result = ResponseFuture<Result<ProcedureId, SubmitError>>;

    fn handle(&mut self, submit: Submit, ctx: &mut Self::Context) -> Self::Result {
        let (refused, kind) = (Arc::clone(&self.metrics.telemetry().refused), submit.birth.kind.clone());
        let reply = self.submit(vec![submit], ctx);
        Box::pin(async move {
            let ids = submitted(reply).await;
            let id = ids.and_then(|ids| ids.first().copied().ok_or(SubmitError::Stopped));
            id.inspect_err(|why| refused.count(&kind, why))
        })
    }
}

impl Handler<SubmitBatch> for Supervisor {
    type Result = ResponseFuture<Result<Vec<ProcedureId>, SubmitError>>;

    fn handle(&mut self, SubmitBatch(submits): SubmitBatch, ctx: &mut Self::Context) -> Self::Result {
        let refused = Arc::clone(&self.metrics.telemetry().refused);
        let kinds: Vec<Kind> = submits.iter().map(|submit| submit.birth.kind.clone()).collect();
        let reply = self.submit(submits, ctx);
        Box::pin(async move {
            let ids = submitted(reply).await;
            ids.inspect_err(|why| kinds.iter().for_each(|kind| refused.count(kind, why)))
        })
    }
}

impl Handler<SendSignal> for Supervisor {
    type Result = AskFuture<u32>;

    fn handle(&mut self, SendSignal(signal): SendSignal, ctx: &mut Self::Context) -> Self::Result {
        let reply = self.request(|request| Event::Signalled(request, vec![signal]), ctx);
        let numbers = replies::signalled(reply, self.committed());
        Box::pin(async move { numbers.await?.first().copied().ok_or(AskError::Stopped) })
    }
}

impl Handler<SendSignals> for Supervisor {
    type Result = AskFuture<Vec<u32>>;

    fn handle(&mut self, SendSignals(signals): SendSignals, ctx: &mut Self::Context) -> Self::Result {
        let signals = signals.into_iter().map(|SendSignal(signal)| signal).collect();
        let reply = self.request(|request| Event::Signalled(request, signals), ctx);
        Box::pin(replies::signalled(reply, self.committed()))
    }
}

impl Handler<messages::ReadMailbox> for Supervisor {
    type Result = AskFuture<view::Mailbox>;

    fn handle(&mut self, messages::ReadMailbox(id): messages::ReadMailbox, _: &mut Self::Context) -> Self::Result {
        let mailbox = view::Mailbox::of(&self.kernel, id);
        self.query(async move |committed| match mailbox {
            Some(mailbox) => Ok(mailbox),
            None => Err(committed.why_not_live(id).await),
        })
    }
}

impl Handler<Broadcast> for Supervisor {
    type Result = AskFuture<u32>;

    fn handle(&mut self, Broadcast { name, payload, key }: Broadcast, ctx: &mut Self::Context) -> Self::Result {
        let event = |request| Event::Broadcast {
            request,
            name: EventName::from(name),
            payload,
            key,
        };
        let reply = self.request(event, ctx);
        Box::pin(replies::broadcast(reply, self.committed()))
    }
}

impl Handler<WriteUserData> for Supervisor {
    type Result = AskFuture<()>;

    fn handle(&mut self, write: WriteUserData, ctx: &mut Self::Context) -> Self::Result {
        let writes = write.checked(&self.reader.bounds()).map_err(AskError::from);
        let reply = writes.and_then(|writes| self.request(|request| Event::Written(request, writes), ctx));
        Box::pin(replies::done(reply, self.committed()))
    }
}

impl Handler<Acknowledge> for Supervisor {
    type Result = ResponseActFuture<Self, Result<(), AskError>>;

    fn handle(&mut self, Acknowledge(id): Acknowledge, _: &mut Self::Context) -> Self::Result {
        let row = self.finished_row(ProcedureId::root(id.family));
        Box::pin(row.then(move |row, supervisor, ctx| {
            let reply = row.and_then(|row| {
                let row = supervisor.requests.result_of(&supervisor.kernel, id, row)?;
                supervisor.request(|request| Event::Acknowledged(request, row), ctx)
            });
            replies::done(reply, supervisor.committed()).into_actor(supervisor)
        }))
    }
}

impl Handler<Operate> for Supervisor {
    type Result = Operating;

    /// Decides a verb. A verb whose target may be in the store alone is decided once the target is read. All others
    /// are decided before this returns, in the order of their messages.
    fn handle(&mut self, Operate { verb, by }: Operate, ctx: &mut Self::Context) -> Self::Result {
        match to_read(&verb) {
            ToRead::Nothing => {
                let operated = self.operate(verb, by, StoredTarget::None, ctx);
                Box::pin(operated.into_actor(self))
            }
            ToRead::FinishedRow(id) => self.operate_on_row(id, verb, by),
            ToRead::Submitted(root) => self.run_again(root, by),
            ToRead::QuarantinedFamily(family) => self.operate_on_family(family, by, ctx),
        }
    }
}

impl Handler<SubmitBy> for Supervisor {
    type Result = Operating;

    fn handle(&mut self, SubmitBy { submit, by }: SubmitBy, _: &mut Self::Context) -> Self::Result {
        self.submit_by(submit, by)
    }
}

impl Supervisor {
    /// Decides the event of a caller's request, if the engine accepts it. Returns the reply to wait for.
    fn request(&mut self, event: impl FnOnce(RequestId) -> Event, ctx: &mut Context<Self>) -> Result<Reply, AskError> {
        if let Some(refusal) = self.status.refusal() {
            return Err(refusal);
        }
        let (request, reply) = self.requests.admit()?;
        self.decide(event(request), ctx);
        Ok(reply)
    }

    /// Decides an operator's verb, given what the store holds of its target. Returns the answer. For a dry run the
    /// limiter completes the plan.
    fn operate(
        &mut self,
        verb: Verb,
        by: OperatorRequest,
        stored: StoredTarget,
        ctx: &mut Context<Self>,
    ) -> AskFuture<Operated> {
        let is_dry = by.dry_run;
        let drain = if let Verb::Drain(deadline) = &verb {
            Some(*deadline)
        } else {
            None
        };
        let event = |request| Event::Requested(request, Box::new(verb), Box::new(by), stored);
        let reply = self.request(event, ctx);
        if let Some(deadline) = drain {
            self.begin_requested_drain(deadline, ctx);
        }
        let operated = replies::operated(reply, self.committed());
        if is_dry {
            self.dry_run(operated, ctx)
        } else {
            Box::pin(operated)
        }
    }

    fn submit(&mut self, submits: Vec<Submit>, ctx: &mut Context<Self>) -> Result<Reply, SubmitError> {
        if self.status.is_stopped() {
            return Err(SubmitError::Stopped);
        }
        if let Some(why) = self.status.cause() {
            return Err(why.unsubmitted());
        }
        let (accepted, reply) = self.requests.take(&self.kernel, submits)?;
        if let Some(longest) = accepted.longest_key() {
            self.lifecycle.note_key(longest);
        }
        if accepted.has_unseen_keys() {
            let work = accepted.look_up(self.reader.clone());
            ctx.spawn(work.into_actor(self).map(|accepted, supervisor, ctx| match accepted {
                Ok(accepted) => supervisor.admit(accepted, ctx),
                Err((request, why)) => supervisor.requests.reply(request, Err(why)),
            }));
        } else {
            self.admit(accepted, ctx);
        }
        Ok(reply)
    }

    /// Decides submissions. If any needs limits or locks, the limiter has answered before.
    fn admit(&mut self, accepted: AcceptedSubmissions, ctx: &mut Context<Self>) {
        let (request, mut submissions) = (accepted.request, accepted.submissions);
        let demand = self.admission.demand_of_submissions(&self.kernel, &mut submissions);
        if demand.is_empty() {
            self.decide(Event::Submitted(request, submissions), ctx);
            return;
        }
        let (pending, work) = self.admission.ask(demand, None);
        self.await_limiter(work, ctx, move |supervisor, acquired, ctx| {
            let births = submissions.iter_mut().flat_map(|submission| submission.birth.asking());
            admit_births(births, acquired.answers);
            let event = Event::Submitted(request, submissions);
            let decision = supervisor.kernel.decide(supervisor.clock.now(), event);
            supervisor.commit_admitted(decision, pending, acquired.served, ctx);
        });
    }

    /// Reads the row of a finished procedure. Decide on it in the same turn: see [`Requests::take_finished`].
    fn finished_row(&mut self, id: ProcedureId) -> ResponseActFuture<Self, Result<Option<Row>, AskError>> {
        let (settled, committed) = (self.settled(), self.committed());
        let read = self.requests.read_finished(&self.kernel, id, settled, committed);
        Box::pin(read.into_actor(self).then(move |read: FinishedRead, supervisor, _| {
            match supervisor.requests.take_finished(&supervisor.kernel, read) {
                Some(row) => Box::pin(actix::fut::ready(row)),
                None => supervisor.finished_row(id),
            }
        }))
    }

    /// Decides a verb about a procedure that may have finished, once its row is read.
    fn operate_on_row(&mut self, id: ProcedureId, verb: Verb, by: OperatorRequest) -> Operating {
        Box::pin(self.finished_row(id).then(move |row, supervisor, ctx| {
            let read = row.and_then(|row| supervisor.requests.verb_on_row(&supervisor.kernel, verb, id, row));
            let operated = match read {
                Ok((verb, stored)) => supervisor.operate(verb, by, stored, ctx),
                Err(error) => Box::pin(async move { Err(error) }),
            };
            operated.into_actor(supervisor)
        }))
    }

    /// Decides a submission of an operator, once its key was looked up.
    fn submit_by(&mut self, submit: Submit, by: OperatorRequest) -> Operating {
        let verb = Verb::Submit(submit.birth.kind.clone());
        let read = read_new(submit, self.reader.clone(), self.kernel.rules().bounds.name).into_actor(self);
        Box::pin(read.then(move |read, supervisor, ctx| {
            let operated: AskFuture<Operated> = match read {
                Ok(submission) => supervisor.admit_new(verb, by, StoredTarget::New(submission), ctx),
                Err(error) => Box::pin(async move { Err(error) }),
            };
            operated.into_actor(supervisor)
        }))
    }

    /// Reads a failed root and the value that it was submitted with, and decides to run it again.
    fn run_again(&mut self, root: ProcedureId, by: OperatorRequest) -> Operating {
        let read = self.finished_row(root).then(move |row, supervisor, _| {
            let row = match row {
                Ok(_) if supervisor.kernel.row(root).is_some() => Err(not_ended(root)),
                Ok(row) => row.map(Box::new).ok_or(AskError::Unknown(root)),
                Err(error) => Err(error),
            };
            let (reader, registry) = (supervisor.reader.clone(), Arc::clone(&supervisor.registry));
            let now = supervisor.clock.now();
            let read = async move { read_again(row?, reader, registry, now).await };
            read.into_actor(supervisor)
        });
        Box::pin(read.then(move |read, supervisor, ctx| {
            let operated: AskFuture<Operated> = match read {
                Ok(stored) => supervisor.admit_new(Verb::RunAgain(root), by, stored, ctx),
                Err(error) => Box::pin(async move { Err(error) }),
            };
            operated.into_actor(supervisor)
        }))
    }

    /// Decides a verb that submits a root. If the new one needs limits or locks, the limiter has answered before. The row
    /// of one that runs again may have been acknowledged or evicted since it was read; then its failure is off the list
    /// twice.
    fn admit_new(
        &mut self,
        verb: Verb,
        by: OperatorRequest,
        mut stored: StoredTarget,
        ctx: &mut Context<Self>,
    ) -> AskFuture<Operated> {
        let mut demand = Demand::default();
        let is_new = !matches!(stored, StoredTarget::Again(_));
        if let Some(submission) = stored.submission()
            && !by.dry_run
        {
            let submissions = std::slice::from_mut(submission);
            // A root that runs again has a key for as long as its failure is kept, and the clock is not distrusted for
            // as long as failures are.
            if let Some(longest) = longest_key(submissions).filter(|_| is_new) {
                self.lifecycle.note_key(longest);
            }
            demand = self.admission.demand_of_submissions(&self.kernel, submissions);
        }
        if demand.is_empty() {
            return self.operate(verb, by, stored, ctx);
        }
        if let Some(refusal) = self.status.refusal() {
            return Box::pin(async move { Err(refusal) });
        }
        let (request, reply) = match self.requests.admit() {
            Ok(admitted) => admitted,
            Err(refusal) => return Box::pin(async move { Err(refusal) }),
        };
        let (pending, work) = self.admission.ask(demand, None);
        self.await_limiter(work, ctx, move |supervisor, acquired, ctx| {
            if let Some(submission) = stored.submission() {
                admit_births(submission.birth.asking(), acquired.answers);
            }
            let event = Event::Requested(request, Box::new(verb), Box::new(by), stored);
            let decision = supervisor.kernel.decide(supervisor.clock.now(), event);
            supervisor.commit_admitted(decision, pending, acquired.served, ctx);
        });
        Box::pin(replies::operated(Ok(reply), self.committed()))
    }

    /// Reads a family and decides its discharge. A live family is quarantined first, in an earlier commit: what is read
    /// of it then is all of it, since nothing of it moves any more.
    fn operate_on_family(&mut self, family: u64, by: OperatorRequest, ctx: &mut Context<Self>) -> Operating {
        let why = why_quarantined(&self.kernel, &self.quarantine, self.dispatch.holes(), family);
        if let Some(why) = &why {
            if let Err(refusal) = self.requests.begin_discharge(&self.kernel, family, &by) {
                return Box::pin(std::future::ready(Err(refusal)).into_actor(self));
            }
            if !by.dry_run && self.kernel.families().contains_key(&family) {
                self.quarantine_family(family, why.clone(), ctx);
            }
        }
        let (settled, committed) = (self.settled(), self.committed());
        let read = Requests::read_for_discharge(family, why, settled, committed);
        Box::pin(read.into_actor(self).then(move |read, supervisor, ctx| {
            let is_dry = by.dry_run;
            let operated = supervisor.discharge(family, read, by, ctx);
            operated.into_actor(supervisor).map(move |operated, supervisor, _| {
                if !is_dry {
                    supervisor.requests.discharge_answered(family);
                }
                operated
            })
        }))
    }

    fn discharge(
        &mut self,
        family: u64,
        read: Result<StoredTarget, AskError>,
        by: OperatorRequest,
        ctx: &mut Context<Self>,
    ) -> AskFuture<Operated> {
        // Asked again: another request may have discharged the family during the read.
        let why = why_quarantined(&self.kernel, &self.quarantine, self.dispatch.holes(), family);
        let moves = why.is_some() && !by.dry_run && self.kernel.families().contains_key(&family);
        match read.and_then(|read| {
            if moves {
                Err(being_quarantined(family))
            } else {
                Ok(read)
            }
        }) {
            Ok(read) => {
                let stored = if why.is_some() { read } else { StoredTarget::None };
                self.operate(Verb::Discharge(family), by, stored, ctx)
            }
            Err(error) => Box::pin(async move { Err(error) }),
        }
    }

    /// Forgets a family that is in the archive. An effect of the same decision frees what the family held.
    fn discharged(&mut self, family: u64) {
        self.quarantine.remove(family);
        self.dispatch.forget_family(family);
        self.metrics.show_quarantined(self.quarantine.len());
        self.requests.discharged(family);
    }
}

// Questions: answered from what is on disk.

#[cfg(feature = "testkit")]
impl Handler<reveal::Reveal> for Supervisor {
    type Result = MessageResult<reveal::Reveal>;

    fn handle(&mut self, _: reveal::Reveal, _: &mut Self::Context) -> Self::Result {
        MessageResult(Box::new(self.kernel.clone()))
    }
}

type Queried<T> = ResponseFuture<Result<T, AskError>>;

impl Supervisor {
    /// Returns the wait that every question begins with: everything decided so far must be on disk.
    fn settled(&mut self) -> impl Future<Output = Result<(), AskError>> + use<> {
        let refused = self.status.refusal();
        let barrier = if refused.is_none() {
            self.pipeline.barrier()
        } else {
            None
        };
        if barrier.is_some() && self.pipeline.is_gathered() {
            self.flush();
        }
        let failure = self.status.failure();
        async move {
            match (refused, barrier) {
                (Some(refused), _) => Err(refused),
                (None, Some(done)) => done.await.map_err(|_| failure.unanswered()),
                (None, None) => Ok(()),
            }
        }
    }

    /// Returns the reader of committed state, which also knows the families quarantined now.
    fn committed(&self) -> CommittedReader {
        CommittedReader::new(self.reader.clone(), self.quarantine.shared())
    }

    /// Answers a question from the store. The barrier is taken now and the read begins after it. So the answer shows
    /// every commit decided before the question arrived.
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

    /// Returns locks or limits as the limiter reported them. A grant that is not decided yet is never shown: the
    /// limiter's earlier answers are decided first, and are on disk when this answer is given.
    fn shown<T: 'static, V: 'static, F: FnOnce(Vec<T>, &Claims, &Kernel) -> Vec<V> + 'static>(
        &mut self,
        told: Result<(u64, Vec<T>), AskError>,
        views: F,
        ctx: &mut Context<Self>,
    ) -> impl Future<Output = Result<Vec<V>, AskError>> + use<T, V, F> {
        let (sender, receiver) = oneshot::channel();
        let failure = self.status.failure();
        match told {
            Ok((turn, told)) => self.sequence(turn, ctx, |supervisor, _| {
                let views = views(told, supervisor.admission.claims(), &supervisor.kernel);
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

    /// Answers a request for a subscription. Returns `true` if it is accepted. It is refused once the number of
    /// subscribers and followers has reached its bound.
    fn admit_subscriber(&mut self) -> (bool, Queried<()>) {
        let settled = self.settled();
        let is_full = !self.pipeline.takes_subscribers();
        let answer = Box::pin(async move {
            settled.await?;
            if is_full {
                let text = format!("there are {SUBSCRIBERS} subscribers, which is the limit; end a subscription first");
                let kind = NotNow::Full;
                return Err(AskError::NotNow { kind, text });
            }
            Ok(())
        });
        (self.status.refusal().is_none() && !is_full, answer)
    }

    /// Collects the figures of all wings at this moment. The size of the store is left out, because measuring it may
    /// block.
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
            going: self.kernel.in_flight(),
            actors: self.dispatch.active(),
            workers: self.dispatch.current_worker_statuses(&self.kernel, machine_now()),
            late: self.kernel.late(),
            lost_wakes: self.health.lost_wakes(&self.kernel),
            poisoned: self.status.cause().map(ToString::to_string),
            draining: self.kernel.is_draining(),
            recovered: self.lifecycle.recovered().clone(),
            quarantined: quarantined.map(|(family, why)| (*family, why.clone())).collect(),
            size_bytes: None,
            disk_room: self.health.disk_room(),
            commit_p99: figures.commit_p99,
            sync_times: self.reader.sync_times(),
            paused: self.kernel.pauses().iter().cloned().collect(),
            last_batch: figures.last_batch,
            longest_turn: figures.longest_turn,
            kinds: self
                .metrics
                .telemetry()
                .uses(&self.kernel.rules().kinds, self.clock.now()),
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

impl Handler<ReadHistoryPage> for Supervisor {
    type Result = Queried<view::HistoryPage>;

    fn handle(
        &mut self,
        ReadHistoryPage { id, before, limit }: ReadHistoryPage,
        _: &mut Self::Context,
    ) -> Self::Result {
        self.query(move |committed| async move {
            let root = committed.row(ProcedureId::root(id.family)).await?;
            root.ok_or(AskError::Unknown(id))?;
            committed.history_page(id.family, before, limit).await
        })
    }
}

impl Handler<Failures> for Supervisor {
    type Result = Queried<FailurePage>;

    fn handle(&mut self, Failures { after, limit }: Failures, _: &mut Self::Context) -> Self::Result {
        self.query(move |committed| async move { committed.failures(after, limit).await })
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
        let is_over = has_ended && self.status.refusal().is_none() && self.kernel.row(id).is_none();
        if let Some(outcome) = is_over.then(|| self.requests.newest_end(id)).flatten() {
            return Box::pin(std::future::ready(Ok(outcome)));
        }
        if has_ended || self.status.refusal().is_some() {
            return self
                .query(move |committed| async move { committed.outcome(id).await?.ok_or(AskError::Unknown(id)) });
        }
        let waiting = match self.requests.watch(id) {
            Ok(waiting) => waiting,
            Err(busy) => return Box::pin(async move { Err(busy) }),
        };
        let (failure, committed) = (self.status.failure(), self.committed());
        let is_quarantined = self.quarantine.contains(id.family);
        Box::pin(async move {
            // Of a quarantined family nobody ends any more, but some may have ended before.
            if is_quarantined {
                match committed.outcome(id).await {
                    Ok(Some(outcome)) => return Ok(outcome),
                    Ok(None) if matches!(committed.row(id).await, Ok(None)) => return Err(AskError::Unknown(id)),
                    Ok(None) | Err(_) => {}
                }
            }
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

    /// Answers even after the journal has failed, because callers learn the cause this way.
    fn handle(&mut self, _: TakeSnapshot, _: &mut Self::Context) -> Self::Result {
        let settled = self.settled();
        let has_failed = self.status.has_failed();
        let (mut snapshot, reader) = (self.snapshot(), self.reader.clone());
        Box::pin(async move {
            if !has_failed {
                settled.await?;
            }
            // Outside the supervisor's turn: the embedded store takes the lock that a sync holds.
            snapshot.size_bytes = reader.measure_bytes().await;
            Ok(snapshot)
        })
    }
}

// Dispatch: calls of user code.

/// Reports handled for one [`InboxWake`], before other messages have their turn.
const REPORTS_AT_ONCE: usize = 256;

/// Says that actors were found gone. The message waits behind their last reports.
#[derive(Message)]
#[rtype(result = "()")]
struct ActorsGone(Vec<ProcedureId>);

impl Supervisor {
    /// Has the dispatch wing make calls, and starts the reads that it needs for them.
    fn call<R>(&mut self, ctx: &mut Context<Self>, work: impl FnOnce(&mut Dispatch, EngineView<'_>) -> R) -> R {
        let view = EngineView {
            kernel: &self.kernel,
            quarantined: self.quarantine.families(),
        };
        let done = work(&mut self.dispatch, view);
        if self.dispatch.take_reads_due() {
            // Behind the effects of the same receipt, so that their reads are batched.
            ctx.notify(ReadsDue);
        }
        done
    }

    fn begin_reads(&mut self, ctx: &mut Context<Self>) {
        let durable = self.pipeline.durable();
        while let Some(reads) = self
            .dispatch
            .next_reads(&self.kernel, durable, &mut || self.pipeline.barrier())
        {
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
                    // At once: the calls behind this one may belong to the same family.
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
            self.dispatch.note_hole(&self.kernel, scope, hole);
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

    /// Retries a failed read after a delay.
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

    /// Handles all reports made so far. An [`InboxWake`] that is still queued then finds newer reports, or none.
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
            Report::Stage(report, span) => self.within(span, |supervisor| supervisor.stage_ended(report, ctx)),
            Report::Undo(report, span) => {
                self.within(span, |supervisor| supervisor.decide(Event::UndoEnded(report), ctx));
            }
            Report::CleanedUp(id) => {
                self.dispatch.cleaned_up(id);
                self.decide(Event::CleanedUp(id), ctx);
            }
            Report::Join(parent, first, seen, ruling) => {
                let ruled = Event::JoinRuled {
                    parent,
                    first,
                    seen,
                    ruling,
                };
                self.rule_ended(parent, ruled, ctx);
            }
            Report::Gate(id, seen, ruling) => self.rule_ended(id, Event::GateRuled { id, seen, ruling }, ctx),
            Report::Unloadable(id, why) => self.quarantine_family(id.family, format!("{id}: {why}"), ctx),
        }
    }

    /// Decides about a report. If its call has failed, the line in the log is inside the span of the call.
    fn within(&mut self, span: FailedSpan, decide: impl FnOnce(&mut Self)) {
        self.metrics.set_failed_span(span);
        decide(self);
        self.metrics.set_failed_span(None);
    }

    fn rule_ended(&mut self, id: ProcedureId, ruled: Event, ctx: &mut Context<Self>) {
        let next = self.dispatch.ruled(id);
        self.decide(ruled, ctx);
        if let Some(next) = next {
            self.call(ctx, |dispatch, view| dispatch.judge_next(view.kernel, next));
        }
    }

    fn stage_ended(&mut self, report: Box<StageEnded>, ctx: &mut Context<Self>) {
        if let Some(effects) = &report.effects
            && let Some(longest) = longest_key(&effects.submitted)
        {
            self.lifecycle.note_key(longest);
        }
        if !report.earlier.is_empty() {
            self.dispatch.run_ended(report.id, report.earlier.len());
        }
        if let Some(report) = self.admit_report(report, ctx) {
            self.decide(Event::StageEnded(report), ctx);
        }
    }

    /// Replaces the calls of actors that are gone with their threads. Also resends the calls that found no worker.
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
            // Calls that waited for their worker may have begun, which frees credit.
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

impl Handler<InboxWake> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: InboxWake, ctx: &mut Self::Context) {
        self.pipeline.begin_turn();
        self.turn(|supervisor| {
            for reported in supervisor.dispatch.take_reports(REPORTS_AT_ONCE) {
                supervisor.hear(reported, ctx);
            }
            supervisor.wake_more(ctx);
            supervisor.look_at_drain(ctx);
        });
        self.end_reports(ctx);
    }
}

impl Handler<ActorsGone> for Supervisor {
    type Result = ();

    fn handle(&mut self, ActorsGone(found): ActorsGone, ctx: &mut Self::Context) {
        if !self.status.is_running() {
            return;
        }
        // First the reports that these actors had still sent: only a call without a report is lost.
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

/// Why an engine stops once its limiter no longer answers. A panic of the limiter is reported before this, with its
/// cause.
const LIMITER_GONE: &str = "the limiter has ended, which is a defect of the engine";

/// The answer to an operator's request that was a dry run.
type DryRun = Result<Operated, AskError>;

impl Handler<Served> for Supervisor {
    type Result = ();

    fn handle(&mut self, Served { turn, claims }: Served, ctx: &mut Self::Context) {
        self.metrics.taken();
        self.admission.heard_served();
        self.turn(|supervisor| supervisor.sequence(turn, ctx, |supervisor, ctx| supervisor.grant(claims, ctx)));
    }
}

impl Supervisor {
    /// Takes an answer of the limiter after all earlier ones. Answers may depend on each other: the limiter grants a
    /// lock that a stage's report has just given up, and that report must be committed first.
    fn sequence(
        &mut self,
        turn: u64,
        ctx: &mut Context<Self>,
        take: impl FnOnce(&mut Self, &mut Context<Self>) + 'static,
    ) {
        // Turn 0 means that no limiter answered. A failed engine may have lost an earlier answer, so it decides
        // nothing.
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
            supervisor.admission.heard(&acquired);
            let turn = acquired.turn;
            let take_if_open = move |supervisor: &mut Self, ctx: &mut Context<Self>| {
                if supervisor.status.decides() {
                    take(supervisor, acquired, ctx);
                }
            };
            supervisor.turn(|supervisor| supervisor.sequence(turn, ctx, take_if_open));
        }));
    }

    /// Fails the engine: a decision made without the limiter could give away a permit or lock that another procedure
    /// holds.
    fn limiter_gone(&mut self) {
        if !self.status.is_stopped() {
            self.fail(FailureCause::Failed(LIMITER_GONE.to_owned()));
        }
    }

    /// Commits a decision that rests on an answer of the limiter. Then decides the grants that the same answer made
    /// to other procedures.
    fn commit_admitted(
        &mut self,
        decision: Decision,
        pending: PendingDemand,
        served: Vec<Claim>,
        ctx: &mut Context<Self>,
    ) {
        let may_serve = self.take_in(decision, ctx);
        // Before the grants: a procedure that this decision created may be among them.
        self.admission.settle(&self.kernel, self.quarantine.families(), pending);
        // The first of them takes the decision along, so that both take one sync.
        self.grant(served, ctx);
        self.flush_after(may_serve, ctx);
    }

    /// Asks the limiter for what a stage's report needs: limits and locks of new procedures and of the next stage.
    /// Returns the report if it needs nothing.
    fn admit_report(&mut self, mut report: Box<StageEnded>, ctx: &mut Context<Self>) -> Option<Box<StageEnded>> {
        if needs_nothing(&report) {
            return Some(report);
        }
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

    /// Asks the limiter for everything that a procedure lacks for its next stage, or for its next undo: that needs no
    /// permit of the procedure itself.
    fn request_admission(&mut self, id: ProcedureId, ctx: &mut Context<Self>) {
        if let Some(answer) = self.admission.request(&self.kernel, id) {
            self.await_limiter(answer, ctx, Self::answered);
        }
    }

    /// Queues the procedures again that waited for a permit or a lock before the start.
    fn rejoin_queues(&mut self, waiting: Vec<ProcedureId>, ctx: &mut Context<Self>) {
        let answer = self.admission.rejoin_queues(&self.kernel, waiting);
        self.await_limiter(answer, ctx, Self::answered);
    }

    fn answered(&mut self, Acquired { answers, served, .. }: Acquired, ctx: &mut Context<Self>) {
        let granted = answers.into_iter().filter(|answer| answer.grant == Grant::Granted);
        self.grant(granted.map(|answer| answer.claim), ctx);
        self.grant(served, ctx);
    }

    /// Decides grants of the limiter. Each grant is checked only after the grants before it are decided. Such a
    /// decision may make the next procedure ask again, and its grant is then stale.
    fn grant(&mut self, claims: impl IntoIterator<Item = Claim>, ctx: &mut Context<Self>) {
        for claim in claims {
            if let Some(id) = self.admission.accept(claim) {
                self.decide(Event::Granted(id), ctx);
            }
        }
    }

    /// Completes the plan of a dry run. The limiter applies the plan's changes to a copy and reports which procedures
    /// would be served.
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
                supervisor.admission.complete_plan(&supervisor.kernel, simulated, plan);
            }
            // The caller may have gone.
            sender.send(operated).ok();
        }));
        Box::pin(async move { receiver.await.map_err(|_| AskError::Stopped)? })
    }
}

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

    /// Answers even after the journal has failed, because that is a verdict too.
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
        let reading = QueueReading::to_explain(id, sender, &self.kernel, self.admission.claims());
        self.read_queues(reading, ctx);
        Box::pin(explain::answer(id, receiver, self.committed()))
    }
}

impl Supervisor {
    /// Returns the state that the health wing reads.
    fn engine_state(&self) -> EngineState<'_> {
        EngineState {
            kernel: &self.kernel,
            claims: self.admission.claims(),
            actors: self.dispatch.actors(),
            quarantined: self.quarantine.families(),
            holes: self.dispatch.holes(),
            telemetry: self.metrics.telemetry(),
            now: self.clock.now(),
            durable: self.pipeline.durable(),
            failed: self.status.cause(),
            pending_reads: self.dispatch.pending_reads(),
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

    fn count_failures(&mut self, is_asked: bool, ctx: &mut Context<Self>) {
        let durable = self.pipeline.durable();
        let now = self.clock.now();
        if let Some(count) = self.health.count_failures(durable, is_asked, &self.reader, now) {
            ctx.spawn(count.into_actor(self).map(|found, supervisor, _| {
                let now = supervisor.clock.now();
                supervisor.health.failures_counted(found, now);
            }));
        }
    }

    fn check_health(&mut self, requester: Requester, ctx: &mut Context<Self>) {
        self.measure_disk(ctx);
        self.count_failures(matches!(requester, Requester::Caller(_)), ctx);
        let check = self.health.begin_check(requester, self.pipeline.durable());
        self.read_queues(QueueReading::for_check(check), ctx);
    }

    fn read_queues(&self, reading: QueueReading, ctx: &mut Context<Self>) {
        let page = self.admission.limiter().ask(reading.next_page());
        ctx.spawn(page.into_actor(self).map(move |page, supervisor, ctx| {
            // Without a limiter the queues are empty.
            let page = page.unwrap_or_default();
            supervisor.turn(|supervisor| {
                // In the limiter's turn, so that the kernel knows of every grant made before this page.
                supervisor.sequence(page.turn, ctx, move |supervisor, ctx| {
                    supervisor.page_read(reading, page, ctx)
                });
            });
        }));
    }

    fn page_read(&mut self, reading: QueueReading, page: Waiters, ctx: &mut Context<Self>) {
        match reading.take(page, self.admission.claims(), &self.kernel) {
            PageRead::More(reading) => self.read_queues(reading, ctx),
            PageRead::All(reason, queues, missing) => self.queues_read(reason, queues, missing, ctx),
        }
    }

    fn queues_read(&mut self, reason: Reason, queues: Queues, missing: Option<Missing>, ctx: &mut Context<Self>) {
        match reason {
            Reason::Check(check) => {
                // Even an engine that commits nothing may have thawed families.
                self.kernel.cool();
                let next = self.health.start_check(check, queues, &self.engine_state());
                self.continue_check(next, ctx);
            }
            Reason::Recheck(check) => {
                let next = self.health.look_again(check, queues, &self.engine_state());
                self.continue_check(next, ctx);
            }
            Reason::Explain(id, sender) => {
                let explanation = self.health.explain(id, &queues, missing.as_ref(), &self.engine_state());
                // The explanation rests on everything decided so far, and is sent once that is on disk. The caller
                // may have gone.
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
                        // A search that panicked found no deadlock.
                        let (found, state) = (found.unwrap_or_default(), supervisor.engine_state());
                        let next = supervisor.health.found_deadlocks(check, found, &state);
                        supervisor.continue_check(next, ctx);
                    });
                }));
            }
            Next::AskAgain(check) => {
                self.read_queues(QueueReading::for_recheck(check), ctx);
            }
            Next::Repair(check, repairs) => self.end_check(check, repairs, ctx),
        }
    }

    /// Repairs what was lost, and reports the verdicts.
    fn end_check(&mut self, mut check: Box<Check>, repairs: Repairs, ctx: &mut Context<Self>) {
        let begun = machine_now();
        let repaired = self.repair(repairs, ctx);
        self.metrics.lost_wakes(&self.kernel, &repaired);
        let (now, is_serving) = (self.clock.now(), !self.status.has_failed());
        self.health.look_for_unserved(&mut check, now, is_serving);
        let lost = self.dispatch.lost_calls(&self.kernel);
        let findings = Findings {
            actors_lost: lost.map(|(id, lost)| actor_lost(id, lost)).collect(),
            repaired: &repaired,
            workers: self.dispatch.worker_statuses(&self.kernel),
            appending_since: self.pipeline.appending_since(),
            unreadable: self.dispatch.read_trouble(),
            clock_ahead: self.lifecycle.clock_ahead(&*self.clock),
        };
        self.health.conclude(&mut check, findings, &self.engine_state());
        let report = self.health.finish(check);
        let waiters = report.waiters;
        self.metrics
            .checked(&report.verdicts, waiters.locks, waiters.oldest, now);
        self.metrics.show_signals(&report.signals, now);
        match report.requester {
            Requester::Clock => self.check_later(report.took + begun.elapsed(), ctx),
            Requester::Caller(sender) => {
                // A repair is reported once it is on disk. The caller may have gone.
                let settled = (!repaired.is_empty()).then(|| self.settled().boxed_local());
                sender.send((report.verdicts, settled)).ok();
            }
        }
    }

    /// Repairs lost wakes and calls. Returns each procedure with what it had waited for.
    fn repair(&mut self, mut repairs: Repairs, ctx: &mut Context<Self>) -> Vec<(ProcedureId, String)> {
        if !self.status.decides() {
            return Vec::new();
        }
        self.replace_lost_calls(std::mem::take(&mut repairs.gone), ctx);
        if self.kernel.is_draining() {
            return Vec::new();
        }
        self.arm();
        let mut repaired = if repairs.needs_wakes(&self.kernel) {
            self.wake_lost(repairs.unknown, ctx)
        } else {
            Vec::new()
        };
        let uncalled = still_uncalled(repairs.uncalled, &self.engine_state(), || self.dispatch.pending_calls());
        repaired.extend(self.call_uncalled(uncalled, ctx));
        repaired
    }

    /// Wakes procedures that nothing else would have woken. Returns each with what it had waited for.
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

    /// Makes the calls that were never made. Returns each procedure with what was lost.
    fn call_uncalled(&mut self, uncalled: Vec<ProcedureId>, ctx: &mut Context<Self>) -> Vec<(ProcedureId, String)> {
        for id in &uncalled {
            self.health.recalled();
            for call in self.kernel.calls_of(*id) {
                self.call(ctx, |dispatch, view| dispatch.call(view, Box::new(call)));
            }
        }
        let lost = |id| (id, "the call of its stage".to_owned());
        uncalled.into_iter().map(lost).collect()
    }
}

// Metrics: what is counted.

impl Supervisor {
    /// Returns what a batch held, and how long it took until now.
    fn use_of(&self, waiting: &AwaitingReceipt) -> (BatchUse, Timestamp) {
        let now = self.clock.now();
        let batch = BatchUse {
            commits: waiting.commits.iter().map(Commit::decisions).sum(),
            writes: waiting.writes,
            took: now.since(waiting.appended),
        };
        (batch, now)
    }

    /// Counts the contents of a batch, now that it is on disk.
    fn count(&mut self, (batch, now): (BatchUse, Timestamp), observations: Vec<Observation>, ctx: &mut Context<Self>) {
        self.pipeline.took(batch.took);
        self.metrics.committed(batch, observations, now);
        self.metrics.show_mailboxes_soon(now);
        self.call_hooks(ctx);
    }

    /// Sends the next batch of metric hooks to a worker, unless a batch is under way.
    fn call_hooks(&mut self, ctx: &mut Context<Self>) {
        if self.metrics.may_call_hooks()
            && let Some(worker) = self.dispatch.next_worker()
        {
            let made = self.metrics.call_hooks(worker, &self.registry);
            ctx.spawn(
                made.into_actor(self)
                    .map(|(), supervisor, ctx| supervisor.hooks_made(ctx)),
            );
        }
    }

    fn hooks_made(&mut self, ctx: &mut Context<Self>) {
        self.metrics.hooks_ran();
        self.call_hooks(ctx);
        self.look_at_drain(ctx);
    }
}

// Lifecycle: start, timers, retention, drain, failure.

impl Supervisor {
    /// Calls the recovery hooks of this point. They are user code, so they run on the workers.
    fn call_recovery_hooks(&mut self, point: HookPoint) -> impl Future<Output = Result<Failed, StoreError>> + use<> {
        let wanted = recovery_hooks::wanted(&self.kernel, &self.registry, point);
        let mut worker = || self.dispatch.next_worker().cloned();
        let calls = wanted.into_iter().map(|hooked| (hooked, worker())).collect();
        recovery_hooks::call_all(calls, point, self.reader.clone(), Arc::clone(&self.registry))
    }

    /// Restores the claims that procedures held, then calls the second hooks. Returns the hooks' failures, and the
    /// procedures that wait for permits or locks.
    fn restore_claims(
        &mut self,
        failed: Result<Failed, StoreError>,
    ) -> impl Future<Output = Result<(Failed, Vec<ProcedureId>), StoreError>> + use<> {
        // Before the families whose first hook failed are quarantined, because those families keep what they hold.
        let claimants = self.lifecycle.take_claimants();
        let waiting = self.turn(|supervisor| supervisor.admission.restore(&supervisor.kernel, &claimants));
        let after = failed.map(|failed| {
            self.quarantine_at_start(failed);
            self.call_recovery_hooks(HookPoint::After)
        });
        async move { Ok((after?.await?, waiting)) }
    }

    /// Quarantines families whose hooks failed. The start's own commit resumes all others.
    fn quarantine_at_start(&mut self, failed: Failed) {
        for (family, why) in failed {
            // Once per family, however many of its hooks failed.
            if self.lifecycle.quarantined_at_start(&self.kernel, family, &why) {
                self.enter_quarantine(family, why);
            }
        }
    }

    /// Opens the engine. If the store did not answer, the start fails instead, because a failed read says nothing
    /// about the families.
    fn open_restored(
        &mut self,
        restored: Result<(Failed, Vec<ProcedureId>), StoreError>,
        ctx: &mut Context<Self>,
    ) -> ResponseActFuture<Self, Result<(), StartError>> {
        match restored {
            Ok((failed, waiting)) => {
                self.quarantine_at_start(failed);
                // Not a turn that is measured: it grows with the store, but no message can wait for it yet.
                Box::pin(self.open(waiting, ctx))
            }
            Err(error) => Box::pin(fut::err(StartError::Store(error))),
        }
    }

    /// Decides the start's own commit. Procedures that wait for permits queue up behind it.
    fn open(
        &mut self,
        waiting: Vec<ProcedureId>,
        ctx: &mut Context<Self>,
    ) -> impl ActorFuture<Self, Output = Result<(), StartError>> + use<> {
        self.rejoin_queues(waiting, ctx);
        self.decide(Event::Recovered, ctx);
        self.dispatch.reserve(self.kernel.in_flight());
        // After the decision: the start's own commit is not counted.
        self.metrics.restart_totals();
        // The reply waits for the start's commit, as every other reply waits for its own.
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
            tracing::warn!(%now, "the wall clock was set back; backoffs are shortened to what their policies allow");
            self.decide(Event::ClockSetBack, ctx);
        }
        if let Some(due) = self.kernel.next_deadline().filter(|due| *due <= now) {
            self.metrics.telemetry().timer_lag.set(now.since(due));
        }
        let may_be_more = !self.has_credit() || self.serve_timers(ctx);
        self.lifecycle.timers_wait(may_be_more);
        // Before the timer is armed: during an eviction no result arms it. Otherwise it would fire at once.
        self.evict(ctx);
        // If more timers are due than this turn may serve, the timer is armed once there is credit again.
        if self.status.decides() && !may_be_more {
            self.arm();
        }
    }

    /// Serves timers that are due. Returns `true` if more may be due.
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

    /// Returns `true` if more procedures may be woken in bulk.
    fn has_credit(&self) -> bool {
        let on_its_way = || {
            let (reads, reports) = (self.dispatch.pending_reads(), self.dispatch.pending_reports());
            reads as u64 + self.metrics.calls_waiting() + reports as u64
        };
        let is_backed_up = self.pipeline.is_backed_up();
        self.lifecycle
            .has_credit(self.pipeline.durable(), is_backed_up, on_its_way)
    }

    /// Continues waking in bulk if there is credit: timers, and a chunk of one broadcast.
    fn wake_more(&mut self, ctx: &mut Context<Self>) {
        if !self.lifecycle.may_wake(&self.kernel) || !self.status.decides() || !self.has_credit() {
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
                self.dispatch.read_succeeded(ReadSubject::Due);
                self.decide_evictions(doomed, until, ctx);
                self.arm();
            }
            Eviction::ReadAgain(why) => self.read_again(FailedRead::Due, &why, ctx),
            Eviction::Nothing => {}
        }
    }

    /// Decides evictions as of `until`, the time up to which results are evicted. Their keys are kept or deleted by
    /// that time too.
    fn decide_evictions(&mut self, doomed: Vec<EvictedFamily>, until: Timestamp, ctx: &mut Context<Self>) {
        // Before the decision: requests that are still reading these rows must read them again.
        for doomed in &doomed {
            self.requests.overtake(doomed.family);
        }
        // A drain may have made its last decision while the results were read. Nothing is evicted after that.
        if !doomed.is_empty() && self.status.decides() {
            let decision = self.kernel.decide(until, Event::EvictionDue(doomed));
            self.commit(decision, ctx);
        }
    }

    /// Schedules another look at the results that are due, because the store could not be read.
    fn evict_again(&mut self, ctx: &mut Context<Self>) {
        self.lifecycle.look_again();
        self.evict(ctx);
    }

    fn begin_drain(
        &mut self,
        deadline: Duration,
        waiter: Option<oneshot::Sender<DrainReport>>,
        ctx: &mut Context<Self>,
    ) {
        if self.status.has_failed() {
            // The decision that began the drain has failed, and the engine with it. Waiting callers find the cause in
            // their `Failure`.
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

    /// Begins the drain that an operator's request has just decided. A dry run or a refusal decides none.
    fn begin_requested_drain(&mut self, deadline: Duration, ctx: &mut Context<Self>) {
        if self.kernel.is_draining() && !self.lifecycle.is_draining() {
            self.begin_drain(deadline, None, ctx);
        }
    }

    /// Ends the drain once nothing runs any more and no metric hook is left to call.
    fn look_at_drain(&mut self, ctx: &mut Context<Self>) {
        let is_over = self.lifecycle.is_drained(&self.kernel)
            && self.status.decides()
            && self.metrics.hooks_are_over(self.pipeline.is_quiet());
        if is_over {
            self.end_drain(ctx);
        }
    }

    fn end_drain(&mut self, ctx: &mut Context<Self>) {
        // The deadline and the end of the last stage may both arrive. The first of them ends the drain.
        if !self.status.decides() {
            return;
        }
        let Some(report) = self.lifecycle.drain_report(&self.kernel, self.quarantine.len()) else {
            return;
        };
        // Regardless of how many requests wait: a drain is never refused.
        let (request, ended) = self.requests.open(self.status.cause());
        self.decide(Event::DrainEnded(request), ctx);
        // The drain's decision is the last. The store is given back as soon as it is on disk. A later commit, such as
        // an eviction, would reach a store that is closed or belongs to another engine.
        self.status.last_decision_made();
        let committed = async move { ended.received().await.is_ok() };
        ctx.spawn(committed.into_actor(self).map(move |committed, supervisor, ctx| {
            // If it failed, the waiting callers were told together with all others.
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
        // Last, and not before the answers have left: some of their receivers wait on these threads.
        self.dispatch.stop_workers();
        actix_rt::spawn(self.lifecycle.end_threads());
    }

    /// Ends the actor. Callers that still wait are answered when their channels are dropped with it.
    fn stop(&mut self, ctx: &mut Context<Self>) {
        self.status.stop();
        self.dispatch.close();
        self.lifecycle.stop();
        ctx.stop();
    }

    /// Quarantines a family that cannot run. All others continue, including families that waited for this one while
    /// it was suspected.
    ///
    /// If a member's report is with the limiter, it is decided first. The member has given the limiter a lock that its
    /// row still names, and the family keeps what its rows name: another procedure would have the same lock.
    fn quarantine_family(&mut self, family: u64, why: String, ctx: &mut Context<Self>) {
        if self.quarantine.contains(family) {
            return;
        }
        if self.admission.is_exchanging(family) {
            let answered = self.admission.answered();
            return self.await_limiter(answered, ctx, move |supervisor, _, ctx| {
                supervisor.quarantine_family(family, why, ctx);
            });
        }
        self.enter_quarantine(family, why);
        self.decide(Event::FamilyForgotten, ctx);
    }

    /// Quarantines a family. The caller must resume whatever this unblocks.
    fn enter_quarantine(&mut self, family: u64, why: String) {
        tracing::warn!(family, why, "the family is quarantined");
        // Counted after everything decided before, or the gauges would fall before they rose.
        let mut gone = self.metrics.quarantine(&self.kernel, family);
        match self.pipeline.last_observations() {
            Some(last) => last.append(&mut gone),
            None => self.metrics.count(gone, self.clock.now()),
        }
        // Before the kernel forgets the rows, because they say what the family keeps.
        self.admission.withdraw_family(&self.kernel, family);
        self.kernel.forget(family);
        self.dispatch.forget_family(family);
        // Before the next decision: what it releases of the family finds the family here, and leaves it what it holds.
        self.quarantine.insert(family, why);
        let now = self.clock.now();
        self.health
            .note(Rule::Quarantined, Some(ProcedureId::root(family)), now);
        self.metrics.show_quarantined(self.quarantine.len());
    }

    /// Fails the engine: it accepts no more commits, and answers all callers that wait for one.
    fn fail(&mut self, cause: FailureCause) {
        if let Some(cause) = self.status.fail(cause) {
            let why = cause.to_string();
            tracing::error!(why, "the engine takes no more commits");
            self.metrics.telemetry().poisoned.set(1.0);
            self.health.note(Rule::StoreFailed, None, self.clock.now());
        }
        // Also for a later cause: nothing may be left waiting for a commit.
        self.drop_waiting();
    }

    /// Drops everything that waits for a commit. Nothing decided from the failed commit on is ever reported.
    fn drop_waiting(&mut self) {
        // Callers that wait for an outcome or for the end of a drain find the cause in their `Failure`. So the status
        // is set before their channels are dropped.
        self.pipeline.clear();
        self.lifecycle.abandon_drain();
        if let Some(cause) = self.status.cause() {
            self.requests.fail_all(cause);
        }
        self.dispatch.close();
        self.lifecycle.disarm();
    }
}

impl Handler<Open> for Supervisor {
    type Result = ResponseActFuture<Self, Result<(), StartError>>;

    /// Runs, in this order: first hooks, restored claims, second hooks, the start's own commit.
    fn handle(&mut self, _: Open, _: &mut Self::Context) -> Self::Result {
        let begun = self.clock.now();
        self.metrics
            .recovered(&self.lifecycle.take_unfinished(), self.quarantine.len());
        let before = self.call_recovery_hooks(HookPoint::Before).into_actor(self);
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

impl Handler<StopHere> for Supervisor {
    type Result = ();

    /// Stops at once. A stage that still waits for something of its own runs to its end, and nothing receives its
    /// report.
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
    /// Stops for good after a panic. The kernel may hold half of a change, so nothing may be decided on it any more.
    /// The actor's futures are gone, and with them the turns of the limiter's answers and the next health check.
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

// Every request may also arrive counted, so that the depth of the mailbox is known.

/// Implements the handlers of counted requests: taking one lowers the depth of the mailbox.
macro_rules! handle_counted_requests {
    ($($message:ty),* $(,)?) => {
        $(impl Handler<CountedMessage<$message>> for Supervisor {
            type Result = <Self as Handler<$message>>::Result;

            fn handle(&mut self, message: CountedMessage<$message>, ctx: &mut Context<Self>) -> Self::Result {
                self.turn_of(stringify!($message), |supervisor| handle_counted(supervisor, message, ctx))
            }
        })*
    };
}

handle_counted_requests! {
    messages::Acknowledge,
    messages::Archived,
    messages::PollLatest,
    messages::Audit,
    messages::AwaitOutcome,
    messages::Broadcast,
    messages::Drain,
    messages::Explain,
    messages::Export,
    messages::Failures,
    messages::SubscribeLatest,
    messages::History,
    messages::ReadHistoryPage,
    messages::Limits,
    messages::List,
    messages::Locks,
    messages::ReadMailbox,
    messages::Operate,
    messages::Query,
    messages::ReadArchive,
    messages::SendSignal,
    messages::SendSignals,
    messages::Submit,
    messages::SubmitBatch,
    messages::SubmitBy,
    messages::Subscribe,
    messages::TakeSnapshot,
    messages::Tree,
    messages::Verdicts,
    messages::WriteUserData,
}
