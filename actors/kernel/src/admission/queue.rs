//! Who waits where, and who is looked at when something changes.
//!
//! A waiter takes its seat unseen. A look at it grants all it needs, or finds
//! one thing it lacks, which it then watches: a ticket that keeps it from a
//! lock, or a limit without room. Of those in one line, who lack permits alone
//! and need the same, only the first watches. Whatever may let a waiter
//! through, or take from it a lock that was free for it, puts it on the list of
//! those to look at, and that list is worked off in the order of service.
//!
//! So a release costs what it changes: of ten thousand who wait for one path,
//! each watches the one before it, and two are looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Bound;

use super::claim::{Seat, Standing, Waiting, Watch};
use super::judge::Finding;
use super::{Admissions, Needs, Request};
use crate::id::{LimitKey, Ticket};

impl Admissions {
    /// Puts a request on the queue, if it lacks anything at all.
    pub(super) fn enter(&mut self, request: Request) {
        let ticket = request.ticket;
        let seat = Seat::new(ticket, request.priority, self.arrivals + 1, 0);
        self.with_seat_left(ticket, |this| {
            let claim = this.claims.entry(ticket).or_default();
            claim.within = request.within;
            let lacking = claim.lacking(&request.needs);
            let waiting = claim.waiting.take();
            if waiting.is_none() && lacking.is_empty() {
                return;
            }
            let mut waiting = waiting.unwrap_or(Waiting {
                seat,
                needs: Needs::default(),
                kind: None,
                priority: request.priority,
                passed: 0,
                standing: Standing::Unseen,
                watch: Watch::Nothing,
            });
            waiting.needs.limits.extend(lacking.limits);
            waiting.needs.locks.extend(lacking.locks);
            waiting.needs = claim.lacking(&waiting.needs);
            waiting.kind = waiting.kind.or(request.kind);
            claim.waiting = Some(waiting);
        });
        self.arrivals += 1;
        self.forget_idle_claim(ticket);
    }

    /// Changes what a ticket has or wants. If it waits, it leaves its seat
    /// meanwhile: where it is found depends on what is changed.
    pub(super) fn with_seat_left(&mut self, ticket: Ticket, change: impl FnOnce(&mut Self)) {
        self.leave_seat(ticket);
        change(self);
        self.take_seat(ticket);
    }

    fn take_seat(&mut self, ticket: Ticket) {
        let Some((claim, waiting)) = self.waiter(ticket) else {
            return;
        };
        let (seat, within) = (waiting.seat, claim.within.clone());
        let (needs, kind) = (waiting.needs.clone(), waiting.kind.clone());
        for ancestor in &within {
            self.inside.entry(*ancestor).or_default().insert(ticket);
        }
        for lock in &needs.locks {
            self.asked.insert(lock, (seat.arrival, ticket));
            for kin in [&[ticket][..], &within].concat() {
                self.asked_inside.insert(lock, (kin, seat.arrival, ticket));
            }
        }
        for key in needs.limits {
            let is_own = kind.as_ref() == Some(&key);
            let pool = self.pools.entry(key.clone()).or_default();
            pool.enter(seat, is_own);
            if is_own && pool.own.first() == Some(&seat) {
                // Until now one was kept for another, and by whom that one may be passed differs.
                self.stir(&key);
            }
        }
        self.queue.insert(seat);
        self.look.insert(seat);
    }

    pub(super) fn leave_seat(&mut self, ticket: Ticket) {
        self.set_watch(ticket, Watch::Nothing);
        self.set_standing(ticket, Standing::Unseen);
        let Some((claim, waiting)) = self.waiter(ticket) else {
            return;
        };
        let (seat, within, needs) = (waiting.seat, claim.within.clone(), waiting.needs.clone());
        for ancestor in &within {
            remove_from(&mut self.inside, ancestor, &ticket);
        }
        for lock in &needs.locks {
            self.asked.remove(lock, (seat.arrival, ticket));
            for kin in [&[ticket][..], &within].concat() {
                self.asked_inside.remove(lock, (kin, seat.arrival, ticket));
            }
        }
        for key in &needs.limits {
            if let Some(pool) = self.pools.get_mut(key) {
                pool.leave(seat);
            }
        }
        self.queue.remove(&seat);
        self.look.remove(&seat);
    }

