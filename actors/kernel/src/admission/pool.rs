//! One limit: its capacity, who has a permit of it and who waits for one.

use std::collections::BTreeSet;

use super::claim::Seat;
use crate::id::Ticket;

/// One limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pool {
    /// Its capacity; none is unlimited.
    pub(super) limit: Option<u32>,
    /// Each has one permit.
    pub(super) holders: BTreeSet<Ticket>,
    /// All that wait for a permit, in the order of service.
    pub(super) waiting: BTreeSet<Seat>,
    /// Those of them whose kind's own limit this is.
    pub(super) own: BTreeSet<Seat>,
    /// All that wait for a permit, in the order in which they came.
    pub(super) arrivals: BTreeSet<(u64, Ticket)>,
    /// Those of them that are looked at when there is room.
    pub(super) watchers: BTreeSet<Seat>,
}

impl Pool {
    /// Gives the number of permits that are out.
    pub(super) fn used(&self) -> u32 {
        u32::try_from(self.holders.len()).unwrap_or(u32::MAX)
    }

    /// Gives the number of permits that can still be given out; none is unlimited.
    pub(super) fn spare(&self) -> Option<u32> {
        self.limit.map(|limit| limit.saturating_sub(self.used()))
    }

    /// Tells whether there is a permit to give out.
    pub(super) fn has_room(&self) -> bool {
        self.spare() != Some(0)
    }

    pub(super) fn enter(&mut self, seat: Seat, is_own: bool) {
        self.waiting.insert(seat);
        self.arrivals.insert((seat.arrival, seat.ticket));
        if is_own {
            self.own.insert(seat);
        }
    }

    pub(super) fn leave(&mut self, seat: Seat) {
        self.waiting.remove(&seat);
        self.arrivals.remove(&(seat.arrival, seat.ticket));
        self.own.remove(&seat);
        self.watchers.remove(&seat);
    }

    /// Gives those before `seat` for whom a permit may have to be kept: the
    /// first of the kind whose limit this is, and all whose patience has run out.
    pub(super) fn guards(&self, seat: Seat) -> impl Iterator<Item = Seat> {
        let head = self.own.first().copied().filter(|head| *head < seat);
        let impatient = self.waiting.range(..seat).copied();
        head.into_iter()
            .chain(impatient.take_while(|other| other.is_out_of_patience()))
    }
}
