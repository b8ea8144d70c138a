//! The opening: hooks of recovery around what is restored, then the start's own commit.

use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{Answer, Event, ProcedureId};

use super::Supervisor;
use super::requests::replies::Unanswered;
use crate::error::StartError;
use crate::hooks::Moment;

/// Opens the engine for messages: the start's own commit.
#[derive(Message)]
#[rtype(result = "Result<(), StartError>")]
pub(crate) struct Open;

impl Handler<Open> for Supervisor {
    type Result = ResponseActFuture<Self, Result<(), StartError>>;

    /// Hooks of recovery first: user code, so it runs on the workers; most kinds have none.
    fn handle(&mut self, _: Open, _: &mut Self::Context) -> Self::Result {
        let begun = self.clock.now();
        let unfinished = std::mem::take(&mut self.survey.unfinished);
        self.metrics.recovered(&unfinished, self.quarantine.len());
        let before = self.call_recovery_hooks(Moment::Before).into_actor(self);
        let restored = before.then(|failed, supervisor, _| {
            let waiting = supervisor.turn(|supervisor| {
                let claimants = std::mem::take(&mut supervisor.survey.claimants);
                supervisor.admission.restore(&supervisor.kernel, &claimants)
            });
            // Later than the permits: a family that is set aside keeps those that it holds.
            let failed = failed.map(|failed| supervisor.quarantine_failed(failed));
            let after = failed.map(|()| supervisor.call_recovery_hooks(Moment::After));
            let after = async move { after?.await };
            after
                .into_actor(supervisor)
                .map(move |failed, _, _| failed.map(|failed| (failed, waiting)))
        });
        Box::pin(restored.then(move |restored, supervisor, ctx| {
            let opened = restored.map(|(failed, waiting)| {
                supervisor.quarantine_failed(failed);
                supervisor.turn(|supervisor| supervisor.open(waiting, ctx))
            });
            let opened = match opened {
                Ok(opened) => ActorFutureExt::boxed_local(opened),
                // What could not be read is not the families' fault: nothing begins.
                Err(error) => ActorFutureExt::boxed_local(fut::err(StartError::Store(error))),
            };
            opened.map(move |opened, supervisor, _| {
                if opened.is_ok() {
                    supervisor.tell_of_start(supervisor.clock.now().since(begun));
                }
                opened
            })
        }))
    }
}

impl Supervisor {
    /// What the start found, and what it took, is told once, and kept.
    fn tell_of_start(&mut self, opening: Duration) {
        let report = &mut self.report;
        report.opening = opening;
        self.metrics.telemetry().recovery_seconds.set(report.took + opening);
        tracing::info!(
            families = report.families,
            procedures = report.procedures,
            quarantined = report.quarantined.len(),
            read_ms = %report.took.as_millis(),
            opening_ms = %opening.as_millis(),
            "the engine has started"
        );
    }

    /// Decides the start's own commit, and lets what waits for permits queue up behind it.
    fn open(
        &mut self,
        waiting: Vec<ProcedureId>,
        ctx: &mut Context<Self>,
    ) -> impl ActorFuture<Self, Output = Result<(), StartError>> + use<> {
        let (request, opened) = self.requests.open(self.status.cause());
        self.rejoin_queues(waiting, ctx);
        self.decide(Event::Recovered, ctx);
        self.dispatch.reserve(self.kernel.going());
        // The start's own commit is not counted.
        self.metrics.restart_totals();
        // The reply rests on the start's commit as everything else does.
        match self.pipeline.barrier() {
            Some(done) => {
                let wait = async move { done.await.is_ok() };
                ctx.spawn(wait.into_actor(self).map(move |done, supervisor, _| {
                    if done {
                        supervisor.requests.reply(request, Ok(Answer::Done));
                    }
                }));
            }
            None => {
                self.requests.reply(request, Err(Unanswered::Stopped));
            }
        }
        let wait = async move { opened.received().await.map(drop).map_err(Unanswered::unstarted) };
        wait.into_actor(self).map(|opened, supervisor, ctx| {
            supervisor.arm();
            supervisor.begin_health_checks(ctx);
            opened
        })
    }
}
