//! The dispatch wing: calls of user code, from the effect to the worker. It owns the actors of active procedures and
//! the workers that they run on. It also owns the reads before a call, and the caches that save such reads.
//!
//! A call goes out at once if the procedure's actor or its value is in memory; otherwise it waits in [`revival`] for a
//! read. The wing asks the kernel what a call needs, and never decides. It returns what a call reports, and any finding
//! of a read that needs a decision.

pub(super) mod actor_table;
pub(super) mod failed_reads;
mod join_rules;
pub(super) mod orphaned_calls;
mod output_cache;
mod payload_cache;
pub(super) mod revival;
pub(crate) mod rollback_stacks;
#[cfg(test)]
mod sample;
mod wake_batch;
pub(crate) mod workers;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actix::prelude::*;
use procession_kernel::{
    DispatchEffect, HistoryEntry, Kernel, ProcedureId, Record, Seq, SpeculativeCall, StageCall, StageEnded,
    StageOutcome, StageTask, Timestamp, UndoEnded, WaitReason, Wake,
};
use rustc_hash::FxHashSet;
use tokio::sync::oneshot;

use crate::context::{Call, Fence, Host, OfRow, RunProgress, Woken};
use crate::error::{ReadError, StoreError};
use crate::procedure_actor::{ProcedureActor, Report, Reported};
use crate::queues::BatchedInbox;
use crate::registry::Registry;
use crate::view::WorkerStatus;
use crate::worker::CallSlot;
use actor_table::{ActiveProcedure, ActorTable, Issued, LostCall, describe};
use failed_reads::{FailedRead, FailedReads, ReadSubject, ReadTrouble};
use join_rules::JoinRules;
use orphaned_calls::{OrphanedCall, OrphanedCalls};
use output_cache::OutputCache;
use payload_cache::{BornPayloads, PayloadCache};

use revival::{CallInputs, Group, GroupRead, InputRequest, Revival};
use rollback_stacks::entries::ScopeEntries;
use rollback_stacks::holes::Holes;
use rollback_stacks::{RollbackStacks, StackRead};
use wake_batch::WakeBatch;
use workers::Workers;

/// The reason for the failure of a call that was lost with its thread.
const THREAD_ENDED: &str = "its thread ended during the call";

/// The parts of the engine that the wing reads.
#[derive(Clone, Copy)]
pub(super) struct EngineView<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) quarantined: &'a BTreeMap<u64, String>,
}

/// When a call is made.
#[derive(Clone, Copy)]
enum Timing {
    /// Once the decision that it comes from is on disk.
    Proved,
    /// Perhaps before.
    Speculative,
}

/// What became of the inputs that were read for a call.
#[must_use]
pub(super) enum Revived {
    /// The call was made, or is no longer wanted.
    Done,
    /// The store could not be read, for this reason. The caller hands the read to [`Dispatch::read_failed`].
    TryAgain(FailedRead, StoreError),
    /// The inputs cannot be read or decoded, for this reason. The caller quarantines the family.
    Damaged(u64, String),
}

/// The parts that the wing is built from.
pub(super) struct DispatchParts {
    pub(super) workers: Workers,
    pub(super) registry: Arc<Registry>,
    pub(super) host: Arc<Host>,
    pub(super) reports: Arc<BatchedInbox<Reported>>,
    /// The store's own number.
    pub(super) store_number: u64,
    /// The rollback stacks that the start read.
    pub(super) stacks: BTreeMap<u64, Vec<HistoryEntry>>,
}

/// The dispatch wing.
pub(super) struct Dispatch {
    actors: ActorTable,
    wakes: WakeBatch,
    workers: Workers,
    registry: Arc<Registry>,
    host: Arc<Host>,
    /// The reports of procedures' actors.
    reports: Arc<BatchedInbox<Reported>>,
    store_number: u64,
    /// Stages and undos that were called in this epoch.
    calls: u64,
    revival: Revival,
    failed_reads: FailedReads,
    payloads: PayloadCache,
    outputs: OutputCache,
    join_rules: JoinRules,
    stacks: RollbackStacks,
    holes: Holes,
    orphaned_calls: OrphanedCalls,
    /// `true` once the engine has failed or stopped: no call is made any more.
    is_closed: bool,
}

