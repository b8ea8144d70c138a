//! The waiting descendants of each claim, and what they wait for. An exclusive holder of a path keeps strangers out of
//! it, so there only its descendants affect each other.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::ClaimSlot;
use super::hash_index::{self, HashIndex};
use super::path_node::{LockId, PathId, PathWaiters, WaiterClass};
use super::queue_position::QueuePosition;
use super::slab::Slab;
use super::tree::Tree;
use crate::id::ClaimId;

/// The waiting descendants of one claim.
#[derive(Clone, Debug)]
pub(super) struct NestedWaiters {
    ancestor: ClaimId,
    pub(super) waiting: BTreeSet<ClaimSlot>,
    reserved: BTreeMap<PathId, PathWaiters>,
    idle: BTreeMap<PathId, PathWaiters>,
    due: BTreeMap<PathId, PathWaiters>,
}

impl NestedWaiters {
    pub(super) const fn waiters(&self, class: WaiterClass) -> &BTreeMap<PathId, PathWaiters> {
        match class {
            WaiterClass::Reserved => &self.reserved,
            WaiterClass::Idle => &self.idle,
            WaiterClass::Due => &self.due,
        }
    }

    const fn waiters_mut(&mut self, class: WaiterClass) -> &mut BTreeMap<PathId, PathWaiters> {
        match class {
            WaiterClass::Reserved => &mut self.reserved,
            WaiterClass::Idle => &mut self.idle,
            WaiterClass::Due => &mut self.due,
        }
    }
}

/// The waiting descendants of all claims that have any.
#[derive(Clone, Debug, Default)]
pub(super) struct NestedIndex {
    all: Slab<NestedWaiters>,
    by_ancestor: HashIndex,
}

impl NestedIndex {
    fn find(&self, ancestor: ClaimId) -> Option<u32> {
        let is = |number| self.all.get(number).is_some_and(|nested| nested.ancestor == ancestor);
        self.by_ancestor.find(hash_index::of_number(ancestor.0), is)
    }

    /// Returns the waiting descendants of a claim.
    pub(super) fn of(&self, ancestor: ClaimId) -> Option<&NestedWaiters> {
        self.all.get(self.find(ancestor)?)
    }

    fn of_mut(&mut self, ancestor: ClaimId) -> Option<&mut NestedWaiters> {
        self.all.get_mut(self.find(ancestor)?)
    }

    /// Records that a descendant of a claim waits.
    pub(super) fn enter(&mut self, ancestor: ClaimId, slot: ClaimSlot) {
        if self.find(ancestor).is_none() {
            let number = self.all.add(NestedWaiters {
                ancestor,
                waiting: BTreeSet::new(),
                reserved: BTreeMap::new(),
                idle: BTreeMap::new(),
                due: BTreeMap::new(),
            });
            self.by_ancestor.insert(hash_index::of_number(ancestor.0), number);
        }
        if let Some(nested) = self.of_mut(ancestor) {
            nested.waiting.insert(slot);
        }
    }

    /// Records that a descendant of a claim no longer waits.
    pub(super) fn leave(&mut self, ancestor: ClaimId, slot: ClaimSlot) {
        let Some(number) = self.find(ancestor) else {
            return;
        };
        let is_empty = self.all.get_mut(number).is_some_and(|nested| {
            nested.waiting.remove(&slot);
            nested.waiting.is_empty()
        });
        if is_empty {
            self.all.remove(number);
            self.by_ancestor.remove(hash_index::of_number(ancestor.0), number);
        }
    }

    /// Records that a descendant of a claim waits for a lock.
    pub(super) fn add_waiter(
        &mut self,
        ancestor: ClaimId,
        tree: &Tree,
        class: WaiterClass,
        lock: LockId,
        position: QueuePosition,
    ) {
        let Some(nested) = self.of_mut(ancestor) else {
            return;
        };
        let waiters_by_path = nested.waiters_mut(class);
        for path_id in tree.upwards(lock.path_id()) {
            waiters_by_path
                .entry(path_id)
                .or_default()
                .of(lock, path_id)
                .insert(position);
        }
    }

    /// Records that a descendant of a claim no longer waits for a lock.
    pub(super) fn remove_waiter(
        &mut self,
        ancestor: ClaimId,
        tree: &Tree,
        class: WaiterClass,
        lock: LockId,
        position: QueuePosition,
    ) {
        let Some(nested) = self.of_mut(ancestor) else {
            return;
        };
        let waiters_by_path = nested.waiters_mut(class);
        for path_id in tree.upwards(lock.path_id()) {
            if let Some(waiters) = waiters_by_path.get_mut(&path_id) {
                waiters.of(lock, path_id).remove(position);
                if waiters.is_empty() {
                    waiters_by_path.remove(&path_id);
                }
            }
        }
    }

    /// Returns `true` if no claim has a waiting descendant.
    pub(super) fn is_empty(&self) -> bool {
        self.all.len() == 0
    }
}
