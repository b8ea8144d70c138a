//! Lines of waiters that lack only permits and have the same needs. If the first lacks a permit, all do, so only the
//! first needs to watch.

use super::claim::{ClaimState, Limits, Waiting};
use super::index::{self, Index};
use super::pool::PoolId;
use super::seat::{Seat, Seats};
use super::slab::Slab;
use crate::id::ClaimId;

/// The number of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineId(u32);

/// A line, and what its waiters have in common.
#[derive(Clone, Debug)]
struct Line {
    limits: Limits,
    kind: Option<PoolId>,
    within: Vec<ClaimId>,
    /// The only claim of this line, if it already holds something: then no other claim is like it.
    alone: Option<ClaimId>,
    seats: Seats,
}

impl Line {
    fn is_of(&self, claim: &ClaimState, waiting: &Waiting) -> bool {
        self.limits.as_slice() == waiting.limits.as_slice()
            && self.kind == waiting.kind
            && self.within == claim.within
            && self.alone == alone(claim)
    }
}

fn alone(claim: &ClaimState) -> Option<ClaimId> {
    (!claim.is_empty_handed()).then_some(claim.id)
}

fn hash(limits: &Limits, kind: Option<PoolId>, within: &[ClaimId], alone: Option<ClaimId>) -> u32 {
    let limits = limits.iter().map(|limit| u64::from(limit.0));
    let kind = kind.map_or(u64::MAX, |kind| u64::from(kind.0));
    let claim_ids = within.iter().chain(&alone).map(|claim_id| claim_id.0);
    index::of_numbers(limits.chain([kind]).chain(claim_ids))
}

/// All lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    all: Slab<Line>,
    by_needs: Index,
}

impl Lines {
    fn find(&self, claim: &ClaimState, waiting: &Waiting) -> Option<u32> {
        let is = |number| self.all.get(number).is_some_and(|line| line.is_of(claim, waiting));
        let hash = hash(&waiting.limits, waiting.kind, &claim.within, alone(claim));
        self.by_needs.find(hash, is)
    }

    /// Adds a waiter to its line.
    pub(super) fn join(&mut self, claim: &ClaimState, waiting: &Waiting) -> LineId {
        let number = self.find(claim, waiting).unwrap_or_else(|| {
            let line = Line {
                limits: waiting.limits.clone(),
                kind: waiting.kind,
                within: claim.within.clone(),
                alone: alone(claim),
                seats: Seats::default(),
            };
            let hash = hash(&line.limits, line.kind, &line.within, line.alone);
            let number = self.all.add(line);
            self.by_needs.insert(hash, number);
            number
        });
        if let Some(line) = self.all.get_mut(number) {
            line.seats.insert(waiting.seat);
        }
        LineId(number)
    }

    /// Takes a waiter off its line. Returns the next waiter if this was the first.
    pub(super) fn leave(&mut self, LineId(number): LineId, seat: Seat) -> Option<Seat> {
        let line = self.all.get_mut(number)?;
        let was_first = line.seats.first() == Some(seat);
        line.seats.remove(seat);
        let next = line.seats.first();
        if next.is_none()
            && let Some(line) = self.all.remove(number)
        {
            let hash = hash(&line.limits, line.kind, &line.within, line.alone);
            self.by_needs.remove(hash, number);
        }
        next.filter(|_| was_first)
    }

    /// Returns the first waiter of a line.
    pub(super) fn first(&self, LineId(number): LineId) -> Option<Seat> {
        self.all.get(number)?.seats.first()
    }

    /// Returns the first waiter that needs the same permits as this waiter.
    pub(super) fn first_like(&self, claim: &ClaimState, waiting: &Waiting) -> Option<Seat> {
        self.all.get(self.find(claim, waiting)?)?.seats.first()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.len() == 0
    }
}
