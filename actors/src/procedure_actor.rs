//! `ProcedureActor`: one per active procedure, on a worker. It runs one stage,
//! one undo or one join rule per message, and reports. It never touches the
//! journal and never decides what comes next.

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{
    Blob, JoinRuling, Kind, ProcedureId, ProcedureState, Seq, StageEnded, StageOutcome, Timestamp, UndoEnded,
};
use tracing::Instrument;

use crate::context::{CallFacts, Host};
use crate::journal::codec;
use crate::mail::Outbox;
use crate::registry::{Registry, Running};
use crate::step::ChildOutcome;
use crate::telemetry::{self, Marks};
use crate::worker::{Seat, watched};

/// What a procedure's actor is asked to do.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) enum Call {
    /// Run this stage.
    Execute(Box<CallFacts>, Seq, Blob),
    /// Undo this stage: scope, history number, stage.
    Undo(Box<CallFacts>, ProcedureId, u32, Blob),
    /// Ask the join rule of the stage that waits.
    /// The list by the number of its first child, the stage, the outcomes.
    Join(u32, Blob, Vec<ChildOutcome>),
    /// Let the code clean up after the end.
    CleanUp,
}

/// What the actor of a procedure of this kind says: who reports late may be known no more.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Reported(pub(crate) Kind, pub(crate) Report);

/// What a procedure's actor says.
pub(crate) enum Report {
    /// A stage has ended.
    Stage(Box<StageEnded>),
    /// An undo has ended.
    Undo(Box<UndoEnded>),
    /// A join rule has ruled.
    /// Parent, first child of the list, how many of them it saw ended.
    Join(ProcedureId, u32, u32, JoinRuling),
    /// The code has cleaned up after the end.
    CleanedUp(ProcedureId),
    /// The stored value cannot be made to run.
    Unloadable(ProcedureId, String),
}

/// What a procedure's actor is revived from.
pub(crate) struct Stored {
    pub(crate) id: ProcedureId,
    pub(crate) kind: Kind,
    pub(crate) version: u16,
    pub(crate) payload: Blob,
}

/// The actor of one active procedure.
pub(crate) struct ProcedureActor {
    stored: Stored,
    running: Option<Box<dyn Running>>,
    registry: Arc<Registry>,
    host: Arc<Host>,
    supervisor: Arc<Outbox<Reported>>,
    seat: Seat,
}

impl ProcedureActor {
    pub(crate) fn new(
        stored: Stored,
        registry: Arc<Registry>,
        host: Arc<Host>,
        supervisor: Arc<Outbox<Reported>>,
        seat: Seat,
    ) -> Self {
        Self {
            stored,
            running: None,
            registry,
            host,
            supervisor,
            seat,
        }
    }

    fn revive(&mut self) -> Result<Box<dyn Running>, String> {
        match self.running.take() {
            Some(running) => Ok(running),
            None => self
                .registry
                .revive(&self.stored.kind, &self.stored.payload, self.stored.version),
        }
    }
}

impl Actor for ProcedureActor {
    type Context = Context<Self>;
}

impl Handler<Call> for ProcedureActor {
    type Result = ();

    fn handle(&mut self, call: Call, ctx: &mut Self::Context) {
        if !self.seat.begin() {
            // The supervisor took the call back, and issues it elsewhere.
            return;
        }
        let (id, kind, pulse) = (self.stored.id, self.stored.kind.clone(), self.seat.pulse());
        // It decodes the user's value: user code, too.
        let revived = {
            let _within = pulse.enter(id);
            self.revive()
        };
        let host = Arc::clone(&self.host);
        let begun = host.clock.now();
        self.seat.began(begun);
        let work = async move {
            let (report, running) = match revived {
                Ok(mut running) => {
                    let report = watched(&pulse, id, perform(id, &kind, call, begun, &mut *running, &host)).await;
                    (report, Some(running))
                }
                Err(why) => (Report::Unloadable(id, why), None),
            };
            (Reported(kind, report), running)
        };
        ctx.wait(work.into_actor(self).then(|(report, running), actor, _| {
            actor.running = running;
            actor.seat.end();
            actor.supervisor.send(report).into_actor(actor)
        }));
    }
}

/// What the span says; `run` is the commit that set a stage going.
fn marks<'a>(facts: &CallFacts, kind: &'a Kind, run: Option<Seq>) -> Marks<'a> {
    let (state, revision, trace) = match facts.row {
        Some(row) => (row.state, row.revision, row.trace),
        None => (ProcedureState::Runnable, Seq::default(), None),
    };
    Marks {
        procedure: facts.id,
        kind,
        state,
        seq: run.unwrap_or(revision),
        attempt: facts.attempt,
        link: trace,
    }
}

const fn outcome(outcome: &StageOutcome) -> &'static str {
    match outcome {
        StageOutcome::Next(_) => "next",
        StageOutcome::Done(_) => "done",
        StageOutcome::Spawn { .. } => "spawn",
        StageOutcome::Sleep(..) => "sleep",
        StageOutcome::Wait(..) => "wait",
        StageOutcome::Yield => "yield",
        StageOutcome::Retry(_) => "retry",
        StageOutcome::Fail(_) | StageOutcome::Refused(_) => "failed",
        StageOutcome::Panicked(_) => "panicked",
    }
}

async fn perform(
    id: ProcedureId,
    kind: &Kind,
    call: Call,
    begun: Timestamp,
    running: &mut dyn Running,
    host: &Host,
) -> Report {
    match call {
        Call::Execute(facts, run, stage) => {
            let span = telemetry::stage_span(&marks(&facts, kind, Some(run)), || codec::describe(stage.as_slice()));
            let did = running.execute(&stage, &facts, host).instrument(span.clone()).await;
            telemetry::record_outcome(&span, outcome(&did.outcome));
            let report = StageEnded {
                id,
                run,
                epoch: facts.fence.epoch,
                begun,
                ended: host.clock.now(),
                outcome: did.outcome,
                payload: did.payload,
                upgraded: did.upgraded,
                writes: did.writes,
                submitted: did.submitted,
                children: did.children,
                ahead: did.ahead,
                admission: None,
            };
            Report::Stage(Box::new(report))
        }
        Call::Undo(facts, scope, number, stage) => {
            let span = telemetry::undo_span(&marks(&facts, kind, None), || codec::describe(stage.as_slice()));
            let did = running.rollback(&stage, &facts, host).instrument(span.clone()).await;
            telemetry::record_outcome(&span, if did.outcome.is_ok() { "ok" } else { "failed" });
            Report::Undo(Box::new(UndoEnded {
                scope,
                number,
                begun,
                ended: host.clock.now(),
                outcome: did.outcome,
                payload: did.payload,
                upgraded: did.upgraded,
                writes: did.writes,
            }))
        }
        Call::Join(first, stage, outcomes) => {
            let seen = outcomes.iter().filter(|child| child.ended).count();
            let seen = u32::try_from(seen).unwrap_or(u32::MAX);
            Report::Join(id, first, seen, running.join(&stage, &outcomes))
        }
        Call::CleanUp => {
            running.clean_up().await;
            Report::CleanedUp(id)
        }
    }
}
