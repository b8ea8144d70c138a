//! What one claim holds and what it waits for.

use super::few::Few;
use super::index::{self, Index};
use super::line::LineId;
use super::node::Lock;
use super::pool::PoolId;
use super::seat::Seat;
use crate::id::{Claim, ClaimId};

/// Number of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(pub(super) u32);

pub(super) type Limits = Few<PoolId, 3>;
pub(super) type Locks = Few<Lock, 3>;

/// What a waiter lacked when it was last looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not looked at in this place.
    #[default]
    Unseen,
    /// At least one lock: it keeps its place on each path.
    LacksLock,
    /// Permits alone: every lock is free for it, and it reserves none.
    LacksPermit,
}

/// What must change before a waiter is worth another look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Watch {
    /// Nothing: another of its line watches for it, or it is about to be looked at.
    #[default]
    Nothing,
    /// This one: a holder, or a waiter before it.
    Claim(Slot),
    /// The room in this limit.
    Limit(PoolId),
}

/// What a claim waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    pub(super) seat: Seat,
    /// What it asked for and does not hold.
    pub(super) limits: Limits,
    pub(super) locks: Locks,
    pub(super) kind: Option<PoolId>,
    pub(super) priority: i16,
    pub(super) passed: u32,
    pub(super) standing: Standing,
    pub(super) watch: Watch,
    /// The others who watch the same claim.
    pub(super) earlier: Option<Slot>,
    pub(super) later: Option<Slot>,
    /// The line it stands in.
    pub(super) line: Option<LineId>,
    /// Whether it is on the list of those to look at.
    pub(super) is_listed: bool,
}

impl Waiting {
    /// Makes this one that has just come, and needs nothing yet. All the rest
    /// is as when it left its seat for good.
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
    /// Tells whether a place on a path may count against those behind it.
    pub(super) const fn reserves_locks(self, seat: Seat) -> bool {
        match self {
            Self::LacksLock => true,
            Self::LacksPermit => seat.is_out_of_patience(),
            Self::Unseen => false,
        }
    }

    /// Tells whether every lock is free for the waiter, as far as is known.
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
    /// Whether there is such a claim; its place is free otherwise.
    is_there: bool,
    pub(super) is_waiting: bool,
    /// One of those who watch it; the others hang on that one.
    pub(super) watcher: Option<Slot>,
    pub(super) limits: Limits,
    pub(super) locks: Locks,
    /// Tickets of its ancestors, nearest first.
    pub(super) within: Vec<ClaimId>,
    /// What it waits for, if it does. Kept in place: it is long, and moving it takes time.
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

    /// Tells whether it holds nothing.
    #[inline]
    pub(super) fn is_empty_handed(&self) -> bool {
        self.limits.is_empty() && self.locks.is_empty()
    }

    /// Tells whether neither it nor, for all that can be told from it, an ancestor holds anything.
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

    /// Notes a newer request: what is granted from now on answers this generation.
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

    /// Has it wait if it wants anything.
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
    /// Room that is kept when nobody is left; what a crowd took beyond it is given back.
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

    /// Gives those in some slots, from this one on, and how many slots there are.
    pub(super) fn page(&self, from: usize, slots: usize) -> (impl Iterator<Item = &ClaimState>, usize) {
        let page = self.all.iter().skip(from).take(slots);
        (page.filter(|claim| claim.is_there), self.all.len())
    }

    /// Gives all, in no order that means anything.
    pub(super) fn iter(&self) -> impl Iterator<Item = &ClaimState> {
        self.all.iter().filter(|claim| claim.is_there)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.all.len() == self.free.len()
    }
}