impl Dispatch {
    pub(super) fn new(parts: DispatchParts) -> Self {
        let DispatchParts {
            workers,
            registry,
            host,
            reports,
            store_number,
            stacks,
        } = parts;
        Self {
            actors: ActorTable::default(),
            wakes: WakeBatch::default(),
            workers,
            registry,
            host,
            reports,
            store_number,
            calls: 0,
            revival: Revival::default(),
            failed_reads: FailedReads::default(),
            payloads: PayloadCache::default(),
            outputs: OutputCache::default(),
            join_rules: JoinRules::default(),
            stacks: RollbackStacks::new(stacks),
            holes: Holes::default(),
            orphaned_calls: OrphanedCalls::default(),
            is_closed: false,
        }
    }

    /// Returns the actors of active procedures.
    pub(super) const fn actors(&self) -> &ActorTable {
        &self.actors
    }

    /// Returns how many procedures have an actor.
    pub(super) fn active(&self) -> usize {
        self.actors.len()
    }

    /// Begins to note what the records of one decision say about values, outputs and ended families.
    pub(super) const fn begin_records<'a>(&'a mut self, records: &'a [Record]) -> RecordNotes<'a> {
        RecordNotes {
            payloads: self.payloads.begin(records),
            outputs: &mut self.outputs,
            stacks: &mut self.stacks,
        }
    }

    /// Drops everything about a family that is quarantined or discharged.
    pub(super) fn forget_family(&mut self, family: u64) {
        self.actors.remove_family(family);
        self.payloads.forget(family);
        self.outputs.forget(family);
        self.stacks.forget(family);
        self.holes.forget_family(family);
        self.failed_reads.forget_family(family);
    }

