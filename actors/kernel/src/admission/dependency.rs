//! What each waiter depends on, and which waiters depend on each claim.

use std::iter;

use super::Admissions;
use super::claim::{ClaimSlot, Dependency};
use super::limit::LimitId;

impl Admissions {
    /// Makes the new first waiter of a permit queue depend on a limit. Its evaluation would find the same while a limit
    /// that it needs has no room.
    pub(super) fn lead_permit_queue(&mut self, slot: ClaimSlot) {
        let Some(waiting) = self.claims.waiting(slot) else {
            return;
        };
        let is_full = |id: &LimitId| self.limits.get(*id).is_some_and(|limit| !limit.has_room());
        let full = waiting.limits.iter().find(is_full);
        match full {
            Some(id) => self.set_dependency(slot, Dependency::Limit(id)),
            None => self.schedule(slot),
        }
    }

    /// Makes a waiter depend on a limit, unless another waiter of its permit queue does.
    pub(super) fn depend_on_limit(&mut self, slot: ClaimSlot, id: LimitId) {
        let waiting = self.claims.waiting(slot);
        let first = waiting.and_then(|waiting| self.permit_queues.first(waiting.permit_queue?));
        if first.is_none_or(|first| first.slot == slot) {
            self.set_dependency(slot, Dependency::Limit(id));
        }
    }

    pub(super) fn set_dependency(&mut self, slot: ClaimSlot, dependency: Dependency) {
        let Some(waiting) = self.claims.waiting_mut(slot) else {
            return;
        };
        if waiting.dependency == dependency {
            return;
        }
        let position = waiting.position;
        match std::mem::replace(&mut waiting.dependency, dependency) {
            Dependency::None => {}
            Dependency::Claim(blocker) => self.unlink_dependent(slot, blocker),
            Dependency::Limit(id) => {
                if let Some(limit) = self.limits.get_mut(id) {
                    limit.dependents.remove(position);
                }
            }
        }
        match dependency {
            Dependency::None => {}
            Dependency::Claim(blocker) => self.link_dependent(slot, blocker),
            Dependency::Limit(id) => {
                if let Some(limit) = self.limits.get_mut(id) {
                    limit.dependents.insert(position);
                }
            }
        }
    }

    /// Links a waiter before the others that depend on the same claim.
    pub(super) fn link_dependent(&mut self, slot: ClaimSlot, blocker: ClaimSlot) {
        let Some(claim) = self.claims.get_mut(blocker) else {
            return;
        };
        let later = claim.first_dependent.replace(slot);
        if let Some(waiting) = later.and_then(|later| self.claims.waiting_mut(later)) {
            waiting.earlier = Some(slot);
        }
        if let Some(waiting) = self.claims.waiting_mut(slot) {
            waiting.later = later;
        }
    }

    pub(super) fn unlink_dependent(&mut self, slot: ClaimSlot, blocker: ClaimSlot) {
        let Some(waiting) = self.claims.waiting_mut(slot) else {
            return;
        };
        let (earlier, later) = (waiting.earlier.take(), waiting.later.take());
        if let Some(waiting) = later.and_then(|later| self.claims.waiting_mut(later)) {
            waiting.earlier = earlier;
        }
        if let Some(waiting) = earlier.and_then(|earlier| self.claims.waiting_mut(earlier)) {
            waiting.later = later;
        } else if let Some(claim) = self.claims.get_mut(blocker) {
            claim.first_dependent = later;
        }
    }

    /// Schedules a recheck of all waiters that depend on a claim. None of them depends on it any longer.
    pub(super) fn schedule_dependents(&mut self, slot: ClaimSlot) {
        let mut next = self.claims.get_mut(slot).and_then(|claim| claim.first_dependent.take());
        while let Some(dependent) = next {
            let Some(waiting) = self.claims.waiting_mut(dependent) else {
                return;
            };
            next = waiting.later.take();
            waiting.earlier = None;
            waiting.dependency = Dependency::None;
            self.schedule(dependent);
        }
    }

    /// Schedules a recheck of the descendants that depend on a claim.
    pub(super) fn schedule_nested_dependents(&mut self, slot: ClaimSlot) {
        if self.nested.is_empty() {
            return;
        }
        let Some(claim) = self.claims.get(slot) else {
            return;
        };
        let is_nested = |dependent: &ClaimSlot| {
            let dependent = self.claims.get(*dependent);
            dependent.is_some_and(|dependent| dependent.within.contains(&claim.id))
        };
        let dependents = iter::successors(claim.first_dependent, |dependent| {
            self.claims.waiting(*dependent)?.later
        });
        let nested: Vec<ClaimSlot> = dependents.filter(is_nested).collect();
        for dependent in nested {
            self.set_dependency(dependent, Dependency::None);
            self.schedule(dependent);
        }
    }

    /// Marks the limits that a waiter waits for as due for a recheck, because it reserves less than before.
    pub(super) fn mark_limits_due(&mut self, slot: ClaimSlot) {
        if let Some(waiting) = self.claims.waiting(slot) {
            waiting.limits.iter().for_each(|id| self.limits.mark_due(id));
        }
    }
}
