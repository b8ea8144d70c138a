//! A family in memory: the rows of its members, and what follows from them.

mod below;
#[cfg(test)]
pub(crate) mod looked;
mod signals;

use std::collections::{BTreeMap, BTreeSet};

use crate::cause::NotUndone;
use crate::history::HistoryEntry;
use crate::id::{ProcedureId, Timestamp};
use crate::latch::Latch;
use crate::lifecycle::ProcedureState;
use crate::row::{Round, Row};

pub use below::Below;
pub use signals::Signals;

/// Rollback of one scope, as far as it is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Its stack is being read.
    Loading,
    /// Its stack is here; the last entry is on top. Tells whether the top is being undone.
    Held {
        /// What is left to be undone.
        stack: Vec<HistoryEntry>,
        /// What cannot be.
        not_undone: Vec<NotUndone>,
        /// The undo of the top is out.
        out: bool,
    },
}

/// The rows of a family by member number. Each has a place of its own: they are large, and change one by one.
pub type Members = Vec<Box<Row>>;

/// A root and all that it spawned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Family {
    /// Rows by member number; numbers are dense.
    pub members: Members,
    /// The newest history number.
    pub history: u32,
    /// How many members have not ended.
    pub live: u32,
    /// How many stages are out.
    pub going: u32,
    /// One latch for each list of children, by the number of the first.
    pub latches: BTreeMap<u32, Latch>,
    /// Members that the width of their list holds back.
    pub held: BTreeSet<u32>,
    /// Scopes that roll back, by member.
    pub scopes: BTreeMap<u32, Scope>,
    /// Signals that wait, and those whose keys are remembered.
    pub signals: Signals,
    /// Who was born by whom.
    pub below: Below,
}

impl Family {
    /// Gives the row of a member.
    #[must_use]
    pub fn row(&self, member: u32) -> Option<&Row> {
        #[cfg(test)]
        looked::look();
        self.members.get(member as usize).map(|row| &**row)
    }

    /// Gives the number that the next member will have.
    #[must_use]
    pub fn next_member(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    /// Gives the members from this one up to the root, itself first.
    pub fn ancestry(&self, member: u32) -> impl Iterator<Item = &Row> {
        std::iter::successors(self.row(member), |row| row.parent.and_then(|parent| self.row(parent)))
    }

    /// Gives the outermost failing member at or above this one: the scope that it rolls back with.
    /// One beyond its point of no return shields what lies below: that rolls back by itself.
    #[must_use]
    pub fn scope_of(&self, member: u32) -> Option<ProcedureId> {
        let mut scope = None;
        for row in self.ancestry(member) {
            if row.is_failing() {
                scope = Some(row.id);
            }
            if row.is_past_return() {
                break;
            }
        }
        scope
    }

    /// Gives the rows of `scope` and of all below it, by member. It costs as much as there are of
    /// them, however many others the family has.
    pub fn within(&self, scope: u32) -> impl Iterator<Item = &Row> {
        // Of the whole family nobody is to be looked for.
        let (all, some) = match scope {
            0 => (self.members.len(), Vec::new()),
            _ => (0, self.below.within(scope)),
        };
        let all = self.members.iter().take(all).map(|row| &**row);
        all.chain(some.into_iter().filter_map(|member| self.row(member)))
    }

    /// Takes the row of a member that is born now.
    pub(crate) fn born(&mut self, row: Box<Row>) {
        if let Some(parent) = row.parent {
            self.below.born(parent, row.id.member);
        }
        self.members.push(row);
    }

    /// Tells whether `member` is `scope` or below it.
    #[must_use]
    pub fn is_within(&self, scope: u32, member: u32) -> bool {
        scope == 0 || self.ancestry(member).any(|row| row.id.member == scope)
    }

    /// Finds the list of children in which a member was born.
    #[must_use]
    pub fn round_of(&self, row: &Row) -> Option<&Round> {
        let parent = self.row(row.parent?)?;
        parent.rounds.iter().rev().find(|round| round.contains(row.id.member))
    }

    /// Finds the oldest signal of this name that a member has not consumed, nor consumes just now.
    #[must_use]
    pub fn pending_signal(&self, member: u32, name: &str, consuming: Option<u32>) -> Option<u32> {
        self.signals.pending(member, name, consuming)
    }
}

/// What time does to a procedure.
#[must_use]
pub(crate) fn deadlines(row: &Row) -> [Option<Timestamp>; 2] {
    if row.is_ended() {
        return [None, None];
    }
    let own = if row.state == ProcedureState::Failed || row.out_of_time {
        None
    } else {
        row.deadline
    };
    [row.wait.as_ref().and_then(|wait| wait.deadline()), own]
}
