//! Who is looked at when something changes.
//!
//! A look at a waiter grants all it needs, or finds one thing it lacks, which
//! it then watches: a claim that keeps it from a lock, or a limit without room.
//! Of those in one line, who lack permits alone and need the same, only the
//! first watches. Whatever may let a waiter through, or take from it a lock
//! that was free for it, puts it on the list of those to look at, and that list
//! is worked off in the order of service.
//!
//! So a release costs what it changes: of ten thousand who wait for one path,
//! each watches the one before it, and one is looked at.

use std::cmp::Reverse;

use super::Admissions;
use super::claim::{Slot, Standing, Watch};
use super::judge::Finding;
use super::node::Lock;
use super::seat::Seat;
use crate::id::{Claim, ClaimId};

impl Admissions {
    /// Works off all that must be looked at. Gives those that are served, in order.
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

    /// Looks at one who has just come and has no seat yet, and at nobody else;
    /// it takes one if it must wait. Nothing else may be to be looked at.
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

    /// Tells whether anybody may have to be looked at.
    pub(super) fn is_any_to_look_at(&mut self) -> bool {
        self.pools.is_any_stirred() || self.first_listed().is_some()
    }

    /// Takes the first in the order of service that must be looked at: one that
    /// is listed, or one that watches a limit in which there is room.
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

    /// Gives the first that is listed. One that has left its seat is not any more.
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

    /// Looks at a waiter: grants what it needs, or notes what it lacks.
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

    /// Has the waiting descendants of a claim looked at: what it holds decides whom they pass.
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

    /// Has those looked at, behind a place or all, for whom a lock was free until now.
    pub(super) fn look_at_idle(&mut self, lock: Lock, behind: Option<Seat>) {
        let idle = self.tree.idle(lock, behind);
        idle.into_iter().for_each(|slot| self.list(slot));
    }

    /// Has a waiter looked at.
    pub(super) fn list(&mut self, slot: Slot) {
        if let Some(waiting) = self.claims.waiting_mut(slot)
            && !waiting.is_listed
        {
            waiting.is_listed = true;
            self.look.push(Reverse(waiting.seat));
        }
    }
}
