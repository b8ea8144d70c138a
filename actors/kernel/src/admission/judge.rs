//! Decides whether a waiter can be served now, and if not, what keeps it waiting. Changes nothing.

use std::iter;

use super::claim::{ClaimState, Slot, Standing, Waiting};
use super::node::{Lock, Part};
use super::pool::PoolId;
use super::seat::Seat;
use super::{Admissions, Grant, Lacking};
use crate::id::ClaimId;

/// The result of a look at a waiter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Finding {
    /// The waiter lacks nothing.
    Free,
    /// The waiter lacks this lock, because of that claim.
    Lock(Lock, Slot),
    /// The waiter lacks no lock, but a permit of this limit.
    Permit(PoolId),
}

impl Admissions {
    /// Finds the first thing that a waiter lacks: a lock if it lacks any, else a permit.
    pub(super) fn judge(&self, slot: Slot) -> Finding {
        let Some((claim, waiting)) = self.waiter(slot) else {
            return Finding::Free;
        };
        for lock in waiting.locks.iter() {
            if let Some(blocker) = self.lock_blocker(slot, claim, waiting, lock) {
                return Finding::Lock(lock, blocker);
            }
        }
        let mut limits = waiting.limits.iter();
        let lacking = limits.find(|id| !self.has_permit_for(slot, claim, waiting, *id));
        lacking.map_or(Finding::Free, Finding::Permit)
    }

    /// Returns the answer to a request.
    pub(super) fn answer(&self, finding: Finding) -> Grant {
        match finding {
            Finding::Free => Grant::Granted,
            Finding::Lock(lock, _) => Grant::Queued(Lacking::Lock(self.tree.path(lock))),
            Finding::Permit(id) => match self.pools.get(id) {
                Some(pool) => Grant::Queued(Lacking::Permit(pool.key.clone())),
                None => Grant::Granted,
            },
        }
    }

    /// Returns a claim that keeps a waiter from a lock. The nearest earlier waiter is preferred to any holder. If many
    /// claims wait for one holder, each then watches the next, and only the first watches the holder.
    fn lock_blocker(&self, slot: Slot, claim: &ClaimState, waiting: &Waiting, lock: Lock) -> Option<Slot> {
        let shelter = self.shelter(slot, claim, lock);
        let mut bound = waiting.seat;
        while let Some(seat) = self.place_before(shelter, lock, bound) {
            if self.holds_up(seat.slot, slot, claim) {
                return Some(seat.slot);
            }
            bound = seat;
        }
        self.tree.holder(lock, |holder| self.is_kin(holder, slot, claim))
    }

