//! What those who wait lack, and who keeps it from them: for the operator, and
//! for the search for deadlocks. Reads only.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{Claim, Waiting};
use super::{Admissions, Blocker, Lacking, LockUse};
use crate::id::{LimitKey, Ticket};
use crate::lock::{LockMode, LockNeed, LockPath};

impl Admissions {
    /// Gives all that a waiting ticket lacks; nothing for one that does not wait.
    ///
    /// For a lock, `by` has those who wait for it in a place before, nearest
    /// first, up to one that itself waits for all the rest, and the holders
    /// only if there is no such one: the chain leads to them. For a permit, one
    /// that needs the same as another before it has that one; else the holders
    /// and those for whom a permit is kept. So the whole is short for a long queue.
    #[must_use]
    pub fn blockers(&self, ticket: Ticket) -> Vec<Blocker> {
        let Some((claim, waiting)) = self.waiter(ticket) else {
            return Vec::new();
        };
        let locks = waiting.needs.locks.iter();
        let for_locks = locks.flat_map(|lock| self.lock_blockers(claim, waiting, lock));
        let permits = waiting.needs.limits.iter();
        let for_permits = permits
            .filter(|key| !self.has_permit_for(waiting, key))
            .map(|key| self.permit_blockers(waiting, key));
        for_locks.chain(for_permits).collect()
    }

    fn lock_blockers(&self, claim: &Claim, waiting: &Waiting, lock: &LockNeed) -> impl Iterator<Item = Blocker> {
        let mut before = Vec::new();
        let mut is_all = false;
        for other in self.places_before(waiting, lock) {
            before.push(other);
            is_all = self.waits_for_all_before(other, lock);
            if is_all {
                break;
            }
        }
        let holders: BTreeSet<Ticket> = if is_all {
            BTreeSet::new()
        } else {
            self.holders_against(claim, waiting, lock).collect()
        };
        let both = [(before, true), (holders.into_iter().collect(), false)];
        let blockers = both.map(|(by, place)| Blocker {
            lacking: Lacking::Lock(lock.path.clone()),
            by,
            any: false,
            place,
        });
        blockers.into_iter().filter(|blocker| !blocker.by.is_empty())
    }

    /// Tells whether a waiter waits for everybody before it who conflicts with
    /// the lock: it wants the path, or one above it, exclusive, and passes nobody.
    fn waits_for_all_before(&self, ticket: Ticket, lock: &LockNeed) -> bool {
        self.waiter(ticket).is_some_and(|(claim, waiting)| {
            let covers = |need: &LockNeed| need.mode == LockMode::Exclusive && need.path.covers(&lock.path);
            claim.within.is_empty() && claim.is_empty_handed() && waiting.needs.locks.iter().any(covers)
        })
    }

    fn permit_blockers(&self, waiting: &Waiting, key: &LimitKey) -> Blocker {
        let by = match self.line_mate_before(waiting.seat.ticket) {
            Some(mate) => vec![mate],
            None => {
                let holders = self.pools.get(key).into_iter().flat_map(|pool| &pool.holders);
                let is_full = self.pools.get(key).is_some_and(|pool| !pool.has_room());
                let guards = self.guards_against(waiting, key).filter(|_| !is_full);
                guards.chain(holders.copied()).collect()
            }
        };
        Blocker {
            lacking: Lacking::Permit(key.clone()),
            by,
            any: true,
            place: false,
        }
    }

    /// Gives every path that is locked or wanted.
    #[must_use]
    pub fn locks(&self) -> Vec<LockUse> {
        let mut uses: BTreeMap<&LockPath, LockUse> = BTreeMap::new();
        for (ticket, claim) in &self.claims {
            for lock in &claim.locks {
                use_of(&mut uses, lock).holders.push((*ticket, lock.mode));
            }
        }
        for ticket in self.waiting() {
            let needs = self.waiting_of(ticket).map(|waiting| &waiting.needs.locks);
            for lock in needs.into_iter().flatten() {
                let waiting = &mut use_of(&mut uses, lock).waiting;
                if waiting.last() != Some(&ticket) {
                    waiting.push(ticket);
                }
            }
        }
        uses.into_values().collect()
    }
}

fn use_of<'a, 'p>(uses: &'a mut BTreeMap<&'p LockPath, LockUse>, lock: &'p LockNeed) -> &'a mut LockUse {
    uses.entry(&lock.path).or_insert_with(|| LockUse {
        path: lock.path.clone(),
        holders: Vec::new(),
        waiting: Vec::new(),
    })
}
