//! The waiting descendants of each claim, and what they wait for. An exclusive holder of a path keeps strangers out of
//! it, so there only its descendants affect each other.

use std::collections::{BTreeMap, BTreeSet};

use super::claim::Slot;
use super::index::{self, Index};
use super::node::{Level, Lock, Part, Spot};
use super::seat::Seat;
use super::slab::Slab;
use super::tree::Tree;
use crate::id::ClaimId;

/// The waiting descendants of one claim.
#[derive(Clone, Debug)]
pub(super) struct Inside {
    ancestor: ClaimId,
    pub(super) waiting: BTreeSet<Slot>,
    reserved: BTreeMap<Spot, Level>,
    idle: BTreeMap<Spot, Level>,
}

impl Inside {
    pub(super) const fn part(&self, part: Part) -> &BTreeMap<Spot, Level> {
        match part {
            Part::Reserved => &self.reserved,
            Part::Idle => &self.idle,
        }
    }

    const fn part_mut(&mut self, part: Part) -> &mut BTreeMap<Spot, Level> {
        match part {
            Part::Reserved => &mut self.reserved,
            Part::Idle => &mut self.idle,
        }
    }
}

/// The waiting descendants of all claims that have any.
#[derive(Clone, Debug, Default)]
pub(super) struct Insides {
    all: Slab<Inside>,
    by_ancestor: Index,
}

impl Insides {
    fn find(&self, ancestor: ClaimId) -> Option<u32> {
        let is = |number| self.all.get(number).is_some_and(|inside| inside.ancestor == ancestor);
        self.by_ancestor.find(index::of_number(ancestor.0), is)
    }

    /// Returns the waiting descendants of a claim.
    pub(super) fn of(&self, ancestor: ClaimId) -> Option<&Inside> {
        self.all.get(self.find(ancestor)?)
    }

    fn of_mut(&mut self, ancestor: ClaimId) -> Option<&mut Inside> {
        self.all.get_mut(self.find(ancestor)?)
    }

    /// Records that a descendant of a claim waits.
    pub(super) fn enter(&mut self, ancestor: ClaimId, slot: Slot) {
        if self.find(ancestor).is_none() {
            let number = self.all.add(Inside {
                ancestor,
                waiting: BTreeSet::new(),
                reserved: BTreeMap::new(),
                idle: BTreeMap::new(),
            });
            self.by_ancestor.insert(index::of_number(ancestor.0), number);
        }
        if let Some(inside) = self.of_mut(ancestor) {
            inside.waiting.insert(slot);
        }
    }

    /// Records that a descendant of a claim no longer waits.
    pub(super) fn leave(&mut self, ancestor: ClaimId, slot: Slot) {
        let Some(number) = self.find(ancestor) else {
            return;
        };
        let is_empty = self.all.get_mut(number).is_some_and(|inside| {
            inside.waiting.remove(&slot);
            inside.waiting.is_empty()
        });
        if is_empty {
            self.all.remove(number);
            self.by_ancestor.remove(index::of_number(ancestor.0), number);
        }
    }

    /// Records that a descendant of a claim waits for a lock.
    pub(super) fn sit(&mut self, ancestor: ClaimId, tree: &Tree, part: Part, lock: Lock, seat: Seat) {
        let Some(inside) = self.of_mut(ancestor) else {
            return;
        };
        let levels = inside.part_mut(part);
        for spot in tree.upwards(lock.spot()) {
            levels.entry(spot).or_default().of(lock, spot).insert(seat);
        }
    }

    /// Records that a descendant of a claim no longer waits for a lock.
    pub(super) fn rise(&mut self, ancestor: ClaimId, tree: &Tree, part: Part, lock: Lock, seat: Seat) {
        let Some(inside) = self.of_mut(ancestor) else {
            return;
        };
        let levels = inside.part_mut(part);
        for spot in tree.upwards(lock.spot()) {
            if let Some(level) = levels.get_mut(&spot) {
                level.of(lock, spot).remove(seat);
                if level.is_empty() {
                    levels.remove(&spot);
                }
            }
        }
    }

    /// Returns `true` if no claim has a waiting descendant.
    pub(super) fn is_empty(&self) -> bool {
        self.all.len() == 0
    }
}
