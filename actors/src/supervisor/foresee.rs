//! Who would move next: a dry run's plan is completed by the limiter, which knows the queues.
//! It makes the changes on a copy, and forgets them.

use actix::prelude::*;
use procession_kernel::{Effect, Freed, Operated, Plan};
use tokio::sync::oneshot;

use super::Supervisor;
use crate::error::AskError;
use crate::limiter::{Change, Foreseen, Would};

type Told = Result<Operated, AskError>;

impl Supervisor {
    /// Completes the plan of a dry run, once that is answered.
    pub(super) fn foresee(
        &self,
        operated: impl Future<Output = Told> + 'static,
        ctx: &mut Context<Self>,
    ) -> ResponseFuture<Told> {
        let (sender, receiver) = oneshot::channel();
        ctx.spawn(operated.into_actor(self).map(move |operated, supervisor, ctx| {
            supervisor.complete(operated, sender, ctx);
        }));
        Box::pin(async move { receiver.await.map_err(|_| AskError::Stopped)? })
    }

    fn complete(&self, operated: Told, sender: oneshot::Sender<Told>, ctx: &mut Context<Self>) {
        let plan = operated.as_ref().ok().and_then(|operated| operated.plan.as_deref());
        let changes = plan.map(|plan| self.changes_of(plan)).unwrap_or_default();
        if changes.is_empty() {
            // Whoever asked may have gone.
            sender.send(operated).ok();
            return;
        }
        let request = self.limiter.ask(Would(changes));
        ctx.spawn(request.into_actor(self).map(move |foreseen, supervisor, _| {
            let mut operated = operated;
            let plan = operated.as_mut().ok().and_then(|operated| operated.plan.as_deref_mut());
            if let Some(plan) = plan {
                supervisor.enter(foreseen.ok().flatten(), plan);
            }
            sender.send(operated).ok();
        }));
    }

    /// Gives what the limiter would be told: by the act's own commit, and when the rollback is over.
    fn changes_of(&self, plan: &Plan) -> Vec<Change> {
        let ticket = |id| self.tickets_of.of.get(id).copied();
        let mut changes = Vec::new();
        for effect in &plan.told {
            match effect {
                Effect::Release(id) => changes.extend(ticket(id).map(Change::Release)),
                Effect::Cancel(id) => changes.extend(ticket(id).map(Change::Cancel)),
                Effect::Keep(id, needs) => changes.extend(ticket(id).map(|ticket| Change::Keep(ticket, needs.clone()))),
                Effect::GiveBack(id, needs) => {
                    changes.extend(ticket(id).map(|ticket| Change::GiveBack(ticket, needs.clone())));
                }
                Effect::SetPriority(id, priority) => {
                    changes.extend(ticket(id).map(|ticket| Change::Priority(ticket, *priority)));
                }
                Effect::SetLimit(key, limit) => changes.push(Change::Capacity(key.clone(), *limit)),
                Effect::Discharged(family) => {
                    let of_family = self.tickets_of.of.iter().filter(|(id, _)| id.family == *family);
                    changes.extend(of_family.map(|(_, ticket)| Change::Release(*ticket)));
                }
                Effect::Reply(..)
                | Effect::Advance(_)
                | Effect::Undo(_)
                | Effect::Judge(..)
                | Effect::LoadStack(_)
                | Effect::Stop(_)
                | Effect::ArmTimer
                | Effect::Ask(_)
                | Effect::Bound(..)
                | Effect::Ended(_)
                | Effect::CleanUp(..)
                | Effect::Operated(_) => {}
            }
        }
        let later = plan.freed.iter().filter(|freed| freed.later);
        changes.extend(later.filter_map(|freed| ticket(&freed.id)).map(Change::Release));
        changes
    }

    fn enter(&self, foreseen: Option<Foreseen>, plan: &mut Plan) {
        let Some(Foreseen { released, served }) = foreseen else {
            let text = "who moves next is not told: too many hold or wait for something";
            plan.warnings.push(text.to_owned());
            return;
        };
        let holder = |ticket| self.tickets_of.holder(ticket);
        plan.moves_next = served.into_iter().filter_map(holder).collect();
        // Of a family that is set aside the kernel knows nothing.
        for (ticket, needs) in released {
            let id = holder(ticket).filter(|id| !needs.is_empty() && !plan.freed.iter().any(|freed| freed.id == *id));
            plan.freed.extend(id.map(|id| Freed {
                id,
                limits: needs.limits,
                locks: needs.locks,
                later: false,
            }));
        }
    }
}
