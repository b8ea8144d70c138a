//! What waiters lack, and which claims keep it from them. Serves the operator and the search for deadlocks. Changes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::{ClaimSlot, ClaimState, PendingRequest};
use super::limit::LimitId;
use super::path_node::LockId;
use super::{Admissions, Blocker, Lacking, LockUse, Missing};
use crate::id::{ClaimId, Timestamp};
use crate::lock::{LockMode, LockNeed, LockPath};

impl Admissions {
    /// Returns everything that a waiting claim lacks. Empty if the claim does not wait.
    ///
    /// For a lock, `by` lists the claims that wait for it in an earlier place, nearest first. The list ends at the
    /// first claim that itself waits for all earlier claims. The holders are listed only if there is no such claim,
    /// because otherwise the chain leads to them. Claims that may not be overtaken any more are listed separately: they
    /// keep their places even if they lack only permits.
    ///
    /// For a permit, `by` names an earlier waiter with the same needs, if there is any. Otherwise it lists the holders
    /// and the waiters for which a permit is kept, or nobody if a rate allows more in time. So the result stays short
    /// even if the queue is long.
    #[must_use]
    pub fn blockers(&self, claim_id: ClaimId) -> Vec<Blocker> {
        let Some(slot) = self.claims.find(claim_id) else {
            return Vec::new();
        };
        let Some((claim, waiting)) = self.waiter(slot) else {
            return Vec::new();
        };
        let locks = waiting.locks.iter();
        let for_locks = locks.flat_map(|lock| self.lock_blockers(slot, claim, waiting, lock));
        let permits = waiting.limits.iter();
        let for_permits = permits
            .filter(|id| !self.has_permit_for(slot, claim, waiting, *id))
            .filter_map(|id| self.permit_blockers(slot, claim, waiting, id));
        for_locks.chain(for_permits).collect()
    }

    fn lock_blockers(
        &self,
        slot: ClaimSlot,
        claim: &ClaimState,
        waiting: &PendingRequest,
        lock: LockId,
    ) -> impl Iterator<Item = Blocker> {
        let (mut before, mut at_bound) = (Vec::new(), Vec::new());
        let mut is_all = false;
        for other in self.positions_before(slot, claim, waiting, lock) {
            let group = match self.reserves_without_lock(slot, claim, other) {
                true => &mut at_bound,
                false => &mut before,
            };
            group.extend(self.claims.id_of(other));
            is_all = self.waits_for_all_before(other, lock);
            if is_all {
                break;
            }
        }
        let holders = match is_all {
            true => BTreeSet::new(),
            false => self.holders(slot, claim, lock),
        };
        let groups = [
            (before, true),
            (at_bound, false),
            (holders.into_iter().collect(), false),
        ];
        let blockers = groups.map(|(by, queued_ahead)| Blocker {
            lacking: Lacking::Lock(self.tree.path(lock)),
            by,
            any: false,
            queued_ahead,
            at: None,
        });
        blockers.into_iter().filter(|blocker| !blocker.by.is_empty())
    }

    /// Returns the claims that hold a lock conflicting with this one, except the claim itself and its ancestors.
    fn holders(&self, slot: ClaimSlot, claim: &ClaimState, lock: LockId) -> BTreeSet<ClaimId> {
        let mut holders = BTreeSet::new();
        self.tree.each_holder(lock, |holder| {
            let is_kin = self.is_kin(holder, slot, claim);
            holders.extend(self.claims.id_of(holder).filter(|_| !is_kin));
            false
        });
        holders
    }

    /// Returns the details of one thing that a waiting claim lacks. Prefers the thing in `told`, the answer to its
    /// request, if the claim still lacks it. Otherwise returns the first thing in its way, or `None` if nothing is.
    #[must_use]
    pub fn missing(&self, claim_id: ClaimId, told: &Lacking) -> Option<Missing> {
        let slot = self.claims.find(claim_id)?;
        let (claim, waiting) = self.waiter(slot)?;
        let blockers = self.blockers(claim_id);
        let mut lacks = blockers.iter().map(|blocker| &blocker.lacking);
        let lacking = lacks
            .clone()
            .find(|lacking| *lacking == told)
            .or_else(|| lacks.next())?;
        match lacking {
            Lacking::Lock(path) => {
                let lock = waiting.locks.iter().find(|lock| self.tree.path(*lock) == *path)?;
                let holders = self.holders(slot, claim, lock);
                Some(Missing::Lock(self.tree.need(lock), holders.into_iter().collect()))
            }
            Lacking::Permit(key) => {
                let id = self.limits.find(key)?;
                waiting.limits.iter().find(|limit| *limit == id)?;
                self.usage_of(key).map(Missing::Permit)
            }
        }
    }

