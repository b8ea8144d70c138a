//! Decides whether a waiter can be served now, and if not, what keeps it waiting. Changes nothing.

use std::iter;

use super::claim::{ClaimSlot, ClaimState, PendingRequest, WaitState};
use super::limit::LimitId;
use super::path_node::{LockId, WaiterClass};
use super::queue_position::QueuePosition;
use super::{Admissions, Grant, Lacking};
use crate::id::ClaimId;

/// The result of evaluating a waiter.
#[derive(Clone, Copy, Debug)]
pub(super) enum Evaluation {
    /// The waiter lacks nothing.
    Grantable,
    /// The waiter lacks this lock, because of that claim.
    LacksLock(LockId, ClaimSlot),
    /// The waiter lacks no lock, but a permit of this limit.
    LacksPermit(LimitId),
}

impl Admissions {
    /// Finds the first thing that a waiter lacks: a lock if it lacks any, else a permit.
    pub(super) fn evaluate(&self, slot: ClaimSlot) -> Evaluation {
        let Some((claim, waiting)) = self.waiter(slot) else {
            return Evaluation::Grantable;
        };
        for lock in waiting.locks.iter() {
            if let Some(blocker) = self.lock_blocker(slot, claim, waiting, lock) {
                return Evaluation::LacksLock(lock, blocker);
            }
        }
        let mut limits = waiting.limits.iter();
        let lacking = limits.find(|id| !self.has_permit_for(slot, claim, waiting, *id));
        lacking.map_or(Evaluation::Grantable, Evaluation::LacksPermit)
    }

    /// Returns the answer to a request.
    pub(super) fn answer(&self, evaluation: Evaluation) -> Grant {
        match evaluation {
            Evaluation::Grantable => Grant::Granted,
            Evaluation::LacksLock(lock, _) => Grant::Queued(Lacking::Lock(self.tree.path(lock))),
            Evaluation::LacksPermit(id) => match self.limits.get(id) {
                Some(limit) => Grant::Queued(Lacking::Permit(limit.key.clone())),
                None => Grant::Granted,
            },
        }
    }

    /// Returns a claim that keeps a waiter from a lock. The nearest earlier waiter is preferred to any holder. If many
    /// claims wait for one holder, each then depends on the next, and only the first depends on the holder.
    fn lock_blocker(
        &self,
        slot: ClaimSlot,
        claim: &ClaimState,
        waiting: &PendingRequest,
        lock: LockId,
    ) -> Option<ClaimSlot> {
        let enclosing = self.enclosing_holder(slot, claim, lock);
        let mut bound = waiting.position;
        while let Some(position) = self.position_before(enclosing, lock, bound) {
            if self.holds_up(position.slot, slot, claim) {
                return Some(position.slot);
            }
            bound = position;
        }
        self.tree.holder(lock, |holder| self.is_kin(holder, slot, claim))
    }

