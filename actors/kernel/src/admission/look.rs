//! Which waiters are looked at when something changes.
//!
//! A look at a waiter either grants all it needs, or finds one thing it lacks. The waiter then watches this thing: a
//! claim that keeps it from a lock, or a limit without room. Waiters that lack only permits and need the same stand in
//! one line, and only the first of a line watches. A change may let a waiter through, or take from it a lock that was
//! free for it. Such a waiter is put on the list of waiters to look at. The list is processed in the order of service.
//!
//! So a release costs only what it changes. Of ten thousand waiters for one path, each watches the waiter before it,
//! and only one is looked at.

use std::cmp::Reverse;

use super::Admissions;
use super::claim::{Slot, Standing, Watch};
use super::judge::Finding;
use super::node::Lock;
use super::seat::Seat;
use crate::id::{Claim, ClaimId};

impl Admissions {
    /// Looks at every waiter that must be looked at. Returns the claims that are served, in order.
    pub(super) fn serve(&mut self) -> Vec<Claim> {
        let mut served = Vec::new();
        while let Some(slot) = self.next_to_look_at() {
            if let Finding::Free = self.look_at(slot)
                && let Some(claim) = self.claims.get(slot)
            {
                served.push(claim.claim());
            }
        }
        served
    }

    /// Looks at a new arrival that has no seat yet, and at no other waiter. The arrival takes a seat if it must wait.
    /// No other waiter may be due for a look.
    pub(super) fn look_at_once(&mut self, slot: Slot) -> Finding {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let finding = self.judge(slot);
        match finding {
            Finding::Free => self.grant(slot),
            Finding::Lock(_, blocker) => {
                self.sit_down(slot, Standing::LacksLock);
                self.set_watch(slot, Watch::Claim(blocker));
            }
            Finding::Permit(id) => {
                self.sit_down(slot, Standing::LacksPermit);
                self.join_line(slot);
                self.watch_limit(slot, id);
            }
        }
        finding
    }

    /// Returns `true` if any waiter may have to be looked at.
    pub(super) fn is_any_to_look_at(&mut self) -> bool {
        self.pools.is_any_stirred() || self.first_listed().is_some()
    }

    /// Takes the first waiter, in the order of service, that must be looked at. It is either listed, or watches a limit
    /// that has room.
    pub(super) fn next_to_look_at(&mut self) -> Option<Slot> {
        let listed = self.first_listed();
        if self.pools.is_any_stirred()
            && let Some((seat, id)) = self.pools.next_watcher()
            && listed.is_none_or(|first| seat < first)
        {
            self.pools.pass(id, seat);
            return Some(seat.slot);
        }
        let slot = listed?.slot;
        self.look.pop();
        self.claims.waiting_mut(slot)?.is_listed = false;
        Some(slot)
    }

    /// Returns the first listed waiter. A waiter that has left its seat is no longer listed.
    pub(super) fn first_listed(&mut self) -> Option<Seat> {
        loop {
            let Reverse(seat) = *self.look.peek()?;
            let waiting = self.claims.waiting(seat.slot);
            if waiting.is_some_and(|waiting| waiting.is_listed && waiting.seat == seat) {
                return Some(seat);
            }
            self.look.pop();
        }
    }

    /// Looks at a waiter: grants what it needs, or records what it lacks.
    pub(super) fn look_at(&mut self, slot: Slot) -> Finding {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        self.set_watch(slot, Watch::Nothing);
        let finding = self.judge(slot);
        match finding {
            Finding::Lock(_, blocker) => {
                self.set_standing(slot, Standing::LacksLock);
                self.set_watch(slot, Watch::Claim(blocker));
            }
            Finding::Permit(id) => {
                self.set_standing(slot, Standing::LacksPermit);
                self.watch_limit(slot, id);
            }
            Finding::Free => {
                self.leave_seat_granted(slot);
            }
        }
        finding
    }

    /// Lists the waiting descendants of a claim to be looked at, because what it holds decides which waiters they may
    /// overtake.
    pub(super) fn look_inside(&mut self, claim_id: ClaimId) {
        if self.insides.is_empty() {
            return;
        }
        let inside = self.insides.of(claim_id);
        let waiting: Vec<Slot> = inside
            .into_iter()
            .flat_map(|inside| inside.waiting.iter().copied())
            .collect();
        waiting.into_iter().for_each(|slot| self.list(slot));
    }

    /// Lists the waiters for which a lock was free until now: all of them, or only the waiters behind a place.
    pub(super) fn look_at_idle(&mut self, lock: Lock, behind: Option<Seat>) {
        let idle = self.tree.idle(lock, behind);
        idle.into_iter().for_each(|slot| self.list(slot));
    }

    /// Lists a waiter to be looked at.
    pub(super) fn list(&mut self, slot: Slot) {
        if let Some(waiting) = self.claims.waiting_mut(slot)
            && !waiting.is_listed
        {
            waiting.is_listed = true;
            self.look.push(Reverse(waiting.seat));
        }
    }
}
