//! Whether a waiter can be served now, and if not, what keeps it waiting.
//! Reads only.

use std::iter;
use std::ops::Bound;

use super::claim::{Claim, Standing, Waiting};
use super::{Admissions, Grant, Lacking};
use crate::id::{LimitKey, Ticket};
use crate::lock::{LockMode, LockNeed, LockPath};

/// What is found about a waiter.
#[derive(Debug)]
pub(super) enum Finding {
    /// It lacks nothing.
    Free,
    /// It lacks this lock, because of that ticket.
    Lock(LockPath, Ticket),
    /// It lacks no lock, but a permit of this limit.
    Permit(LimitKey),
}

impl Admissions {
    /// Looks for the first thing that a waiter lacks: a lock, else a permit.
    pub(super) fn judge(&self, ticket: Ticket) -> Finding {
        let Some((claim, waiting)) = self.waiter(ticket) else {
            return Finding::Free;
        };
        for lock in &waiting.needs.locks {
            if let Some(blocker) = self.lock_blocker(claim, waiting, lock) {
                return Finding::Lock(lock.path.clone(), blocker);
            }
        }
        let lacking = waiting
            .needs
            .limits
            .iter()
            .find(|key| !self.has_permit_for(waiting, key));
        lacking.map_or(Finding::Free, |key| Finding::Permit(key.clone()))
    }

    /// Gives what is told to one who asked.
    pub(super) fn answer(&self, ticket: Ticket) -> Grant {
        match self.judge(ticket) {
            Finding::Free => Grant::Granted,
            Finding::Lock(path, _) => Grant::Queued(Lacking::Lock(path)),
            Finding::Permit(key) => Grant::Queued(Lacking::Permit(key)),
        }
    }

    /// Gives one who keeps a waiter from a lock. The nearest waiter before it
    /// comes before any holder: of many who wait for one holder each then
    /// watches the next, and only the first of them the holder.
    fn lock_blocker(&self, claim: &Claim, waiting: &Waiting, lock: &LockNeed) -> Option<Ticket> {
        let ahead = self.places_before(waiting, lock).next();
        ahead.or_else(|| self.holders_against(claim, waiting, lock).next())
    }

    /// Gives those before a waiter whose place keeps it from this lock, nearest first.
    pub(super) fn places_before(&self, waiting: &Waiting, lock: &LockNeed) -> impl Iterator<Item = Ticket> {
        let ticket = waiting.seat.ticket;
        let shelter = self.shelter(ticket, lock);
        let before = move |seat| match shelter {
            Some(holder) => self
                .reserved_inside
                .last_before(lock, (holder, seat))
                .filter(|(of, _)| *of == holder)
                .map(|(_, seat)| seat),
            None => self.reserved.last_before(lock, seat),
        };
        iter::successors(before(waiting.seat), move |seat| before(*seat))
            .map(|seat| seat.ticket)
            .filter(move |other| self.holds_up(*other, ticket))
    }

    /// Gives the ticket or an ancestor of it that holds the path, or one above
    /// it, exclusive. Strangers who want the lock wait for that one, so only
    /// its own descendants matter: a crowd outside costs nothing.
    pub(super) fn shelter(&self, ticket: Ticket, lock: &LockNeed) -> Option<Ticket> {
        let covers = |held: &LockNeed| held.mode == LockMode::Exclusive && held.path.covers(&lock.path);
        let mut kin = self.kin(ticket);
        kin.find(|(_, claim)| claim.locks.iter().any(covers))
            .map(|(holder, _)| holder)
    }

    /// Gives those who hold what conflicts with this lock, its ancestors aside.
    /// One may come more than once.
    pub(super) fn holders_against(
        &self,
        claim: &Claim,
        waiting: &Waiting,
        lock: &LockNeed,
    ) -> impl Iterator<Item = Ticket> {
        let ticket = waiting.seat.ticket;
        self.held
            .conflicting(lock, (Bound::Unbounded, Bound::Unbounded))
            .filter(move |holder| *holder != ticket && !claim.within.contains(holder))
    }

