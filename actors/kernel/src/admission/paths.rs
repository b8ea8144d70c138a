//! Who has a lock, or wants one, found by path: whatever conflicts with a need
//! is looked up without looking at the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::lock::{LockMode, LockNeed, LockPath};

/// The entries at one path.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Node<K: Ord> {
    exclusive: BTreeSet<K>,
    shared: BTreeSet<K>,
    /// Those with an entry strictly under this path, and how many each has.
    below: BTreeMap<K, u32>,
}

impl<K: Ord> Node<K> {
    fn is_empty(&self) -> bool {
        self.exclusive.is_empty() && self.shared.is_empty() && self.below.is_empty()
    }
}

/// Entries by path. The keys give the order in which they are found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Paths<K: Ord> {
    nodes: BTreeMap<LockPath, Node<K>>,
}

impl<K: Ord> Default for Paths<K> {
    fn default() -> Self {
        Self { nodes: BTreeMap::new() }
    }
}

impl<K: Ord + Copy> Paths<K> {
    /// Adds the lock of `key`.
    pub(super) fn insert(&mut self, lock: &LockNeed, key: K) {
        self.at(lock.path.as_str(), |node| {
            match lock.mode {
                LockMode::Exclusive => node.exclusive.insert(key),
                LockMode::Shared => node.shared.insert(key),
            };
        });
        for above in lock.path.above() {
            self.at(above, |node| *node.below.entry(key).or_default() += 1);
        }
    }

    /// Takes away the lock of `key`.
    pub(super) fn remove(&mut self, lock: &LockNeed, key: K) {
        self.at(lock.path.as_str(), |node| {
            match lock.mode {
                LockMode::Exclusive => node.exclusive.remove(&key),
                LockMode::Shared => node.shared.remove(&key),
            };
        });
        for above in lock.path.above() {
            self.at(above, |node| {
                if let Some(count) = node.below.get_mut(&key) {
                    *count -= 1;
                    if *count == 0 {
                        node.below.remove(&key);
                    }
                }
            });
        }
    }

    /// Gives the last key before `bound` whose lock conflicts.
    pub(super) fn last_before(&self, lock: &LockNeed, bound: K) -> Option<K> {
        let mut last = None;
        for above in lock.path.above() {
            last = last.max(
                self.exclusive(above)
                    .and_then(|keys| keys.range(..bound).next_back().copied()),
            );
        }
        let Some(node) = self.nodes.get(lock.path.as_str()) else {
            return last;
        };
        last = last.max(node.exclusive.range(..bound).next_back().copied());
        if lock.mode == LockMode::Exclusive {
            last = last.max(node.shared.range(..bound).next_back().copied());
            last = last.max(node.below.range(..bound).next_back().map(|(key, _)| *key));
        }
        last
    }

    /// Gives the keys within the bounds whose lock conflicts. One that
    /// conflicts in several ways comes more than once.
    pub(super) fn conflicting(&self, lock: &LockNeed, bounds: (Bound<K>, Bound<K>)) -> impl Iterator<Item = K> {
        let above = lock.path.above().filter_map(|path| self.exclusive(path));
        let node = self.nodes.get(lock.path.as_str());
        let alone = node.filter(|_| lock.mode == LockMode::Exclusive);
        let at = node.map(|node| &node.exclusive).into_iter();
        let shared = alone.map(|node| &node.shared).into_iter();
        let below = alone.map(|node| node.below.range(bounds)).into_iter().flatten();
        above
            .chain(at)
            .chain(shared)
            .flat_map(move |keys| keys.range(bounds).copied())
            .chain(below.map(|(key, _)| *key))
    }

    fn exclusive(&self, path: &str) -> Option<&BTreeSet<K>> {
        self.nodes.get(path).map(|node| &node.exclusive)
    }

    /// Changes the node of a path; an empty one is not kept.
    fn at(&mut self, path: &str, change: impl FnOnce(&mut Node<K>)) {
        if let Some(node) = self.nodes.get_mut(path) {
            change(node);
            if node.is_empty() {
                self.nodes.remove(path);
            }
            return;
        }
        let mut node = Node {
            exclusive: BTreeSet::new(),
            shared: BTreeSet::new(),
            below: BTreeMap::new(),
        };
        change(&mut node);
        if !node.is_empty() {
            self.nodes.insert(LockPath::new(path), node);
        }
    }
}
