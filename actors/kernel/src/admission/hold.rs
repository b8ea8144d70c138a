//! Grants and returns: what each changes, and which waiters a grant overtakes.

use super::claim::{ClaimSlot, ClaimState, LimitIds, LockIds};
use super::limit::LimitId;
use super::path_node::{LockId, WaiterClass};
use super::queue_position::QueuePosition;
use super::{Admissions, MAX_OVERTAKES, Needs};

impl Admissions {
    /// Grants a waiter all it needs, and counts the waiters that this overtakes. The waiter has left the queues
    /// already.
    pub(super) fn grant(&mut self, slot: ClaimSlot) {
        // Find the overtaken waiters first: after the grant the claim no longer waits.
        let overtaken = self.overtaken_by(slot);
        if let Some(claim) = self.claims.get_mut(slot).filter(|claim| claim.is_waiting) {
            claim.is_waiting = false;
            let (limits, locks) = (claim.pending.limits.clone(), claim.pending.locks.clone());
            self.hold(slot, &limits, &locks);
            if self.limits.has_rates() {
                let begun = self.limits.begin(&limits).map(Box::new);
                if let Some(claim) = self.claims.get_mut(slot) {
                    claim.begun = begun;
                }
            }
        }
        for other in overtaken {
            self.count_overtake(other);
        }
    }

    /// Returns the earlier arrivals that wait for what this waiter is about to take.
    fn overtaken_by(&self, slot: ClaimSlot) -> Vec<ClaimSlot> {
        let Some((claim, waiting)) = self.waiter(slot) else {
            return Vec::new();
        };
        let mut overtaken = Vec::new();
        for lock in waiting.locks.iter() {
            self.add_earlier_requests(slot, claim, waiting.position.arrival, lock, &mut overtaken);
        }
        if !overtaken.is_empty() {
            let is_entering = |other: &ClaimSlot| {
                let entering = self.claims.get(*other).map(|claim| &claim.within);
                entering.is_some_and(|within| within.contains(&claim.id))
            };
            overtaken.retain(|other| !is_entering(other));
        }
        for limit in waiting.limits.iter().filter_map(|id| self.limits.get(id)) {
            limit.add_overtaken(waiting.position.arrival, &mut overtaken);
        }
        if overtaken.is_empty() {
            return overtaken;
        }
        overtaken.sort_unstable();
        overtaken.dedup();
        // Most requesters hold nothing yet, and neither do their ancestors.
        if !self.kin(slot, claim).all(|(_, claim)| claim.is_empty_handed()) {
            overtaken.retain(|other| !self.has_part_of(slot, claim, *other));
        }
        overtaken
    }

    /// Adds the earlier arrivals that wait for a lock conflicting with this one. If a holder encloses
    /// the lock, strangers to that holder are left out.
    fn add_earlier_requests(
        &self,
        slot: ClaimSlot,
        claim: &ClaimState,
        arrival: u64,
        lock: LockId,
        overtaken: &mut Vec<ClaimSlot>,
    ) {
        let classes = WaiterClass::ALL;
        let Some((holder, holds)) = self.enclosing_holder(slot, claim, lock) else {
            return classes
                .into_iter()
                .for_each(|class| self.tree.arrived_before(class, lock, arrival, overtaken));
        };
        if let Some(nested) = self.nested.of(holds.id) {
            let waiters_by_path = classes.into_iter().map(|class| nested.waiters(class));
            waiters_by_path
                .for_each(|waiters_by_path| self.tree.arrived_before_in(waiters_by_path, lock, arrival, overtaken));
        }
        let own = self.own_position(holder, lock, |waiting| waiting.position.arrival < arrival);
        overtaken.extend(own.map(|position| position.slot));
    }

    fn count_overtake(&mut self, slot: ClaimSlot) {
        let Some(waiting) = self.claims.waiting_mut(slot) else {
            return;
        };
        waiting.overtaken += 1;
        if waiting.overtaken == MAX_OVERTAKES {
            self.while_dequeued(slot, |this| {
                if let Some(waiting) = this.claims.waiting_mut(slot) {
                    waiting.position =
                        QueuePosition::new(slot, waiting.priority, waiting.position.arrival, MAX_OVERTAKES);
                }
            });
        }
    }

    /// Gives a claim permits and locks that it does not hold yet, even if other claims hold them too.
    pub(super) fn hold(&mut self, slot: ClaimSlot, limits: &LimitIds, locks: &LockIds) {
        let Some(claim) = self.claims.get_mut(slot) else {
            return;
        };
        let claim_id = claim.id;
        limits.iter().for_each(|id| claim.limits.push(id));
        locks.iter().for_each(|lock| claim.locks.push(lock));
        for id in limits.iter() {
            self.limits.take(id, claim_id);
        }
        for lock in locks.iter() {
            self.tree.hold(lock, slot);
            // Until now the lock was free for these waiters.
            self.schedule_idle(lock, None);
        }
        self.schedule_nested(claim_id);
    }

    /// Takes these permits and locks from a claim, as far as it holds them.
    pub(super) fn let_go(&mut self, slot: ClaimSlot, needs: &Needs) {
        for key in &needs.limits {
            let held = |id: &LimitId| self.claims.get(slot).is_some_and(|claim| claim.limits.contains(*id));
            if let Some(id) = self.limits.find(key).filter(held) {
                self.let_go_of_permit(slot, id);
            }
        }
        for need in &needs.locks {
            let held = |lock: &LockId| self.claims.get(slot).is_some_and(|claim| claim.locks.contains(*lock));
            if let Some(lock) = self.tree.find(need).filter(held) {
                self.let_go_of_lock(slot, lock);
            }
        }
        self.has_let_go(slot);
    }

    /// Takes all permits and locks from a claim.
    pub(super) fn let_go_of_all(&mut self, slot: ClaimSlot) {
        let Some(claim) = self.claims.get(slot) else {
            return;
        };
        let (limits, locks) = (claim.limits.clone(), claim.locks.clone());
        limits.iter().for_each(|id| self.let_go_of_permit(slot, id));
        locks.iter().for_each(|lock| self.let_go_of_lock(slot, lock));
        self.has_let_go(slot);
    }

    fn let_go_of_permit(&mut self, slot: ClaimSlot, id: LimitId) {
        if let Some(claim) = self.claims.get_mut(slot) {
            claim.limits.remove(id);
            self.limits.give_back(id, claim.id);
        }
    }

    fn let_go_of_lock(&mut self, slot: ClaimSlot, lock: LockId) {
        if let Some(claim) = self.claims.get_mut(slot) {
            claim.locks.remove(lock);
            self.tree.let_go(lock, slot);
            self.tree.leave(lock);
        }
    }

    fn has_let_go(&mut self, slot: ClaimSlot) {
        self.schedule_dependents(slot);
        if let Some(claim_id) = self.claims.id_of(slot) {
            self.schedule_nested(claim_id);
        }
    }
}