    /// Drops what is known of a ticket that holds nothing and waits for nothing.
    pub(super) fn forget_idle_claim(&mut self, ticket: Ticket) {
        let is_idle = |claim: &super::Claim| claim.is_empty_handed() && claim.waiting.is_none();
        if self.claims.get(&ticket).is_some_and(is_idle) {
            self.claims.remove(&ticket);
        }
    }

    /// Works off all that must be looked at. Gives those that are served, in order.
    pub(super) fn serve(&mut self) -> Vec<Ticket> {
        let mut served = Vec::new();
        while let Some(seat) = self.next_to_look_at() {
            if self.look_at(seat.ticket) {
                served.push(seat.ticket);
            }
        }
        served
    }

    /// Takes the first in the order of service that must be looked at: one that
    /// is listed, or one that watches a limit in which there is room.
    fn next_to_look_at(&mut self) -> Option<Seat> {
        let pools = &self.pools;
        let next_watcher = |key: &LimitKey, after: &Option<Seat>| {
            let pool = pools.get(key).filter(|pool| pool.has_room())?;
            let start = after.map_or(Bound::Unbounded, Bound::Excluded);
            pool.watchers.range((start, Bound::Unbounded)).next().copied()
        };
        self.stirred.retain(|key, after| next_watcher(key, after).is_some());
        let watchers = self.stirred.iter_mut();
        let watcher = watchers
            .filter_map(|(key, after)| Some((next_watcher(key, after)?, after)))
            .min_by_key(|(seat, _)| *seat);
        match watcher {
            Some((seat, after)) if self.look.first().is_none_or(|first| seat < *first) => {
                *after = Some(seat);
                Some(seat)
            }
            Some(_) | None => self.look.pop_first(),
        }
    }

    /// Looks at a waiter: grants what it needs, or notes what it lacks. Tells whether it was granted.
    fn look_at(&mut self, ticket: Ticket) -> bool {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        if !self.is_waiting(ticket) {
            return false;
        }
        self.set_watch(ticket, Watch::Nothing);
        match self.judge(ticket) {
            Finding::Lock(_, blocker) => {
                self.set_standing(ticket, Standing::LacksLock);
                self.set_watch(ticket, Watch::Ticket(blocker));
            }
            Finding::Permit(key) => {
                self.set_standing(ticket, Standing::LacksPermit);
                if self.line_mate_before(ticket).is_none() {
                    self.set_watch(ticket, Watch::Limit(key));
                }
            }
            Finding::Free => {
                self.grant(ticket);
                return true;
            }
        }
        false
    }

    /// Notes what a waiter lacks, with all that follows for those behind it.
    fn set_standing(&mut self, ticket: Ticket, standing: Standing) {
        let Some(waiting) = self.waiting_mut(ticket) else {
            return;
        };
        let reserved = waiting.reserves_locks();
        let before = mem::replace(&mut waiting.standing, standing);
        if before == standing {
            return;
        }
        let reserves = waiting.reserves_locks();
        let (seat, needs) = (waiting.seat, waiting.needs.clone());
        let kin: Vec<Ticket> = self.kin_tickets(ticket).collect();
        for lock in &needs.locks {
            match (reserved, reserves) {
                (true, false) => {
                    self.reserved.remove(lock, seat);
                    kin.iter()
                        .for_each(|kin| self.reserved_inside.remove(lock, (*kin, seat)));
                }
                (false, true) => {
                    self.reserved.insert(lock, seat);
                    kin.iter()
                        .for_each(|kin| self.reserved_inside.insert(lock, (*kin, seat)));
                }
                (true, true) | (false, false) => {}
            }
            match (before, standing) {
                (Standing::LacksPermit, _) => self.idle.remove(lock, seat),
                (_, Standing::LacksPermit) => self.idle.insert(lock, seat),
                (Standing::Unseen | Standing::LacksLock, Standing::Unseen | Standing::LacksLock) => {}
            }
            if reserves {
                // Its place takes from those behind it what was free for them.
                let behind = (Bound::Excluded(seat), Bound::Unbounded);
                let idle = self.idle.conflicting(lock, behind);
                self.look.extend(idle);
            }
        }
        match (before, standing) {
            (Standing::LacksPermit, _) => self.leave_line(ticket),
            (_, Standing::LacksPermit) => self.join_line(ticket),
            (Standing::Unseen | Standing::LacksLock, Standing::Unseen | Standing::LacksLock) => {}
        }
        if before != Standing::Unseen {
            // It may reserve less than it did.
            self.look_at_watchers(ticket);
            for key in &needs.limits {
                self.stir(key);
            }
        }
    }

