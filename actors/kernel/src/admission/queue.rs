//! The seats of waiters. A waiter takes its seat unseen. Looking at it then decides what its place reserves, and in
//! which line it stands: see `look`.

use super::Admissions;
use super::claim::{Slot, Standing, Watch};
use super::node::Part;

impl Admissions {
    /// Changes what a claim has or wants. A waiting claim leaves its seat meanwhile, because the place where it is
    /// found depends on what is changed.
    pub(super) fn with_seat_left(&mut self, slot: Slot, change: impl FnOnce(&mut Self)) {
        self.leave_seat(slot);
        change(self);
        self.take_seat(slot);
    }

    /// Seats a waiter and lists it to be looked at.
    pub(super) fn take_seat(&mut self, slot: Slot) {
        self.sit_down(slot, Standing::Unseen);
        self.list(slot);
    }

    /// Seats a waiter whose standing is known.
    pub(super) fn sit_down(&mut self, slot: Slot, standing: Standing) {
        let Self {
            claims, pools, insides, ..
        } = self;
        let Some(claim) = claims.get_mut(slot) else {
            return;
        };
        if !claim.is_waiting {
            return;
        }
        let waiting = &mut claim.wish;
        waiting.standing = standing;
        for ancestor in &claim.within {
            insides.enter(*ancestor, slot);
        }
        for id in waiting.limits.iter() {
            let is_own = waiting.kind == Some(id);
            let Some(pool) = pools.get_mut(id) else {
                continue;
            };
            pool.enter(waiting.seat, is_own);
            if is_own && pool.own.first() == Some(waiting.seat) {
                // Until now a permit was kept for another waiter, and different claims may overtake that waiter.
                pools.stir(id);
            }
        }
        self.show_locks(slot, None, Some(standing));
    }

    /// Takes a waiter from its seat. It still waits. The waiters behind it are looked at.
    pub(super) fn leave_seat(&mut self, slot: Slot) {
        let (before, next) = self.get_up(slot);
        if before != Standing::Unseen {
            self.look_at_watchers(slot);
            self.stir_limits(slot);
        }
        if let Some(next) = next {
            self.list(next);
        }
    }

    /// Takes a waiter from its seat and grants it everything it waits for. Its watchers, except its descendants, still
    /// lack what it takes, so they are not looked at.
    pub(super) fn leave_seat_granted(&mut self, slot: Slot) {
        let (before, next) = self.get_up(slot);
        if before != Standing::Unseen {
            self.look_at_watchers_inside(slot);
            self.stir_limits(slot);
        }
        self.grant(slot);
        if let Some(next) = next {
            self.lead_line(next);
        }
    }

    /// Takes a waiter from its seat. Returns its former standing, and the new first waiter of the line that it led.
    pub(super) fn get_up(&mut self, slot: Slot) -> (Standing, Option<Slot>) {
        self.set_watch(slot, Watch::Nothing);
        let Some(waiting) = self.claims.waiting_mut(slot) else {
            return (Standing::Unseen, None);
        };
        let before = std::mem::take(&mut waiting.standing);
        waiting.is_listed = false;
        self.show_locks(slot, Some(before), None);
        let next = self.leave_line(slot);
        let Self {
            claims, pools, insides, ..
        } = self;
        if let Some(claim) = claims.get(slot)
            && let Some(waiting) = claim.waiting()
        {
            for ancestor in &claim.within {
                insides.leave(*ancestor, slot);
            }
            for id in waiting.limits.iter() {
                if let Some(pool) = pools.get_mut(id) {
                    pool.leave(waiting.seat, waiting.kind == Some(id));
                }
            }
        }
        (before, next)
    }

    /// Records what a waiter lacks, with all consequences for the waiters behind it.
    pub(super) fn set_standing(&mut self, slot: Slot, standing: Standing) {
        let Some(waiting) = self.claims.waiting_mut(slot) else {
            return;
        };
        let before = std::mem::replace(&mut waiting.standing, standing);
        if before == standing {
            return;
        }
        self.show_locks(slot, Some(before), Some(standing));
        if let Some(next) = self.leave_line(slot) {
            self.list(next);
        }
        if standing == Standing::LacksPermit {
            self.join_line(slot);
        }
        if before != Standing::Unseen {
            self.look_at_watchers(slot);
            self.stir_limits(slot);
        }
    }

    /// Updates on each path what the waiter's place reserves there, from a former place or standing to the present one.
    pub(super) fn show_locks(&mut self, slot: Slot, before: Option<Standing>, now: Option<Standing>) {
        let Self {
            claims, tree, insides, ..
        } = self;
        let Some(claim) = claims.get(slot) else {
            return;
        };
        let Some(waiting) = claim.waiting() else {
            return;
        };
        if waiting.locks.is_empty() {
            return;
        }
        let seat = waiting.seat;
        let reserves = |standing: Option<Standing>| standing.is_some_and(|standing| standing.reserves_locks(seat));
        let is_idle = |standing: Option<Standing>| standing.is_some_and(Standing::is_idle);
        let changes = [
            (Part::Reserved, reserves(before), reserves(now)),
            (Part::Idle, is_idle(before), is_idle(now)),
        ];
        for (part, was_there, is_there) in changes {
            if was_there == is_there {
                continue;
            }
            for lock in waiting.locks.iter() {
                if is_there {
                    tree.sit(part, lock, seat);
                    claim
                        .within
                        .iter()
                        .for_each(|kin| insides.sit(*kin, tree, part, lock, seat));
                } else {
                    tree.rise(part, lock, seat);
                    claim
                        .within
                        .iter()
                        .for_each(|kin| insides.rise(*kin, tree, part, lock, seat));
                }
            }
        }
        if reserves(now) {
            // The place reserves locks that were free for the waiters behind it.
            for lock in waiting.locks.clone().iter() {
                self.look_at_idle(lock, Some(seat));
            }
        }
    }

    pub(super) fn join_line(&mut self, slot: Slot) {
        let Self { claims, lines, .. } = self;
        let line = claims.get(slot).and_then(|claim| {
            let waiting = claim.waiting()?;
            Some(lines.join(claim, waiting))
        });
        if let Some(waiting) = claims.waiting_mut(slot) {
            waiting.line = line;
        }
    }

    /// Takes a waiter off its line. Returns the next waiter if this was the first.
    pub(super) fn leave_line(&mut self, slot: Slot) -> Option<Slot> {
        let waiting = self.claims.waiting_mut(slot)?;
        let seat = waiting.seat;
        let line = waiting.line.take()?;
        self.lines.leave(line, seat).map(|next| next.slot)
    }
}
