//! The limiter as a value, who stands behind its tickets, and what it has said.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use procession_kernel::{Admissions, Event, Grant, Kind, LimitKey, LimitUse, LockNeed, Needs, ProcedureId, Ticket};

/// What the limiter has said, and nobody has heard yet.
#[derive(Debug)]
pub(crate) enum Word {
    /// An event can be decided: its admissions are written into it.
    Ahead(Box<Ahead>),
    /// To those who asked after a receipt, or at the start.
    Asked(Vec<(ProcedureId, Grant)>, Vec<Ticket>),
    /// To those who waited.
    Served(Vec<Ticket>),
}

/// An event that waits for the limiter's word.
#[derive(Debug)]
pub(crate) struct Ahead {
    pub(crate) event: Event,
    pub(crate) asked: BTreeSet<Ticket>,
    pub(crate) exchange: Option<(Ticket, ProcedureId)>,
    pub(crate) served: Vec<Ticket>,
}

/// The limiter, and who stands behind its tickets.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    pub(crate) admissions: Admissions,
    pub(crate) of: BTreeMap<ProcedureId, Ticket>,
    pub(crate) by: BTreeMap<Ticket, ProcedureId>,
    pub(crate) words: VecDeque<Word>,
    /// Who has asked, and has not heard the answer: it alone tells them of a grant.
    pub(crate) asking: BTreeMap<ProcedureId, (u32, bool)>,
}

impl Desk {
    /// Lets the limiter work, and checks that no permit goes out beyond a capacity.
    pub(crate) fn work<T>(&mut self, work: impl FnOnce(&mut Admissions) -> T) -> Result<T, String> {
        let before: BTreeMap<LimitKey, u32> = self.uses().map(|(key, used, _)| (key, used)).collect();
        let said = work(&mut self.admissions);
        for (key, used, limit) in self.uses() {
            let more = used > before.get(&key).copied().unwrap_or(0);
            if more && limit.is_some_and(|limit| used > limit) {
                return Err(format!("{used} permits of {key} are out, and the limit is {limit:?}"));
            }
        }
        Ok(said)
    }

    fn uses(&self) -> impl Iterator<Item = (LimitKey, u32, Option<u32>)> {
        let usage = self.admissions.usage().into_iter();
        usage.map(|limit| (limit.key, limit.used, limit.limit))
    }

    pub(crate) fn tell(&mut self, change: impl FnOnce(&mut Admissions) -> Vec<Ticket>) -> Result<(), String> {
        let served = self.work(change)?;
        if !served.is_empty() {
            self.words.push_back(Word::Served(served));
        }
        Ok(())
    }

    pub(crate) fn asks(&mut self, id: ProcedureId) {
        self.asking.entry(id).or_default().0 += 1;
    }

    /// An answer has come; or none, for nothing was asked. Tells whether it is to be told of a grant.
    pub(crate) fn hears(&mut self, id: ProcedureId, answer: Option<Grant>) -> bool {
        let granted = answer == Some(Grant::Granted);
        let Some((asks, served)) = self.asking.get_mut(&id) else {
            return granted;
        };
        *asks -= 1;
        if *asks > 0 {
            *served |= granted;
            return false;
        }
        let served = *served;
        self.asking.remove(&id);
        answer.map_or(served, |_| granted)
    }

    /// Gives whom a ticket that was served stands for, unless an answer to them is on its way.
    pub(crate) fn told(&self, ticket: Ticket) -> Option<ProcedureId> {
        let id = self.by.get(&ticket).copied();
        id.filter(|id| !self.asking.contains_key(id))
    }

    /// Does so, and notes it for whoever is not told.
    pub(crate) fn served(&mut self, ticket: Ticket) -> Option<ProcedureId> {
        let told = self.told(ticket);
        if let Some((_, served)) = self.by.get(&ticket).and_then(|id| self.asking.get_mut(id)) {
            *served = true;
        }
        told
    }

    pub(crate) fn bind(&mut self, ticket: Ticket, id: ProcedureId) {
        self.of.insert(id, ticket);
        self.by.insert(ticket, id);
    }

    pub(crate) fn unbind(&mut self, id: ProcedureId) -> Option<Ticket> {
        let ticket = self.of.remove(&id)?;
        self.by.remove(&ticket);
        Some(ticket)
    }

    /// Tells whether a permit or a lock is out, or somebody waits.
    pub(crate) fn is_idle(&self) -> bool {
        let free = |limit: &LimitUse| limit.used == 0 && limit.waiting == 0;
        self.admissions.usage().iter().all(free) && self.admissions.locks().is_empty()
    }
}

/// Gives the limit of a kind itself, if it is among these.
pub(crate) fn own_of(kind: &Kind, limits: &[LimitKey]) -> Option<LimitKey> {
    limits.iter().find(|key| key.as_str() == kind.as_str()).cloned()
}

pub(crate) fn needs(limits: Vec<LimitKey>, locks: Vec<LockNeed>) -> Needs {
    Needs { limits, locks }
}
