//! Requests to the limiter, as the rows say: for the limiter of an engine, and for one that is made to look at a closed
//! journal.

use std::cmp::Reverse;

use procession_kernel::{Kernel, LimitKey, LockNeed, Needs, ProcedureId, Request, Row, Ticket, WaitReason};

use super::tickets::Tickets;

/// The rows, and the tickets of those in them.
pub(crate) struct AdmissionRequests<'a> {
    pub(crate) kernel: &'a Kernel,
    pub(crate) tickets: &'a mut Tickets,
    /// The number given last.
    pub(crate) newest: &'a mut u64,
}

impl AdmissionRequests<'_> {
    pub(super) fn ticket_of(&mut self, id: ProcedureId) -> Ticket {
        if let Some(ticket) = self.tickets.ticket(id) {
            return ticket;
        }
        *self.newest += 1;
        let ticket = Ticket(*self.newest);
        self.tickets.bind(ticket, id);
        ticket
    }

    /// Asks for all that a procedure lacks for its next stage; for an undo, for its locks alone.
    pub(crate) fn request_of(&mut self, id: ProcedureId) -> Option<Request> {
        let row = self.kernel.row(id)?;
        let is_undone = row.is_ended() || self.kernel.is_stopped(id);
        let limits = lacking_limits(row, is_undone);
        let (locks, priority) = (lacking_locks(row), row.priority);
        let kind = LimitKey::new(row.kind.as_str());
        Some(Request {
            ticket: self.ticket_of(id),
            kind: limits.contains(&kind).then_some(kind),
            needs: Needs { limits, locks },
            priority,
            within: self.entered_by(id),
        })
    }

    /// Gives what recorded holders get back, parents first, and those who wait, by
    /// priority and in the order in which they began to.
    pub(crate) fn restored(
        &mut self,
        quarantined: Vec<(ProcedureId, Row)>,
        claimants: &[ProcedureId],
    ) -> (Vec<Request>, Vec<ProcedureId>) {
        let mut held = Vec::new();
        for (id, row) in quarantined {
            let ticket = self.ticket_of(id);
            held.push(restored(ticket, &row, Vec::new()));
        }
        let mut waiting = Vec::new();
        for id in claimants {
            let Some(row) = self.kernel.row(*id) else { continue };
            let ticket = self.ticket_of(row.id);
            if is_holder(row) {
                held.push(restored(ticket, row, within_above(self.kernel, self.tickets, row.id)));
            }
            // One that a failure above it has stopped runs no more, and needs nothing.
            if waits(row) && !self.kernel.is_stopped(row.id) {
                waiting.push((Reverse(row.priority), row.since, row.revision, row.id));
            }
        }
        waiting.sort_unstable();
        (held, waiting.into_iter().map(|(_, _, _, id)| id).collect())
    }

    /// Gives the tickets whose holders keep a procedure from nothing: those above it, and
    /// for its undo all of the part that rolls back.
    fn entered_by(&self, id: ProcedureId) -> Vec<Ticket> {
        let mut within = within_above(self.kernel, self.tickets, id);
        for other in self.kernel.rolled_back_with(id) {
            let ticket = self.tickets.ticket(other);
            within.extend(ticket.filter(|ticket| !within.contains(ticket)));
        }
        within
    }
}

/// Gives the tickets of a procedure and of all above it, nearest first.
pub(super) fn within(kernel: &Kernel, tickets: &Tickets, id: ProcedureId) -> Vec<Ticket> {
    let Some(family) = kernel.families().get(&id.family) else {
        return Vec::new();
    };
    family
        .ancestry(id.member)
        .filter_map(|row| tickets.ticket(row.id))
        .collect()
}

/// Gives the tickets of all above a procedure, nearest first.
pub(super) fn within_above(kernel: &Kernel, tickets: &Tickets, id: ProcedureId) -> Vec<Ticket> {
    let parent = kernel.row(id).and_then(|row| row.parent);
    parent
        .map(|parent| within(kernel, tickets, ProcedureId::new(id.family, parent)))
        .unwrap_or_default()
}

/// Tells whether a row says that it holds a permit or a lock.
pub(crate) fn is_holder(row: &Row) -> bool {
    row.holds || !row.locked.is_empty()
}

/// Tells whether a row says that it holds one, or waits for one.
pub(crate) fn claims(row: &Row) -> bool {
    is_holder(row) || waits(row)
}

fn waits(row: &Row) -> bool {
    row.wait.as_ref().is_some_and(WaitReason::is_admission)
}

fn restored(ticket: Ticket, row: &Row, within: Vec<Ticket>) -> Request {
    let limits = if row.holds { row.limits.clone() } else { Vec::new() };
    Request {
        ticket,
        needs: Needs {
            limits,
            locks: row.locked.clone(),
        },
        kind: None,
        priority: row.priority,
        within,
    }
}

/// What it needs of permits; an undo, of one that has ended or is stopped, needs none.
fn lacking_limits(row: &Row, is_undone: bool) -> Vec<LimitKey> {
    if row.holds || is_undone {
        Vec::new()
    } else {
        row.limits.clone()
    }
}

fn lacking_locks(row: &Row) -> Vec<LockNeed> {
    row.locks
        .iter()
        .filter(|need| !row.locked.contains(need))
        .cloned()
        .collect()
}
