//! Places in the order of service, and sets of places.

use std::cmp::Ordering;

use super::MAX_OVERTAKES;
use super::claim::Slot;
use super::sorted::Sorted;

/// A place in the order of service. Waiters whose patience has run out go first, then priority counts, then arrival.
/// Arrivals are never repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seat {
    /// 0 if the patience has run out. Otherwise the rank is smaller the higher the priority is.
    rank: u32,
    /// The waiter on this seat.
    pub(super) slot: Slot,
    pub(super) arrival: u64,
}

impl Seat {
    /// Returns the place of a waiter that arrived at `arrival` and was overtaken `passed` times.
    pub(super) fn new(slot: Slot, priority: i16, arrival: u64, passed: u32) -> Self {
        let is_patient = passed < MAX_OVERTAKES;
        let below_the_highest = i16::MAX.abs_diff(priority);
        Self {
            rank: if is_patient {
                1 + u32::from(below_the_highest)
            } else {
                0
            },
            slot,
            arrival,
        }
    }

    /// Returns `true` if the waiter was overtaken so often that no later arrival may overtake it again.
    pub(super) const fn is_out_of_patience(self) -> bool {
        self.rank == 0
    }

    /// Returns the first place behind all places of the same priority.
    const fn end_of_rank(self) -> Self {
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

impl Ord for Seat {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Seat {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A set of places in the order of service.
pub(super) type Seats = Sorted<Seat>;

impl Seats {
    /// Returns the places behind `bound`, or all places if there is no bound.
    pub(super) fn behind(&self, bound: Option<Seat>) -> impl Iterator<Item = Seat> {
        let start = bound.or_else(|| self.first());
        let all = start.into_iter().flat_map(|start| self.from(start));
        all.skip_while(move |seat| Some(*seat) == bound)
    }

    /// Adds the waiters that arrived before `arrival`, whatever their places. Takes one step for each priority.
    pub(super) fn came_before(&self, arrival: u64, who: &mut Vec<Slot>) {
        let (mut next, last) = (self.first(), self.last());
        while let Some(first) = next {
            if first.arrival < arrival {
                let earlier = self
                    .from(first)
                    .take_while(|seat| seat.rank == first.rank && seat.arrival < arrival);
                who.extend(earlier.map(|seat| seat.slot));
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
