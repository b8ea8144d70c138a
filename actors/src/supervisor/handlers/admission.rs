//! What the supervisor does for the admission wing: it waits for the limiter, takes the answers in the order in which
//! the limiter gave them, and decides on each.

use actix::prelude::*;
use procession_kernel::{Decision, Event, Grant, Operated, ProcedureId, StageEnded, Ticket};
use tokio::sync::oneshot;

use super::super::admission::{Asked, Heard, admit_report};
use super::super::{Supervisor, Take};
use crate::error::AskError;
use crate::limiter::{Acquired, Served, Would};
use crate::supervisor::failure::FailureCause;

/// Why an engine stops to which its limiter gives no answer; a panic of the limiter is told before, and at more length.
const LIMITER_GONE: &str = "the limiter has ended, which is a defect of the engine";

impl Handler<Served> for Supervisor {
    type Result = ();

    fn handle(&mut self, Served { turn, tickets }: Served, ctx: &mut Self::Context) {
        self.metrics.taken();
        self.turn(|supervisor| {
            supervisor.in_turn(turn, ctx, move |supervisor, ctx| supervisor.served(tickets, ctx));
        });
    }
}

impl Supervisor {
    /// Takes an answer of the limiter once all before it are taken. One without a turn has no limiter behind it. In an
    /// engine that has failed nothing rests on the order, and an earlier answer may be lost.
    pub(in crate::supervisor) fn in_turn(
        &mut self,
        turn: u64,
        ctx: &mut Context<Self>,
        take: impl FnOnce(&mut Self, &mut Context<Self>) + 'static,
    ) {
        if turn == 0 || self.status.has_failed() {
            take(self, ctx);
            return;
        }
        let take: Take = Box::new(take);
        self.admission.enqueue(turn, take);
        while let Some(take) = self.admission.next_answer() {
            take(self, ctx);
        }
    }

    /// Waits for the limiter's answer, and has it taken when it is its turn.
    pub(in crate::supervisor) fn await_limiter(
        &self,
        work: impl Future<Output = Result<Acquired, MailboxError>> + 'static,
        ctx: &mut Context<Self>,
        take: impl FnOnce(&mut Self, Acquired, &mut Context<Self>) + 'static,
    ) {
        ctx.spawn(work.into_actor(self).map(move |acquired, supervisor, ctx| {
            let Ok(acquired) = acquired else {
                // Without the limiter's word anything decided here could give away what another holds.
                if !supervisor.status.is_stopped() {
                    supervisor.fail(FailureCause::Failed(LIMITER_GONE.to_owned()));
                }
                return;
            };
            let turn = acquired.turn;
            supervisor.turn(|supervisor| {
                supervisor.in_turn(turn, ctx, move |supervisor, ctx| {
                    if supervisor.status.decides() {
                        take(supervisor, acquired, ctx);
                    }
                });
            });
        }));
    }

    /// Commits a decision that was made on the limiter's word, and tells those who were served by the same answer.
    pub(in crate::supervisor) fn commit_admitted(
        &mut self,
        decision: Decision,
        asked: Asked,
        served: Vec<Ticket>,
        ctx: &mut Context<Self>,
    ) {
        self.commit(decision, ctx);
        self.admission.settle(&self.kernel, self.quarantine.families(), asked);
        self.served(served, ctx);
    }

    /// A report that gives birth to procedures with limits or locks, or whose next stage needs locks, waits for the
    /// limiter's word. Gives it back if it need not wait.
    pub(in crate::supervisor) fn admit_report(
        &mut self,
        mut report: Box<StageEnded>,
        ctx: &mut Context<Self>,
    ) -> Option<Box<StageEnded>> {
        let asking = self.admission.demand_of_report(&self.kernel, &mut report);
        if asking.is_empty() {
            return Some(report);
        }
        let (mut asked, work) = self.admission.ask(asking, Some(report.id));
        self.await_limiter(work, ctx, move |supervisor, acquired, ctx| {
            admit_report(&mut report, &mut asked, acquired.exchanged, acquired.grants);
            let decision = supervisor
                .kernel
                .decide(supervisor.clock.now(), Event::StageEnded(report));
            supervisor.commit_admitted(decision, asked, acquired.served, ctx);
            supervisor.look_at_drain(ctx);
        });
        None
    }

    /// Asks for all that a procedure lacks for its next stage; for an undo, for its locks alone.
    pub(in crate::supervisor) fn ask_for(&mut self, id: ProcedureId, ctx: &mut Context<Self>) {
        let Some(work) = self.admission.ask_for(&self.kernel, id) else {
            if self.admission.hears(id, Heard::NotAsked) {
                self.decide(Event::Granted(id), ctx);
            }
            return;
        };
        self.await_limiter(work, ctx, move |supervisor, acquired, ctx| {
            let granted = acquired.grants.contains(&Grant::Granted);
            if supervisor.admission.hears(id, Heard::Answer(granted)) {
                supervisor.decide(Event::Granted(id), ctx);
            }
            supervisor.served(acquired.served, ctx);
        });
    }

    fn served(&mut self, tickets: Vec<Ticket>, ctx: &mut Context<Self>) {
        for ticket in tickets {
            // One that asked is bound when its own answer is taken, and was answered before it was served.
            if let Some(id) = self.admission.served(ticket) {
                self.decide(Event::Granted(id), ctx);
            }
        }
    }

    /// Has those who waited before the start queue up again.
    pub(in crate::supervisor) fn queue_again(&mut self, waiting: Vec<ProcedureId>, ctx: &mut Context<Self>) {
        let (ids, work) = self.admission.queue_again(&self.kernel, waiting);
        self.await_limiter(work, ctx, move |supervisor, acquired, ctx| {
            let Acquired { grants, served, .. } = acquired;
            for (id, grant) in ids.into_iter().zip(grants) {
                if supervisor.admission.hears(id, Heard::Answer(grant == Grant::Granted)) {
                    supervisor.decide(Event::Granted(id), ctx);
                }
            }
            supervisor.served(served, ctx);
        });
    }
}

type DryRun = Result<Operated, AskError>;

impl Supervisor {
    /// Completes the plan of a dry run, once that is answered: the limiter makes the changes on a copy.
    pub(in crate::supervisor) fn foresee(
        &self,
        operated: impl Future<Output = DryRun> + 'static,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<DryRun> {
        let (sender, receiver) = oneshot::channel();
        ctx.spawn(operated.into_actor(self).map(move |operated, supervisor, ctx| {
            supervisor.complete(operated, sender, ctx);
        }));
        Box::pin(async move { receiver.await.map_err(|_| AskError::Stopped)? })
    }

    fn complete(&self, operated: DryRun, sender: oneshot::Sender<DryRun>, ctx: &mut Context<Self>) {
        let plan = operated.as_ref().ok().and_then(|operated| operated.plan.as_deref());
        let changes = plan.map(|plan| self.admission.changes_of(plan)).unwrap_or_default();
        if changes.is_empty() {
            // The caller may have gone.
            sender.send(operated).ok();
            return;
        }
        let request = self.admission.limiter().ask(Would(changes));
        ctx.spawn(request.into_actor(self).map(move |foreseen, supervisor, _| {
            let mut operated = operated;
            let plan = operated.as_mut().ok().and_then(|operated| operated.plan.as_deref_mut());
            if let Some(plan) = plan {
                supervisor.admission.complete_plan(foreseen.ok().flatten(), plan);
            }
            sender.send(operated).ok();
        }));
    }
}
