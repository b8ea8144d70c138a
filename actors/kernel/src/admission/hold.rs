//! Grants and returns: what each changes, and which waiters a grant overtakes.

use super::claim::{ClaimState, Limits, Locks, Slot};
use super::node::{Lock, Part};
use super::pool::PoolId;
use super::seat::Seat;
use super::{Admissions, MAX_OVERTAKES, Needs};

impl Admissions {
    /// Grants a waiter all it needs, and counts the waiters that this overtakes. The waiter has left its seat already.
    pub(super) fn grant(&mut self, slot: Slot) {
        // Find the overtaken waiters first: after the grant the claim no longer waits.
        let passed = self.passed_by(slot);
        if let Some(claim) = self.claims.get_mut(slot).filter(|claim| claim.is_waiting) {
            claim.is_waiting = false;
            let (limits, locks) = (claim.wish.limits.clone(), claim.wish.locks.clone());
            self.hold(slot, &limits, &locks);
        }
        for other in passed {
            self.count_as_passed(other);
        }
    }

    /// Returns the earlier arrivals that wait for what this waiter is about to take.
    fn passed_by(&self, slot: Slot) -> Vec<Slot> {
        let Some((claim, waiting)) = self.waiter(slot) else {
            return Vec::new();
        };
        let mut passed = Vec::new();
        for lock in waiting.locks.iter() {
            self.asked_before(slot, claim, waiting.seat.arrival, lock, &mut passed);
        }
        if !passed.is_empty() {
            let is_entering = |other: &Slot| {
                let entering = self.claims.get(*other).map(|claim| &claim.within);
                entering.is_some_and(|within| within.contains(&claim.id))
            };
            passed.retain(|other| !is_entering(other));
        }
        for pool in waiting.limits.iter().filter_map(|id| self.pools.get(id)) {
            if pool.spare().is_some_and(|spare| spare <= 1) {
                pool.waiting.came_before(waiting.seat.arrival, &mut passed);
            }
        }
        if passed.is_empty() {
            return passed;
        }
        passed.sort_unstable();
        passed.dedup();
        // Most requesters hold nothing yet, and neither do their ancestors.
        if !self.kin(slot, claim).all(|(_, claim)| claim.is_empty_handed()) {
            passed.retain(|other| !self.has_part_of(slot, claim, *other));
        }
        passed
    }

    /// Adds the earlier arrivals that wait for a lock conflicting with this one. Strangers to the waiter's shelter are
    /// left out.
    fn asked_before(&self, slot: Slot, claim: &ClaimState, arrival: u64, lock: Lock, passed: &mut Vec<Slot>) {
        let parts = [Part::Reserved, Part::Idle];
        let Some((holder, holds)) = self.shelter(slot, claim, lock) else {
            return parts
                .into_iter()
                .for_each(|part| self.tree.came_before(part, lock, arrival, passed));
        };
        if let Some(inside) = self.insides.of(holds.id) {
            let levels = parts.into_iter().map(|part| inside.part(part));
            levels.for_each(|levels| self.tree.came_before_in(levels, lock, arrival, passed));
        }
        let own = self.own_seat(holder, lock, |waiting| waiting.seat.arrival < arrival);
        passed.extend(own.map(|seat| seat.slot));
    }

    fn count_as_passed(&mut self, slot: Slot) {
        let Some(waiting) = self.claims.waiting_mut(slot) else {
            return;
        };
        waiting.passed += 1;
        if waiting.passed == MAX_OVERTAKES {
            self.with_seat_left(slot, |this| {
                if let Some(waiting) = this.claims.waiting_mut(slot) {
                    waiting.seat = Seat::new(slot, waiting.priority, waiting.seat.arrival, MAX_OVERTAKES);
                }
            });
        }
    }

    /// Gives a claim permits and locks that it does not hold yet, even if other claims hold them too.
    pub(super) fn hold(&mut self, slot: Slot, limits: &Limits, locks: &Locks) {
        let Some(claim) = self.claims.get_mut(slot) else {
            return;
        };
        let claim_id = claim.id;
        limits.iter().for_each(|id| claim.limits.push(id));
        locks.iter().for_each(|lock| claim.locks.push(lock));
        for id in limits.iter() {
            self.pools.take(id, claim_id);
        }
        for lock in locks.iter() {
            self.tree.hold(lock, slot);
            // Until now the lock was free for these waiters.
            self.look_at_idle(lock, None);
        }
        self.look_inside(claim_id);
    }

    /// Takes these permits and locks from a claim, as far as it holds them.
    pub(super) fn let_go(&mut self, slot: Slot, needs: &Needs) {
        for key in &needs.limits {
            let held = |id: &PoolId| self.claims.get(slot).is_some_and(|claim| claim.limits.contains(*id));
            if let Some(id) = self.pools.find(key).filter(held) {
                self.let_go_of_permit(slot, id);
            }
        }
        for need in &needs.locks {
            let held = |lock: &Lock| self.claims.get(slot).is_some_and(|claim| claim.locks.contains(*lock));
            if let Some(lock) = self.tree.find(need).filter(held) {
                self.let_go_of_lock(slot, lock);
            }
        }
        self.has_let_go(slot);
    }

    /// Takes all permits and locks from a claim.
    pub(super) fn let_go_of_all(&mut self, slot: Slot) {
        let Some(claim) = self.claims.get(slot) else {
            return;
        };
        let (limits, locks) = (claim.limits.clone(), claim.locks.clone());
        limits.iter().for_each(|id| self.let_go_of_permit(slot, id));
        locks.iter().for_each(|lock| self.let_go_of_lock(slot, lock));
        self.has_let_go(slot);
    }

    fn let_go_of_permit(&mut self, slot: Slot, id: PoolId) {
        if let Some(claim) = self.claims.get_mut(slot) {
            claim.limits.remove(id);
            self.pools.give_back(id, claim.id);
        }
    }

    fn let_go_of_lock(&mut self, slot: Slot, lock: Lock) {
        if let Some(claim) = self.claims.get_mut(slot) {
            claim.locks.remove(lock);
            self.tree.let_go(lock, slot);
            self.tree.leave(lock);
        }
    }

    fn has_let_go(&mut self, slot: Slot) {
        self.look_at_watchers(slot);
        if let Some(claim_id) = self.claims.id_of(slot) {
            self.look_inside(claim_id);
        }
    }
}
