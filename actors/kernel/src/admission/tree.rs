//! All locked or wanted paths, each with a number, its holders and its waiters. Conflicts with a lock are found without
//! a look at the other paths.

use std::collections::BTreeMap;
use std::iter;

use super::claim::Slot;
use super::index::{self, Index};
use super::node::{Level, Lock, Node, Part, Spot};
use super::seat::{Seat, Seats};
use super::slab::Slab;
use super::sorted::Sorted;
use crate::lock::{LockNeed, LockPath};

/// All paths in use, and recently used paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    nodes: Slab<Node>,
    by_path: Index,
    /// The number of paths without a use.
    unused: usize,
}

impl Tree {
    /// The number of paths without a use that are always kept.
    const KEPT: usize = 1024;

    fn find_text(&self, text: &str) -> Option<Spot> {
        let is = |number| self.nodes.get(number).is_some_and(|node| node.path.as_str() == text);
        self.by_path.find(index::of_text(text), is).map(Spot)
    }

    /// Returns the number of a lock, if its path is known.
    pub(super) fn find(&self, need: &LockNeed) -> Option<Lock> {
        let spot = self.find_text(need.path.as_str())?;
        Some(Lock::new(spot, need.mode))
    }

    /// Returns the number of a lock, and adds a use to its path.
    pub(super) fn enter(&mut self, need: &LockNeed) -> Lock {
        let spot = self.spot_of(&need.path);
        let lock = Lock::new(spot, need.mode);
        if lock.is_exclusive() {
            self.keep_below(spot);
        }
        lock
    }

    /// Makes a path keep the claims with a lock under it from now on.
    fn keep_below(&mut self, spot: Spot) {
        let Some(node) = self.nodes.get_mut(spot.0).filter(|node| !node.keeps_below) else {
            return;
        };
        node.keeps_below = true;
        if node.paths.is_empty() {
            return;
        }
        let (held, reserved, idle) = self.below(spot);
        if let Some(node) = self.nodes.get_mut(spot.0) {
            (node.held.below, node.reserved.below, node.idle.below) = (held, reserved, idle);
        }
    }

    /// Returns the holders of locks under a path, and the waiters for them.
    fn below(&self, spot: Spot) -> (Sorted<(Slot, Lock)>, Seats, Seats) {
        let (mut held, mut reserved, mut idle) = (Sorted::default(), Seats::default(), Seats::default());
        let mut next = vec![spot];
        while let Some(upper) = next.pop() {
            let paths = self.node(upper).into_iter().flat_map(|node| &node.paths);
            for path in paths.copied() {
                let Some(node) = self.node(path) else { continue };
                next.push(path);
                node.held.at(path).for_each(|holder| held.insert(holder));
                node.reserved.at().for_each(|seat| reserved.insert(seat));
                node.idle.at().for_each(|seat| idle.insert(seat));
            }
        }
        (held, reserved, idle)
    }

    fn spot_of(&mut self, path: &LockPath) -> Spot {
        if let Some(spot) = self.find_text(path.as_str()) {
            if let Some(node) = self.nodes.get_mut(spot.0) {
                self.unused -= usize::from(node.uses == 0);
                node.uses += 1;
            }
            return spot;
        }
        let above = path.ancestors().next().map(|above| self.spot_of(&above));
        let depth = above
            .and_then(|above| self.node(above))
            .map_or(0, |node| node.depth + 1);
        let number = self.nodes.add(Node::new(path.clone(), above, depth));
        self.by_path.insert(index::of_text(path.as_str()), number);
        if let Some(node) = above.and_then(|above| self.nodes.get_mut(above.0)) {
            node.paths.insert(Spot(number));
        }
        Spot(number)
    }

    /// Removes a use from a path. An unused path is kept for the next claim that names it, until half of all paths are
    /// unused.
    pub(super) fn leave(&mut self, lock: Lock) {
        if let Some(node) = self.nodes.get_mut(lock.spot().0) {
            node.uses -= 1;
            self.unused += usize::from(node.uses == 0);
        }
        if self.unused > Self::KEPT.max(self.nodes.len() / 2) {
            self.sweep();
        }
    }

