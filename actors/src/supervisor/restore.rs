//! The start: what is held is given back to those who held it, and who waited waits again.

use std::cmp::Reverse;

use actix::prelude::*;
use procession_kernel::{Event, Grant, ProcedureId, Request, Row, Ticket, WaitReason};

use super::Supervisor;
use super::admission::needs;
use crate::limiter::{Acquire, Acquired, Restore};

impl Supervisor {
    /// Recorded holders get theirs back, parents first. Gives those who wait, by
    /// priority and in the order in which they began to.
    pub(super) fn restore_admissions(&mut self, ctx: &mut Context<Self>) -> Vec<ProcedureId> {
        let mut held = Vec::new();
        for (id, row) in std::mem::take(&mut self.quarantined_holders) {
            let ticket = self.ticket_of(id);
            held.push(restored(ticket, &row, Vec::new()));
        }
        let mut rows: Vec<Row> = Vec::new();
        for (_, family) in self.kernel.families().iter() {
            let members = family.members.iter();
            let asked = members.filter(|row| row.holds || !row.locked.is_empty() || waits(row));
            rows.extend(asked.map(|row| (**row).clone()));
        }
        let mut waiting = Vec::new();
        for row in rows {
            let ticket = self.ticket_of(row.id);
            if row.holds || !row.locked.is_empty() {
                held.push(restored(ticket, &row, self.within_above(row.id)));
            }
            // One that a failure above it has stopped runs no more, and needs nothing.
            if waits(&row) && !self.kernel.is_stopped(row.id) {
                waiting.push((Reverse(row.priority), row.since, row.revision, row.id));
            }
        }
        self.tell(&self.limiter, Restore(held), ctx);
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, _, _, id)| id).collect()
    }

    /// Those who waited before the start queue up again. Asked one after the
    /// other: who goes first must ask first.
    pub(super) fn queue_again(&mut self, waiting: Vec<ProcedureId>, ctx: &mut Context<Self>) {
        let mut ids = Vec::with_capacity(waiting.len());
        let mut acquire = Acquire::default();
        for id in waiting {
            if let Some(request) = self.request_of(id) {
                ids.push(id);
                acquire.requests.push(request);
            }
        }
        let request = self.limiter.send(acquire);
        let work = async move { request.await.unwrap_or_default() };
        self.await_limiter(work, ctx, move |supervisor, acquired, ctx| {
            let Acquired { grants, served, .. } = acquired;
            let granted = ids
                .into_iter()
                .zip(grants)
                .filter(|(_, grant)| *grant == Grant::Granted);
            for (id, _) in granted {
                supervisor.decide(Event::Granted(id), ctx);
            }
            supervisor.served(served, ctx);
        });
    }
}

fn waits(row: &Row) -> bool {
    row.wait.as_ref().is_some_and(WaitReason::is_admission)
}

fn restored(ticket: Ticket, row: &Row, within: Vec<Ticket>) -> Request {
    let limits = if row.holds { row.limits.clone() } else { Vec::new() };
    Request {
        ticket,
        needs: needs(limits, row.locked.clone()),
        kind: None,
        priority: row.priority,
        within,
    }
}
