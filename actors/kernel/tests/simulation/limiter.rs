//! Tickets, and the limiter as the shell keeps it: permits asked for ahead of a
//! decision, bound to the procedures that it gives birth to, given back at their end.

use std::collections::BTreeSet;

use procession_kernel::{Admission, Birth, Event, Grant, LimitKey, Permits, ProcedureId, Ticket, WaitReason};

use super::draw::{LIMITED, limits_of};
use super::shell::Shell;

impl Shell {
    pub(crate) fn ticket(&mut self) -> Ticket {
        self.next_ticket += 1;
        Ticket(self.next_ticket)
    }

    /// Asks the limiter for those that are born as roots.
    pub(crate) fn admit(&mut self, births: &[&Birth]) -> (Vec<Ticket>, Vec<Admission>) {
        let mut tickets = Vec::new();
        let mut admissions = Vec::new();
        for birth in births {
            let limits = limits_of(birth);
            let mut granted = false;
            if !limits.is_empty() {
                let ticket = self.ticket();
                granted = self.permits.request(ticket, limits.clone(), birth.priority) == Grant::Granted;
                tickets.push(ticket);
            }
            admissions.push(Admission { limits, granted });
        }
        (tickets, admissions)
    }

    /// Decides an event that gives birth to roots, and binds their permits to them.
    pub(crate) fn decide_births(&mut self, tickets: Vec<Ticket>, event: Event) -> Result<(), String> {
        let before: BTreeSet<u64> = self.kernel.families().keys().copied().collect();
        self.decide(event)?;
        let born = self
            .kernel
            .families()
            .iter()
            .filter(|(number, _)| !before.contains(number));
        let roots = born.filter_map(|(number, family)| Some((*number, family.row(0)?)));
        let limited: Vec<ProcedureId> = roots
            .filter(|(_, root)| !root.limits.is_empty())
            .map(|(number, _)| ProcedureId::root(number))
            .collect();
        let mut limited = limited.into_iter();
        for ticket in tickets {
            match limited.next() {
                Some(id) => {
                    self.tickets.insert(id, ticket);
                    if self.early.remove(&ticket) {
                        self.grants.push_back(id);
                    }
                }
                None => {
                    self.early.remove(&ticket);
                    let served = self.permits.release(ticket);
                    self.served(&served);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn give_back(&mut self, id: ProcedureId) {
        if let Some(ticket) = self.tickets.remove(&id) {
            let served = self.permits.release(ticket);
            self.served(&served);
        }
    }

    pub(crate) fn served(&mut self, served: &[Ticket]) {
        for ticket in served {
            let id = self.tickets.iter().find(|(_, own)| *own == ticket).map(|(id, _)| *id);
            match id {
                Some(id) => self.grants.push_back(id),
                None => {
                    self.early.insert(*ticket);
                }
            }
        }
    }

    /// Recorded holders get theirs back, then those who wait queue up again.
    pub(crate) fn restore_permits(&mut self) {
        let limits = self.kernel.limits().clone();
        let set = limits.get(&LimitKey::from(LIMITED)).copied().unwrap_or(Some(2));
        self.permits = Permits::new([(LimitKey::from(LIMITED), set)]);
        let rows: Vec<_> = self
            .kernel
            .families()
            .values()
            .filter_map(|family| family.row(0))
            .cloned()
            .collect();
        let live = rows.iter().filter(|row| !row.is_ended() && !row.limits.is_empty());
        let (held, waiting): (Vec<_>, Vec<_>) = live.partition(|row| row.holds);
        for row in held {
            let ticket = self.ticket();
            self.tickets.insert(row.id, ticket);
            self.permits.restore(ticket, row.limits.clone(), row.priority);
        }
        for row in waiting
            .into_iter()
            .filter(|row| matches!(row.wait, Some(WaitReason::Permit(_))))
        {
            let ticket = self.ticket();
            self.tickets.insert(row.id, ticket);
            if self.permits.request(ticket, row.limits.clone(), row.priority) == Grant::Granted {
                self.grants.push_back(row.id);
            }
        }
    }

    /// Tells whether a permit is out, or somebody waits for one.
    pub(crate) fn permits_left(&self) -> bool {
        self.permits
            .usage()
            .iter()
            .any(|limit| limit.used > 0 || limit.waiting > 0)
    }
}