    /// Drops the unused paths.
    fn sweep(&mut self) {
        let unused: Vec<Spot> = self
            .nodes
            .iter()
            .filter(|(_, node)| node.uses == 0)
            .map(|(number, _)| Spot(number))
            .collect();
        for spot in unused {
            let mut next = Some(spot);
            while let Some(spot) = next.take()
                && let Some(node) = self.nodes.remove(spot.0)
            {
                self.by_path.remove(index::of_text(node.path.as_str()), spot.0);
                if let Some(above) = node.above
                    && let Some(node) = self.nodes.get_mut(above.0)
                {
                    node.paths.remove(&spot);
                    node.uses -= 1;
                    next = (node.uses == 0).then_some(above);
                }
            }
        }
        self.unused = 0;
    }

    fn node(&self, spot: Spot) -> Option<&Node> {
        self.nodes.get(spot.0)
    }

    /// Returns the path of a lock.
    pub(super) fn path(&self, lock: Lock) -> LockPath {
        self.node(lock.spot())
            .map_or_else(|| LockPath::new(""), |node| node.path.clone())
    }

    /// Returns a lock by its path and mode, as callers name it.
    pub(super) fn need(&self, lock: Lock) -> LockNeed {
        LockNeed {
            path: self.path(lock),
            mode: lock.mode(),
        }
    }

    /// Returns a path and the paths above it, nearest first.
    pub(super) fn upwards(&self, spot: Spot) -> impl Iterator<Item = Spot> {
        iter::successors(Some(spot), |spot| self.node(*spot)?.above)
    }

    /// Returns `true` if a lock is exclusive at the path of another lock, or above it.
    pub(super) fn covers(&self, lock: Lock, other: Lock) -> bool {
        lock.is_exclusive() && self.is_within(other.spot(), lock.spot())
    }

    /// Returns `true` if two strangers may not hold these locks at the same time.
    pub(super) fn conflict(&self, one: Lock, other: Lock) -> bool {
        self.covers(one, other) || self.covers(other, one)
    }

    fn is_within(&self, spot: Spot, outer: Spot) -> bool {
        let depth = self.node(outer).map_or(0, |node| node.depth);
        let is_deep = |spot: &Spot| self.node(*spot).is_some_and(|node| node.depth >= depth);
        self.upwards(spot).take_while(is_deep).any(|above| above == outer)
    }

    /// Records that a lock is held.
    pub(super) fn hold(&mut self, lock: Lock, holder: Slot) {
        let mut above = self.nodes.get_mut(lock.spot().0).and_then(|node| {
            if lock.is_exclusive() {
                node.held.exclusive.push(holder);
            } else {
                node.held.shared.insert(holder);
            }
            node.above
        });
        while let Some(node) = above.and_then(|spot| self.nodes.get_mut(spot.0)) {
            if node.keeps_below {
                node.held.below.insert((holder, lock));
            }
            above = node.above;
        }
    }

    /// Records that a lock is no longer held.
    pub(super) fn let_go(&mut self, lock: Lock, holder: Slot) {
        let mut above = self.nodes.get_mut(lock.spot().0).and_then(|node| {
            if lock.is_exclusive() {
                node.held.exclusive.remove(holder);
            } else {
                node.held.shared.remove(holder);
            }
            node.above
        });
        while let Some(node) = above.and_then(|spot| self.nodes.get_mut(spot.0)) {
            if node.keeps_below {
                node.held.below.remove((holder, lock));
            }
            above = node.above;
        }
    }

    /// Returns the first holder of a conflicting lock that is not excused.
    pub(super) fn holder(&self, lock: Lock, is_excused: impl Fn(Slot) -> bool) -> Option<Slot> {
        let mut found = None;
        self.each_holder(lock, |holder| {
            found = Some(holder).filter(|holder| !is_excused(*holder));
            found.is_some()
        });
        found
    }

