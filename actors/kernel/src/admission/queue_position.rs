//! Positions in the order of service, and sets of positions.

use std::cmp::Ordering;

use super::MAX_OVERTAKES;
use super::claim::ClaimSlot;
use super::sorted_deque::SortedDeque;

/// A position in the order of service. Waiters that were overtaken [`MAX_OVERTAKES`] times go first, then priority
/// counts, then arrival. Arrivals are never repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct QueuePosition {
    /// 0 after [`MAX_OVERTAKES`]. Otherwise the rank is smaller the higher the priority is.
    rank: u32,
    /// The waiter in this position.
    pub(super) slot: ClaimSlot,
    pub(super) arrival: u64,
}

impl QueuePosition {
    /// Returns the position of a waiter that arrived at `arrival` and was overtaken `overtaken` times.
    pub(super) fn new(slot: ClaimSlot, priority: i16, arrival: u64, overtaken: u32) -> Self {
        let may_be_overtaken = overtaken < MAX_OVERTAKES;
        let below_the_highest = i16::MAX.abs_diff(priority);
        Self {
            rank: if may_be_overtaken {
                1 + u32::from(below_the_highest)
            } else {
                0
            },
            slot,
            arrival,
        }
    }

    /// Returns `true` if the waiter was overtaken so often that no later arrival may overtake it again.
    pub(super) const fn has_max_overtakes(self) -> bool {
        self.rank == 0
    }

    /// Returns the first position behind all positions of the same priority.
    pub(super) const fn end_of_rank(self) -> Self {
        Self {
            rank: self.rank + 1,
            slot: self.slot,
            arrival: 0,
        }
    }

    #[inline]
    pub(super) fn order(self) -> u128 {
        u128::from(self.rank) << 64 | u128::from(self.arrival)
    }
}

impl Ord for QueuePosition {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for QueuePosition {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A set of positions in the order of service.
pub(super) type PositionSet = SortedDeque<QueuePosition>;

impl PositionSet {
    /// Returns the positions behind `bound`, or all positions if there is no bound.
    pub(super) fn behind(&self, bound: Option<QueuePosition>) -> impl Iterator<Item = QueuePosition> {
        let start = bound.or_else(|| self.first());
        let all = start.into_iter().flat_map(|start| self.from(start));
        all.skip_while(move |position| Some(*position) == bound)
    }

    /// Adds the waiters that arrived before `arrival`, whatever their positions. Takes one step for each priority.
    pub(super) fn arrived_before(&self, arrival: u64, waiters: &mut Vec<ClaimSlot>) {
        self.arrived_before_from(self.first(), arrival, waiters);
    }

    /// Does the same for the waiters from a position on.
    pub(super) fn arrived_before_from(&self, start: Option<QueuePosition>, arrival: u64, waiters: &mut Vec<ClaimSlot>) {
        let (mut next, last) = (start, self.last());
        while let Some(first) = next {
            if first.arrival < arrival {
                let earlier = self
                    .from(first)
                    .take_while(|position| position.rank == first.rank && position.arrival < arrival);
                waiters.extend(earlier.map(|position| position.slot));
            }
            let is_last = last.is_none_or(|last| last.rank == first.rank);
            next = if is_last {
                None
            } else {
                self.from(first.end_of_rank()).next()
            };
        }
    }
}
