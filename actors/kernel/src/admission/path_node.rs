//! One path of the tree, with the claims that hold or await a lock on it or under it.

use std::collections::BTreeSet;
use std::iter;

use super::claim::ClaimSlot;
use super::inline_list::InlineList;
use super::queue_position::{PositionSet, QueuePosition};
use super::sorted_deque::SortedDeque;
use crate::lock::{LockMode, LockPath};

/// The number of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PathId(pub(super) u32);

/// A lock as a number: twice the number of its path, plus one if it is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LockId(u32);

impl LockId {
    pub(super) const fn new(path_id: PathId, mode: LockMode) -> Self {
        match mode {
            LockMode::Shared => Self(path_id.0 * 2),
            LockMode::Exclusive => Self(path_id.0 * 2 + 1),
        }
    }

    #[inline]
    pub(super) const fn path_id(self) -> PathId {
        PathId(self.0 / 2)
    }

    #[inline]
    pub(super) const fn is_exclusive(self) -> bool {
        self.0 % 2 == 1
    }

    pub(super) const fn mode(self) -> LockMode {
        if self.is_exclusive() {
            LockMode::Exclusive
        } else {
            LockMode::Shared
        }
    }
}

/// The waiters at one path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathWaiters {
    pub(super) exclusive: PositionSet,
    pub(super) shared: PositionSet,
    /// The waiters for a lock strictly under this path, if the path keeps them.
    pub(super) below: PositionSet,
}

impl PathWaiters {
    pub(super) fn is_empty(&self) -> bool {
        self.exclusive.is_empty() && self.shared.is_empty() && self.below.is_empty()
    }

    /// Returns the waiters for a lock on the path itself.
    pub(super) fn at(&self) -> impl Iterator<Item = QueuePosition> {
        self.exclusive.iter().chain(self.shared.iter())
    }

    pub(super) fn of(&mut self, lock: LockId, path_id: PathId) -> &mut PositionSet {
        if lock.path_id() != path_id {
            &mut self.below
        } else if lock.is_exclusive() {
            &mut self.exclusive
        } else {
            &mut self.shared
        }
    }
}

/// The claims that hold something at one path.
#[derive(Clone, Debug, Default)]
pub(super) struct PathHolders {
    /// One holder, or several holders that are within each other.
    pub(super) exclusive: InlineList<ClaimSlot, 4>,
    pub(super) shared: SortedDeque<ClaimSlot>,
    /// The holders of a lock strictly under this path, once for each lock, if the path keeps them.
    pub(super) below: SortedDeque<(ClaimSlot, LockId)>,
}

impl PathHolders {
    /// Returns the holders of a lock on the path itself, each with its lock.
    pub(super) fn at(&self, path_id: PathId) -> impl Iterator<Item = (ClaimSlot, LockId)> {
        let exclusive = self.exclusive.iter().zip(iter::repeat(LockMode::Exclusive));
        let shared = self.shared.iter().zip(iter::repeat(LockMode::Shared));
        let all = exclusive.chain(shared);
        all.map(move |(holder, mode)| (holder, LockId::new(path_id, mode)))
    }
}

/// Which waiters a set contains. Each waiter for a lock is in at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaiterClass {
    /// The waiters whose place reserves locks.
    Reserved,
    /// The waiters that lack no lock, as far as is known, and that are not scheduled for a recheck.
    Idle,
    /// The waiters that lack no lock, as far as is known, and are to be rechecked. They are kept apart, so that a search
    /// for idle waiters finds each once, however many waiters before it come to reserve the lock.
    Due,
}

impl WaiterClass {
    pub(super) const ALL: [Self; 3] = [Self::Reserved, Self::Idle, Self::Due];
}

/// One path.
#[derive(Clone, Debug)]
pub(super) struct PathNode {
    /// The path one level up. The root of the tree has none.
    pub(super) above: Option<PathId>,
    /// The paths one level down.
    pub(super) paths: BTreeSet<PathId>,
    pub(super) depth: u32,
    /// The number of locks held or awaited here, plus the number of paths one level down.
    pub(super) uses: u32,
    /// `true` if the path keeps sets of the claims with a lock under it. Only an exclusive request for the path reads
    /// these sets, so they are kept from the first such request on. Most paths with many claims under them never need
    /// them.
    pub(super) keeps_below: bool,
    pub(super) held: PathHolders,
    pub(super) reserved: PathWaiters,
    pub(super) idle: PathWaiters,
    pub(super) due: PathWaiters,
    pub(super) path: LockPath,
}

impl PathNode {
    /// Creates a node with one use. No claim holds it or waits for it yet.
    pub(super) fn new(path: LockPath, above: Option<PathId>, depth: u32) -> Self {
        Self {
            above,
            paths: BTreeSet::new(),
            depth,
            uses: 1,
            keeps_below: false,
            held: PathHolders::default(),
            reserved: PathWaiters::default(),
            idle: PathWaiters::default(),
            due: PathWaiters::default(),
            path,
        }
    }

    pub(super) const fn waiters(&self, class: WaiterClass) -> &PathWaiters {
        match class {
            WaiterClass::Reserved => &self.reserved,
            WaiterClass::Idle => &self.idle,
            WaiterClass::Due => &self.due,
        }
    }

    pub(super) const fn waiters_mut(&mut self, class: WaiterClass) -> &mut PathWaiters {
        match class {
            WaiterClass::Reserved => &mut self.reserved,
            WaiterClass::Idle => &mut self.idle,
            WaiterClass::Due => &mut self.due,
        }
    }
}
