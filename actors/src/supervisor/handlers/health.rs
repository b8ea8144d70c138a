//! What the supervisor does for the health wing: it reads the limiter's queues, lets others have their turn between
//! two slices of a check, repairs what was lost, and answers `Verdicts` and `Explain`.

use std::time::Duration;

use actix::WeakRecipient;
use actix::prelude::*;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use procession_kernel::{Event, Lack, ProcedureId, Record};
use tokio::sync::oneshot;

use super::super::Supervisor;
use super::super::health::check::{Check, Next, Repairs, Requester, Waiters, still_uncalled};
use super::super::health::diagnosis_input::{DiagnosisInput, Queues};
use super::super::health::explain::stored;
use super::super::health::{EngineState, Findings, actor_lost};
use crate::clock::machine_now;
use crate::error::AskError;
use crate::limiter::{Waiters as QueuePage, Waits};
use crate::mail::deliver;
use crate::messages::{Explain, Verdicts};
use crate::view::{Explanation, Rule, Verdict};

/// Says that it is time for a health check.
#[derive(Message)]
#[rtype(result = "()")]
pub(in crate::supervisor) struct HealthCheckDue;

impl Handler<HealthCheckDue> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: HealthCheckDue, ctx: &mut Self::Context) {
        if !self.status.is_stopped() {
            self.check_health(Requester::Clock, ctx);
        }
    }
}

impl Handler<Verdicts> for Supervisor {
    type Result = ResponseFuture<Result<Vec<Verdict>, AskError>>;

    /// Answered also when the journal has failed: that is a verdict, too.
    fn handle(&mut self, _: Verdicts, ctx: &mut Self::Context) -> Self::Result {
        if self.status.is_stopped() {
            return Box::pin(async { Err(AskError::Stopped) });
        }
        let (sender, receiver) = oneshot::channel();
        let failure = self.status.failure();
        self.check_health(Requester::Caller(sender), ctx);
        Box::pin(async move {
            let (verdicts, settled) = receiver.await.map_err(|_| failure.unanswered())?;
            if let Some(settled) = settled {
                settled.await?;
            }
            Ok(verdicts)
        })
    }
}

