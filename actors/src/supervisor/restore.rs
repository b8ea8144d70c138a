//! The start: what is held is given back to those who held it, and who waited waits again.

use actix::prelude::*;
use procession_kernel::{Event, Grant, ProcedureId};

use super::Supervisor;
use super::tickets::Heard;
use crate::limiter::{Acquire, Acquired, Restore};

impl Supervisor {
    /// Recorded holders get theirs back, parents first. Gives those who wait, by
    /// priority and in the order in which they began to.
    pub(super) fn restore_admissions(&mut self) -> Vec<ProcedureId> {
        let quarantined = std::mem::take(&mut self.quarantined_holders);
        let claimants = std::mem::take(&mut self.survey.claimants);
        let (held, waiting) = self.claimants().restored(quarantined, &claimants);
        self.limiter.tell(Restore(held));
        waiting
    }

    /// Those who waited before the start queue up again. Asked one after the
    /// other: who goes first must ask first.
    pub(super) fn queue_again(&mut self, waiting: Vec<ProcedureId>, ctx: &mut Context<Self>) {
        let mut ids = Vec::with_capacity(waiting.len());
        let mut acquire = Acquire::default();
        for id in waiting {
            if let Some(request) = self.request_of(id) {
                self.tickets_of.asks(id);
                ids.push(id);
                acquire.requests.push(request);
            }
        }
        let work = self.limiter.ask(acquire);
        self.await_limiter(work, ctx, move |supervisor, acquired, ctx| {
            let Acquired { grants, served, .. } = acquired;
            for (id, grant) in ids.into_iter().zip(grants) {
                if supervisor.tickets_of.hears(id, Heard::Answer(grant == Grant::Granted)) {
                    supervisor.decide(Event::Granted(id), ctx);
                }
            }
            supervisor.served(served, ctx);
        });
    }
}