    /// Returns the earlier waiters whose places keep a waiter from this lock, nearest first.
    pub(super) fn positions_before<'a>(
        &'a self,
        slot: ClaimSlot,
        claim: &'a ClaimState,
        waiting: &PendingRequest,
        lock: LockId,
    ) -> impl Iterator<Item = ClaimSlot> + 'a {
        let enclosing = self.enclosing_holder(slot, claim, lock);
        let first = self.position_before(enclosing, lock, waiting.position);
        iter::successors(first, move |position| self.position_before(enclosing, lock, *position))
            .map(|position| position.slot)
            .filter(move |other| self.holds_up(*other, slot, claim))
    }

    /// Returns the last position before `bound` of a waiter for a conflicting lock. If there is an enclosing holder, only
    /// its descendants count.
    fn position_before(
        &self,
        enclosing: Option<(ClaimSlot, &ClaimState)>,
        lock: LockId,
        bound: QueuePosition,
    ) -> Option<QueuePosition> {
        let Some((holder, holds)) = enclosing else {
            return self.tree.last_before(WaiterClass::Reserved, lock, bound);
        };
        let nested = self.nested.of(holds.id);
        let last = nested.and_then(|nested| {
            self.tree
                .last_before_in(nested.waiters(WaiterClass::Reserved), lock, bound)
        });
        let own = self.own_position(holder, lock, |waiting| waiting.state.reserves_locks(waiting.position));
        last.max(own.filter(|own| *own < bound))
    }

    /// Returns the position of a claim that itself waits for a conflicting lock.
    pub(super) fn own_position(
        &self,
        slot: ClaimSlot,
        lock: LockId,
        counts: impl Fn(&PendingRequest) -> bool,
    ) -> Option<QueuePosition> {
        let waiting = self.claims.waiting(slot).filter(|waiting| counts(waiting))?;
        let conflicts = waiting.locks.iter().any(|need| self.tree.conflict(need, lock));
        conflicts.then_some(waiting.position)
    }

    /// Returns the claim or ancestor that holds the path, or a path above it, exclusively. Strangers that want the lock
    /// wait for this holder, so only the holder's own descendants matter. Any number of other waiters costs nothing.
    pub(super) fn enclosing_holder<'a>(
        &'a self,
        slot: ClaimSlot,
        claim: &'a ClaimState,
        lock: LockId,
    ) -> Option<(ClaimSlot, &'a ClaimState)> {
        if claim.has_nothing() {
            return None;
        }
        self.kin(slot, claim)
            .find(|(_, claim)| claim.locks.iter().any(|held| self.tree.covers(held, lock)))
    }

    /// Returns `true` if a holder does not keep the requester out, because it is the requester itself or an ancestor.
    pub(super) fn is_kin(&self, holder: ClaimSlot, slot: ClaimSlot, claim: &ClaimState) -> bool {
        let is_within = || {
            let claim_id = self.claims.id_of(holder);
            claim_id.is_some_and(|claim_id| claim.within.contains(&claim_id))
        };
        holder == slot || (!claim.within.is_empty() && is_within())
    }

    /// Returns `true` if a waiter can be granted a permit of this limit while a kept permit, if there is any, is left
    /// over.
    pub(super) fn has_permit_for(
        &self,
        slot: ClaimSlot,
        claim: &ClaimState,
        waiting: &PendingRequest,
        id: LimitId,
    ) -> bool {
        let Some(limit) = self.limits.get(id) else {
            return true;
        };
        match limit.spare() {
            Some(0) => false,
            Some(1) => !limit.may_have_guards() || self.guards_against(slot, claim, waiting, id).next().is_none(),
            Some(_) | None => true,
        }
    }

    /// Returns the earlier waiters for which one permit of this limit is kept.
    pub(super) fn guards_against<'a>(
        &'a self,
        slot: ClaimSlot,
        claim: &'a ClaimState,
        waiting: &PendingRequest,
        id: LimitId,
    ) -> impl Iterator<Item = ClaimSlot> + 'a {
        let guards = self.limits.get(id).map(|limit| limit.guards(waiting.position));
        guards
            .into_iter()
            .flatten()
            .map(|position| position.slot)
            .filter(move |other| self.holds_up(*other, slot, claim))
    }

    /// Returns `true` if the place of a waiter holds up a requester behind it.
    ///
    /// It does not if the waiter may depend on the requester. The waiter does if it waits for a lock that the requester
    /// or an ancestor holds. It also does if it lacks only permits, reserves just because it was overtaken so often,
    /// and waits for a permit that they hold.
    fn holds_up(&self, waiter: ClaimSlot, asker: ClaimSlot, claim: &ClaimState) -> bool {
        let Some(waiting) = self.claims.waiting(waiter) else {
            return false;
        };
        let counts = match waiting.state {
            WaitState::LacksLock => true,
            WaitState::LacksPermit => self.reserves_without_lock(asker, claim, waiter),
            WaitState::Unevaluated => false,
        };
        counts && !self.has_lock_of(asker, claim, waiter)
    }

    /// Returns `true` if the place of a waiter holds up a requester even while the waiter lacks only permits: it may not
    /// be overtaken any more, and waits for no permit that the requester or an ancestor holds.
    pub(super) fn reserves_without_lock(&self, asker: ClaimSlot, claim: &ClaimState, waiter: ClaimSlot) -> bool {
        let waiting = self.claims.waiting(waiter);
        waiting
            .is_some_and(|waiting| waiting.position.has_max_overtakes() && !self.has_permit_of(asker, claim, waiting))
    }

    /// Returns `true` if a requester that overtakes a waiter holds a part of what the waiter waits for.
    pub(super) fn has_part_of(&self, asker: ClaimSlot, claim: &ClaimState, waiter: ClaimSlot) -> bool {
        let waiting = self.claims.waiting(waiter);
        let has_permit = waiting.is_some_and(|waiting| self.has_permit_of(asker, claim, waiting));
        has_permit || self.has_lock_of(asker, claim, waiter)
    }

    /// Returns `true` if a claim or one of its ancestors holds a permit that a waiter waits for.
    fn has_permit_of(&self, asker: ClaimSlot, claim: &ClaimState, waiting: &PendingRequest) -> bool {
        self.kin(asker, claim)
            .any(|(_, claim)| waiting.limits.iter().any(|id| claim.limits.contains(id)))
    }

    /// Returns `true` if a claim or one of its ancestors holds a lock that keeps a waiter out.
    fn has_lock_of(&self, asker: ClaimSlot, claim: &ClaimState, waiter: ClaimSlot) -> bool {
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
    pub(super) fn kin<'a>(
        &'a self,
        slot: ClaimSlot,
        claim: &'a ClaimState,
    ) -> impl Iterator<Item = (ClaimSlot, &'a ClaimState)> {
        let ancestors = claim.within.iter().filter_map(|claim_id| self.claims.get_by(*claim_id));
        iter::once((slot, claim)).chain(ancestors)
    }

    pub(super) fn waiter(&self, slot: ClaimSlot) -> Option<(&ClaimState, &PendingRequest)> {
        let claim = self.claims.get(slot)?;
        Some((claim, claim.waiting()?))
    }

    pub(super) fn waiting_of(&self, claim_id: ClaimId) -> Option<&PendingRequest> {
        self.claims.waiting(self.claims.find(claim_id)?)
    }
}
