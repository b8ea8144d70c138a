//! Places in the order of service, and sets of them.

use std::cmp::Ordering;

use super::PATIENCE;
use super::claim::Slot;
use super::sorted::Sorted;

/// A place in the order of service: those whose patience has run out, then by
/// priority, then by arrival. Arrivals are never repeated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seat {
    /// 0 for those whose patience has run out, then the smaller the higher the priority.
    rank: u32,
    /// Who sits there.
    pub(super) slot: Slot,
    pub(super) arrival: u64,
}

impl Seat {
    /// Gives the place of one who came at `arrival` and was passed that often.
    pub(super) fn new(slot: Slot, priority: i16, arrival: u64, passed: u32) -> Self {
        let is_patient = passed < PATIENCE;
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

    /// Tells whether it was passed so often that nobody may pass it any more.
    pub(super) const fn is_out_of_patience(self) -> bool {
        self.rank == 0
    }

    /// Gives the first place behind all of the same priority.
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

/// Some places in the order of service.
pub(super) type Seats = Sorted<Seat>;

impl Seats {
    /// Gives the places behind `bound`, or all.
    pub(super) fn behind(&self, bound: Option<Seat>) -> impl Iterator<Item = Seat> {
        let start = bound.or_else(|| self.first());
        let all = start.into_iter().flat_map(|start| self.from(start));
        all.skip_while(move |seat| Some(*seat) == bound)
    }

    /// Notes who came before `arrival`, whatever its place. Steps once for each priority.
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
