//! What a claim holds and what it waits for.

use super::few::Few;
use super::index::{self, Index};
use super::line::LineId;
use super::node::Lock;
use super::pool::PoolId;
use super::seat::Seat;
use crate::id::{Claim, ClaimId};

/// The number of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(pub(super) u32);

pub(super) type Limits = Few<PoolId, 3>;
pub(super) type Locks = Few<Lock, 3>;

/// What a waiter lacked when it was last looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// The waiter was not looked at in this place yet.
    #[default]
    Unseen,
    /// The waiter lacks at least one lock. It keeps its place on each path.
    LacksLock,
    /// The waiter lacks only permits. Every lock is free for it, and it reserves none.
    LacksPermit,
}

/// What must change before a waiter is worth another look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Watch {
    /// Nothing. Another waiter of its line watches for it, or it is about to be looked at.
    #[default]
    Nothing,
    /// This claim: a holder, or an earlier waiter.
    Claim(Slot),
    /// The room in this limit.
    Limit(PoolId),
}

/// What a claim waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    pub(super) seat: Seat,
    /// The limits whose permits it asked for and does not hold.
    pub(super) limits: Limits,
    pub(super) locks: Locks,
    pub(super) kind: Option<PoolId>,
    pub(super) priority: i16,
    pub(super) passed: u32,
    pub(super) standing: Standing,
    pub(super) watch: Watch,
    /// The neighbours in the list of waiters that watch the same claim.
    pub(super) earlier: Option<Slot>,
    pub(super) later: Option<Slot>,
    /// The line it stands in.
    pub(super) line: Option<LineId>,
    /// `true` if it is on the list of waiters to look at.
    pub(super) is_listed: bool,
}

impl Waiting {
    /// Resets this to a new arrival that needs nothing yet. All other fields already have the values from when it left
    /// its seat for good.
    pub(super) fn begin(&mut self, seat: Seat, priority: i16) {
        self.seat = seat;
        self.limits.clear();
        self.locks.clear();
        self.kind = None;
        self.priority = priority;
        self.passed = 0;
    }
}

impl Standing {
    /// Returns `true` if a place on a path may hold up the waiters behind it.
    pub(super) const fn reserves_locks(self, seat: Seat) -> bool {
        match self {
            Self::LacksLock => true,
            Self::LacksPermit => seat.is_out_of_patience(),
            Self::Unseen => false,
        }
    }

    /// Returns `true` if every lock is free for the waiter, as far as is known.
    pub(super) const fn is_idle(self) -> bool {
        match self {
            Self::LacksLock => false,
            Self::LacksPermit | Self::Unseen => true,
        }
    }
}

/// A claim that holds something, or waits.
#[derive(Clone, Debug)]
pub(super) struct ClaimState {
    pub(super) id: ClaimId,
    /// The generation of its newest request, which a grant answers.
    generation: u64,
    /// `true` if the claim exists; otherwise its slot is free.
    is_there: bool,
    pub(super) is_waiting: bool,
    /// The first of the waiters that watch this claim. The others are linked to that waiter.
    pub(super) watcher: Option<Slot>,
    pub(super) limits: Limits,
    pub(super) locks: Locks,
    /// Claims of its ancestors, nearest first.
    pub(super) within: Vec<ClaimId>,
    /// What it waits for, if it waits. Stored in place, because moving this large value takes time.
    pub(super) wish: Waiting,
}

impl ClaimState {
    fn new(id: ClaimId) -> Self {
        Self {
            id,
            generation: 0,
            is_there: true,
            is_waiting: false,
            watcher: None,
            limits: Limits::default(),
            locks: Locks::default(),
            within: Vec::new(),
            wish: Waiting::default(),
        }
    }

    /// Returns `true` if the claim holds nothing.
    #[inline]
    pub(super) fn is_empty_handed(&self) -> bool {
        self.limits.is_empty() && self.locks.is_empty()
    }

    /// Returns `true` if neither the claim nor, as far as the claim itself can tell, an ancestor holds anything.
    #[inline]
    pub(super) fn has_nothing(&self) -> bool {
        self.is_empty_handed() && self.within.is_empty()
    }

