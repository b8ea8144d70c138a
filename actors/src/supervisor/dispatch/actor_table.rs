//! The actors of active procedures, and the calls that were sent to each.

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{Kernel, ProcedureId, RUN_LENGTH_MAX, Scope, Seq, StageCall, StageTask, Timestamp};
use rustc_hash::FxHashMap;

use super::wake_batch::WakeBatch;
use crate::context::Call;
use crate::journal::codec;
use crate::procedure_actor::ProcedureActor;
use crate::view::UserCall;
use crate::worker::CallSlot;
use crate::worker_inbox::{CallQueue, OutgoingCall};

/// A call that was sent, by what identifies it in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Issued {
    Stage(Seq),
    Undo(ProcedureId, u32),
    Join,
    Gate,
    CleanUp,
}

impl Issued {
    pub(super) const fn of(call: &StageCall) -> Self {
        match call.task {
            StageTask::Execute { run, .. } => Self::Stage(run),
            StageTask::Undo { scope, number, .. } => Self::Undo(scope, number),
            StageTask::Join(_) => Self::Join,
            StageTask::Gate => Self::Gate,
            StageTask::CleanUp => Self::CleanUp,
        }
    }

    /// Returns the call, if the kernel still asks for it. If the kernel has replaced it by a newer call, that call is
    /// sent by its own effect.
    pub(super) fn call(self, kernel: &Kernel, id: ProcedureId) -> Option<StageCall> {
        let mut calls = kernel.calls_of(id).into_iter();
        calls.find(|call| Self::of(call) == self)
    }
}

/// Describes a call for operators: its kind, and the stage that it belongs to.
pub(super) fn describe(kernel: &Kernel, id: ProcedureId, issued: Option<Issued>) -> (UserCall, String) {
    let stage = || {
        let row = kernel.row(id);
        row.map_or_else(String::new, |row| codec::describe(row.stage.as_slice()))
    };
    match issued {
        Some(Issued::Undo(scope, number)) => (UserCall::Undo, undone_stage(kernel, scope, number)),
        Some(Issued::Join) => (UserCall::Join, stage()),
        Some(Issued::Gate) => (UserCall::Gate, stage()),
        Some(Issued::CleanUp) => (UserCall::CleanUp, stage()),
        Some(Issued::Stage(_)) | None => (UserCall::Stage, stage()),
    }
}

fn undone_stage(kernel: &Kernel, scope: ProcedureId, number: u32) -> String {
    let family = kernel.families().get(&scope.family);
    let entry = family.and_then(|family| match family.scopes.get(&scope.member)? {
        Scope::Held { stack, .. } => stack.iter().rfind(|entry| entry.number == number),
        Scope::Loading => None,
    });
    entry.map_or_else(String::new, |entry| codec::describe(entry.stage.as_slice()))
}

/// A call that was lost with the thread of its actor, or on its way there.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::supervisor) struct LostCall {
    pub(super) issued: Issued,
    /// `true` if the call had begun.
    pub(super) ran: bool,
}

/// The actor of an active procedure, and the calls that were sent to it.
pub(in crate::supervisor) struct ActiveProcedure {
    addr: Arc<Addr<ProcedureActor>>,
    queue: Arc<CallQueue>,
    slot: Arc<CallSlot>,
    sent: SentCalls,
}

/// Stages that a procedure runs, at most, before it waits for the disk once. So a crash takes back this many of its stages at
/// most.
const AHEAD: u32 = RUN_LENGTH_MAX;

/// The calls that were sent to one actor.
#[derive(Default)]
struct SentCalls {
    count: u64,
    /// How many stages have run or are called, that of the newest call which was not speculative included.
    ahead: u32,
    /// The newest call may be more than one stage.
    is_run: bool,
    /// The newest call, and the call before it: a clean-up may be out when an undo is called for.
    newest: [Option<Issued>; 2],
}

impl SentCalls {
    fn push(&mut self, issued: Issued, is_speculative: bool, is_run: bool) {
        self.count += 1;
        self.ahead = if is_speculative { self.ahead + 1 } else { 1 };
        self.is_run = is_run;
        self.newest = [Some(issued), self.newest[0]];
    }

    /// Returns the calls that have not ended, the oldest first. A run counts as not begun: nothing of it has left, and its first
    /// stage is called again, alone, so that the stage which ends its thread is found.
    fn open(&self, ended: u64, is_running: bool) -> Vec<LostCall> {
        let open = usize::try_from(self.count.saturating_sub(ended)).unwrap_or(usize::MAX);
        let issued = self.newest.iter().take(open).rev().flatten();
        let calls = issued.enumerate().map(|(place, issued)| LostCall {
            issued: *issued,
            ran: is_running && place == 0 && !self.is_run,
        });
        calls.collect()
    }
}

impl ActiveProcedure {
    pub(super) fn new(addr: Addr<ProcedureActor>, queue: Arc<CallQueue>, slot: Arc<CallSlot>) -> Self {
        Self {
            addr: Arc::new(addr),
            queue,
            slot,
            sent: SentCalls::default(),
        }
    }

    /// Sends a call; returns `false` if the actor is gone.
    fn send(&mut self, call: Call, wakes: &mut WakeBatch) -> bool {
        let may_go_directly = self.is_idle();
        self.sent
            .push(Issued::of(&call.stage), call.is_speculative, call.stage.ahead > 0);
        let is_connected = self.addr.connected();
        if is_connected {
            self.slot.sent();
            let call = OutgoingCall {
                queue: Arc::clone(&self.queue),
                to: Arc::clone(&self.addr),
                call,
            };
            wakes.send(call, may_go_directly);
        }
        is_connected
    }

