//! Which ticket of the limiter stands for which procedure.

use std::collections::BTreeSet;

use procession_kernel::{Birth, ChildPermits, LimitKey, ProcedureId, Ticket};
use rustc_hash::FxHashMap;

/// The limit of which every root takes a permit, if it is set.
pub const GLOBAL_LIMIT: &str = "*";

/// Which procedure holds or waits with which ticket.
pub(super) struct Tickets {
    limited: BTreeSet<LimitKey>,
    pub(super) of: FxHashMap<ProcedureId, Ticket>,
    pub(super) by: FxHashMap<Ticket, ProcedureId>,
}

impl Tickets {
    pub(super) fn new(limited: Vec<LimitKey>) -> Self {
        Self {
            limited: limited.into_iter().collect(),
            of: FxHashMap::default(),
            by: FxHashMap::default(),
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
