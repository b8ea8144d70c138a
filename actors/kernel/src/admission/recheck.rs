//! Which waiters are evaluated again when something changes.
//!
//! The evaluation of a waiter either grants all it needs, or finds one thing it lacks. The waiter then depends on this
//! thing: a claim that keeps it from a lock, or a limit without room. Waiters that lack only permits and need the same
//! are in one permit queue, and only the first of a queue has a dependency. A change may let a waiter through, or take
//! from it a lock that was free for it. A recheck of such a waiter is scheduled. Rechecks are made in the order of
//! service.
//!
//! So a release costs only what it changes. Of ten thousand waiters for one path, each depends on the waiter before it,
//! and only one is rechecked.

use std::cmp::Reverse;

use super::Admissions;
use super::claim::{ClaimSlot, Dependency, WaitState};
use super::evaluate::Evaluation;
use super::path_node::{LockId, WaiterClass};
use super::queue_position::QueuePosition;
use crate::id::{Claim, ClaimId};

impl Admissions {
    /// Rechecks every waiter that is due. Returns the claims that are served, in order.
    pub(super) fn serve(&mut self) -> Vec<Claim> {
        let mut served = Vec::new();
        while let Some(slot) = self.next_recheck() {
            if let Evaluation::Grantable = self.recheck(slot)
                && let Some(claim) = self.claims.get(slot)
            {
                served.push(claim.claim());
            }
        }
        served
    }

    /// Evaluates a new arrival that is in no queue yet, and no other waiter. The arrival joins the queues if it must
    /// wait. No other waiter may be due for a recheck.
    pub(super) fn evaluate_arrival(&mut self, slot: ClaimSlot) -> Evaluation {
        #[cfg(test)]
        {
            self.evaluations += 1;
        }
        let evaluation = self.evaluate(slot);
        match evaluation {
            Evaluation::Grantable => self.grant(slot),
            Evaluation::LacksLock(_, blocker) => {
                self.enqueue_as(slot, WaitState::LacksLock);
                self.set_dependency(slot, Dependency::Claim(blocker));
            }
            Evaluation::LacksPermit(id) => {
                self.enqueue_as(slot, WaitState::LacksPermit);
                self.join_permit_queue(slot);
                self.depend_on_limit(slot, id);
            }
        }
        evaluation
    }

    /// Returns `true` if any waiter may be due for a recheck.
    pub(super) fn is_recheck_due(&mut self) -> bool {
        self.limits.is_any_due() || self.first_scheduled().is_some()
    }

    /// Takes the first waiter, in the order of service, that is due for a recheck. It is either scheduled, or depends on
    /// a limit that has room.
    pub(super) fn next_recheck(&mut self) -> Option<ClaimSlot> {
        let scheduled = self.first_scheduled();
        if self.limits.is_any_due()
            && let Some((position, id)) = self.limits.next_dependent()
            && scheduled.is_none_or(|first| position < first)
        {
            self.limits.mark_rechecked(id, position);
            return Some(position.slot);
        }
        let slot = scheduled?.slot;
        self.recheck_queue.pop();
        self.claims.waiting_mut(slot)?.is_scheduled = false;
        Some(slot)
    }

    /// Returns the first scheduled waiter. A waiter that has left the queues is no longer scheduled.
    pub(super) fn first_scheduled(&mut self) -> Option<QueuePosition> {
        loop {
            let Reverse(position) = *self.recheck_queue.peek()?;
            let waiting = self.claims.waiting(position.slot);
            if waiting.is_some_and(|waiting| waiting.is_scheduled && waiting.position == position) {
                return Some(position);
            }
            self.recheck_queue.pop();
        }
    }

    /// Evaluates a waiter again: grants what it needs, or records what it lacks.
    pub(super) fn recheck(&mut self, slot: ClaimSlot) -> Evaluation {
        #[cfg(test)]
        {
            self.evaluations += 1;
        }
        self.set_dependency(slot, Dependency::None);
        let evaluation = self.evaluate(slot);
        match evaluation {
            Evaluation::LacksLock(_, blocker) => {
                self.set_state(slot, WaitState::LacksLock);
                self.set_dependency(slot, Dependency::Claim(blocker));
            }
            Evaluation::LacksPermit(id) => {
                self.set_state(slot, WaitState::LacksPermit);
                self.depend_on_limit(slot, id);
            }
            Evaluation::Grantable => {
                self.dequeue_granted(slot);
            }
        }
        evaluation
    }

    /// Schedules a recheck of the waiting descendants of a claim, because what it holds decides which waiters they may
    /// overtake.
    pub(super) fn schedule_nested(&mut self, claim_id: ClaimId) {
        if self.nested.is_empty() {
            return;
        }
        let nested = self.nested.of(claim_id);
        let waiting: Vec<ClaimSlot> = nested
            .into_iter()
            .flat_map(|nested| nested.waiting.iter().copied())
            .collect();
        waiting.into_iter().for_each(|slot| self.schedule(slot));
    }

    /// Schedules a recheck of the waiters for which a lock was free until now: all, or only those behind a position.
    pub(super) fn schedule_idle(&mut self, lock: LockId, behind: Option<QueuePosition>) {
        let idle = self.tree.idle(lock, behind);
        #[cfg(test)]
        {
            self.looks += idle.len();
        }
        idle.into_iter().for_each(|slot| self.schedule(slot));
    }

    /// Schedules a recheck of a waiter.
    pub(super) fn schedule(&mut self, slot: ClaimSlot) {
        if let Some(waiting) = self.claims.waiting_mut(slot)
            && !waiting.is_scheduled
        {
            waiting.is_scheduled = true;
            self.recheck_queue.push(Reverse(waiting.position));
            if waiting.places.contains(WaiterClass::Idle) {
                self.update_places(slot);
            }
        }
    }
}