type Explained = (Option<Explanation>, LocalBoxFuture<'static, Result<(), AskError>>);

impl Handler<Explain> for Supervisor {
    type Result = ResponseFuture<Result<Explanation, AskError>>;

    /// What it says rests on the newest commit decided, and waits for it.
    fn handle(&mut self, Explain(id): Explain, ctx: &mut Self::Context) -> Self::Result {
        if let Some(refusal) = self.status.refusal() {
            return Box::pin(async move { Err(refusal) });
        }
        let (sender, receiver) = oneshot::channel::<Explained>();
        self.read_queues(Some(id), ctx, move |supervisor, queues, lack, _| {
            let state = supervisor.engine_state();
            let called = |id| state.progress(id);
            let input = DiagnosisInput {
                lack: lack.as_ref(),
                ..supervisor.health.input(&state, &queues, &called, &|_| None)
            };
            let explanation = input.explain(id);
            // The caller may have gone.
            sender.send((explanation, Box::pin(supervisor.settled()))).ok();
        });
        let committed = self.committed();
        Box::pin(async move {
            let (explanation, settled) = receiver.await.map_err(|_| AskError::Stopped)?;
            settled.await?;
            match explanation {
                Some(explanation) => Ok(explanation),
                None => stored(&committed, id).await,
            }
        })
    }
}

/// What is done with the queues once all pages are there.
type Take = Box<dyn FnOnce(&mut Supervisor, Queues, Option<Lack>, &mut Context<Supervisor>)>;

impl Supervisor {
    /// Reads the limiter's queues, a page at a time, and of this procedure all of the first thing that it lacks. Each
    /// page is taken in the limiter's turn, so the kernel knows of every grant that was given before it.
    fn read_queues(
        &self,
        of: Option<ProcedureId>,
        ctx: &mut Context<Self>,
        take: impl FnOnce(&mut Self, Queues, Option<Lack>, &mut Context<Self>) + 'static,
    ) {
        let lacks = of.and_then(|id| self.kernel.lacks(id));
        let of = lacks.and_then(|(asker, lacking)| Some((self.admission.tickets().ticket(asker)?, lacking)));
        let queues = Queues::with_room(self.admission.tickets().len());
        self.read_page(Waits { from: 0, of }, queues, ctx, Box::new(take));
    }

    fn read_page(&self, waits: Waits, mut queues: Queues, ctx: &mut Context<Self>, take: Take) {
        let of = waits.of.clone();
        let request = self.admission.limiter().ask(waits);
        ctx.spawn(request.into_actor(self).map(move |answer, supervisor, ctx| {
            let QueuePage {
                turn,
                waiting,
                lack,
                next,
            } = answer.unwrap_or_default();
            supervisor.turn(|supervisor| {
                supervisor.in_turn(turn, ctx, move |supervisor, ctx| {
                    queues.extend(waiting, supervisor.admission.tickets(), &supervisor.kernel);
                    match next {
                        Some(from) => supervisor.read_page(Waits { from, of }, queues, ctx, take),
                        None => take(supervisor, queues, lack, ctx),
                    }
                });
            });
        }));
    }

    /// Returns what the health wing reads.
    fn engine_state(&self) -> EngineState<'_> {
        EngineState {
            kernel: &self.kernel,
            tickets: self.admission.tickets(),
            actors: self.dispatch.actors(),
            quarantined: self.quarantine.families(),
            holes: self.holes.all(),
            telemetry: self.metrics.telemetry(),
            now: self.clock.now(),
            durable: self.pipeline.durable(),
            failed: self.status.cause(),
            pending_reads: self.dispatch.pending_reads(),
        }
    }

    /// Begins the health checks on the engine's clock.
    pub(in crate::supervisor) fn begin_health_checks(&mut self, ctx: &mut Context<Self>) {
        self.health.begin(self.clock.now(), self.quarantine.families().keys());
        self.measure_disk(ctx);
        self.check_later(Duration::ZERO, ctx);
    }

    /// Has the next check come on a task of its own, which a busy mailbox cannot starve.
    fn check_later(&self, took: Duration, ctx: &mut Context<Self>) {
        if let Some(time) = self.health.next_check(self.clock.now(), took) {
            let (sleep, me) = (self.clock.sleep_until(time), ctx.address().downgrade().recipient());
            actix_rt::spawn(wake(sleep, me));
        }
    }

    /// Measures the disk anew, unless it has not answered yet.
    fn measure_disk(&mut self, ctx: &mut Context<Self>) {
        if !self.health.begin_measuring() {
            return;
        }
        let reader = self.reader.clone();
        let measured = async move { reader.run(|store| async { Ok(store.disk_room()) }.boxed()).await };
        ctx.spawn(measured.into_actor(self).map(|room, supervisor, _| {
            let room = room.ok().flatten();
            supervisor.health.measured(room);
            if let Some(room) = room {
                supervisor.metrics.telemetry().disk_free.set(room.free as f64);
            }
        }));
    }

    fn check_health(&mut self, requester: Requester, ctx: &mut Context<Self>) {
        self.measure_disk(ctx);
        let mut check = self.health.begin_check(requester, self.pipeline.durable());
        self.read_queues(None, ctx, move |supervisor, queues, _, ctx| {
            check.set_queues(queues);
            // An engine that commits nothing may have thawed families all the same.
            supervisor.kernel.cool();
            let next = supervisor.health.proceed(check, &supervisor.engine_state());
            supervisor.continue_check(next, ctx);
        });
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
                // A panic there finds none.
                let work = actix_rt::task::spawn_blocking(move || graph.deadlocks());
                ctx.spawn(work.into_actor(self).map(move |found, supervisor, ctx| {
                    supervisor.turn(|supervisor| {
                        let (found, state) = (found.unwrap_or_default(), supervisor.engine_state());
                        let next = supervisor.health.found_deadlocks(check, found, &state);
                        supervisor.continue_check(next, ctx);
                    });
                }));
            }
            Next::AskAgain(check) => self.read_queues(None, ctx, move |supervisor, queues, _, ctx| {
                let next = supervisor.health.look_again(check, queues, &supervisor.engine_state());
                supervisor.continue_check(next, ctx);
            }),
            Next::Repair(check, repairs) => self.end_check(check, repairs, ctx),
        }
    }

    /// Repairs what was lost, and tells.
    fn end_check(&mut self, mut check: Box<Check>, repairs: Repairs, ctx: &mut Context<Self>) {
        let begun = machine_now();
        let repaired = self.repair(repairs, ctx);
        let (now, is_serving) = (self.clock.now(), !self.status.has_failed());
        self.health.look_for_unserved(&mut check, now, is_serving);
        let lost = self.dispatch.lost_calls(&self.kernel);
        self.wall.look(&*self.clock);
        let findings = Findings {
            actors_lost: lost.map(|(id, lost)| actor_lost(id, lost)).collect(),
            repaired: &repaired,
            workers: self.dispatch.worker_statuses(&self.kernel),
            appending_since: self.pipeline.appending_since(),
            unreadable: self.dispatch.read_trouble(),
            clock_ahead: self.wall.ahead(),
        };
        self.health.conclude(&mut check, findings, &self.engine_state());
        let report = self.health.finish(check);
        self.show_verdicts(&report.verdicts, report.waiters);
        match report.requester {
            Requester::Clock => self.check_later(report.took + begun.elapsed(), ctx),
            Requester::Caller(sender) => {
                // What was repaired is told once it is on disk.
                let found = report.verdicts.iter().any(|verdict| verdict.rule == Rule::LostWake);
                let settled = found.then(|| self.settled().boxed_local());
                // The caller may have gone.
                sender.send((report.verdicts, settled)).ok();
            }
        }
    }

    /// Sets what was lost going again; returns each, with what it had waited for.
    fn repair(&mut self, repairs: Repairs, ctx: &mut Context<Self>) -> Vec<(ProcedureId, String)> {
        let mut found = Vec::new();
        if !self.status.decides() {
            return found;
        }
        self.replace_lost_calls(repairs.gone, ctx);
        if self.kernel.is_draining() {
            return found;
        }
        self.arm();
        if repairs.is_lost || !repairs.unknown.is_empty() || self.kernel.lacks_timers() {
            found = self.wake_lost(repairs.unknown, ctx);
        }
        let uncalled = still_uncalled(repairs.uncalled, &self.engine_state(), || {
            let pending = self.dispatch.pending_calls();
            move |id| pending.contains(&id)
        });
        found.extend(self.call_uncalled(uncalled, ctx));
        self.metrics.lost_wakes(&self.kernel, &found);
        found
    }

    /// Wakes procedures that nothing would have woken; returns each, with what it waited for.
    fn wake_lost(&mut self, unknown: Vec<ProcedureId>, ctx: &mut Context<Self>) -> Vec<(ProcedureId, String)> {
        let event = Event::AuditDue {
            granted: Vec::new(),
            unknown,
        };
        let decision = self.kernel.decide(self.clock.now(), event);
        let woken = decision.records().iter().filter_map(|record| {
            let Record::WakeFound(id) = record else { return None };
            Some(*id)
        });
        let waited = |id: ProcedureId| {
            let wait = self.kernel.row(id).and_then(|row| row.wait.as_ref());
            wait.map_or_else(|| "its locks".to_owned(), ToString::to_string)
        };
        let found: Vec<(ProcedureId, String)> = woken.map(|id| (id, waited(id))).collect();
        if !found.is_empty() {
            self.commit(decision, ctx);
        }
        found
    }

    /// Makes the calls that were never made; returns them.
    fn call_uncalled(&mut self, uncalled: Vec<ProcedureId>, ctx: &mut Context<Self>) -> Vec<(ProcedureId, String)> {
        let mut found = Vec::new();
        for id in uncalled {
            self.health.recalled();
            found.push((id, "the call of its stage".to_owned()));
            for call in self.kernel.calls_of(id) {
                self.call(ctx, |dispatch, view| dispatch.call(view, call));
            }
        }
        found
    }

    /// Shows the recorder what a check has found.
    fn show_verdicts(&mut self, verdicts: &[Verdict], waiters: Waiters) {
        let now = self.clock.now();
        let told: Vec<&str> = verdicts.iter().map(|verdict| verdict.rule.as_str()).collect();
        let telemetry = self.metrics.telemetry();
        telemetry.verdicts(&told);
        if let Some(bytes) = self.reader.size_bytes() {
            telemetry.bytes.set(bytes as f64);
        }
        let waited = waiters.oldest.map_or(Duration::ZERO, |since| now.since(since));
        telemetry.lock_waiters.set(waiters.locks);
        telemetry.oldest_runnable.set(waited);
        self.metrics.show_mailboxes(now);
    }
}

async fn wake(sleep: impl Future<Output = ()>, supervisor: WeakRecipient<HealthCheckDue>) {
    sleep.await;
    if let Some(supervisor) = supervisor.upgrade() {
        deliver(&supervisor, HealthCheckDue).await;
    }
}

#[cfg(test)]
mod tests;
