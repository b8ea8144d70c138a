//! Which ticket of the limiter stands for which procedure.

use std::collections::BTreeSet;

use procession_kernel::{Birth, ChildPermits, LimitKey, ProcedureId, Ticket};
use rustc_hash::FxHashMap;

/// The limit of which every root takes a permit, if it is set.
pub const GLOBAL_LIMIT: &str = "*";

/// Questions of one procedure that are not answered.
#[derive(Default)]
struct Asking {
    questions: u32,
    /// It was served meanwhile, by an earlier question; and was not told.
    is_served: bool,
}

/// What became of a question.
pub(super) enum Heard {
    /// It was answered: granted, or not yet.
    Answer(bool),
    /// It was never asked: who was to ask had got on.
    NotAsked,
}

/// Which procedure holds or waits with which ticket.
pub(crate) struct Tickets {
    limited: BTreeSet<LimitKey>,
    of: FxHashMap<ProcedureId, Ticket>,
    by: FxHashMap<Ticket, ProcedureId>,
    /// Who is about to ask for more, or has asked and not been answered.
    asking: FxHashMap<ProcedureId, Asking>,
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
    pub(in crate::supervisor) fn holder(&self, ticket: Ticket) -> Option<ProcedureId> {
        self.by.get(&ticket).copied()
    }

    /// Gives the ticket that stands for a procedure.
    pub(crate) fn ticket(&self, id: ProcedureId) -> Option<Ticket> {
        self.of.get(&id).copied()
    }

    /// It was decided that this procedure asks. The question leaves with the receipt; what is granted from
    /// here on by an earlier one may be of a stage that it no longer waits for.
    pub(super) fn asks(&mut self, id: ProcedureId) {
        self.asking.entry(id).or_default().questions += 1;
    }

    /// A question has been heard of. Tells whether the procedure is to be told of a grant: by the answer to
    /// its last question, or, if that was never asked, because it was served meanwhile.
    pub(super) fn hears(&mut self, id: ProcedureId, heard: Heard) -> bool {
        let Some(asking) = self.asking.get_mut(&id) else {
            return matches!(heard, Heard::Answer(true));
        };
        asking.questions -= 1;
        if asking.questions > 0 {
            asking.is_served |= matches!(heard, Heard::Answer(true));
            return false;
        }
        let is_served = asking.is_served;
        self.asking.remove(&id);
        match heard {
            Heard::Answer(granted) => granted,
            Heard::NotAsked => is_served,
        }
    }

    /// Gives who is to be told that a ticket was served. Who has asked again
    /// meanwhile is told by the answer, and not twice: the second word could
    /// be taken for a grant of what it waits for by then.
    pub(super) fn served(&mut self, ticket: Ticket) -> Option<ProcedureId> {
        let id = self.holder(ticket)?;
        if let Some(asking) = self.asking.get_mut(&id) {
            asking.is_served = true;
            return None;
        }
        Some(id)
    }

    /// Returns how many procedures have a ticket.
    pub(in crate::supervisor) fn len(&self) -> usize {
        self.of.len()
    }

    /// Returns the tickets of a family.
    pub(super) fn of_family(&self, family: u64) -> Vec<(ProcedureId, Ticket)> {
        let of_family = self.of.iter().filter(|(id, _)| id.family == family);
        of_family.map(|(id, ticket)| (*id, *ticket)).collect()
    }

    pub(in crate::supervisor) fn bind(&mut self, ticket: Ticket, id: ProcedureId) {
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