    /// Returns `true` if a waiter waits for every earlier claim that conflicts with the lock. Such a waiter wants the
    /// path, or a path above it, exclusively, and overtakes no other waiter.
    fn waits_for_all_before(&self, slot: ClaimSlot, lock: LockId) -> bool {
        self.waiter(slot).is_some_and(|(claim, waiting)| {
            let covers = |need: LockId| self.tree.covers(need, lock);
            claim.within.is_empty() && claim.is_empty_handed() && waiting.locks.iter().any(covers)
        })
    }

    fn permit_blockers(
        &self,
        slot: ClaimSlot,
        claim: &ClaimState,
        waiting: &PendingRequest,
        id: LimitId,
    ) -> Option<Blocker> {
        let limit = self.limits.get(id)?;
        let mate = self
            .permit_queues
            .first_like(claim, waiting)
            .filter(|first| *first < waiting.position);
        let (by, at) = match mate {
            Some(mate) => (self.claims.id_of(mate.slot).into_iter().collect(), None),
            None => self.holders_and_guards(slot, claim, waiting, id),
        };
        Some(Blocker {
            lacking: Lacking::Permit(limit.key.clone()),
            by,
            any: true,
            queued_ahead: false,
            at,
        })
    }

    /// Returns the claims of which one must move before a waiter gets a permit. Returns no claims, but when its rate
    /// allows more, if the time alone helps: no holder of a permit can give a begin back.
    fn holders_and_guards(
        &self,
        slot: ClaimSlot,
        claim: &ClaimState,
        waiting: &PendingRequest,
        id: LimitId,
    ) -> (Vec<ClaimId>, Option<Timestamp>) {
        let Some(limit) = self.limits.get(id) else {
            return (Vec::new(), None);
        };
        let guards = self
            .guards_against(slot, claim, waiting, id)
            .filter(|_| limit.has_room());
        let mut by: Vec<ClaimId> = guards.filter_map(|guard| self.claims.id_of(guard)).collect();
        let wanted = 1 + u32::from(!by.is_empty());
        if limit.lacks_permits(wanted) {
            by.extend(limit.holders.iter());
        } else if limit.lacks_time(wanted) {
            return (Vec::new(), limit.more_at());
        }
        (by, None)
    }

    /// Returns every path that is locked or wanted.
    #[must_use]
    pub fn locks(&self) -> Vec<LockUse> {
        let mut uses: BTreeMap<LockPath, LockUse> = BTreeMap::new();
        let mut holders: Vec<&ClaimState> = self.claims.iter().filter(|claim| !claim.locks.is_empty()).collect();
        holders.sort_unstable_by_key(|claim| claim.id);
        for claim in holders {
            let mut locks: Vec<LockNeed> = claim.locks.iter().map(|lock| self.tree.need(lock)).collect();
            locks.sort_unstable();
            for lock in locks {
                let mode = lock.mode;
                use_of(&mut uses, lock.path).holders.push((claim.id, mode));
            }
        }
        for claim_id in self.waiting() {
            let waiting = self.waiting_of(claim_id);
            for lock in waiting.into_iter().flat_map(|waiting| waiting.locks.iter()) {
                let waiting = &mut use_of(&mut uses, self.tree.path(lock)).waiting;
                match waiting.last_mut().filter(|(last, _)| *last == claim_id) {
                    // The claim wants the path in both modes: the stronger one counts.
                    Some((_, mode)) if lock.is_exclusive() => *mode = LockMode::Exclusive,
                    Some(_) => {}
                    None => waiting.push((claim_id, lock.mode())),
                }
            }
        }
        uses.into_values().collect()
    }
}

fn use_of(uses: &mut BTreeMap<LockPath, LockUse>, path: LockPath) -> &mut LockUse {
    uses.entry(path.clone()).or_insert_with(|| LockUse {
        path,
        holders: Vec::new(),
        waiting: Vec::new(),
    })
}
