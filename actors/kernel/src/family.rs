//! A family in memory: the rows of its members, and the state derived from them.

mod below;
mod gates;
#[cfg(test)]
pub(crate) mod looked;
mod signals;

use std::collections::{BTreeMap, BTreeSet};

use crate::cause::NotUndone;
use crate::history::HistoryEntry;
use crate::id::{ProcedureId, Timestamp};
use crate::latch::Latch;
use crate::lifecycle::ProcedureState;
use crate::row::{JoinPolicy, Round, Row};
use crate::seldom::Seldom;

pub use below::Below;
pub use gates::Gates;
pub use signals::Signals;

/// State of one scope's rollback in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Its stack is being read.
    Loading,
    /// Its stack is in memory; the last entry is the top.
    Held {
        /// Entries that remain to be undone.
        stack: Vec<HistoryEntry>,
        /// Stages that cannot be undone.
        not_undone: Vec<NotUndone>,
        /// `true` while the undo of the top is out.
        out: bool,
    },
}

/// The rows of a family by member number. Each is boxed, because rows are large and change one by one.
pub type Members = Vec<Box<Row>>;

/// A root and everything that it spawned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Family {
    /// Rows by member number; numbers are dense.
    pub members: Members,
    /// The newest history number.
    pub history: u32,
    /// How many members have not ended.
    pub live: u32,
    /// How many stages are out.
    pub in_flight: u32,
    /// One latch for each list of children, by the number of its first child.
    pub latches: BTreeMap<u32, Latch>,
    /// Members that are held back by the width of their list.
    pub held: BTreeSet<u32>,
    /// Scopes that roll back, by member.
    pub scopes: BTreeMap<u32, Scope>,
    /// Pending signals, and consumed signals whose keys are remembered.
    pub signals: Seldom<Signals>,
    /// Index from parents to children.
    pub below: Below,
    /// The closed gates, and what they wait for.
    pub gates: Seldom<Gates>,
}

impl Family {
    /// Returns the row of a member.
    #[must_use]
    pub fn row(&self, member: u32) -> Option<&Row> {
        #[cfg(test)]
        looked::look();
        self.members.get(member as usize).map(|row| &**row)
    }

    /// Returns the number that the next member will get.
    #[must_use]
    pub fn next_member(&self) -> u32 {
        u32::try_from(self.members.len()).unwrap_or(u32::MAX)
    }

    /// Returns the members from this one up to the root, starting with itself.
    pub fn ancestry(&self, member: u32) -> impl Iterator<Item = &Row> {
        std::iter::successors(self.row(member), |row| row.parent.and_then(|parent| self.row(parent)))
    }

    /// Returns the outermost failing member at or above this one: the scope that it rolls back with. A member past its
    /// point of no return shields its descendants, which then roll back on their own.
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

    /// Returns the rows of `scope` and of its descendants, by member. The cost depends on their number, not on the
    /// size of the family.
    pub fn within(&self, scope: u32) -> impl Iterator<Item = &Row> {
        // The whole family needs no search in the index.
        let (all, some) = match scope {
            0 => (self.members.len(), Vec::new()),
            _ => (0, self.below.within(scope)),
        };
        let all = self.members.iter().take(all).map(|row| &**row);
        all.chain(some.into_iter().filter_map(|member| self.row(member)))
    }

    /// Adds the row of a newborn member.
    pub(crate) fn born(&mut self, row: Box<Row>) {
        if let Some(parent) = row.parent {
            self.below.born(parent, row.id.member);
        }
        self.members.push(row);
    }

    /// Returns `true` if `member` is `scope` or one of its descendants.
    #[must_use]
    pub fn is_within(&self, scope: u32, member: u32) -> bool {
        scope == 0 || self.ancestry(member).any(|row| row.id.member == scope)
    }

    /// Finds the list of children that the member belongs to.
    #[must_use]
    pub fn round_of(&self, row: &Row) -> Option<&Round> {
        let parent = self.row(row.parent?)?;
        parent.rounds.iter().rev().find(|round| round.contains(row.id.member))
    }

    /// Returns `true` if a member waits at a gate whose own rule decides, and a sibling before it has ended. Its rule
    /// is asked then, and again at each start.
    pub(crate) fn asks_at_gate(&self, row: &Row) -> bool {
        row.closed_gate().is_some_and(|gate| gate.opens == JoinPolicy::Custom)
            && self.gates.latch(row.id.member).is_some_and(|latch| latch.ended > 0)
    }

    /// Finds the oldest pending signal of this name for a member, except the one that is being consumed.
    #[must_use]
    pub fn pending_signal(&self, member: u32, name: &str, consuming: Option<u32>) -> Option<u32> {
        self.signals.pending(member, name, consuming)
    }
}

/// Returns the instants at which time affects a procedure: the end of its wait, and its own deadline.
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