    /// Tells whether a permit of this limit can be given to a waiter, and one
    /// be left for who must have one.
    pub(super) fn has_permit_for(&self, waiting: &Waiting, key: &LimitKey) -> bool {
        let Some(spare) = self.pools.get(key).and_then(super::Pool::spare) else {
            return true;
        };
        spare > 1 || (spare == 1 && self.guards_against(waiting, key).next().is_none())
    }

    /// Gives those before a waiter for whom one permit of this limit is kept.
    pub(super) fn guards_against(&self, waiting: &Waiting, key: &LimitKey) -> impl Iterator<Item = Ticket> {
        let ticket = waiting.seat.ticket;
        let guards = self.pools.get(key).map(|pool| pool.guards(waiting.seat));
        guards
            .into_iter()
            .flatten()
            .map(|seat| seat.ticket)
            .filter(move |other| self.holds_up(*other, ticket))
    }

    /// Tells whether the place of a waiter counts against one behind it.
    ///
    /// It does not if the waiter may depend on that one: it waits for a lock
    /// that this one or an ancestor of it holds; or, lacking permits alone and
    /// reserving only because it was passed so often, for a permit of theirs.
    fn holds_up(&self, waiter: Ticket, asker: Ticket) -> bool {
        let Some((_, waiting)) = self.waiter(waiter) else {
            return false;
        };
        let counts = match waiting.standing {
            Standing::LacksLock => true,
            Standing::LacksPermit => waiting.seat.is_out_of_patience() && !self.has_permit_of(asker, waiting),
            Standing::Unseen => false,
        };
        counts && !self.has_lock_of(asker, waiter)
    }

    /// Tells whether one who passes a waiter has a part of what that one waits for.
    pub(super) fn has_part_of(&self, asker: Ticket, waiter: Ticket) -> bool {
        let permits = self
            .waiting_of(waiter)
            .is_some_and(|waiting| self.has_permit_of(asker, waiting));
        permits || self.has_lock_of(asker, waiter)
    }

    /// Tells whether a ticket or one of its ancestors holds a permit that a waiter waits for.
    fn has_permit_of(&self, asker: Ticket, waiting: &Waiting) -> bool {
        self.kin(asker)
            .any(|(_, claim)| waiting.needs.limits.iter().any(|key| claim.limits.contains(key)))
    }

    /// Tells whether a ticket or one of its ancestors holds a lock that keeps a waiter out.
    fn has_lock_of(&self, asker: Ticket, waiter: Ticket) -> bool {
        let Some((entering, waiting)) = self.waiter(waiter) else {
            return false;
        };
        let strangers = self
            .kin(asker)
            .filter(|(holder, _)| *holder != waiter && !entering.within.contains(holder));
        strangers
            .flat_map(|(_, claim)| &claim.locks)
            .any(|lock| waiting.needs.locks.iter().any(|need| need.conflicts(lock)))
    }

    /// Gives a ticket and its ancestors, as far as they hold or want anything.
    pub(super) fn kin(&self, ticket: Ticket) -> impl Iterator<Item = (Ticket, &Claim)> {
        self.kin_tickets(ticket)
            .filter_map(|ticket| self.claims.get(&ticket).map(|claim| (ticket, claim)))
    }

    /// Gives a ticket and those of its ancestors, nearest first.
    pub(super) fn kin_tickets(&self, ticket: Ticket) -> impl Iterator<Item = Ticket> {
        let within = self.claims.get(&ticket).map_or(&[][..], |claim| &claim.within);
        iter::once(ticket).chain(within.iter().copied())
    }

    pub(super) fn waiter(&self, ticket: Ticket) -> Option<(&Claim, &Waiting)> {
        let claim = self.claims.get(&ticket)?;
        Some((claim, claim.waiting.as_ref()?))
    }

    pub(super) fn waiting_of(&self, ticket: Ticket) -> Option<&Waiting> {
        self.waiter(ticket).map(|(_, waiting)| waiting)
    }

    pub(super) fn waiting_mut(&mut self, ticket: Ticket) -> Option<&mut Waiting> {
        self.claims.get_mut(&ticket)?.waiting.as_mut()
    }
}
