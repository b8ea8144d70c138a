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
use crate::mail::Gathering;
use crate::registry::{Registry, Running};
use crate::step::ChildOutcome;
use crate::telemetry::{self, Marks};
use crate::worker::{CallSlotGuard, Heartbeat, watched};

/// What a procedure's actor is asked to do.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) enum Call {
    /// Run this stage.
    Execute(CallFacts, Seq, Blob),
    /// Undo this stage: scope, history number, stage.
    Undo(CallFacts, ProcedureId, u32, Blob),
    /// Ask the join rule of the stage that waits.
    /// The list by the number of its first child, the stage, the outcomes.
    Join(u32, Blob, Vec<ChildOutcome>),
    /// Let the code clean up after the end.
    CleanUp,
}

/// What the actor of a procedure of this kind says: who reports late may be known no more.
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
    id: ProcedureId,
    kind: Kind,
    /// Version and value that it is revived from; none once it was.
    stored: Option<(u16, Blob)>,
    running: Option<Box<dyn Running>>,
    registry: Arc<Registry>,
    host: Arc<Host>,
    supervisor: Arc<Gathering<Reported>>,
    slot: CallSlotGuard,
}

impl ProcedureActor {
    pub(crate) fn new(
        stored: Stored,
        registry: Arc<Registry>,
        host: Arc<Host>,
        supervisor: Arc<Gathering<Reported>>,
        slot: CallSlotGuard,
    ) -> Self {
        let Stored {
            id,
            kind,
            version,
            payload,
        } = stored;
        Self {
            id,
            kind,
            stored: Some((version, payload)),
            running: None,
            registry,
            host,
            supervisor,
            slot,
        }
    }

    fn revive(&mut self) -> Result<Box<dyn Running>, String> {
        if let Some(running) = self.running.take() {
            return Ok(running);
        }
        let Some((version, payload)) = &self.stored else {
            return Err("its value went with a call that was given up".to_owned());
        };
        let running = self.registry.revive(&self.kind, payload, *version)?;
        self.stored = None;
        Ok(running)
    }
}

impl Actor for ProcedureActor {
    type Context = Context<Self>;
}

impl Handler<Call> for ProcedureActor {
    type Result = ();

    fn handle(&mut self, call: Call, ctx: &mut Self::Context) {
        if !self.slot.begin() {
            // The supervisor revoked the call, and sends it elsewhere.
            return;
        }
        let heartbeat = self.slot.heartbeat();
        // It decodes the user's value: user code, too.
        let revived = {
            let _polled = heartbeat.enter(self.id);
            self.revive()
        };
        let begun = self.host.clock.now();
        self.slot.began(begun);
        let mut running = match revived {
            Ok(running) => running,
            Err(why) => {
                let report = Report::Unloadable(self.id, why);
                return self.report(Reported(self.kind.clone(), report));
            }
        };
        let code = Code {
            id: self.id,
            kind: self.kind.clone(),
            host: Arc::clone(&self.host),
            heartbeat,
            begun,
        };
        match call {
            Call::Execute(facts, run, stage) => self.run(code.execute(running, facts, run, stage), ctx),
            Call::Undo(facts, scope, number, stage) => {
                self.run(code.undo(running, facts, (scope, number, stage)), ctx);
            }
            Call::Join(first, stage, outcomes) => {
                let reported = code.join(&mut *running, first, &stage, &outcomes);
                self.running = Some(running);
                self.report(reported);
            }
            Call::CleanUp => self.run(code.clean_up(running), ctx),
        }
    }
}

/// What the code said, and the procedure, which comes back with it.
type Ran = (Reported, Box<dyn Running>);

impl ProcedureActor {
    /// Runs code to its end, with the mailbox shut, and reports what it says.
    fn run(&mut self, code: impl Future<Output = Ran> + 'static, ctx: &mut Context<Self>) {
        ctx.wait(code.into_actor(self).map(|(reported, running), actor, _| {
            actor.running = Some(running);
            actor.report(reported);
        }));
    }

    fn report(&self, reported: Reported) {
        self.slot.end();
        self.supervisor.send(reported);
    }
}

/// A call of user code. Its futures are blocks that use what they are given where it lies: an async function
/// would have a second place for each, and all of it is moved several times for every call.
struct Code {
    id: ProcedureId,
    kind: Kind,
    host: Arc<Host>,
    heartbeat: Arc<Heartbeat>,
    begun: Timestamp,
}

#[expect(
    clippy::manual_async_fn,
    reason = "an async function keeps a second place for each argument"
)]
impl Code {
    fn execute(
        self,
        mut running: Box<dyn Running>,
        facts: CallFacts,
        run: Seq,
        stage: Blob,
    ) -> impl Future<Output = Ran> {
        async move {
            let describe = || codec::describe(stage.as_slice());
            let span = telemetry::stage_span(&marks(&facts, &self.kind, Some(run)), describe);
            let code = running.execute(&stage, (run, self.begun), &facts, &self.host);
            let report = watched(&self.heartbeat, self.id, code.instrument(span.clone())).await;
            telemetry::record_outcome(&span, || outcome(&report.outcome));
            (Reported(self.kind, Report::Stage(report)), running)
        }
    }

    fn undo(
        self,
        mut running: Box<dyn Running>,
        facts: CallFacts,
        undone: (ProcedureId, u32, Blob),
    ) -> impl Future<Output = Ran> {
        async move {
            let (scope, number, stage) = &undone;
            let describe = || codec::describe(stage.as_slice());
            let span = telemetry::undo_span(&marks(&facts, &self.kind, None), describe);
            let code = running.rollback(stage, &facts, &self.host);
            let did = watched(&self.heartbeat, self.id, code.instrument(span.clone())).await;
            telemetry::record_outcome(&span, || if did.outcome.is_ok() { "ok" } else { "failed" });
            let report = UndoEnded {
                scope: *scope,
                number: *number,
                begun: self.begun,
                ended: self.host.clock.now(),
                outcome: did.outcome,
                payload: did.payload,
                upgraded: did.upgraded,
                writes: did.writes,
            };
            (Reported(self.kind, Report::Undo(Box::new(report))), running)
        }
    }

    fn join(self, running: &mut dyn Running, first: u32, stage: &Blob, outcomes: &[ChildOutcome]) -> Reported {
        let _polled = self.heartbeat.enter(self.id);
        let seen = outcomes.iter().filter(|child| child.ended).count();
        let seen = u32::try_from(seen).unwrap_or(u32::MAX);
        let report = Report::Join(self.id, first, seen, running.join(stage, outcomes));
        Reported(self.kind, report)
    }

    fn clean_up(self, mut running: Box<dyn Running>) -> impl Future<Output = Ran> {
        async move {
            watched(&self.heartbeat, self.id, running.clean_up()).await;
            (Reported(self.kind, Report::CleanedUp(self.id)), running)
        }
    }
}

/// What the span says; `run` is the commit that set a stage going.
fn marks<'a>(facts: &CallFacts, kind: &'a Kind, run: Option<Seq>) -> Marks<'a> {
    let (state, revision, trace) = match &facts.row {
        Some(row) => (row.state, row.revision, row.trace),
        None => (ProcedureState::Runnable, Seq::default(), None),
    };
    Marks {
        procedure: facts.token.procedure,
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