    fn join_line(&mut self, ticket: Ticket) {
        if let Some((claim, waiting)) = self.waiter(ticket) {
            let (line, seat) = (claim.line(waiting), waiting.seat);
            self.lines.entry(line).or_default().insert(seat);
        }
    }

    fn leave_line(&mut self, ticket: Ticket) {
        let Some((claim, waiting)) = self.waiter(ticket) else {
            return;
        };
        let (line, seat) = (claim.line(waiting), waiting.seat);
        let was_first = self.lines.get(&line).and_then(BTreeSet::first) == Some(&seat);
        remove_from(&mut self.lines, &line, &seat);
        if let Some(next) = self.lines.get(&line).and_then(BTreeSet::first).filter(|_| was_first) {
            self.look.insert(*next);
        }
    }

    /// Gives the first of those who need the same permits, unless it is this one.
    pub(super) fn line_mate_before(&self, ticket: Ticket) -> Option<Ticket> {
        let (claim, waiting) = self.waiter(ticket)?;
        let first = self.lines.get(&claim.line(waiting))?.first()?;
        (*first < waiting.seat).then_some(first.ticket)
    }

    fn set_watch(&mut self, ticket: Ticket, watch: Watch) {
        let Some(waiting) = self.waiting_mut(ticket) else {
            return;
        };
        let seat = waiting.seat;
        let before = mem::replace(&mut waiting.watch, watch.clone());
        match before {
            Watch::Nothing => {}
            Watch::Ticket(blocker) => remove_from(&mut self.watchers, &blocker, &ticket),
            Watch::Limit(key) => {
                if let Some(pool) = self.pools.get_mut(&key) {
                    pool.watchers.remove(&seat);
                }
            }
        }
        match watch {
            Watch::Nothing => {}
            Watch::Ticket(blocker) => {
                self.watchers.entry(blocker).or_default().insert(ticket);
            }
            Watch::Limit(key) => {
                self.pools.entry(key).or_default().watchers.insert(seat);
            }
        }
    }

    /// Has those looked at who watch a limit, as far as there is room in it.
    pub(super) fn stir(&mut self, key: &LimitKey) {
        self.stirred.insert(key.clone(), None);
    }

    pub(super) fn look_at_watchers(&mut self, ticket: Ticket) {
        self.look_at_all(self.watchers.get(&ticket).cloned());
    }

    /// Has the waiting descendants of a ticket looked at: what it holds decides whom they pass.
    pub(super) fn look_inside(&mut self, ticket: Ticket) {
        self.look_at_all(self.inside.get(&ticket).cloned());
    }

    fn look_at_all(&mut self, tickets: Option<BTreeSet<Ticket>>) {
        for ticket in tickets.into_iter().flatten() {
            if let Some(seat) = self.waiting_of(ticket).map(|waiting| waiting.seat) {
                self.look.insert(seat);
            }
        }
    }
}

fn remove_from<K: Ord, T: Ord>(sets: &mut BTreeMap<K, BTreeSet<T>>, key: &K, item: &T) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(item);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