    /// Returns the earlier waiters whose places keep a waiter from this lock, nearest first.
    pub(super) fn places_before<'a>(
        &'a self,
        slot: Slot,
        claim: &'a ClaimState,
        waiting: &Waiting,
        lock: Lock,
    ) -> impl Iterator<Item = Slot> + 'a {
        let shelter = self.shelter(slot, claim, lock);
        let first = self.place_before(shelter, lock, waiting.seat);
        iter::successors(first, move |seat| self.place_before(shelter, lock, *seat))
            .map(|seat| seat.slot)
            .filter(move |other| self.holds_up(*other, slot, claim))
    }

    /// Returns the last place before `bound` of a waiter for a conflicting lock. If there is a shelter, only waiters
    /// inside it count.
    fn place_before(&self, shelter: Option<(Slot, &ClaimState)>, lock: Lock, bound: Seat) -> Option<Seat> {
        let Some((holder, holds)) = shelter else {
            return self.tree.last_before(Part::Reserved, lock, bound);
        };
        let inside = self.insides.of(holds.id);
        let last = inside.and_then(|inside| self.tree.last_before_in(inside.part(Part::Reserved), lock, bound));
        let own = self.own_seat(holder, lock, |place| place.standing.reserves_locks(place.seat));
        last.max(own.filter(|own| *own < bound))
    }

    /// Returns the place of a claim that itself waits for a conflicting lock.
    pub(super) fn own_seat(&self, slot: Slot, lock: Lock, counts: impl Fn(&Waiting) -> bool) -> Option<Seat> {
        let waiting = self.claims.waiting(slot).filter(|waiting| counts(waiting))?;
        let conflicts = waiting.locks.iter().any(|need| self.tree.conflict(need, lock));
        conflicts.then_some(waiting.seat)
    }

    /// Returns the claim or ancestor that holds the path, or a path above it, exclusively. Strangers that want the lock
    /// wait for this holder, so only the holder's own descendants matter. A crowd outside therefore costs nothing.
    pub(super) fn shelter<'a>(
        &'a self,
        slot: Slot,
        claim: &'a ClaimState,
        lock: Lock,
    ) -> Option<(Slot, &'a ClaimState)> {
        if claim.has_nothing() {
            return None;
        }
        self.kin(slot, claim)
            .find(|(_, claim)| claim.locks.iter().any(|held| self.tree.covers(held, lock)))
    }

    /// Returns `true` if a holder does not keep the requester out, because it is the requester itself or an ancestor.
    pub(super) fn is_kin(&self, holder: Slot, slot: Slot, claim: &ClaimState) -> bool {
        let is_within = || {
            let claim_id = self.claims.id_of(holder);
            claim_id.is_some_and(|claim_id| claim.within.contains(&claim_id))
        };
        holder == slot || (!claim.within.is_empty() && is_within())
    }

    /// Returns `true` if a waiter can be granted a permit of this limit while a kept permit, if there is any, is left
    /// over.
    pub(super) fn has_permit_for(&self, slot: Slot, claim: &ClaimState, waiting: &Waiting, id: PoolId) -> bool {
        let Some(pool) = self.pools.get(id) else {
            return true;
        };
        match pool.spare() {
            Some(0) => false,
            Some(1) => !pool.may_have_guards() || self.guards_against(slot, claim, waiting, id).next().is_none(),
            Some(_) | None => true,
        }
    }

    /// Returns the earlier waiters for which one permit of this limit is kept.
    pub(super) fn guards_against<'a>(
        &'a self,
        slot: Slot,
        claim: &'a ClaimState,
        waiting: &Waiting,
        id: PoolId,
    ) -> impl Iterator<Item = Slot> + 'a {
        let guards = self.pools.get(id).map(|pool| pool.guards(waiting.seat));
        guards
            .into_iter()
            .flatten()
            .map(|seat| seat.slot)
            .filter(move |other| self.holds_up(*other, slot, claim))
    }

    /// Returns `true` if the place of a waiter holds up a requester behind it.
    ///
    /// It does not if the waiter may depend on the requester. The waiter does if it waits for a lock that the requester
    /// or an ancestor holds. It also does if it lacks only permits, reserves just because it was overtaken so often,
    /// and waits for a permit that they hold.
    fn holds_up(&self, waiter: Slot, asker: Slot, claim: &ClaimState) -> bool {
        let Some(waiting) = self.claims.waiting(waiter) else {
            return false;
        };
        let counts = match waiting.standing {
            Standing::LacksLock => true,
            Standing::LacksPermit => waiting.seat.is_out_of_patience() && !self.has_permit_of(asker, claim, waiting),
            Standing::Unseen => false,
        };
        counts && !self.has_lock_of(asker, claim, waiter)
    }

    /// Returns `true` if a requester that overtakes a waiter holds a part of what the waiter waits for.
    pub(super) fn has_part_of(&self, asker: Slot, claim: &ClaimState, waiter: Slot) -> bool {
        let waiting = self.claims.waiting(waiter);
        let has_permit = waiting.is_some_and(|waiting| self.has_permit_of(asker, claim, waiting));
        has_permit || self.has_lock_of(asker, claim, waiter)
    }

    /// Returns `true` if a claim or one of its ancestors holds a permit that a waiter waits for.
    fn has_permit_of(&self, asker: Slot, claim: &ClaimState, waiting: &Waiting) -> bool {
        self.kin(asker, claim)
            .any(|(_, claim)| waiting.limits.iter().any(|id| claim.limits.contains(id)))
    }

    /// Returns `true` if a claim or one of its ancestors holds a lock that keeps a waiter out.
    fn has_lock_of(&self, asker: Slot, claim: &ClaimState, waiter: Slot) -> bool {
        if claim.has_nothing() {
            return false;
        }
        let Some((entering, waiting)) = self.waiter(waiter) else {
            return false;
        };
        self.kin(asker, claim)
            .filter(|(_, claim)| !claim.locks.is_empty())
            .filter(|(holder, claim)| *holder != waiter && !entering.within.contains(&claim.id))
            .flat_map(|(_, claim)| claim.locks.iter())
            .any(|lock| waiting.locks.iter().any(|need| self.tree.conflict(need, lock)))
    }

    /// Returns a claim and the claims of its ancestors that hold or want anything, nearest first.
    pub(super) fn kin<'a>(&'a self, slot: Slot, claim: &'a ClaimState) -> impl Iterator<Item = (Slot, &'a ClaimState)> {
        let ancestors = claim.within.iter().filter_map(|claim_id| self.claims.get_by(*claim_id));
        iter::once((slot, claim)).chain(ancestors)
    }

    pub(super) fn waiter(&self, slot: Slot) -> Option<(&ClaimState, &Waiting)> {
        let claim = self.claims.get(slot)?;
        Some((claim, claim.waiting()?))
    }

    pub(super) fn waiting_of(&self, claim_id: ClaimId) -> Option<&Waiting> {
        self.claims.waiting(self.claims.find(claim_id)?)
    }
}
