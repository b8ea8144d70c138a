//! All locked or wanted paths, each with a number, its holders and its waiters. Conflicts with a lock are found without
//! reading the other paths.

use std::collections::BTreeMap;
use std::iter;

use super::claim::ClaimSlot;
use super::hash_index::{self, HashIndex};
use super::path_node::{LockId, PathId, PathNode, PathWaiters, WaiterClass};
use super::queue_position::{PositionSet, QueuePosition};
use super::slab::Slab;
use super::sorted_deque::SortedDeque;
use crate::lock::{LockNeed, LockPath};

/// All paths in use, and recently used paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    nodes: Slab<PathNode>,
    by_path: HashIndex,
    /// The number of paths without a use.
    unused: usize,
}

impl Tree {
    /// The number of paths without a use that are always kept.
    const KEPT: usize = 1024;

    fn find_text(&self, text: &str) -> Option<PathId> {
        let is = |number| self.nodes.get(number).is_some_and(|node| node.path.as_str() == text);
        self.by_path.find(hash_index::of_text(text), is).map(PathId)
    }

    /// Returns the number of a lock, if its path is known.
    pub(super) fn find(&self, need: &LockNeed) -> Option<LockId> {
        let path_id = self.find_text(need.path.as_str())?;
        Some(LockId::new(path_id, need.mode))
    }

    /// Returns the number of a lock, and adds a use to its path.
    pub(super) fn enter(&mut self, need: &LockNeed) -> LockId {
        let path_id = self.path_id_of(&need.path);
        let lock = LockId::new(path_id, need.mode);
        if lock.is_exclusive() {
            self.keep_below(path_id);
        }
        lock
    }

    /// Makes a path keep the claims with a lock under it from now on.
    fn keep_below(&mut self, path_id: PathId) {
        let Some(node) = self.nodes.get_mut(path_id.0).filter(|node| !node.keeps_below) else {
            return;
        };
        node.keeps_below = true;
        if node.paths.is_empty() {
            return;
        }
        let (held, waiters) = self.below(path_id);
        if let Some(node) = self.nodes.get_mut(path_id.0) {
            node.held.below = held;
            for (class, positions) in WaiterClass::ALL.into_iter().zip(waiters) {
                node.waiters_mut(class).below = positions;
            }
        }
    }

    /// Returns the holders of locks under a path, and the waiters for them: a set for each class.
    fn below(&self, path_id: PathId) -> (SortedDeque<(ClaimSlot, LockId)>, [PositionSet; 3]) {
        let mut held = SortedDeque::default();
        let mut waiters = WaiterClass::ALL.map(|_| PositionSet::default());
        let mut next = vec![path_id];
        while let Some(upper) = next.pop() {
            let paths = self.node(upper).into_iter().flat_map(|node| &node.paths);
            for path in paths.copied() {
                let Some(node) = self.node(path) else { continue };
                next.push(path);
                node.held.at(path).for_each(|holder| held.insert(holder));
                for (class, positions) in WaiterClass::ALL.into_iter().zip(&mut waiters) {
                    node.waiters(class).at().for_each(|position| positions.insert(position));
                }
            }
        }
        (held, waiters)
    }

    fn path_id_of(&mut self, path: &LockPath) -> PathId {
        if let Some(path_id) = self.find_text(path.as_str()) {
            if let Some(node) = self.nodes.get_mut(path_id.0) {
                self.unused -= usize::from(node.uses == 0);
                node.uses += 1;
            }
            return path_id;
        }
        let above = path.ancestors().next().map(|above| self.path_id_of(&above));
        let depth = above
            .and_then(|above| self.node(above))
            .map_or(0, |node| node.depth + 1);
        let number = self.nodes.add(PathNode::new(path.clone(), above, depth));
        self.by_path.insert(hash_index::of_text(path.as_str()), number);
        if let Some(node) = above.and_then(|above| self.nodes.get_mut(above.0)) {
            node.paths.insert(PathId(number));
        }
        PathId(number)
    }

    /// Removes a use from a path. An unused path is kept for the next claim that names it, until half of all paths are
    /// unused.
    pub(super) fn leave(&mut self, lock: LockId) {
        if let Some(node) = self.nodes.get_mut(lock.path_id().0) {
            node.uses -= 1;
            self.unused += usize::from(node.uses == 0);
        }
        if self.unused > Self::KEPT.max(self.nodes.len() / 2) {
            self.sweep();
        }
    }

