//! Giving and taking: what a grant or a return changes, and who was passed by it.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::claim::Seat;
use super::{Admissions, Needs, PATIENCE};
use crate::id::{LimitKey, Ticket};
use crate::lock::LockNeed;

impl Admissions {
    /// Gives a waiter all it needs, and notes who was passed thereby.
    pub(super) fn grant(&mut self, ticket: Ticket) {
        // Who is passed must be known before the grant makes room for nobody.
        let passed = self.passed_by(ticket);
        self.leave_seat(ticket);
        let waiting = self.claims.get_mut(&ticket).and_then(|claim| claim.waiting.take());
        if let Some(waiting) = waiting {
            self.hold(ticket, &waiting.needs);
        }
        for other in passed {
            self.count_as_passed(other);
        }
    }

    /// Gives those who came before a ticket and wait for what it is about to take.
    fn passed_by(&self, ticket: Ticket) -> BTreeSet<Ticket> {
        let Some(waiting) = self.waiting_of(ticket) else {
            return BTreeSet::new();
        };
        let earlier = (waiting.seat.arrival, Ticket(0));
        // Most who ask have nothing yet, and neither have their ancestors.
        let has_nothing = self.kin(ticket).all(|(_, claim)| claim.is_empty_handed());
        let locks = waiting.needs.locks.iter();
        let for_locks = locks
            .flat_map(|lock| self.asked_before(ticket, lock, waiting.seat.arrival))
            .filter(|(_, other)| {
                self.claims
                    .get(other)
                    .is_some_and(|claim| !claim.within.contains(&ticket))
            });
        let last_ones = waiting.needs.limits.iter().filter_map(|key| self.pools.get(key));
        let for_permits = last_ones
            .filter(|pool| pool.spare().is_some_and(|spare| spare <= 1))
            .flat_map(|pool| pool.arrivals.range(..earlier).copied());
        for_locks
            .chain(for_permits)
            .map(|(_, other)| other)
            .filter(|other| has_nothing || !self.has_part_of(ticket, *other))
            .collect()
    }

    /// Gives those who came before and wait for what conflicts with a lock, strangers to its shelter aside.
    fn asked_before(&self, ticket: Ticket, lock: &LockNeed, arrival: u64) -> Vec<(u64, Ticket)> {
        match self.shelter(ticket, lock) {
            Some(holder) => {
                let start = Bound::Included((holder, 0, Ticket(0)));
                let end = Bound::Excluded((holder, arrival, Ticket(0)));
                let inside = self.asked_inside.conflicting(lock, (start, end));
                inside.map(|(_, arrival, other)| (arrival, other)).collect()
            }
            None => {
                let earlier = (Bound::Unbounded, Bound::Excluded((arrival, Ticket(0))));
                self.asked.conflicting(lock, earlier).collect()
            }
        }
    }

    fn count_as_passed(&mut self, ticket: Ticket) {
        let Some(waiting) = self.waiting_mut(ticket) else {
            return;
        };
        waiting.passed += 1;
        if waiting.passed == PATIENCE {
            self.with_seat_left(ticket, |this| {
                if let Some(waiting) = this.waiting_mut(ticket) {
                    waiting.seat = Seat::new(ticket, waiting.priority, waiting.seat.arrival, PATIENCE);
                }
            });
        }
    }

    /// Gives a ticket what it does not hold yet, whoever else has it.
    pub(super) fn hold(&mut self, ticket: Ticket, needs: &Needs) {
        let Some(claim) = self.claims.get_mut(&ticket) else {
            return;
        };
        claim.limits.extend(needs.limits.iter().cloned());
        claim.locks.extend(needs.locks.iter().cloned());
        for key in &needs.limits {
            self.pools.entry(key.clone()).or_default().holders.insert(ticket);
        }
        for lock in &needs.locks {
            self.held.insert(lock, ticket);
            // For these the lock was free until now.
            let idle = self.idle.conflicting(lock, (Bound::Unbounded, Bound::Unbounded));
            self.look.extend(idle);
        }
        self.look_inside(ticket);
    }

    /// Takes from a ticket those parts of what it holds.
    pub(super) fn let_go(&mut self, ticket: Ticket, needs: &Needs) {
        let Some(claim) = self.claims.get_mut(&ticket) else {
            return;
        };
        let limits: Vec<&LimitKey> = needs.limits.iter().filter(|key| claim.limits.remove(*key)).collect();
        let locks: Vec<_> = needs.locks.iter().filter(|lock| claim.locks.remove(*lock)).collect();
        for key in limits {
            if let Some(pool) = self.pools.get_mut(key) {
                pool.holders.remove(&ticket);
            }
            self.stir(key);
        }
        for lock in locks {
            self.held.remove(lock, ticket);
        }
        self.look_at_watchers(ticket);
        self.look_inside(ticket);
    }
}