    /// Releases all actors and makes no more calls: the engine has failed or stopped.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.actors.clear();
        self.revival.clear();
        self.failed_reads.clear();
        self.stacks.clear();
    }

    // From an effect to a call. Each of these may queue a read: see `take_reads_due`.

    /// Holds back the wakes of workers until [`Self::end_batch`]: the effects of one receipt follow.
    pub(super) const fn begin_batch(&mut self) {
        self.wakes.begin();
    }

    /// Wakes the workers that the batch has calls for.
    pub(super) fn end_batch(&mut self) {
        self.wakes.end();
    }

    /// Acts on an effect. Returns the scope whose rollback stack is to be loaded: the caller asks
    /// [`Self::load_stack`] for it.
    pub(super) fn act(&mut self, view: EngineView<'_>, effect: DispatchEffect) -> Option<ProcedureId> {
        match effect {
            DispatchEffect::Call(call) => self.call(view, call),
            DispatchEffect::LoadStack(scope) => return Some(scope),
            DispatchEffect::Stop(id) => self.stop(view.kernel, id),
        }
        None
    }

    /// Makes a call: at once if nothing has to be read for it, otherwise once its inputs were read.
    pub(super) fn call(&mut self, view: EngineView<'_>, mut call: Box<StageCall>) {
        match &call.task {
            StageTask::Execute { wake, .. } => {
                if call.payload.is_none() {
                    call.payload = self.payloads.take(call.id);
                }
                let is_at_hand = call.payload.is_some() || self.actors.contains(call.id);
                if wake.is_none() && is_at_hand {
                    self.send(view, call, Woken::Plainly, Timing::Proved);
                } else {
                    self.revival.enqueue(call);
                }
            }
            StageTask::Undo { .. } if self.actors.contains(call.id) => self.call_revived(view, call, Woken::Plainly),
            // If the rule's last call is still out, this one follows it.
            StageTask::Join(_) | StageTask::Gate => self.call_rule(call),
            StageTask::Undo { .. } | StageTask::CleanUp => self.revival.enqueue(call),
        }
    }

    /// Makes a speculative call. Returns it if it must wait for the receipt: because its value is not in memory, and the
    /// store is behind, or because the procedure is far ahead of the disk already.
    pub(super) fn speculate(&mut self, view: EngineView<'_>, call: SpeculativeCall) -> Result<(), SpeculativeCall> {
        let id = call.get().id;
        let is_at_hand = call.get().payload.is_some() || self.actors.contains(id) || self.payloads.contains(id);
        let may_run = self.actors.may_run_ahead(id);
        if !is_at_hand || may_run == 0 || self.is_closed {
            return Err(call);
        }
        let mut call = call.into_call();
        call.ahead = call.ahead.min(may_run - 1);
        if call.payload.is_none() {
            call.payload = self.payloads.take(id);
        }
        self.send(view, call, Woken::Plainly, Timing::Speculative);
        Ok(())
    }

    /// Notes that a run has ended, which had so many stages before its last one.
    pub(super) fn run_ended(&mut self, id: ProcedureId, earlier: usize) {
        self.actors.ran_more(id, earlier);
    }

    fn call_rule(&mut self, call: Box<StageCall>) {
        if let Some(call) = self.join_rules.begin(call) {
            self.revival.enqueue(call);
        }
    }

    /// Releases the actor of a procedure that is parked or has ended. A procedure that has gone on since, ahead of the disk,
    /// keeps it.
    pub(super) fn stop(&mut self, kernel: &Kernel, id: ProcedureId) {
        self.join_rules.end(id);
        let run = kernel.stage_out(id).map(Issued::Stage);
        if run.is_none() || run != self.actors.newest_call(id) {
            self.actors.remove(id);
        }
    }

    /// Drops an actor with its call, as if its thread was gone.
    #[cfg(test)]
    pub(super) fn lose(&mut self, id: ProcedureId) {
        self.actors.remove(id);
    }

    /// Drops the cached value of a procedure that has ended: it may have ended without ever beginning.
    pub(super) fn ended(&mut self, id: ProcedureId) {
        self.payloads.take(id);
    }

    /// Sends a call to a procedure's actor. Starts the actor first if there is none.
    fn send(&mut self, view: EngineView<'_>, mut stage: Box<StageCall>, woken: Woken, timing: Timing) {
        let (id, issued) = (stage.id, Issued::of(&stage));
        if self.actors.contains(id) {
            // The actor has the value, or gets it with an earlier call.
            stage.payload = None;
        } else if stage.payload.is_some() {
            match self.start_actor() {
                Some(active) => self.actors.insert(id, active),
                None => return self.call_elsewhere(view, id, issued),
            }
        }
        let call = self.equip(view.kernel, stage, woken, timing);
        if !self.actors.send(id, call, &mut self.wakes) {
            self.actors.remove(id);
            self.call_again(view, id, issued);
        }
    }

    /// Adds to a call what its code may ask for. Only stages and undos have a fence of their own and a span.
    fn equip(&mut self, kernel: &Kernel, mut stage: Box<StageCall>, woken: Woken, timing: Timing) -> Call {
        let mut row = None;
        if let StageTask::Execute { .. } | StageTask::Undo { .. } = stage.task {
            self.calls += 1;
            // A child was submitted by its parent's stage, so it belongs to the trace of its family. The row of a root is not
            // looked at again for that: among thousands it has left the processor's caches since the decision.
            if !stage.id.is_root() {
                let root = kernel.row(ProcedureId::root(stage.id.family));
                stage.trace = root.and_then(|root| root.rare().trace.clone());
            }
            if tracing::level_enabled!(tracing::Level::INFO) {
                row = of_row(kernel, stage.id).map(Box::new);
            }
        }
        Call {
            stage,
            store: self.store_number,
            fence: Fence {
                epoch: kernel.epoch(),
                call: self.calls,
            },
            woken,
            row,
            is_speculative: matches!(timing, Timing::Speculative),
            run: RunProgress::default(),
        }
    }

    /// Starts an actor on the worker whose turn it is; `None` if that worker's thread is gone. The actor's first call
    /// brings the value that the procedure is revived from.
    fn start_actor(&mut self) -> Option<ActiveProcedure> {
        let (worker, heartbeat, queue) = self.workers.next()?;
        let (registry, host) = (Arc::clone(&self.registry), Arc::clone(&self.host));
        let reports = Arc::clone(&self.reports);
        let slot = CallSlot::new(Arc::clone(heartbeat));
        let guard = CallSlot::guard(&slot);
        let queue = Arc::clone(queue);
        let start = move |_: &mut Context<ProcedureActor>| ProcedureActor::new(registry, host, reports, guard);
        let addr = ProcedureActor::start_in_arbiter(worker, start);
        addr.connected().then(|| ActiveProcedure::new(addr, queue, slot))
    }

    /// Sends a call again because its worker's thread was gone before it could begin. If no thread can be started, the
    /// call waits for the next health check.
    fn call_elsewhere(&mut self, view: EngineView<'_>, id: ProcedureId, issued: Issued) {
        if self.workers.replace_ended() {
            self.call_again(view, id, issued);
        } else {
            self.orphaned_calls.strand(id, issued);
        }
    }

    /// Repeats a call that has not begun, if the kernel still asks for it. Returns `true` if it does.
    fn call_again(&mut self, view: EngineView<'_>, id: ProcedureId, issued: Issued) -> bool {
        if matches!(issued, Issued::Join | Issued::Gate) {
            // The rule is no longer out: its call is lost.
            self.join_rules.end(id);
        }
        let Some(call) = issued.call(view.kernel, id) else {
            return false;
        };
        self.call(view, Box::new(call));
        true
    }

    // Reads before a call.

    /// Returns `true`, once, if calls wait for reads and no [`ReadsDue`](revival::ReadsDue) is under way. The caller then sends
    /// itself one.
    pub(super) fn take_reads_due(&mut self) -> bool {
        self.revival.take_reads_due()
    }

    /// Notes that the [`ReadsDue`](revival::ReadsDue) has arrived. The caller then begins [`Self::next_reads`].
    pub(super) fn reads_due(&mut self) {
        self.revival.reads_due();
    }

    /// Reserves room for the calls that a start makes.
    pub(super) fn reserve(&mut self, calls: usize) {
        self.revival.reserve(calls);
    }

    /// Returns how many calls wait for a read, approximately.
    pub(super) fn pending_reads(&self) -> usize {
        self.revival.len()
    }

    /// Returns the next group of reads, unless enough are under way. If a call is among them that was to run ahead of the
    /// disk and lost its actor, they wait for `barrier`: the store has its value only then.
    pub(super) fn next_reads(
        &mut self,
        kernel: &Kernel,
        durable: Seq,
        barrier: &mut dyn FnMut() -> Option<oneshot::Receiver<()>>,
    ) -> Option<impl Future<Output = GroupRead> + use<>> {
        let failed_reads = &mut self.failed_reads;
        let stopped = |id| failed_reads.succeeded(ReadSubject::Call(id));
        let (number, group) = self.revival.begin(kernel, stopped)?;
        let is_ahead = group.iter().filter_map(StageCall::run).any(|run| run > durable);
        let settled = is_ahead.then(barrier).flatten();
        let requests = group.iter().map(|call| self.request(kernel, durable, call)).collect();
        let reader = self.host.reader.clone();
        Some(async move {
            if let Some(settled) = settled {
                // If the journal fails, no call is made any more.
                settled.await.ok();
            }
            Revival::read(reader, number, group, requests).await
        })
    }

    fn request(&mut self, kernel: &Kernel, durable: Seq, call: &StageCall) -> InputRequest {
        let (wake, children) = match &call.task {
            StageTask::Execute { wake, .. } => {
                let children = match wake {
                    Some(Wake::Children(first, count)) => {
                        self.outputs.children(kernel, durable, call.id.family, *first, *count)
                    }
                    Some(Wake::Signal(..) | Wake::Timeout(_) | Wake::Decision(_)) | None => None,
                };
                (wake.clone(), children)
            }
            // A join rule is called whenever a child ends, so the reader's thread goes through the children instead.
            StageTask::Join(round) => (Some(Wake::Children(round.first, round.count)), None),
            StageTask::Undo { .. } | StageTask::Gate | StageTask::CleanUp => (None, None),
        };
        let siblings = match call.task {
            StageTask::Gate => call.before.clone(),
            StageTask::Execute { .. } | StageTask::Undo { .. } | StageTask::Join(_) | StageTask::CleanUp => Vec::new(),
        };
        InputRequest {
            id: call.id,
            payload: call.payload.is_none() && !self.actors.contains(call.id),
            wake,
            children,
            siblings,
        }
    }

    /// Notes that a group was read.
    pub(super) fn end_reads(&mut self, read: GroupRead) {
        self.revival.end(read);
    }

    /// Takes the next group that was read. Groups leave in the order in which they were begun, so calls are made in the
    /// order in which they were decided. The caller passes each call to [`Self::revive`].
    pub(super) fn next_group(&mut self) -> Option<Group> {
        self.revival.next_ready()
    }

    /// Makes a call with the inputs that were read for it.
    pub(super) fn revive(
        &mut self,
        view: EngineView<'_>,
        mut call: StageCall,
        inputs: Result<CallInputs, ReadError>,
    ) -> Revived {
        match inputs {
            Ok(inputs) => {
                self.failed_reads.succeeded(ReadSubject::Call(call.id));
                call.payload = call.payload.or(inputs.payload);
                self.call_revived(view, Box::new(call), inputs.woken);
                Revived::Done
            }
            Err(ReadError::Store(why)) if why.may_pass() => Revived::TryAgain(FailedRead::Call(call), why),
            Err(why) => Revived::Damaged(call.id.family, format!("{}: {why}", call.id)),
        }
    }

    fn call_revived(&mut self, view: EngineView<'_>, call: Box<StageCall>, woken: Woken) {
        if view.quarantined.contains_key(&call.id.family) || self.is_closed {
            return;
        }
        if call.payload.is_none() && !self.actors.contains(call.id) {
            // The actor was there when the read began and has gone since, so the value must be read too.
            self.revival.enqueue(call);
            return;
        }
        if let Some(run) = call.run() {
            // The stage may have been stopped during the read.
            let in_flight = view.kernel.row(call.id).and_then(|row| row.in_flight);
            if in_flight.is_none_or(|in_flight| in_flight.run != run) {
                return;
            }
        }
        self.send(view, call, woken, Timing::Proved);
    }

    // Rollback stacks.

    /// Returns the stack of a scope if it is in memory: the start has read it, and it is still the whole stack, or the store
    /// has not put it into tables yet. Otherwise queues the scope for [`Self::next_stacks`].
    pub(super) fn load_stack(&mut self, kernel: &Kernel, scope: ProcedureId) -> Option<Vec<HistoryEntry>> {
        let recovered = self.stacks.recovered(kernel, scope.family);
        let entries = recovered.or_else(|| RollbackStacks::recent(kernel, &self.host.reader, scope));
        if entries.is_none() {
            self.stacks.request(scope);
        }
        entries
    }

    /// Returns the next read of stacks of a family, unless one is under way.
    pub(super) fn next_stacks(
        &mut self,
        kernel: &Kernel,
        family: u64,
    ) -> Option<impl Future<Output = StackRead> + use<>> {
        self.stacks.next_read(kernel, &self.host.reader, family)
    }

    /// Ends a read of stacks, and returns the entries of each scope. The caller passes them to [`Self::stack_entries`].
    pub(super) fn end_stacks(&mut self, read: StackRead) -> ScopeEntries {
        self.stacks.end(read)
    }

    /// Returns the entries that a rollback continues with, or the reason why the caller must have them read again.
    /// Damaged entries are treated as missing: the rollback parks where it needs them. The damage is returned in words.
    pub(super) fn stack_entries(
        &mut self,
        scope: ProcedureId,
        entries: Result<Vec<HistoryEntry>, ReadError>,
    ) -> Result<(Vec<HistoryEntry>, Option<String>), StoreError> {
        let entries = match entries {
            Ok(entries) => (entries, None),
            Err(ReadError::Store(why)) if why.may_pass() => return Err(why),
            Err(error) => {
                tracing::warn!(family = scope.family, %error, "the history of a family is damaged");
                (Vec::new(), Some(error.to_string()))
            }
        };
        self.failed_reads.succeeded(ReadSubject::Stack(scope));
        Ok(entries)
    }

    /// Notes what is missing from the history that a rollback needs. Call it once the stack is decided: only a rollback
    /// that has parked is noted.
    pub(super) fn note_hole(&mut self, kernel: &Kernel, scope: ProcedureId, hole: String) {
        self.holes.note(kernel, scope, hole);
    }

    /// Returns what is missing from histories, by the procedure whose rollback found it missing.
    pub(super) const fn holes(&self) -> &BTreeMap<ProcedureId, String> {
        self.holes.all()
    }

    // Reads that failed.

    /// Notes a failed read that must be retried. The caller then waits for [`Self::next_retry`].
    pub(super) fn read_failed(&mut self, read: FailedRead, why: &StoreError, now: Timestamp) {
        if self.is_closed {
            return;
        }
        if self.failed_reads.trouble().is_none() {
            tracing::warn!(%why, "the store cannot be read; reads are retried until they succeed");
        }
        self.failed_reads.failed(read, why, now);
    }

    /// Notes that a read succeeded.
    pub(super) fn read_succeeded(&mut self, subject: ReadSubject) {
        self.failed_reads.succeeded(subject);
    }

    /// Returns how long to wait before [`Self::take_retries`]; `None` if no read failed, or such a wait is already
    /// under way.
    pub(super) fn next_retry(&mut self) -> Option<Duration> {
        self.failed_reads.arm()
    }

    /// Takes the failed reads that are retried now.
    pub(super) fn take_retries(&mut self) -> Vec<FailedRead> {
        self.failed_reads.round()
    }

    /// Queues a call for another read.
    pub(super) fn read_again(&mut self, call: StageCall) {
        self.revival.enqueue(Box::new(call));
    }

    /// Describes the failing reads, if there are any.
    pub(super) fn read_trouble(&self) -> Option<ReadTrouble<'_>> {
        self.failed_reads.trouble()
    }

    // Reports.

    /// Takes the oldest reports, at most `most`, in the order of their arrival. If more are left, another
    /// [`InboxWake`](crate::queues::InboxWake) is sent, behind everything that waits in the mailbox now.
    pub(super) fn take_reports(&self, most: usize) -> Vec<Reported> {
        self.reports.pop_batch(most)
    }

    /// Returns how many reports wait to be taken.
    pub(super) fn pending_reports(&self) -> usize {
        self.reports.len()
    }

    /// Notes that a procedure has cleaned up. Its actor is released, unless an undo was sent to it meanwhile.
    pub(super) fn cleaned_up(&mut self, id: ProcedureId) {
        self.actors.remove_idle(id);
    }

    /// Notes that a procedure's rule has ruled. Returns the next call, for [`Self::judge_next`]. The actor is released,
    /// unless another call was sent to it meanwhile.
    pub(super) fn ruled(&mut self, id: ProcedureId) -> Option<Box<StageCall>> {
        self.actors.remove_idle(id);
        self.join_rules.end(id)
    }

    /// Calls a rule about what ended during its last call, if its procedure still waits. Must run after the last ruling
    /// was decided, because that ruling may have ended the wait.
    pub(super) fn judge_next(&mut self, kernel: &Kernel, next: Box<StageCall>) {
        let waits = kernel
            .row(next.id)
            .is_some_and(|row| matches!(row.wait, Some(WaitReason::Children | WaitReason::Gate)));
        if waits {
            self.call_rule(next);
        }
    }

    // Workers.

    /// Returns how often to check the workers, if at all.
    pub(super) fn check_workers_every(&self) -> Option<Duration> {
        self.workers.check_every()
    }

    /// Finds workers that are blocked, and names the calls that block them. Returns the longest time for which a
    /// worker has been blocked.
    pub(super) fn check_workers(&mut self, kernel: &Kernel, now: Instant) -> Duration {
        for blocked in self.workers.check(now) {
            let (call, stage) = describe(kernel, blocked.procedure, self.actors.newest_call(blocked.procedure));
            let seconds = blocked.time.as_secs_f32();
            tracing::warn!(worker = blocked.worker, procedure = %blocked.procedure, stage, ?call, seconds, "a worker is blocked");
            self.workers.block(&blocked, call, stage);
        }
        self.workers.blocked_for(now)
    }

    /// Adds or retires workers. Releases every actor that runs nothing on a blocked or retiring worker, and sends the
    /// calls again that had not begun there.
    pub(super) fn rebalance(&mut self, view: EngineView<'_>, now: Instant) {
        self.workers.adjust(now);
        let Some(is_left) = self.workers.left_behind() else {
            return;
        };
        for (id, issued) in self.actors.vacate(is_left) {
            if self.call_again(view, id, issued) {
                tracing::info!(procedure = %id, "a call was moved off a blocked worker");
            }
        }
    }

    /// Returns the arbiter of the worker whose turn it is.
    pub(super) fn next_worker(&mut self) -> Option<&ArbiterHandle> {
        self.workers.next().map(|(worker, ..)| worker)
    }

    /// Describes each worker as of the last check.
    pub(super) fn worker_statuses(&self, kernel: &Kernel) -> Vec<WorkerStatus> {
        self.workers
            .statuses(&|id| describe(kernel, id, self.actors.newest_call(id)))
    }

    /// Describes each worker as of now.
    pub(super) fn current_worker_statuses(&mut self, kernel: &Kernel, now: Instant) -> Vec<WorkerStatus> {
        self.workers.observe(now);
        self.worker_statuses(kernel)
    }

    /// Ends the threads of workers that end with the engine.
    pub(super) fn stop_workers(&self) {
        self.workers.stop();
    }

    // Lost calls.

    /// Sends the calls again for which there was no worker.
    pub(super) fn call_stranded(&mut self, view: EngineView<'_>) {
        for (id, issued) in self.orphaned_calls.take_stranded() {
            self.call_again(view, id, issued);
        }
    }

    /// Starts a new thread for each worker whose thread has ended.
    pub(super) fn replace_ended_workers(&mut self) {
        self.workers.replace_ended();
    }

    /// Releases an actor that is gone with its thread. Returns the calls that were lost with it, the oldest first.
    pub(super) fn take_lost_calls(&mut self, id: ProcedureId) -> Vec<LostCall> {
        let calls = self.actors.get(id).map(ActiveProcedure::lost).unwrap_or_default();
        if !calls.is_empty() {
            self.actors.remove(id);
        }
        calls
    }

    /// Makes a lost call again, unless it had begun. A stage or an undo that had begun has failed, so this returns the
    /// report that it never made. If the kernel no longer asks for the call, the procedure was bypassed or its family
    /// quarantined.
    pub(super) fn replace_call(
        &mut self,
        view: EngineView<'_>,
        id: ProcedureId,
        call: &LostCall,
        now: Timestamp,
    ) -> Option<Report> {
        let LostCall { issued, ran } = *call;
        issued.call(view.kernel, id)?;
        let described = describe(view.kernel, id, Some(issued));
        let (what, stage) = &described;
        tracing::error!(procedure = %id, call = ?what, stage, begun = ran, "an actor was lost with its thread");
        self.orphaned_calls.note(view.kernel, id, described, now);
        match issued {
            Issued::Stage(run) if ran => {
                let outcome = StageOutcome::Panicked(THREAD_ENDED.to_owned());
                let report = StageEnded::new(id, run, view.kernel.epoch(), now, outcome);
                Some(Report::Stage(Box::new(report), None))
            }
            Issued::Undo(scope, number) if ran => {
                let report = UndoEnded::new(scope, number, now, Err(THREAD_ENDED.to_owned()));
                Some(Report::Undo(Box::new(report), None))
            }
            Issued::Stage(_) | Issued::Undo(..) | Issued::Join | Issued::Gate | Issued::CleanUp => {
                self.call_again(view, id, issued);
                None
            }
        }
    }

    /// Returns the lost calls that must be reported.
    pub(super) fn lost_calls(&mut self, kernel: &Kernel) -> impl Iterator<Item = (ProcedureId, &OrphanedCall)> {
        self.orphaned_calls.lost(kernel)
    }

    /// Returns the procedures whose calls wait for a read or for a worker.
    pub(super) fn pending_calls(&self) -> FxHashSet<ProcedureId> {
        let mut pending = self.revival.waiting();
        pending.extend(self.failed_reads.calls());
        pending.extend(self.orphaned_calls.stranded());
        pending
    }
}

/// What the caches keep of one decision's records.
pub(super) struct RecordNotes<'a> {
    payloads: BornPayloads<'a>,
    outputs: &'a mut OutputCache,
    stacks: &'a mut RollbackStacks,
}

impl RecordNotes<'_> {
    /// Takes the next record of the decision.
    pub(super) fn take(&mut self, record: &Record) {
        if let Record::Row(row) = record {
            self.payloads.take(row);
        } else if let Record::Output(id, value) = record {
            self.outputs.ended(*id, value);
        } else if let Record::FamilyEnded(family, _) = record {
            self.outputs.forget(*family);
            self.stacks.forget(*family);
        }
    }
}

/// Returns the fields that a span takes from a row.
fn of_row(kernel: &Kernel, id: ProcedureId) -> Option<OfRow> {
    let row = kernel.row(id)?;
    Some(OfRow {
        state: row.state,
        revision: row.revision,
    })
}
