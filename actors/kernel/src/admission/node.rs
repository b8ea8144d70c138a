//! One path of the tree, with the claims that hold or await a lock on it or under it.

use std::collections::BTreeSet;
use std::iter;

use super::claim::Slot;
use super::few::Few;
use super::seat::{Seat, Seats};
use super::sorted::Sorted;
use crate::lock::{LockMode, LockPath};

/// The number of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot(pub(super) u32);

/// A lock as a number: twice the number of its path, plus one if it is exclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lock(u32);

impl Lock {
    pub(super) const fn new(spot: Spot, mode: LockMode) -> Self {
        match mode {
            LockMode::Shared => Self(spot.0 * 2),
            LockMode::Exclusive => Self(spot.0 * 2 + 1),
        }
    }

    #[inline]
    pub(super) const fn spot(self) -> Spot {
        Spot(self.0 / 2)
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
pub(super) struct Level {
    pub(super) exclusive: Seats,
    pub(super) shared: Seats,
    /// The waiters for a lock strictly under this path, if the path keeps them.
    pub(super) below: Seats,
}

impl Level {
    pub(super) fn is_empty(&self) -> bool {
        self.exclusive.is_empty() && self.shared.is_empty() && self.below.is_empty()
    }

    /// Returns the waiters for a lock on the path itself.
    pub(super) fn at(&self) -> impl Iterator<Item = Seat> {
        self.exclusive.iter().chain(self.shared.iter())
    }

    pub(super) fn of(&mut self, lock: Lock, spot: Spot) -> &mut Seats {
        if lock.spot() != spot {
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
pub(super) struct Held {
    /// One holder, or several holders that are within each other.
    pub(super) exclusive: Few<Slot, 4>,
    pub(super) shared: Sorted<Slot>,
    /// The holders of a lock strictly under this path, once for each lock, if the path keeps them.
    pub(super) below: Sorted<(Slot, Lock)>,
}

impl Held {
    /// Returns the holders of a lock on the path itself, each with its lock.
    pub(super) fn at(&self, spot: Spot) -> impl Iterator<Item = (Slot, Lock)> {
        let exclusive = self.exclusive.iter().zip(iter::repeat(LockMode::Exclusive));
        let shared = self.shared.iter().zip(iter::repeat(LockMode::Shared));
        let all = exclusive.chain(shared);
        all.map(move |(holder, mode)| (holder, Lock::new(spot, mode)))
    }
}

/// A part of the waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The waiters whose place reserves locks.
    Reserved,
    /// The waiters that lack no lock, as far as is known.
    Idle,
}

/// One path.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The path one level up. The root of the tree has none.
    pub(super) above: Option<Spot>,
    /// The paths one level down.
    pub(super) paths: BTreeSet<Spot>,
    pub(super) depth: u32,
    /// The number of locks held or awaited here, plus the number of paths one level down.
    pub(super) uses: u32,
    /// `true` if the path keeps sets of the claims with a lock under it. Only an exclusive request for the path reads
    /// these sets, so they are kept from the first such request on. Most paths with many claims under them never need
    /// them.
    pub(super) keeps_below: bool,
    pub(super) held: Held,
    pub(super) reserved: Level,
    pub(super) idle: Level,
    pub(super) path: LockPath,
}

impl Node {
    /// Creates a node with one use. No claim holds it or waits for it yet.
    pub(super) fn new(path: LockPath, above: Option<Spot>, depth: u32) -> Self {
        Self {
            above,
            paths: BTreeSet::new(),
            depth,
            uses: 1,
            keeps_below: false,
            held: Held::default(),
            reserved: Level::default(),
            idle: Level::default(),
            path,
        }
    }

    pub(super) const fn part(&self, part: Part) -> &Level {
        match part {
            Part::Reserved => &self.reserved,
            Part::Idle => &self.idle,
        }
    }

    pub(super) const fn part_mut(&mut self, part: Part) -> &mut Level {
        match part {
            Part::Reserved => &mut self.reserved,
            Part::Idle => &mut self.idle,
        }
    }
}
