//! Blocked workers: the supervisor looks at the workers' pulses, names what holds
//! them, and moves what can be moved. It goes by the machine's time: what is
//! measured is the occupation of a thread.

use std::sync::Arc;
use std::time::Duration;

use actix::WeakRecipient;
use actix::prelude::*;
use procession_kernel::{Effect, ProcedureId, Scope, Seq, Timestamp};
use rustc_hash::FxHashMap;

use super::Supervisor;
use super::dispatch::Dispatch;
use crate::clock::{machine_now, machine_sleep};
use crate::journal::codec;
use crate::mail::deliver;
use crate::porter::Calls;
use crate::procedure_actor::{Call, ProcedureActor};
use crate::view::UserCall;
use crate::worker::Post;

/// Which call was issued last: what it is known by in the kernel.
#[derive(Clone, Copy)]
pub(super) enum Issued {
    Stage(Seq),
    Undo(ProcedureId, u32),
    Join,
    CleanUp,
}

impl Issued {
    pub(super) const fn of(call: &Call) -> Self {
        match call {
            Call::Execute(_, run, _) => Self::Stage(*run),
            Call::Undo(_, scope, number, _) => Self::Undo(*scope, *number),
            Call::Join(..) => Self::Join,
            Call::CleanUp => Self::CleanUp,
        }
    }

    /// Tells whether an effect asks for this call. Another one is newer, and comes on its own.
    pub(super) fn is_asked_by(self, effect: &Effect) -> bool {
        match (self, effect) {
            (Self::Stage(run), Effect::Advance(advance)) => advance.run == run,
            (Self::Undo(scope, number), Effect::Undo(undo)) => (undo.scope, undo.number) == (scope, number),
            (Self::Join, Effect::Judge(..)) | (Self::CleanUp, Effect::CleanUp(..)) => true,
            (Self::Stage(_) | Self::Undo(..) | Self::Join | Self::CleanUp, _) => false,
        }
    }
}

/// The actor of an active procedure, as the supervisor holds it.
pub(super) struct Active {
    addr: Arc<Addr<ProcedureActor>>,
    way: Arc<Calls>,
    post: Arc<Post>,
    calls: u64,
    /// The newest call, and the one before: a clean-up may be out when an undo is called for.
    issued: [Option<Issued>; 2],
}

/// The actors of active procedures. An actor stops when its last address is dropped, even with messages in its
/// mailbox, so each has its address here.
pub(super) type Actors = FxHashMap<ProcedureId, Active>;

/// A call that was lost with the thread of its actor, or on its way there.
pub(super) struct LostCall {
    pub(super) issued: Issued,
    /// It had begun.
    pub(super) ran: bool,
}

impl Active {
    pub(super) fn new(addr: Addr<ProcedureActor>, way: Arc<Calls>, post: Arc<Post>) -> Self {
        Self {
            addr: Arc::new(addr),
            way,
            post,
            calls: 0,
            issued: [None; 2],
        }
    }

    /// Issues a call; false if its actor is gone.
    pub(super) fn issue(&mut self, call: Call, dispatch: &mut Dispatch) -> bool {
        self.calls += 1;
        self.issued = [Some(Issued::of(&call)), self.issued[0]];
        let connected = self.addr.connected();
        if connected {
            self.post.sent();
            dispatch.issue(&self.way, &self.addr, call);
        }
        connected
    }

    /// Gives the calls that have not ended though the actor is gone, the oldest first. What has
    /// ended has been reported before that, and need only be heard.
    pub(super) fn lost(&self) -> Vec<LostCall> {
        match self.post.ended().filter(|_| !self.addr.connected()) {
            Some((ended, runs)) => self.open_calls(ended, runs),
            None => Vec::new(),
        }
    }

    /// Gives the calls beyond those that have ended, the oldest first.
    fn open_calls(&self, ended: u64, runs: bool) -> Vec<LostCall> {
        let open = usize::try_from(self.calls.saturating_sub(ended)).unwrap_or(usize::MAX);
        let issued = self.issued.iter().take(open).rev().flatten();
        let calls = issued.enumerate().map(|(place, issued)| LostCall {
            issued: *issued,
            ran: runs && place == 0,
        });
        calls.collect()
    }

