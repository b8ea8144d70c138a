//! What is asked of the limiter and told to it after a receipt, and at the start.

use std::cmp::Reverse;

use procession_kernel::{Admissions, Event, LimitKey, ProcedureId, Request, Row, Ticket, WaitReason};

use super::desk::{Desk, Word, needs, own_of};
use super::draw::limits;
use super::shell::Shell;

impl Shell {
    pub(crate) fn ask(&mut self, id: ProcedureId) -> Result<(), String> {
        let waits = self.kernel.waits_for_admission(id);
        let Some(request) = waits.then(|| self.request_of(id)).flatten() else {
            if self.desk.hears(id, None) {
                self.decide(Event::Granted(id))?;
            }
            return Ok(());
        };
        let (grant, served) = self.desk.work(|limiter| limiter.request(request))?;
        self.desk.words.push_back(Word::Asked(vec![(id, grant)], served));
        Ok(())
    }

    pub(crate) fn release(&mut self, id: ProcedureId) -> Result<(), String> {
        match self.desk.unbind(id) {
            Some(ticket) => self.desk.tell(|limiter| limiter.release(ticket)),
            None => Ok(()),
        }
    }

    pub(crate) fn change(
        &mut self,
        id: ProcedureId,
        change: impl FnOnce(&mut Admissions, Ticket) -> Vec<Ticket>,
    ) -> Result<(), String> {
        match self.desk.of.get(&id).copied() {
            Some(ticket) => self.desk.tell(|limiter| change(limiter, ticket)),
            None => Ok(()),
        }
    }

    pub(crate) fn capacity(&mut self, key: LimitKey, limit: Option<u32>) -> Result<(), String> {
        self.desk.tell(|limiter| limiter.set_limit(key, limit))
    }

    // Who asks.

    pub(crate) fn ticket_of(&mut self, id: ProcedureId) -> Ticket {
        if let Some(ticket) = self.desk.of.get(&id) {
            return *ticket;
        }
        let ticket = self.ticket();
        self.desk.bind(ticket, id);
        ticket
    }

    pub(crate) fn within(&self, id: ProcedureId) -> Vec<Ticket> {
        let family = self.kernel.families().get(&id.family);
        let ancestry = family.into_iter().flat_map(|family| family.ancestry(id.member));
        ancestry.filter_map(|row| self.desk.of.get(&row.id).copied()).collect()
    }

    pub(crate) fn within_above(&self, id: ProcedureId) -> Vec<Ticket> {
        let parent = self.kernel.row(id).and_then(|row| row.parent);
        let parent = parent.map(|parent| ProcedureId::new(id.family, parent));
        parent.map(|parent| self.within(parent)).unwrap_or_default()
    }

    /// Those above it, and for an undo all of the part that rolls back, keep it from nothing.
    fn entered_by(&self, id: ProcedureId) -> Vec<Ticket> {
        let mut within = self.within_above(id);
        for other in self.kernel.rolled_back_with(id) {
            let ticket = self.desk.of.get(&other).copied();
            within.extend(ticket.filter(|ticket| !within.contains(ticket)));
        }
        within
    }

    fn request_of(&mut self, id: ProcedureId) -> Option<Request> {
        let row = self.kernel.row(id)?.clone();
        let is_undone = row.is_ended() || self.kernel.is_stopped(id);
        let limits = if row.holds || is_undone {
            Vec::new()
        } else {
            row.limits.clone()
        };
        let locks = row.locks.iter().filter(|need| !row.locked.contains(need));
        Some(Request {
            ticket: self.ticket_of(id),
            kind: own_of(&row.kind, &limits),
            needs: needs(limits, locks.cloned().collect()),
            priority: row.priority,
            within: self.entered_by(id),
        })
    }

    // The start.

    /// Recorded holders get theirs back, parents first; then those who wait queue up again.
    pub(crate) fn restore(&mut self) -> Result<(), String> {
        let set = self.kernel.limits().clone();
        let limits = limits().map(|(key, limit)| {
            let limit = set.get(&key).copied().unwrap_or(limit);
            (key, limit)
        });
        self.desk = Desk {
            admissions: Admissions::new(limits),
            ..Desk::default()
        };
        let members = self.kernel.families().values().flat_map(|family| &family.members);
        let concerned = members.filter(|row| row.holds || !row.locked.is_empty() || waits(row));
        let rows: Vec<Row> = concerned.map(|row| (**row).clone()).collect();
        let mut waiting = Vec::new();
        for row in rows {
            let ticket = self.ticket_of(row.id);
            if row.holds || !row.locked.is_empty() {
                let limits = if row.holds { row.limits.clone() } else { Vec::new() };
                let request = Request {
                    ticket,
                    needs: needs(limits, row.locked.clone()),
                    kind: None,
                    priority: row.priority,
                    within: self.within_above(row.id),
                };
                if !self.desk.admissions.restore(request).is_empty() {
                    return Err("somebody is served before the start".to_owned());
                }
            }
            if waits(&row) && !self.kernel.is_stopped(row.id) {
                waiting.push((Reverse(row.priority), row.since, row.revision, row.id));
            }
        }
        waiting.sort_unstable();
        self.queue_again(waiting.into_iter().map(|(_, _, _, id)| id).collect())
    }

    fn queue_again(&mut self, waiting: Vec<ProcedureId>) -> Result<(), String> {
        let (mut grants, mut served) = (Vec::new(), Vec::new());
        for id in waiting {
            if let Some(request) = self.request_of(id) {
                let (grant, others) = self.desk.work(|limiter| limiter.request(request))?;
                self.desk.asks(id);
                grants.push((id, grant));
                served.extend(others);
            }
        }
        self.desk.words.push_back(Word::Asked(grants, served));
        Ok(())
    }
}

/// Tells whether a row waits for a permit or a lock.
pub(crate) fn waits(row: &Row) -> bool {
    row.wait.as_ref().is_some_and(WaitReason::is_admission)
}
