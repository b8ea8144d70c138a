//! `ProcedureActor`: one per active procedure, on a worker. It runs one stage,
//! one undo or one join rule per message, and reports. It never touches the
//! journal and never decides what comes next.

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{Blob, JoinRuling, Kind, ProcedureId, Seq, StageEnded, UndoEnded};

use crate::context::{CallFacts, Host};
use crate::journal::deliver;
use crate::registry::{Registry, Running};
use crate::step::ChildOutcome;

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
}

/// What a procedure's actor says.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) enum Report {
    /// A stage has ended.
    Stage(Box<StageEnded>, Vec<procession_kernel::Birth>),
    /// An undo has ended.
    Undo(Box<UndoEnded>),
    /// A join rule has ruled.
    /// Parent, first child of the list, how many of them it saw ended.
    Join(ProcedureId, u32, u32, JoinRuling),
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
    host: Host,
    supervisor: Recipient<Report>,
}

impl ProcedureActor {
    pub(crate) fn new(stored: Stored, registry: Arc<Registry>, host: Host, supervisor: Recipient<Report>) -> Self {
        Self {
            stored,
            running: None,
            registry,
            host,
            supervisor,
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
        let revived = self.revive();
        let (id, host, supervisor) = (self.stored.id, self.host.clone(), self.supervisor.clone());
        let work = async move {
            let (report, running) = match revived {
                Ok(mut running) => (perform(id, call, &mut *running, &host).await, Some(running)),
                Err(why) => (Report::Unloadable(id, why), None),
            };
            (report, running, supervisor)
        };
        ctx.wait(work.into_actor(self).then(|(report, running, supervisor), actor, _| {
            actor.running = running;
            async move { deliver(&supervisor, report).await }.into_actor(actor)
        }));
    }
}

async fn perform(id: ProcedureId, call: Call, running: &mut dyn Running, host: &Host) -> Report {
    let begun = host.clock.now();
    match call {
        Call::Execute(facts, run, stage) => {
            let did = running.execute(&stage, &facts, host).await;
            let report = StageEnded {
                id,
                run,
                epoch: facts.fence.epoch,
                begun,
                ended: host.clock.now(),
                outcome: did.outcome,
                payload: did.payload,
                writes: did.writes,
                submitted: Vec::new(),
            };
            Report::Stage(Box::new(report), did.submitted)
        }
        Call::Undo(facts, scope, number, stage) => {
            let did = running.rollback(&stage, &facts, host).await;
            Report::Undo(Box::new(UndoEnded {
                scope,
                number,
                begun,
                ended: host.clock.now(),
                outcome: did.outcome,
                payload: did.payload,
                writes: did.writes,
            }))
        }
        Call::Join(first, stage, outcomes) => {
            let seen = outcomes.iter().filter(|child| child.ended).count();
            let seen = u32::try_from(seen).unwrap_or(u32::MAX);
            Report::Join(id, first, seen, running.join(&stage, &outcomes))
        }
    }
}
