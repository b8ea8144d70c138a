//! Actors that are gone with their threads: user code can stop the arbiter that it runs on. A call
//! that ran there has failed, as one that panics has: so a stage that always does it comes to an
//! end. One that had not begun is made again as it was.

use std::collections::BTreeMap;

use actix::prelude::*;
use procession_kernel::{Effect, Event, Kernel, ProcedureId, StageEnded, StageOutcome, Timestamp, UndoEnded};

use super::Supervisor;
use super::blocked::{Active, Issued, LostCall};
use crate::view::UserCall;

/// Procedures that are remembered, and calls that wait for a worker.
const KEPT: usize = 1_000;

/// What is said of a call that was lost.
const ENDED: &str = "its thread has ended in the middle of it";

/// A call that a procedure has lost with the thread of its actor.
pub(super) struct OrphanedCall {
    pub(super) call: UserCall,
    pub(super) stage: String,
    pub(super) at: Timestamp,
    pub(super) times: u32,
    /// The visit of which it has to be told until that is over; none if once is enough.
    visit: Option<u32>,
    told: bool,
}

/// Calls that were lost, for as long as they are to be told of; and calls for which there was no worker.
#[derive(Default)]
pub(super) struct OrphanedCalls {
    lost: BTreeMap<ProcedureId, OrphanedCall>,
    stranded: Vec<(ProcedureId, Issued)>,
}

impl OrphanedCalls {
    /// Notes that a procedure has lost a call.
    fn note(&mut self, id: ProcedureId, call: UserCall, stage: String, visit: Option<u32>, now: Timestamp) {
        if self.lost.len() >= KEPT && !self.lost.contains_key(&id) {
            return;
        }
        let known = self.lost.remove(&id).filter(|known| known.visit == visit);
        let (at, times) = known.map_or((now, 1), |known| (known.at, known.times + 1));
        let orphaned = OrphanedCall {
            call,
            stage,
            at,
            times,
            visit,
            told: false,
        };
        self.lost.insert(id, orphaned);
    }

    /// Returns what was lost: each at least once, and until the stage that it belonged to is over.
    pub(super) fn lost(&mut self, kernel: &Kernel) -> impl Iterator<Item = (ProcedureId, &OrphanedCall)> {
        self.lost.retain(|id, lost| {
            let row = kernel.row(*id).filter(|row| !row.is_ended());
            let is_there = lost.visit.is_some() && row.map(|row| row.visit) == lost.visit;
            !std::mem::replace(&mut lost.told, true) || is_there
        });
        self.lost.iter().map(|(id, lost)| (*id, lost))
    }

    /// Keeps a call for which there is no worker. Beyond the bound a stage is found all the same, as one that was
    /// never called.
    fn strand(&mut self, id: ProcedureId, issued: Issued) {
        if self.stranded.len() < KEPT {
            self.stranded.push((id, issued));
        }
    }

    /// Returns the procedures whose calls wait for a worker.
    pub(super) fn stranded(&self) -> impl Iterator<Item = ProcedureId> {
        self.stranded.iter().map(|(id, _)| *id)
    }
}

/// What a health check found gone. What such actors had still reported is heard before.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct Gone(Vec<ProcedureId>);

impl Handler<Gone> for Supervisor {
    type Result = ();

    fn handle(&mut self, Gone(found): Gone, ctx: &mut Self::Context) {
        if !self.status.is_running() {
            return;
        }
        self.hear_all(ctx);
        self.workers.replace_ended();
        for id in found {
            let calls = self.actors.get(&id).map(Active::lost).unwrap_or_default();
            if calls.is_empty() {
                continue;
            }
            self.actors.remove(&id);
            for call in calls {
                self.replace_call(id, &call, ctx);
            }
        }
        self.look_at_drain(ctx);
    }
}

impl Supervisor {
    /// Has those looked after whose actors are gone, and tries again what had no worker.
    pub(super) fn look_for_lost(&mut self, gone: Vec<ProcedureId>, ctx: &mut Context<Self>) {
        if !gone.is_empty() {
            // Where there is no room in its own mailbox, the next audit looks again.
            ctx.address().try_send(Gone(gone)).ok();
        }
        for (id, issued) in std::mem::take(&mut self.orphaned_calls.stranded) {
            self.call_again(id, issued, ctx);
        }
    }

    /// The kernel may not ask for it any more: it was bypassed, or set aside.
    fn replace_call(&mut self, id: ProcedureId, call: &LostCall, ctx: &mut Context<Self>) {
        let issued = call.issued;
        if self.call_asked(id, issued).is_none() {
            return;
        }
        let (what, stage) = self.call_in_words(id, Some(issued));
        tracing::error!(procedure = %id, call = ?what, stage, begun = call.ran, "its actor is gone with its thread");
        self.note_lost(id, what, stage);
        match issued {
            Issued::Stage(run) if call.ran => {
                let (epoch, now) = (self.kernel.epoch(), self.clock.now());
                let outcome = StageOutcome::Panicked(ENDED.to_owned());
                self.stage_ended(Box::new(StageEnded::new(id, run, epoch, now, outcome)), ctx);
            }
            Issued::Undo(scope, number) if call.ran => {
                let report = UndoEnded::new(scope, number, self.clock.now(), Err(ENDED.to_owned()));
                self.decide(Event::UndoEnded(Box::new(report)), ctx);
            }
            Issued::Stage(_) | Issued::Undo(..) | Issued::Join | Issued::CleanUp => {
                self.call_again(id, issued, ctx);
            }
        }
    }

    fn note_lost(&mut self, id: ProcedureId, call: UserCall, stage: String) {
        let visit = match call {
            UserCall::Stage | UserCall::Undo => self.kernel.row(id).map(|row| row.visit),
            UserCall::Join | UserCall::CleanUp => None,
        };
        self.orphaned_calls.note(id, call, stage, visit, self.clock.now());
    }

    fn call_asked(&self, id: ProcedureId, issued: Issued) -> Option<Effect> {
        let mut calls = self.kernel.calls_of(id).into_iter();
        calls.find(|effect| issued.is_asked_by(effect))
    }

    /// Makes a call again that has not begun, if it is still asked for. Tells whether it is.
    pub(super) fn call_again(&mut self, id: ProcedureId, issued: Issued, ctx: &mut Context<Self>) -> bool {
        if matches!(issued, Issued::Join) {
            // The question that is out has gone with the call.
            self.judging.remove(&id);
        }
        let Some(effect) = self.call_asked(id, issued) else {
            return false;
        };
        self.act(effect, ctx);
        true
    }

    /// Keeps a call for which there is no worker until the next audit.
    pub(super) fn strand(&mut self, id: ProcedureId, issued: Issued) {
        tracing::error!(procedure = %id, "there is no worker to run it on; the next audit tries again");
        self.orphaned_calls.strand(id, issued);
    }
}
