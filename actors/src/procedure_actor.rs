//! `ProcedureActor`: one per active procedure, on a worker. It runs one stage, one undo or one rule per message,
//! and reports the result. It never touches the journal and never decides what comes next.

mod run;

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{
    Blob, JoinRuling, Kind, ProcedureId, ProcedureState, Round, Seq, StageCall, StageEnded, StageOutcome, StageTask,
    Timestamp, UndoEnded,
};
use tracing::{Instrument, Span};

use self::run::Run;
use crate::context::{Call, Host};
use crate::journal::codec;
use crate::queues::BatchedInbox;
use crate::registry::{Executed, Registry, Running};
use crate::stage_error::StageError;
use crate::step::ChildOutcome;
use crate::telemetry::{self, FailedSpan, Marks};
use crate::worker::{CallSlotGuard, Heartbeat, watched};

/// A report with the procedure's kind, since the procedure of a late report may no longer be known.
pub(crate) struct Reported(pub(crate) Kind, pub(crate) Report);

/// The result of a call.
pub(crate) enum Report {
    /// A stage has ended, with its span if it has failed.
    Stage(Box<StageEnded>, FailedSpan),
    /// An undo has ended, with its span if it has failed.
    Undo(Box<UndoEnded>, FailedSpan),
    /// A join rule has ruled: the parent, the first child of the list, the number of children it saw ended, and the
    /// ruling.
    Join(ProcedureId, u32, u32, JoinRuling),
    /// The rule of a gate has ruled: the child that waits there, the number of siblings it saw ended, and the ruling.
    Gate(ProcedureId, u32, JoinRuling),
    /// The clean-up after the end has finished.
    CleanedUp(ProcedureId),
    /// The stored value cannot be revived.
    Unloadable(ProcedureId, String),
}

/// The actor of one active procedure.
pub(crate) struct ProcedureActor {
    /// The version and value to revive the procedure from, brought by the first call. `None` once it was revived.
    stored: Option<(u16, Blob)>,
    running: Option<Box<dyn Running>>,
    registry: Arc<Registry>,
    host: Arc<Host>,
    supervisor: Arc<BatchedInbox<Reported>>,
    slot: CallSlotGuard,
}

impl ProcedureActor {
    pub(crate) fn new(
        registry: Arc<Registry>,
        host: Arc<Host>,
        supervisor: Arc<BatchedInbox<Reported>>,
        slot: CallSlotGuard,
    ) -> Self {
        Self {
            stored: None,
            running: None,
            registry,
            host,
            supervisor,
            slot,
        }
    }

    fn revive(&mut self, kind: &Kind) -> Result<Box<dyn Running>, String> {
        if let Some(running) = self.running.take() {
            return Ok(running);
        }
        let Some((version, payload)) = &self.stored else {
            return Err("its value went with a call that was given up".to_owned());
        };
        let running = self.registry.revive(kind, payload, *version)?;
        self.stored = None;
        Ok(running)
    }
}

impl Actor for ProcedureActor {
    type Context = Context<Self>;
}

impl Handler<Call> for ProcedureActor {
    type Result = ();

    fn handle(&mut self, mut call: Call, ctx: &mut Self::Context) {
        if let Some(payload) = call.stage.payload.take() {
            // Stored even if the call turns out to be revoked, because a later call carries no value.
            self.stored = Some((call.stage.version, payload));
        }
        if !self.slot.begin() {
            // The supervisor has revoked the call, and sends it elsewhere.
            return;
        }
        let heartbeat = self.slot.heartbeat();
        // Reviving decodes the user's value, so it counts as user code too.
        let revived = {
            let _polled = heartbeat.enter(call.stage.id);
            self.revive(&call.stage.kind)
        };
        let begun = self.host.clock.now();
        self.slot.began(begun);
        let mut running = match revived {
            Ok(running) => running,
            Err(why) => {
                let report = Report::Unloadable(call.stage.id, why);
                return self.report(Reported(call.stage.kind, report));
            }
        };
        let code = Code {
            call,
            host: Arc::clone(&self.host),
            heartbeat,
            begun,
        };
        match code.call.stage.task {
            StageTask::Execute { run, .. } => self.run(code.execute(running, run), ctx),
            StageTask::Undo { scope, number, .. } => self.run(code.undo(running, scope, number), ctx),
            StageTask::Join(Round { first, .. }) => {
                let reported = code.join(&mut *running, first);
                self.running = Some(running);
                self.report(reported);
            }
            StageTask::Gate => {
                let reported = code.gate(&mut *running);
                self.running = Some(running);
                self.report(reported);
            }
            StageTask::CleanUp => self.run(code.clean_up(running), ctx),
        }
    }
}

/// The report, and the procedure, which comes back with it.
type Ran = (Reported, Box<dyn Running>);

