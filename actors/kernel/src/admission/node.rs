//! One path of the tree: who holds a lock on it or under it, and who waits for one.

use std::collections::BTreeSet;
use std::iter;

use super::claim::Slot;
use super::few::Few;
use super::seat::{Seat, Seats};
use super::sorted::Sorted;
use crate::lock::{LockMode, LockPath};

/// Number of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spot(pub(super) u32);

/// A lock by the number of its path: twice that, and one more if it is exclusive.
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

/// Those who wait at one path.
#[derive(Clone, Debug, Default)]
pub(super) struct Level {
    pub(super) exclusive: Seats,
    pub(super) shared: Seats,
    /// Those with a lock strictly under this path, if it keeps them.
    pub(super) below: Seats,
}

impl Level {
    pub(super) fn is_empty(&self) -> bool {
        self.exclusive.is_empty() && self.shared.is_empty() && self.below.is_empty()
    }

    /// Gives those who wait for a lock of the path itself.
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

/// Those who hold something at one path.
#[derive(Clone, Debug, Default)]
pub(super) struct Held {
    /// One, or some who are within each other.
    pub(super) exclusive: Few<Slot, 4>,
    pub(super) shared: Sorted<Slot>,
    /// Those with a lock strictly under this path, once for each, if it keeps them.
    pub(super) below: Sorted<(Slot, Lock)>,
}

impl Held {
    /// Gives those who hold a lock of the path itself, and which.
    pub(super) fn at(&self, spot: Spot) -> impl Iterator<Item = (Slot, Lock)> {
        let exclusive = self.exclusive.iter().zip(iter::repeat(LockMode::Exclusive));
        let shared = self.shared.iter().zip(iter::repeat(LockMode::Shared));
        let all = exclusive.chain(shared);
        all.map(move |(holder, mode)| (holder, Lock::new(spot, mode)))
    }
}

/// Which of those who wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Those whose place counts.
    Reserved,
    /// Those who lack no lock, as far as is known.
    Idle,
}

/// One path.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The path one level up; the whole tree has none.
    pub(super) above: Option<Spot>,
    /// The paths one level down.
    pub(super) paths: BTreeSet<Spot>,
    pub(super) depth: u32,
    /// Locks that are held or waited for here, and paths one level down.
    pub(super) uses: u32,
    /// Whether it keeps a set of those with a lock under it. Only who wants all of the path asks for
    /// them, so it does from the first of these on, and most paths with many under them never do.
    pub(super) keeps_below: bool,
    pub(super) held: Held,
    pub(super) reserved: Level,
    pub(super) idle: Level,
    pub(super) path: LockPath,
}

impl Node {
    /// Makes one with one use, which nobody holds or waits for yet.
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