    /// Passes each holder of a conflicting lock to `is_enough`, until this returns `true`. A holder may be passed more
    /// than once.
    pub(super) fn each_holder(&self, lock: Lock, mut is_enough: impl FnMut(Slot) -> bool) {
        let mut next = self.node(lock.spot());
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
            next = node.above.and_then(|spot| self.node(spot));
        }
    }

    /// Records that a claim waits for a lock.
    pub(super) fn sit(&mut self, part: Part, lock: Lock, seat: Seat) {
        self.seats_up(part, lock, |seats| seats.insert(seat));
    }

    /// Records that a claim no longer waits for a lock.
    pub(super) fn rise(&mut self, part: Part, lock: Lock, seat: Seat) {
        self.seats_up(part, lock, |seats| _ = seats.remove(seat));
    }

    #[inline]
    fn seats_up(&mut self, part: Part, lock: Lock, change: impl Fn(&mut Seats)) {
        let mut next = Some(lock.spot());
        while let Some(spot) = next
            && let Some(node) = self.nodes.get_mut(spot.0)
        {
            if node.keeps_below || spot == lock.spot() {
                change(node.part_mut(part).of(lock, spot));
            }
            next = node.above;
        }
    }

    /// Returns the last place before `bound` of a waiter for a conflicting lock.
    pub(super) fn last_before(&self, part: Part, lock: Lock, bound: Seat) -> Option<Seat> {
        let mut last = None;
        self.each_set(
            lock,
            |_, node| Some(node.part(part)),
            |seats| last = last.max(seats.before(bound)),
        );
        last
    }

    /// Does the same for the waiters at the given paths.
    pub(super) fn last_before_in(&self, levels: &BTreeMap<Spot, Level>, lock: Lock, bound: Seat) -> Option<Seat> {
        let mut last = None;
        self.each_set(
            lock,
            |spot, _| levels.get(&spot),
            |seats| last = last.max(seats.before(bound)),
        );
        last
    }

    /// Adds the waiters for a conflicting lock that arrived before `arrival`.
    pub(super) fn came_before(&self, part: Part, lock: Lock, arrival: u64, who: &mut Vec<Slot>) {
        self.each_set(
            lock,
            |_, node| Some(node.part(part)),
            |seats| seats.came_before(arrival, who),
        );
    }

    /// Does the same for the waiters at the given paths.
    pub(super) fn came_before_in(&self, levels: &BTreeMap<Spot, Level>, lock: Lock, arrival: u64, who: &mut Vec<Slot>) {
        self.each_set(
            lock,
            |spot, _| levels.get(&spot),
            |seats| seats.came_before(arrival, who),
        );
    }

    /// Returns the idle waiters for a conflicting lock: all of them, or only the waiters behind a place.
    pub(super) fn idle(&self, lock: Lock, behind: Option<Seat>) -> Vec<Slot> {
        let mut idle = Vec::new();
        self.each_set(
            lock,
            |_, node| Some(&node.idle),
            |seats| idle.extend(seats.behind(behind).map(|seat| seat.slot)),
        );
        idle
    }

    /// Passes each set of waiters for a conflicting lock to `show`, if it is not empty.
    #[inline]
    fn each_set<'a>(
        &'a self,
        lock: Lock,
        level: impl Fn(Spot, &'a Node) -> Option<&'a Level>,
        mut show: impl FnMut(&'a Seats),
    ) {
        let mut next = Some(lock.spot());
        while let Some(spot) = next
            && let Some(node) = self.node(spot)
        {
            if let Some(level) = level(spot, node) {
                if !level.exclusive.is_empty() {
                    show(&level.exclusive);
                }
                if lock.is_exclusive() && spot == lock.spot() {
                    [&level.shared, &level.below]
                        .into_iter()
                        .filter(|seats| !seats.is_empty())
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
            let above = Some(Spot(number));
            let paths = self.nodes.iter().filter(|(_, node)| node.above == above);
            let (held, reserved, idle) = self.below(Spot(number));
            let is_kept = held.iter().eq(node.held.below.iter())
                && reserved.iter().eq(node.reserved.below.iter())
                && idle.iter().eq(node.idle.below.iter());
            paths.map(|(number, _)| Spot(number)).eq(node.paths.iter().copied()) && (is_kept || !node.keeps_below)
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
