//! How waiters join and leave the queues. A waiter joins unevaluated. Its evaluation then decides what its position
//! reserves, and which permit queue it joins: see `recheck`.

use super::Admissions;
use super::claim::{ClaimSlot, Dependency, Places, WaitState};
use super::path_node::WaiterClass;

impl Admissions {
    /// Changes what a claim has or wants. A waiting claim leaves the queues meanwhile, because the sets that
    /// contain it depend on what is changed.
    pub(super) fn while_dequeued(&mut self, slot: ClaimSlot, change: impl FnOnce(&mut Self)) {
        self.dequeue(slot);
        change(self);
        self.enqueue(slot);
    }

    /// Adds a waiter to its queues and schedules a recheck.
    pub(super) fn enqueue(&mut self, slot: ClaimSlot) {
        self.schedule(slot);
        self.enqueue_as(slot, WaitState::Unevaluated);
    }

    /// Adds a waiter whose state is known to its queues.
    pub(super) fn enqueue_as(&mut self, slot: ClaimSlot, state: WaitState) {
        let Self {
            claims, limits, nested, ..
        } = self;
        let Some(claim) = claims.get_mut(slot) else {
            return;
        };
        if !claim.is_waiting {
            return;
        }
        let waiting = &mut claim.pending;
        waiting.state = state;
        for ancestor in &claim.within {
            nested.enter(*ancestor, slot);
        }
        for id in waiting.limits.iter() {
            let is_own = waiting.kind == Some(id);
            let Some(limit) = limits.get_mut(id) else {
                continue;
            };
            limit.enter(waiting.position, is_own);
            if is_own && limit.own.first() == Some(waiting.position) {
                // Until now a permit was kept for another waiter, and different claims may overtake that waiter.
                limits.mark_due(id);
            }
        }
        self.update_places(slot);
        self.hold_up_idle(slot);
    }

    /// Takes a waiter off its queues. It still waits. The waiters that depend on it are rechecked.
    pub(super) fn dequeue(&mut self, slot: ClaimSlot) {
        let (before, next) = self.leave_queues(slot);
        if before != WaitState::Unevaluated {
            self.schedule_dependents(slot);
            self.mark_limits_due(slot);
        }
        if let Some(next) = next {
            self.schedule(next);
        }
    }

    /// Takes a waiter off its queues and grants it everything it waits for. Its dependents, except its descendants,
    /// still lack what it takes, so they are not rechecked.
    pub(super) fn dequeue_granted(&mut self, slot: ClaimSlot) {
        let (before, next) = self.leave_queues(slot);
        if before != WaitState::Unevaluated {
            self.schedule_nested_dependents(slot);
            self.mark_limits_due(slot);
        }
        self.grant(slot);
        if let Some(next) = next {
            self.lead_permit_queue(next);
        }
    }

    /// Takes a waiter off all sets. Returns its former state, and the new first waiter of the permit queue that it led.
    pub(super) fn leave_queues(&mut self, slot: ClaimSlot) -> (WaitState, Option<ClaimSlot>) {
        self.set_dependency(slot, Dependency::None);
        let Some(waiting) = self.claims.waiting_mut(slot) else {
            return (WaitState::Unevaluated, None);
        };
        let before = std::mem::take(&mut waiting.state);
        waiting.is_scheduled = false;
        self.set_places(slot, Places::default());
        let next = self.leave_permit_queue(slot);
        let Self {
            claims, limits, nested, ..
        } = self;
        if let Some(claim) = claims.get(slot)
            && let Some(waiting) = claim.waiting()
        {
            for ancestor in &claim.within {
                nested.leave(*ancestor, slot);
            }
            for id in waiting.limits.iter() {
                if let Some(limit) = limits.get_mut(id) {
                    limit.leave(waiting.position, waiting.kind == Some(id));
                }
            }
        }
        (before, next)
    }

    /// Records what a waiter lacks, with all consequences for the waiters behind it.
    pub(super) fn set_state(&mut self, slot: ClaimSlot, state: WaitState) {
        let Some(waiting) = self.claims.waiting_mut(slot) else {
            return;
        };
        let before = std::mem::replace(&mut waiting.state, state);
        // The recheck is done, so its place among the idle changes even if its state does not.
        self.update_places(slot);
        if before == state {
            return;
        }
        self.hold_up_idle(slot);
        if let Some(next) = self.leave_permit_queue(slot) {
            self.schedule(next);
        }
        if state == WaitState::LacksPermit {
            self.join_permit_queue(slot);
        }
        if before != WaitState::Unevaluated {
            self.schedule_dependents(slot);
            self.mark_limits_due(slot);
        }
    }

    /// Moves a waiter to the sets that it belongs in, on each path of its locks.
    pub(super) fn update_places(&mut self, slot: ClaimSlot) {
        if let Some(waiting) = self.claims.waiting(slot) {
            self.set_places(slot, waiting.places_due());
        }
    }

    fn set_places(&mut self, slot: ClaimSlot, places: Places) {
        let Self {
            claims, tree, nested, ..
        } = self;
        let Some(waiting) = claims.waiting_mut(slot).filter(|waiting| !waiting.locks.is_empty()) else {
            return;
        };
        let before = std::mem::replace(&mut waiting.places, places);
        if before == places {
            return;
        }
        let Some(claim) = claims.get(slot) else { return };
        let (locks, position) = (&claim.pending.locks, claim.pending.position);
        for class in WaiterClass::ALL {
            let is_there = places.contains(class);
            if before.contains(class) == is_there {
                continue;
            }
            for lock in locks.iter() {
                if is_there {
                    tree.add_waiter(class, lock, position);
                    claim
                        .within
                        .iter()
                        .for_each(|kin| nested.add_waiter(*kin, tree, class, lock, position));
                } else {
                    tree.remove_waiter(class, lock, position);
                    claim
                        .within
                        .iter()
                        .for_each(|kin| nested.remove_waiter(*kin, tree, class, lock, position));
                }
            }
        }
    }

    /// Schedules a recheck of the waiters behind a waiter for which a lock was free that its place reserves now.
    fn hold_up_idle(&mut self, slot: ClaimSlot) {
        let Some(waiting) = self.claims.waiting(slot) else {
            return;
        };
        let position = waiting.position;
        if waiting.state.reserves_locks(position) {
            for lock in waiting.locks.clone().iter() {
                self.schedule_idle(lock, Some(position));
            }
        }
    }

    pub(super) fn join_permit_queue(&mut self, slot: ClaimSlot) {
        let Self {
            claims, permit_queues, ..
        } = self;
        let queue = claims.get(slot).and_then(|claim| {
            let waiting = claim.waiting()?;
            Some(permit_queues.join(claim, waiting))
        });
        if let Some(waiting) = claims.waiting_mut(slot) {
            waiting.permit_queue = queue;
        }
    }

    /// Takes a waiter off its permit queue. Returns the next waiter if this was the first.
    pub(super) fn leave_permit_queue(&mut self, slot: ClaimSlot) -> Option<ClaimSlot> {
        let waiting = self.claims.waiting_mut(slot)?;
        let position = waiting.position;
        let queue = waiting.permit_queue.take()?;
        self.permit_queues.leave(queue, position).map(|next| next.slot)
    }
}
