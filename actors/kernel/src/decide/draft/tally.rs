//! The counts of one list of children while a decision is made: its latch, with every move of the decision.

use super::small_map::SmallMap;
use crate::latch::{Latch, LatchState};
use crate::row::{Round, Row};

/// Counts of one list of children.
pub(super) struct Tally {
    round: Round,
    latch: Latch,
    /// The state as which each child that moved is counted now. A child may move more than once.
    counted: SmallMap<u32, LatchState>,
}

impl Tally {
    /// Begins with the latch from before the decision. A list that is born in the decision has none.
    pub(super) fn new(round: Round, latch: Option<Latch>) -> Self {
        let latch = latch.unwrap_or_else(|| Latch::new(&round));
        Self {
            round,
            latch,
            counted: SmallMap::new(),
        }
    }

    pub(super) const fn latch(&self) -> &Latch {
        &self.latch
    }

    pub(super) const fn contains(&self, member: u32) -> bool {
        self.round.contains(member)
    }

    /// Counts one child as its changed row has it. `before` is its row from before the decision.
    pub(super) fn follow(&mut self, before: Option<&Row>, row: &Row) {
        let member = row.id.member;
        let counted = self.counted.get(member).copied();
        let from = counted.or_else(|| before.map(LatchState::of));
        let to = LatchState::of(row);
        if from != Some(to) {
            self.latch.count(&self.round, member, from, to);
            self.counted.insert(member, to);
        }
    }
}