    /// Returns since when a call runs, if one does.
    pub(super) fn runs_since(&self) -> Option<Timestamp> {
        self.post.runs_since()
    }

    /// Says how far the newest call has come.
    pub(super) fn progress(&self) -> &'static str {
        if self.post.is_running() {
            "runs"
        } else if self.is_idle() {
            "has ended, and is being committed"
        } else {
            "is queued at its worker"
        }
    }

    /// Tells whether every call has ended.
    pub(super) fn is_idle(&self) -> bool {
        self.post.has_ended(self.calls)
    }
}

/// Says that it is time to look at the workers.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Look;

/// Has the supervisor look, on a task of its own, as long as it lives.
pub(super) fn look_every(time: Duration, supervisor: WeakRecipient<Look>) {
    actix_rt::spawn(async move {
        loop {
            machine_sleep(time).await;
            let Some(supervisor) = supervisor.upgrade().filter(Recipient::connected) else {
                return;
            };
            deliver(&supervisor, Look).await;
        }
    });
}

impl Handler<Look> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: Look, ctx: &mut Self::Context) {
        self.turn(|supervisor| supervisor.look(ctx));
    }
}

impl Supervisor {
    fn look(&mut self, ctx: &mut Context<Self>) {
        let now = machine_now();
        for found in self.workers.look(now) {
            let (call, stage) = self.called(found.procedure);
            let seconds = found.time.as_secs_f32();
            tracing::warn!(worker = found.worker, procedure = %found.procedure, stage, ?call, seconds, "a worker is blocked");
            self.workers.block(&found, call, stage);
        }
        self.metrics
            .telemetry()
            .worker_blocked
            .set(self.workers.blocked_for(now));
        self.metrics.show_mailboxes_soon(self.clock.now());
        if self.status.is_running() {
            self.workers.adjust(now);
            self.vacate(ctx);
            // Calls that waited for their worker may have begun.
            self.wake_more(ctx);
        }
    }
}

impl Supervisor {
    /// Tells what of a procedure was called last.
    pub(super) fn called(&self, id: ProcedureId) -> (UserCall, String) {
        let issued = self.actors.get(&id).and_then(|active| active.issued[0]);
        self.call_in_words(id, issued)
    }

    /// Tells what a call is, and of which stage.
    pub(super) fn call_in_words(&self, id: ProcedureId, issued: Option<Issued>) -> (UserCall, String) {
        let stage = || {
            let row = self.kernel.row(id);
            row.map_or_else(String::new, |row| codec::describe(row.stage.as_slice()))
        };
        match issued {
            Some(Issued::Undo(scope, number)) => (UserCall::Undo, self.undone_stage(scope, number)),
            Some(Issued::Join) => (UserCall::Join, stage()),
            Some(Issued::CleanUp) => (UserCall::CleanUp, stage()),
            Some(Issued::Stage(_)) | None => (UserCall::Stage, stage()),
        }
    }

    fn undone_stage(&self, scope: ProcedureId, number: u32) -> String {
        let family = self.kernel.families().get(&scope.family);
        let entry = family.and_then(|family| match family.scopes.get(&scope.member)? {
            Scope::Held { stack, .. } => stack.iter().rfind(|entry| entry.number == number),
            Scope::Loading => None,
        });
        entry.map_or_else(String::new, |entry| codec::describe(entry.stage.as_slice()))
    }

    /// Lets every actor go that sits on a blocked or retiring worker and runs
    /// nothing, and issues the calls again that had not begun.
    fn vacate(&mut self, ctx: &mut Context<Self>) {
        let Some(is_left) = self.workers.left_behind() else {
            return;
        };
        let mut again = Vec::new();
        self.actors.retain(|id, active| {
            let ended = is_left(&active.post).then(|| active.post.revoke()).flatten();
            let open = ended.map(|ended| active.open_calls(ended, false)).unwrap_or_default();
            again.extend(open.into_iter().map(|call| (*id, call.issued)));
            ended.is_none()
        });
        for (id, issued) in again {
            if self.call_again(id, issued, ctx) {
                tracing::info!(procedure = %id, "its call is moved off a blocked worker");
            }
        }
    }
}
