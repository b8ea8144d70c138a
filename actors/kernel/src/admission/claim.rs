//! What a claim holds and what it waits for.

use super::hash_index::{self, HashIndex};
use super::inline_list::InlineList;
use super::limit::{Begun, LimitId};
use super::path_node::{LockId, WaiterClass};
use super::permit_queue::PermitQueueId;
use super::queue_position::QueuePosition;
use crate::id::{Claim, ClaimId};

/// The number of a claim: its slot in the list of all claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClaimSlot(pub(super) u32);

pub(super) type LimitIds = InlineList<LimitId, 3>;
pub(super) type LockIds = InlineList<LockId, 3>;

/// What a waiter lacked when it was last evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WaitState {
    /// The waiter was not evaluated in this position yet.
    #[default]
    Unevaluated,
    /// The waiter lacks at least one lock. It keeps its place on each path.
    LacksLock,
    /// The waiter lacks only permits. Every lock is free for it, and it reserves none.
    LacksPermit,
}

/// What must change before another evaluation of a waiter can have a different result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Dependency {
    /// None: another waiter of its permit queue depends on the limit instead, or a recheck is scheduled.
    #[default]
    None,
    /// This claim: a holder, or an earlier waiter.
    Claim(ClaimSlot),
    /// The room in this limit.
    Limit(LimitId),
}

/// What a claim waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct PendingRequest {
    pub(super) position: QueuePosition,
    /// The limits whose permits it asked for and does not hold.
    pub(super) limits: LimitIds,
    pub(super) locks: LockIds,
    pub(super) kind: Option<LimitId>,
    pub(super) priority: i16,
    pub(super) overtaken: u32,
    pub(super) state: WaitState,
    pub(super) dependency: Dependency,
    /// The neighbours in the list of waiters that depend on the same claim.
    pub(super) earlier: Option<ClaimSlot>,
    pub(super) later: Option<ClaimSlot>,
    /// The permit queue it is in.
    pub(super) permit_queue: Option<PermitQueueId>,
    /// `true` if a recheck of it is scheduled.
    pub(super) is_scheduled: bool,
    /// The sets that it is in at the paths of its locks.
    pub(super) places: Places,
}

/// The sets that a waiter is in at the paths of its locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    reserved: bool,
    idle: bool,
    due: bool,
}

impl Places {
    pub(super) const fn contains(self, class: WaiterClass) -> bool {
        match class {
            WaiterClass::Reserved => self.reserved,
            WaiterClass::Idle => self.idle,
            WaiterClass::Due => self.due,
        }
    }
}

impl PendingRequest {
    /// Returns the sets that the waiter belongs in while it is in the queues.
    pub(super) const fn places_due(&self) -> Places {
        let is_idle = self.state.is_idle();
        Places {
            reserved: self.state.reserves_locks(self.position),
            idle: is_idle && !self.is_scheduled,
            due: is_idle && self.is_scheduled,
        }
    }

    /// Resets this to a new arrival that needs nothing yet. All other fields already have the values from when it left
    /// the queues for good.
    pub(super) fn begin(&mut self, position: QueuePosition, priority: i16) {
        self.position = position;
        self.limits.clear();
        self.locks.clear();
        self.kind = None;
        self.priority = priority;
        self.overtaken = 0;
    }
}

impl WaitState {
    /// Returns `true` if a place on a path may hold up the waiters behind it.
    pub(super) const fn reserves_locks(self, position: QueuePosition) -> bool {
        match self {
            Self::LacksLock => true,
            Self::LacksPermit => position.has_max_overtakes(),
            Self::Unevaluated => false,
        }
    }

    /// Returns `true` if every lock is free for the waiter, as far as is known.
    pub(super) const fn is_idle(self) -> bool {
        match self {
            Self::LacksLock => false,
            Self::LacksPermit | Self::Unevaluated => true,
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
    /// What its newest grant counted for rates, while any limit has a rate.
    pub(super) begun: Option<Box<Begun>>,
    /// The first of the waiters that depend on this claim. The others are linked to that waiter.
    pub(super) first_dependent: Option<ClaimSlot>,
    pub(super) limits: LimitIds,
    pub(super) locks: LockIds,
    /// Claims of its ancestors, nearest first.
    pub(super) within: Vec<ClaimId>,
    /// What it waits for, if it waits. Stored in place, because moving this large value takes time.
    pub(super) pending: PendingRequest,
}

impl ClaimState {
    fn new(id: ClaimId) -> Self {
        Self {
            id,
            generation: 0,
            is_there: true,
            is_waiting: false,
            begun: None,
            first_dependent: None,
            limits: LimitIds::default(),
            locks: LockIds::default(),
            within: Vec::new(),
            pending: PendingRequest::default(),
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
    pub(super) fn waiting(&self) -> Option<&PendingRequest> {
        self.is_waiting.then_some(&self.pending)
    }

    #[inline]
    pub(super) fn waiting_mut(&mut self) -> Option<&mut PendingRequest> {
        self.is_waiting.then_some(&mut self.pending)
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
        self.is_waiting = !(self.pending.limits.is_empty() && self.pending.locks.is_empty());
    }
}

/// All claims, by number and by claim.
#[derive(Clone, Debug, Default)]
pub(super) struct Claims {
    all: Vec<ClaimState>,
    free: Vec<ClaimSlot>,
    by_id: HashIndex,
}

impl Claims {
    /// Room that is kept when no claim is left. Any room that was needed beyond it is given back.
    const KEPT: usize = 1024;

    #[inline]
    pub(super) fn find(&self, claim_id: ClaimId) -> Option<ClaimSlot> {
        let is = |number| self.all.get(number as usize).is_some_and(|claim| claim.id == claim_id);
        self.by_id.find(hash_index::of_number(claim_id.0), is).map(ClaimSlot)
    }

    pub(super) fn find_or_add(&mut self, claim_id: ClaimId) -> ClaimSlot {
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
                ClaimSlot(u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX))
            }
        };
        self.by_id.insert(hash_index::of_number(claim_id.0), slot.0);
        slot
    }

    /// Drops a claim that holds nothing, waits for nothing and has no dependents.
    pub(super) fn remove(&mut self, slot: ClaimSlot) {
        let Some(claim) = self.get_mut(slot) else {
            return;
        };
        claim.is_there = false;
        claim.begun = None;
        claim.within = Vec::new();
        let hash = hash_index::of_number(claim.id.0);
        self.by_id.remove(hash, slot.0);
        self.free.push(slot);
        if self.free.len() == self.all.len() && self.all.len() > Self::KEPT {
            *self = Self::default();
        }
    }

    #[inline]
    pub(super) fn get(&self, slot: ClaimSlot) -> Option<&ClaimState> {
        self.all.get(slot.0 as usize).filter(|claim| claim.is_there)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: ClaimSlot) -> Option<&mut ClaimState> {
        self.all.get_mut(slot.0 as usize).filter(|claim| claim.is_there)
    }

    #[inline]
    pub(super) fn waiting(&self, slot: ClaimSlot) -> Option<&PendingRequest> {
        self.get(slot)?.waiting()
    }

    #[inline]
    pub(super) fn waiting_mut(&mut self, slot: ClaimSlot) -> Option<&mut PendingRequest> {
        self.get_mut(slot)?.waiting_mut()
    }

    pub(super) fn get_by(&self, claim_id: ClaimId) -> Option<(ClaimSlot, &ClaimState)> {
        let slot = self.find(claim_id)?;
        Some((slot, self.get(slot)?))
    }

    pub(super) fn id_of(&self, slot: ClaimSlot) -> Option<ClaimId> {
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