    #[inline]
    pub(super) fn waiting(&self) -> Option<&Waiting> {
        self.is_waiting.then_some(&self.wish)
    }

    #[inline]
    pub(super) fn waiting_mut(&mut self) -> Option<&mut Waiting> {
        self.is_waiting.then_some(&mut self.wish)
    }

    /// Records a newer request. Later grants answer this generation.
    pub(super) const fn renew(&mut self, generation: u64) {
        self.generation = generation;
    }

    /// Returns the claim as its newest request named it.
    pub(super) const fn claim(&self) -> Claim {
        Claim {
            id: self.id,
            generation: self.generation,
        }
    }

    /// Sets whether the claim waits: it does if it wants anything.
    pub(super) fn settle(&mut self) {
        self.is_waiting = !(self.wish.limits.is_empty() && self.wish.locks.is_empty());
    }
}

/// All claims, by number and by claim.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    all: Vec<ClaimState>,
    free: Vec<Slot>,
    by_id: Index,
}

impl Claims {
    /// Room that is kept when no claim is left. Any room that was needed beyond it is given back.
    const KEPT: usize = 1024;

    #[inline]
    pub(super) fn find(&self, claim_id: ClaimId) -> Option<Slot> {
        let is = |number| self.all.get(number as usize).is_some_and(|claim| claim.id == claim_id);
        self.by_id.find(index::of_number(claim_id.0), is).map(Slot)
    }

    pub(super) fn find_or_add(&mut self, claim_id: ClaimId) -> Slot {
        if let Some(slot) = self.find(claim_id) {
            return slot;
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(claim) = self.all.get_mut(slot.0 as usize) {
                    claim.id = claim_id;
                    claim.generation = 0;
                    claim.is_there = true;
                }
                slot
            }
            None => {
                self.all.push(ClaimState::new(claim_id));
                Slot(u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX))
            }
        };
        self.by_id.insert(index::of_number(claim_id.0), slot.0);
        slot
    }

    /// Drops a claim that holds nothing, waits for nothing and is not watched.
    pub(super) fn remove(&mut self, slot: Slot) {
        let Some(claim) = self.get_mut(slot) else {
            return;
        };
        claim.is_there = false;
        claim.within = Vec::new();
        let hash = index::of_number(claim.id.0);
        self.by_id.remove(hash, slot.0);
        self.free.push(slot);
        if self.free.len() == self.all.len() && self.all.len() > Self::KEPT {
            *self = Self::default();
        }
    }

    #[inline]
    pub(super) fn get(&self, slot: Slot) -> Option<&ClaimState> {
        self.all.get(slot.0 as usize).filter(|claim| claim.is_there)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: Slot) -> Option<&mut ClaimState> {
        self.all.get_mut(slot.0 as usize).filter(|claim| claim.is_there)
    }

    #[inline]
    pub(super) fn waiting(&self, slot: Slot) -> Option<&Waiting> {
        self.get(slot)?.waiting()
    }

    #[inline]
    pub(super) fn waiting_mut(&mut self, slot: Slot) -> Option<&mut Waiting> {
        self.get_mut(slot)?.waiting_mut()
    }

    pub(super) fn get_by(&self, claim_id: ClaimId) -> Option<(Slot, &ClaimState)> {
        let slot = self.find(claim_id)?;
        Some((slot, self.get(slot)?))
    }

    pub(super) fn id_of(&self, slot: Slot) -> Option<ClaimId> {
        self.get(slot).map(|claim| claim.id)
    }

    /// Returns the claims in this many slots from `from` on, and the number of all slots.
    pub(super) fn page(&self, from: usize, slots: usize) -> (impl Iterator<Item = &ClaimState>, usize) {
        let page = self.all.iter().skip(from).take(slots);
        (page.filter(|claim| claim.is_there), self.all.len())
    }

    /// Returns all claims, in no meaningful order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ClaimState> {
        self.all.iter().filter(|claim| claim.is_there)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.len() == self.free.len()
    }
}