    /// Returns the calls that have not ended although the actor is gone, the oldest first. A call that has ended was
    /// reported before that, and its report will still be taken.
    pub(in crate::supervisor) fn lost(&self) -> Vec<LostCall> {
        match self.slot.ended().filter(|_| !self.addr.connected()) {
            Some((ended, is_running)) => self.sent.open(ended, is_running),
            None => Vec::new(),
        }
    }

    /// Returns since when a call runs, if one does.
    pub(in crate::supervisor) fn runs_since(&self) -> Option<Timestamp> {
        self.slot.runs_since()
    }

    /// Describes how far the newest call has come.
    pub(in crate::supervisor) fn progress(&self) -> &'static str {
        if self.slot.is_running() {
            "runs"
        } else if self.is_idle() {
            "has ended, and is being committed"
        } else {
            "is queued at its worker"
        }
    }

    /// Returns `true` if every call has ended.
    fn is_idle(&self) -> bool {
        self.slot.has_ended(self.sent.count)
    }
}

/// The actors of active procedures. An actor stops when its last address is dropped, even with messages in its
/// mailbox, so the table holds the address of each.
#[derive(Default)]
pub(in crate::supervisor) struct ActorTable(FxHashMap<ProcedureId, ActiveProcedure>);

impl ActorTable {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::supervisor) fn contains(&self, id: ProcedureId) -> bool {
        self.0.contains_key(&id)
    }

    pub(in crate::supervisor) fn get(&self, id: ProcedureId) -> Option<&ActiveProcedure> {
        self.0.get(&id)
    }

    pub(super) fn insert(&mut self, id: ProcedureId, active: ActiveProcedure) {
        self.0.insert(id, active);
    }

    pub(super) fn remove(&mut self, id: ProcedureId) {
        self.0.remove(&id);
    }

    /// Releases an actor, unless one of its calls is still out.
    pub(super) fn remove_idle(&mut self, id: ProcedureId) {
        if self.get(id).is_some_and(ActiveProcedure::is_idle) {
            self.remove(id);
        }
    }

    pub(super) fn remove_family(&mut self, family: u64) {
        self.0.retain(|id, _| id.family != family);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Sends a call to a procedure's actor; returns `false` if there is no actor, or the actor is gone.
    pub(super) fn send(&mut self, id: ProcedureId, call: Call, wakes: &mut WakeBatch) -> bool {
        self.0.get_mut(&id).is_some_and(|active| active.send(call, wakes))
    }

    /// Returns how many stages a procedure may still run ahead of the disk.
    pub(super) fn may_run_ahead(&self, id: ProcedureId) -> u32 {
        let ahead = self.0.get(&id).map_or(0, |active| active.sent.ahead);
        AHEAD.saturating_sub(ahead)
    }

    /// Notes that a call has run so many stages more than its own.
    pub(super) fn ran_more(&mut self, id: ProcedureId, stages: usize) {
        if let Some(active) = self.0.get_mut(&id) {
            let stages = u32::try_from(stages).unwrap_or(AHEAD);
            active.sent.ahead = active.sent.ahead.saturating_add(stages);
        }
    }

    /// Returns the newest call of a procedure.
    pub(super) fn newest_call(&self, id: ProcedureId) -> Option<Issued> {
        self.0.get(&id).and_then(|active| active.sent.newest[0])
    }

    /// Releases every actor that runs nothing and whose worker is being left. Returns the calls that had not begun.
    /// They are revoked, so that none of them can begin there any more.
    pub(super) fn vacate(&mut self, is_left: impl Fn(&CallSlot) -> bool) -> Vec<(ProcedureId, Issued)> {
        let mut revoked = Vec::new();
        self.0.retain(|id, active| {
            let ended = is_left(&active.slot).then(|| active.slot.revoke()).flatten();
            let open = ended.map(|ended| active.sent.open(ended, false)).unwrap_or_default();
            revoked.extend(open.into_iter().map(|call| (*id, call.issued)));
            ended.is_none()
        });
        revoked
    }
}

#[cfg(test)]
mod tests {
    //! Which calls are lost with an actor, and which of them had begun.

    use super::*;

    const STAGE: Issued = Issued::Stage(Seq(7));

    #[test]
    fn calls_that_ended_are_not_lost_and_only_the_oldest_open_call_has_begun() {
        let mut sent = SentCalls::default();
        assert_eq!(sent.open(0, false), []);
        sent.push(STAGE, false, false);
        assert_eq!(sent.open(1, false), []);
        let lost = |issued, ran| LostCall { issued, ran };
        assert_eq!(sent.open(0, true), [lost(STAGE, true)]);
        sent.push(Issued::CleanUp, false, false);
        let undo = Issued::Undo(ProcedureId::root(1), 3);
        sent.push(undo, false, false);
        assert_eq!(sent.open(1, true), [lost(Issued::CleanUp, true), lost(undo, false)]);
        assert_eq!(sent.open(1, false), [lost(Issued::CleanUp, false), lost(undo, false)]);
        assert_eq!(sent.open(2, true), [lost(undo, true)]);
        assert_eq!(sent.open(3, false), []);
        sent.push(STAGE, true, true);
        assert_eq!(sent.open(3, true), [lost(STAGE, false)], "a run is called again");
    }
}