impl ProcedureActor {
    /// Runs code to its end with the mailbox shut, then sends its report.
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

/// A call of user code. Its futures are blocks that use their arguments in place. An async function would store each
/// argument twice, and every call moves all of it several times.
struct Code {
    call: Call,
    host: Arc<Host>,
    heartbeat: Arc<Heartbeat>,
    begun: Timestamp,
}

#[expect(
    clippy::manual_async_fn,
    reason = "an async function keeps a second place for each argument"
)]
impl Code {
    /// Runs a stage, and those that may follow it in its run.
    fn execute(mut self, mut running: Box<dyn Running>, run: Seq) -> impl Future<Output = Ran> {
        async move {
            let mut in_run = Run::new(self.begun, &mut self.call);
            loop {
                let stage = &self.call.stage;
                let describe = || codec::describe(stage.stage.as_slice());
                let span = telemetry::stage_span(&marks(&self.call, Some(run)), describe);
                let code = running.execute(&self.call, (run, in_run.stage_begun(&self.call)), &self.host);
                let executed = watched(&self.heartbeat, stage.id, code.instrument(span.clone())).await;
                let report = match executed {
                    Executed::Passed(stage) => {
                        telemetry::record_outcome(&span, || "next");
                        in_run.follow(stage, &mut self.call);
                        continue;
                    }
                    Executed::Ended(report) => report,
                    Executed::Unknown(why) => {
                        let report = Report::Unloadable(stage.id, why);
                        return (Reported(self.call.stage.kind, report), running);
                    }
                };
                telemetry::record_outcome(&span, || outcome(&report.outcome));
                if in_run.takes(&report) {
                    let failed = failed_span(span, || has_failed(&report.outcome));
                    let report = in_run.end(report);
                    return (Reported(self.call.stage.kind, Report::Stage(report, failed)), running);
                }
                in_run.begin_again(&report, &mut self.call);
                running.go_back(*report);
            }
        }
    }

    fn undo(self, mut running: Box<dyn Running>, scope: ProcedureId, number: u32) -> impl Future<Output = Ran> {
        async move {
            let stage = &self.call.stage;
            let describe = || codec::describe(stage.stage.as_slice());
            let span = telemetry::undo_span(&marks(&self.call, None), describe);
            let code = running.rollback(&self.call, &self.host);
            let undone = match watched(&self.heartbeat, stage.id, code.instrument(span.clone())).await {
                Ok(undone) => undone,
                Err(why) => {
                    let report = Report::Unloadable(stage.id, why);
                    return (Reported(self.call.stage.kind, report), running);
                }
            };
            telemetry::record_outcome(&span, || if undone.outcome.is_ok() { "ok" } else { "failed" });
            let retry_after = undone.outcome.as_ref().err().and_then(StageError::delay);
            let report = UndoEnded {
                scope,
                number,
                begun: self.begun,
                ended: self.host.clock.now(),
                outcome: undone.outcome.map_err(StageError::into_text),
                retry_after,
                payload: undone.payload,
                replaced: undone.replaced,
                upgraded: undone.upgraded,
                writes: undone.writes,
                note: undone.note,
            };
            let failed = failed_span(span, || report.outcome.is_err());
            (
                Reported(self.call.stage.kind, Report::Undo(Box::new(report), failed)),
                running,
            )
        }
    }

    fn join(self, running: &mut dyn Running, first: u32) -> Reported {
        let stage = self.call.stage;
        let _polled = self.heartbeat.enter(stage.id);
        let outcomes = self.call.woken.children();
        let ruling = running.join(&stage.stage, outcomes);
        Reported(stage.kind, Report::Join(stage.id, first, ended(outcomes), ruling))
    }

    fn gate(self, running: &mut dyn Running) -> Reported {
        let stage = self.call.stage;
        let _polled = self.heartbeat.enter(stage.id);
        let before = self.call.woken.children();
        let ruling = running.gate(before);
        Reported(stage.kind, Report::Gate(stage.id, ended(before), ruling))
    }

    fn clean_up(self, mut running: Box<dyn Running>) -> impl Future<Output = Ran> {
        async move {
            let StageCall { id, kind, .. } = *self.call.stage;
            watched(&self.heartbeat, id, running.clean_up()).await;
            (Reported(kind, Report::CleanedUp(id)), running)
        }
    }
}

/// Counts the outcomes that can no longer change.
fn ended(outcomes: &[ChildOutcome]) -> u32 {
    let ended = outcomes.iter().filter(|child| child.ended).count();
    u32::try_from(ended).unwrap_or(u32::MAX)
}

/// Returns the fields of the span. `run` is the commit that started a stage.
fn marks(call: &Call, run: Option<Seq>) -> Marks<'_> {
    let (state, revision) = match &call.row {
        Some(row) => (row.state, row.revision),
        None => (ProcedureState::Runnable, Seq::default()),
    };
    Marks {
        procedure: call.stage.id,
        kind: &call.stage.kind,
        state,
        seq: run.unwrap_or(revision),
        attempt: call.stage.attempt,
        visit: call.stage.visit,
        store: call.store,
        link: call.stage.trace.as_deref().copied(),
        is_speculative: call.is_speculative,
    }
}

/// Returns the span of a call that has failed, for the line in the log. It stays open until that line is written. As
/// with the outcome, nothing is looked at if nobody listens.
fn failed_span(span: Span, has_failed: impl FnOnce() -> bool) -> FailedSpan {
    (!span.is_disabled() && has_failed()).then(|| Box::new(span))
}

fn has_failed(report: &StageOutcome) -> bool {
    telemetry::ERRORS.contains(&outcome(report))
}

const fn outcome(outcome: &StageOutcome) -> &'static str {
    match outcome {
        StageOutcome::Next(_) => "next",
        StageOutcome::Done(_) => "done",
        StageOutcome::Spawn { .. } => "spawn",
        StageOutcome::Sleep(..) => "sleep",
        StageOutcome::Wait(..) => "wait",
        StageOutcome::Ask(..) => "ask",
        StageOutcome::Yield => "yield",
        StageOutcome::Retry(_) | StageOutcome::RetryAfter(..) | StageOutcome::TimedOut(_) => "retry",
        StageOutcome::Fail(_) | StageOutcome::GiveUp(_) | StageOutcome::Refused(_) => "failed",
        StageOutcome::Panicked(_) => "panicked",
    }
}
