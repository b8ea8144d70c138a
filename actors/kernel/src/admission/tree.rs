//! The paths that anybody locks or wants, each with a number, and who has them
//! or wants them: whatever conflicts with a lock is found without a look at the rest.

use std::collections::BTreeMap;
use std::iter;

use super::claim::Slot;
use super::index::{self, Index};
use super::node::{Level, Lock, Node, Part, Spot};
use super::seat::{Seat, Seats};
use super::slab::Slab;
use super::sorted::Sorted;
use crate::lock::{LockNeed, LockPath};

/// All paths that are in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    nodes: Slab<Node>,
    by_path: Index,
    /// How many of them have no use.
    unused: usize,
}

impl Tree {
    /// Paths without a use that are kept in any case.
    const KEPT: usize = 1024;

    fn find_text(&self, text: &str) -> Option<Spot> {
        let is = |number| self.nodes.get(number).is_some_and(|node| node.path.as_str() == text);
        self.by_path.find(index::of_text(text), is).map(Spot)
    }

    /// Gives the number of a lock's path, if anybody uses it.
    pub(super) fn find(&self, need: &LockNeed) -> Option<Lock> {
        let spot = self.find_text(need.path.as_str())?;
        Some(Lock::new(spot, need.mode))
    }

    /// Gives the number of a lock's path, which then has one use more.
    pub(super) fn enter(&mut self, need: &LockNeed) -> Lock {
        let spot = self.spot_of(&need.path);
        let lock = Lock::new(spot, need.mode);
        if lock.is_exclusive() {
            self.keep_below(spot);
        }
        lock
    }

    /// Has a path keep those with a lock under it from now on.
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

    /// Gives those who hold or wait for a lock under a path.
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

    /// Takes a use from a path. It is kept for the next who names it, until
    /// those that nobody uses are as many as the others.
    pub(super) fn leave(&mut self, lock: Lock) {
        if let Some(node) = self.nodes.get_mut(lock.spot().0) {
            node.uses -= 1;
            self.unused += usize::from(node.uses == 0);
        }
        if self.unused > Self::KEPT.max(self.nodes.len() / 2) {
            self.sweep();
        }
    }

    /// Drops the paths that nobody uses.
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

    /// Gives the path of a lock.
    pub(super) fn path(&self, lock: Lock) -> LockPath {
        self.node(lock.spot())
            .map_or_else(|| LockPath::new(""), |node| node.path.clone())
    }

    /// Gives a lock as others name it.
    pub(super) fn need(&self, lock: Lock) -> LockNeed {
        LockNeed {
            path: self.path(lock),
            mode: lock.mode(),
        }
    }

    /// Gives a path and those above it, nearest first.
    pub(super) fn upwards(&self, spot: Spot) -> impl Iterator<Item = Spot> {
        iter::successors(Some(spot), |spot| self.node(*spot)?.above)
    }

    /// Tells whether a lock is exclusive at the path of another, or above it.
    pub(super) fn covers(&self, lock: Lock, other: Lock) -> bool {
        lock.is_exclusive() && self.is_within(other.spot(), lock.spot())
    }

    /// Tells whether two that are strangers may not hold both at once.
    pub(super) fn conflict(&self, one: Lock, other: Lock) -> bool {
        self.covers(one, other) || self.covers(other, one)
    }

    fn is_within(&self, spot: Spot, outer: Spot) -> bool {
        let depth = self.node(outer).map_or(0, |node| node.depth);
        let is_deep = |spot: &Spot| self.node(*spot).is_some_and(|node| node.depth >= depth);
        self.upwards(spot).take_while(is_deep).any(|above| above == outer)
    }

    /// Notes that a lock is held.
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

    /// Notes that a lock is not held any more.
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

    /// Gives the first who holds what conflicts with a lock and is not excused.
    pub(super) fn holder(&self, lock: Lock, is_excused: impl Fn(Slot) -> bool) -> Option<Slot> {
        let mut found = None;
        self.each_holder(lock, |holder| {
            found = Some(holder).filter(|holder| !is_excused(*holder));
            found.is_some()
        });
        found
    }

    /// Shows those who hold what conflicts with a lock, until told that it is
    /// enough. One may come more than once.
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

    /// Notes that somebody waits for a lock.
    pub(super) fn sit(&mut self, part: Part, lock: Lock, seat: Seat) {
        self.seats_up(part, lock, |seats| seats.insert(seat));
    }

    /// Notes that somebody waits for a lock no more.
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

    /// Gives the last place before `bound` of one who waits for what conflicts with a lock.
    pub(super) fn last_before(&self, part: Part, lock: Lock, bound: Seat) -> Option<Seat> {
        let mut last = None;
        self.each_set(
            lock,
            |_, node| Some(node.part(part)),
            |seats| last = last.max(seats.before(bound)),
        );
        last
    }

    /// The same, of those at the paths given.
    pub(super) fn last_before_in(&self, levels: &BTreeMap<Spot, Level>, lock: Lock, bound: Seat) -> Option<Seat> {
        let mut last = None;
        self.each_set(
            lock,
            |spot, _| levels.get(&spot),
            |seats| last = last.max(seats.before(bound)),
        );
        last
    }

    /// Notes who came before `arrival` and waits for what conflicts with a lock.
    pub(super) fn came_before(&self, part: Part, lock: Lock, arrival: u64, who: &mut Vec<Slot>) {
        self.each_set(
            lock,
            |_, node| Some(node.part(part)),
            |seats| seats.came_before(arrival, who),
        );
    }

    /// The same, of those at the paths given.
    pub(super) fn came_before_in(&self, levels: &BTreeMap<Spot, Level>, lock: Lock, arrival: u64, who: &mut Vec<Slot>) {
        self.each_set(
            lock,
            |spot, _| levels.get(&spot),
            |seats| seats.came_before(arrival, who),
        );
    }

    /// Gives those who are idle, behind a place or all, and wait for what conflicts with a lock.
    pub(super) fn idle(&self, lock: Lock, behind: Option<Seat>) -> Vec<Slot> {
        let mut idle = Vec::new();
        self.each_set(
            lock,
            |_, node| Some(&node.idle),
            |seats| idle.extend(seats.behind(behind).map(|seat| seat.slot)),
        );
        idle
    }

    /// Shows those who wait for what conflicts with a lock, as far as there are any.
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

    /// Tells whether each path knows those one level down, and what it keeps of those under it.
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
