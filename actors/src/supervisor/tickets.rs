//! Which ticket of the limiter stands for which procedure.

use std::collections::BTreeSet;

use procession_kernel::{Birth, ChildPermits, LimitKey, ProcedureId, Ticket};
use rustc_hash::FxHashMap;

/// The limit of which every root takes a permit, if it is set.
pub const GLOBAL_LIMIT: &str = "*";

/// Which procedure holds or waits with which ticket.
pub(crate) struct Tickets {
    limited: BTreeSet<LimitKey>,
    pub(super) of: FxHashMap<ProcedureId, Ticket>,
    pub(super) by: FxHashMap<Ticket, ProcedureId>,
    /// Who has asked for more and has not been answered: how often.
    asking: FxHashMap<ProcedureId, u32>,
}

impl Tickets {
    pub(crate) fn new(limited: Vec<LimitKey>) -> Self {
        Self {
            limited: limited.into_iter().collect(),
            of: FxHashMap::default(),
            by: FxHashMap::default(),
            asking: FxHashMap::default(),
        }
    }

    /// Remembers that a limit of this name is set.
    pub(super) fn limited(&mut self, key: &LimitKey) {
        self.limited.insert(key.clone());
    }

    /// Gives whom a ticket stands for.
    pub(super) fn holder(&self, ticket: Ticket) -> Option<ProcedureId> {
        self.by.get(&ticket).copied()
    }

    /// A question for this procedure is on its way to the limiter.
    pub(super) fn asks(&mut self, id: ProcedureId) {
        *self.asking.entry(id).or_default() += 1;
    }

    /// The answer to a question has come.
    pub(super) fn hears(&mut self, id: ProcedureId) {
        if let Some(asks) = self.asking.get_mut(&id) {
            *asks -= 1;
            if *asks == 0 {
                self.asking.remove(&id);
            }
        }
    }

    /// Gives who is to be told that a ticket was served. Who has asked again
    /// meanwhile is told by the answer, and not twice: the second word could
    /// be taken for a grant of what it waits for by then.
    pub(super) fn served(&self, ticket: Ticket) -> Option<ProcedureId> {
        self.holder(ticket).filter(|id| !self.asking.contains_key(id))
    }

    pub(super) fn bind(&mut self, ticket: Ticket, id: ProcedureId) {
        self.of.insert(id, ticket);
        self.by.insert(ticket, id);
    }

    pub(super) fn unbind(&mut self, id: ProcedureId) -> Option<Ticket> {
        let ticket = self.of.remove(&id)?;
        self.by.remove(&ticket);
        Some(ticket)
    }

    /// Gives the limits of which a birth needs a permit each; its kind's own first.
    pub(super) fn limits_of(&self, birth: &Birth, is_child: bool) -> Vec<LimitKey> {
        if self.limited.is_empty() || (is_child && birth.permits != ChildPermits::Own) {
            return Vec::new();
        }
        let mut limits: Vec<LimitKey> = std::iter::once(LimitKey::new(birth.kind.as_str()))
            .chain(birth.limit.clone())
            .chain(std::iter::once(LimitKey::new(GLOBAL_LIMIT)))
            .filter(|key| self.limited.contains(key))
            .collect();
        limits.dedup();
        limits
    }
}

#[cfg(test)]
mod tests;