    /// Drops the unused paths.
    fn sweep(&mut self) {
        let unused: Vec<PathId> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.uses == 0)
            .map(|(number, _)| PathId(number))
            .collect();
        for path_id in unused {
            let mut next = Some(path_id);
            while let Some(path_id) = next.take()
                && let Some(node) = self.nodes.remove(path_id.0)
            {
                self.by_path.remove(hash_index::of_text(node.path.as_str()), path_id.0);
                if let Some(above) = node.above
                    && let Some(node) = self.nodes.get_mut(above.0)
                {
                    node.paths.remove(&path_id);
                    node.uses -= 1;
                    next = (node.uses == 0).then_some(above);
                }
            }
        }
        self.unused = 0;
    }

    fn node(&self, path_id: PathId) -> Option<&PathNode> {
        self.nodes.get(path_id.0)
    }

    /// Returns the path of a lock.
    pub(super) fn path(&self, lock: LockId) -> LockPath {
        self.node(lock.path_id())
            .map_or_else(|| LockPath::parse(""), |node| node.path.clone())
    }

    /// Returns a lock by its path and mode, as callers name it.
    pub(super) fn need(&self, lock: LockId) -> LockNeed {
        LockNeed {
            path: self.path(lock),
            mode: lock.mode(),
        }
    }

    /// Returns a path and the paths above it, nearest first.
    pub(super) fn upwards(&self, path_id: PathId) -> impl Iterator<Item = PathId> {
        iter::successors(Some(path_id), |path_id| self.node(*path_id)?.above)
    }

    /// Returns `true` if a lock is exclusive at the path of another lock, or above it.
    pub(super) fn covers(&self, lock: LockId, other: LockId) -> bool {
        lock.is_exclusive() && self.is_within(other.path_id(), lock.path_id())
    }

    /// Returns `true` if two strangers may not hold these locks at the same time.
    pub(super) fn conflict(&self, one: LockId, other: LockId) -> bool {
        self.covers(one, other) || self.covers(other, one)
    }

    fn is_within(&self, path_id: PathId, outer: PathId) -> bool {
        let depth = self.node(outer).map_or(0, |node| node.depth);
        let is_deep = |path_id: &PathId| self.node(*path_id).is_some_and(|node| node.depth >= depth);
        self.upwards(path_id).take_while(is_deep).any(|above| above == outer)
    }

    /// Records that a lock is held.
    pub(super) fn hold(&mut self, lock: LockId, holder: ClaimSlot) {
        let mut above = self.nodes.get_mut(lock.path_id().0).and_then(|node| {
            if lock.is_exclusive() {
                node.held.exclusive.push(holder);
            } else {
                node.held.shared.insert(holder);
            }
            node.above
        });
        while let Some(node) = above.and_then(|path_id| self.nodes.get_mut(path_id.0)) {
            if node.keeps_below {
                node.held.below.insert((holder, lock));
            }
            above = node.above;
        }
    }

    /// Records that a lock is no longer held.
    pub(super) fn let_go(&mut self, lock: LockId, holder: ClaimSlot) {
        let mut above = self.nodes.get_mut(lock.path_id().0).and_then(|node| {
            if lock.is_exclusive() {
                node.held.exclusive.remove(holder);
            } else {
                node.held.shared.remove(holder);
            }
            node.above
        });
        while let Some(node) = above.and_then(|path_id| self.nodes.get_mut(path_id.0)) {
            if node.keeps_below {
                node.held.below.remove((holder, lock));
            }
            above = node.above;
        }
    }

    /// Returns the first holder of a conflicting lock that is not excused.
    pub(super) fn holder(&self, lock: LockId, is_excused: impl Fn(ClaimSlot) -> bool) -> Option<ClaimSlot> {
        let mut found = None;
        self.each_holder(lock, |holder| {
            found = Some(holder).filter(|holder| !is_excused(*holder));
            found.is_some()
        });
        found
    }

    /// Passes each holder of a conflicting lock to `is_enough`, until this returns `true`. A holder may be passed more
    /// than once.
    pub(super) fn each_holder(&self, lock: LockId, mut is_enough: impl FnMut(ClaimSlot) -> bool) {
        let mut next = self.node(lock.path_id());
        if let Some(node) = next.filter(|_| lock.is_exclusive()) {
            let held = &node.held;
            if !held.shared.is_empty() && held.shared.iter().any(&mut is_enough) {
                return;
            }
            if !held.below.is_empty() && held.below.iter().any(|(holder, _)| is_enough(holder)) {
                return;
            }
        }
        while let Some(node) = next {
            if node.held.exclusive.iter().any(&mut is_enough) {
                return;
            }
            next = node.above.and_then(|path_id| self.node(path_id));
        }
    }

    /// Records that a claim waits for a lock.
    pub(super) fn add_waiter(&mut self, class: WaiterClass, lock: LockId, position: QueuePosition) {
        self.each_set_upwards(class, lock, |positions| positions.insert(position));
    }

    /// Records that a claim no longer waits for a lock.
    pub(super) fn remove_waiter(&mut self, class: WaiterClass, lock: LockId, position: QueuePosition) {
        self.each_set_upwards(class, lock, |positions| _ = positions.remove(position));
    }

    #[inline]
    fn each_set_upwards(&mut self, class: WaiterClass, lock: LockId, change: impl Fn(&mut PositionSet)) {
        let mut next = Some(lock.path_id());
        while let Some(path_id) = next
            && let Some(node) = self.nodes.get_mut(path_id.0)
        {
            if node.keeps_below || path_id == lock.path_id() {
                change(node.waiters_mut(class).of(lock, path_id));
            }
            next = node.above;
        }
    }

    /// Returns the last position before `bound` of a waiter for a conflicting lock.
    pub(super) fn last_before(&self, class: WaiterClass, lock: LockId, bound: QueuePosition) -> Option<QueuePosition> {
        let mut last = None;
        self.each_set(
            lock,
            |_, node| Some(node.waiters(class)),
            |positions| last = last.max(positions.before(bound)),
        );
        last
    }

    /// Does the same for the waiters at the given paths.
    pub(super) fn last_before_in(
        &self,
        waiters_by_path: &BTreeMap<PathId, PathWaiters>,
        lock: LockId,
        bound: QueuePosition,
    ) -> Option<QueuePosition> {
        let mut last = None;
        self.each_set(
            lock,
            |path_id, _| waiters_by_path.get(&path_id),
            |positions| last = last.max(positions.before(bound)),
        );
        last
    }

    /// Adds the waiters for a conflicting lock that arrived before `arrival`.
    pub(super) fn arrived_before(&self, class: WaiterClass, lock: LockId, arrival: u64, waiters: &mut Vec<ClaimSlot>) {
        self.each_set(
            lock,
            |_, node| Some(node.waiters(class)),
            |positions| positions.arrived_before(arrival, waiters),
        );
    }

    /// Does the same for the waiters at the given paths.
    pub(super) fn arrived_before_in(
        &self,
        waiters_by_path: &BTreeMap<PathId, PathWaiters>,
        lock: LockId,
        arrival: u64,
        waiters: &mut Vec<ClaimSlot>,
    ) {
        self.each_set(
            lock,
            |path_id, _| waiters_by_path.get(&path_id),
            |positions| positions.arrived_before(arrival, waiters),
        );
    }

    /// Returns the idle waiters for a conflicting lock: all of them, or only the waiters behind a position. Those to be
    /// rechecked anyway are not among them.
    pub(super) fn idle(&self, lock: LockId, behind: Option<QueuePosition>) -> Vec<ClaimSlot> {
        let mut idle = Vec::new();
        self.each_set(
            lock,
            |_, node| Some(&node.idle),
            |positions| idle.extend(positions.behind(behind).map(|position| position.slot)),
        );
        idle
    }

    /// Passes each set of waiters for a conflicting lock to `show`, if it is not empty.
    #[inline]
    fn each_set<'a>(
        &'a self,
        lock: LockId,
        waiters: impl Fn(PathId, &'a PathNode) -> Option<&'a PathWaiters>,
        mut show: impl FnMut(&'a PositionSet),
    ) {
        let mut next = Some(lock.path_id());
        while let Some(path_id) = next
            && let Some(node) = self.node(path_id)
        {
            if let Some(waiters) = waiters(path_id, node) {
                if !waiters.exclusive.is_empty() {
                    show(&waiters.exclusive);
                }
                if lock.is_exclusive() && path_id == lock.path_id() {
                    [&waiters.shared, &waiters.below]
                        .into_iter()
                        .filter(|positions| !positions.is_empty())
                        .for_each(&mut show);
                }
            }
            next = node.above;
        }
    }

    /// Returns `true` if each path knows the paths one level down, and the claims under it that it keeps.
    #[cfg(test)]
    pub(super) fn is_sound(&self) -> bool {
        self.nodes.iter().all(|(number, node)| {
            let above = Some(PathId(number));
            let paths = self.nodes.iter().filter(|(_, node)| node.above == above);
            let (held, waiters) = self.below(PathId(number));
            let mut by_class = WaiterClass::ALL.into_iter().zip(&waiters);
            let is_kept = held.iter().eq(node.held.below.iter())
                && by_class.all(|(class, positions)| positions.iter().eq(node.waiters(class).below.iter()));
            paths.map(|(number, _)| PathId(number)).eq(node.paths.iter().copied()) && (is_kept || !node.keeps_below)
        })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        let mut swept = self.clone();
        swept.sweep();
        swept.nodes.len() == 0
    }
}
