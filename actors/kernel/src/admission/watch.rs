//! What each waiter watches, and which waiters watch each claim.

use std::iter;

use super::Admissions;
use super::claim::{Slot, Watch};
use super::pool::PoolId;

impl Admissions {
    /// Makes the new first waiter of a line watch a limit. A look would find the same while a limit that it needs has
    /// no room.
    pub(super) fn lead_line(&mut self, slot: Slot) {
        let Some(waiting) = self.claims.waiting(slot) else {
            return;
        };
        let is_full = |id: &PoolId| self.pools.get(*id).is_some_and(|pool| !pool.has_room());
        let full = waiting.limits.iter().find(is_full);
        match full {
            Some(id) => self.set_watch(slot, Watch::Limit(id)),
            None => self.list(slot),
        }
    }

    /// Makes a waiter watch a limit, unless another waiter of its line does.
    pub(super) fn watch_limit(&mut self, slot: Slot, id: PoolId) {
        let waiting = self.claims.waiting(slot);
        let first = waiting.and_then(|waiting| self.lines.first(waiting.line?));
        if first.is_none_or(|first| first.slot == slot) {
            self.set_watch(slot, Watch::Limit(id));
        }
    }

    pub(super) fn set_watch(&mut self, slot: Slot, watch: Watch) {
        let Some(waiting) = self.claims.waiting_mut(slot) else {
            return;
        };
        if waiting.watch == watch {
            return;
        }
        let seat = waiting.seat;
        match std::mem::replace(&mut waiting.watch, watch) {
            Watch::Nothing => {}
            Watch::Claim(watched) => self.unhook(slot, watched),
            Watch::Limit(id) => {
                if let Some(pool) = self.pools.get_mut(id) {
                    pool.watchers.remove(seat);
                }
            }
        }
        match watch {
            Watch::Nothing => {}
            Watch::Claim(watched) => self.hook(slot, watched),
            Watch::Limit(id) => {
                if let Some(pool) = self.pools.get_mut(id) {
                    pool.watchers.insert(seat);
                }
            }
        }
    }

    /// Links a waiter before the others that watch the same claim.
    pub(super) fn hook(&mut self, slot: Slot, watched: Slot) {
        let Some(claim) = self.claims.get_mut(watched) else {
            return;
        };
        let later = claim.watcher.replace(slot);
        if let Some(waiting) = later.and_then(|later| self.claims.waiting_mut(later)) {
            waiting.earlier = Some(slot);
        }
        if let Some(waiting) = self.claims.waiting_mut(slot) {
            waiting.later = later;
        }
    }

    pub(super) fn unhook(&mut self, slot: Slot, watched: Slot) {
        let Some(waiting) = self.claims.waiting_mut(slot) else {
            return;
        };
        let (earlier, later) = (waiting.earlier.take(), waiting.later.take());
        if let Some(waiting) = later.and_then(|later| self.claims.waiting_mut(later)) {
            waiting.earlier = earlier;
        }
        if let Some(waiting) = earlier.and_then(|earlier| self.claims.waiting_mut(earlier)) {
            waiting.later = later;
        } else if let Some(claim) = self.claims.get_mut(watched) {
            claim.watcher = later;
        }
    }

    /// Lists all waiters that watch a claim to be looked at. None of them watches it any longer.
    pub(super) fn look_at_watchers(&mut self, slot: Slot) {
        let mut next = self.claims.get_mut(slot).and_then(|claim| claim.watcher.take());
        while let Some(watcher) = next {
            let Some(waiting) = self.claims.waiting_mut(watcher) else {
                return;
            };
            next = waiting.later.take();
            waiting.earlier = None;
            waiting.watch = Watch::Nothing;
            self.list(watcher);
        }
    }

    /// Lists the watching descendants of a claim to be looked at.
    pub(super) fn look_at_watchers_inside(&mut self, slot: Slot) {
        if self.insides.is_empty() {
            return;
        }
        let Some(claim) = self.claims.get(slot) else {
            return;
        };
        let is_inside = |watcher: &Slot| {
            let watcher = self.claims.get(*watcher);
            watcher.is_some_and(|watcher| watcher.within.contains(&claim.id))
        };
        let watchers = iter::successors(claim.watcher, |watcher| self.claims.waiting(*watcher)?.later);
        let inside: Vec<Slot> = watchers.filter(is_inside).collect();
        for watcher in inside {
            self.set_watch(watcher, Watch::Nothing);
            self.list(watcher);
        }
    }

    /// Marks the watchers of the limits that a waiter waits for to be looked at, because it reserves less than before.
    pub(super) fn stir_limits(&mut self, slot: Slot) {
        if let Some(waiting) = self.claims.waiting(slot) {
            waiting.limits.iter().for_each(|id| self.pools.stir(id));
        }
    }
}
