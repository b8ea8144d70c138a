//! The live families. A family that only waits for a timer or an event is *frozen* into a few dozen bytes; all others
//! are awake.
//!
//! Any lookup thaws a frozen family. It stays thawed until the next commit is folded in, and becomes awake once a
//! record changes it. Apart from the memory, callers cannot tell the difference. Walks that must see all families
//! visit the awake ones, and the summary kept beside each frozen one: [`rest`] defines what a frozen family cannot be.

mod awake;
mod frozen;
mod rest;
#[cfg(test)]
mod tests;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::iter::Peekable;
use std::ops::Deref;

use crate::family::{Family, deadlines};
use crate::id::{ProcedureId, Seq, Timestamp};
use crate::row::Row;
use awake::Awake;
use frozen::{Names, Pack};

pub use rest::{SAME_STAGE_FROZEN, STAGES_FROZEN};

/// A frozen family, and its thawed copy while it is being looked at.
#[derive(Clone, Debug)]
struct Frozen {
    bytes: Box<[u8]>,
    thawed: OnceCell<Box<Family>>,
}

/// All live families by number.
#[derive(Clone, Debug, Default)]
pub struct Families {
    awake: Awake,
    frozen: BTreeMap<u64, Frozen>,
    names: Names,
    pack: Pack,
    /// Number of timers that the frozen families have.
    timers: usize,
    /// Numbers of the frozen families that were thawed since the last commit.
    asked: RefCell<Vec<u64>>,
}

/// A family during a walk. A frozen family is thawed for the walk alone.
#[derive(Debug)]
pub enum FamilyRef<'a> {
    /// The family is in memory anyway.
    Awake(&'a Family),
    /// The family was thawed for this walk.
    Thawed(Box<Family>),
}

impl Deref for FamilyRef<'_> {
    type Target = Family;

    fn deref(&self) -> &Family {
        match self {
            Self::Awake(family) => family,
            Self::Thawed(family) => family,
        }
    }
}

impl Families {
    /// Returns a family.
    #[must_use]
    pub fn get(&self, number: &u64) -> Option<&Family> {
        match self.awake.get(*number) {
            Some(family) => Some(family),
            None => self.thaw(*number, self.frozen.get(number)?),
        }
    }

    fn thaw<'a>(&'a self, number: u64, frozen: &'a Frozen) -> Option<&'a Family> {
        let thawed = frozen.thawed.get_or_init(|| {
            self.asked.borrow_mut().push(number);
            self.names.thaw(number, &frozen.bytes)
        });
        Some(thawed)
    }

    /// Returns `true` if the family is live.
    #[must_use]
    pub fn contains_key(&self, number: &u64) -> bool {
        self.awake.contains(*number) || self.frozen.contains_key(number)
    }

    /// Returns the number of live families.
    #[must_use]
    pub fn len(&self) -> usize {
        self.awake.len() + self.frozen.len()
    }

    /// Returns `true` if no family is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.awake.is_empty() && self.frozen.is_empty()
    }

    /// Returns the number of frozen families.
    #[must_use]
    pub fn frozen(&self) -> usize {
        self.frozen.len()
    }

    /// Returns the awake families, by number. A frozen family has a single live member, which waits for a timer or
    /// an event. It has no stage out, no failed attempt and no lock.
    pub fn awake(&self) -> impl Iterator<Item = &Family> {
        self.awake_from(0).map(|(_, family)| family)
    }

    /// Returns the awake families from this number on.
    pub fn awake_from(&self, number: u64) -> impl Iterator<Item = (u64, &Family)> {
        self.awake.from(number..)
    }

    /// Returns the run of a procedure's stage that is out. A frozen family has none, and is not thawed to find out.
    pub(crate) fn out(&self, id: ProcedureId) -> Option<Seq> {
        let row = self.awake.get(id.family)?.row(id.member)?;
        row.in_flight.map(|in_flight| in_flight.run)
    }

    /// Returns all families, by number. A frozen one is thawed only while it is visited.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_from(0)
    }

    /// Returns all families from this number on.
    pub fn iter_from(&self, number: u64) -> Iter<'_> {
        Iter {
            awake: self.awake.from(number..).peekable(),
            frozen: self.frozen.range(number..).peekable(),
            names: &self.names,
        }
    }

    /// Returns all families, by number, each thawed until the next commit: for tests and tools with few families.
    pub fn values(&self) -> impl Iterator<Item = &Family> {
        self.into_iter().map(|(_, family)| family)
    }

    /// Returns the numbers of all families, in order.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        let awake = self.awake.from(0..).map(|(number, _)| number);
        let numbers: BTreeSet<u64> = awake.chain(self.frozen.keys().copied()).collect();
        numbers.into_iter()
    }

    /// Returns the frozen families with a timer that is missing in `timers`; `awake` is the number of timers of other
    /// families. Families are visited only if the counts show that a timer is missing.
    pub(crate) fn frozen_without_timer<'a>(
        &'a self,
        timers: &'a BTreeSet<(Timestamp, ProcedureId)>,
        awake: usize,
    ) -> impl Iterator<Item = ProcedureId> + 'a {
        let all_there = timers.len() >= self.timers + awake;
        let looked_at = if all_there { 0 } else { self.frozen.len() };
        let is_armed = |row: &Row| arms(row).all(|at| timers.contains(&(at, row.id)));
        let looked_at = self.frozen.iter().take(looked_at);
        looked_at
            .filter(move |(number, frozen)| {
                let family = self.names.thaw(**number, &frozen.bytes);
                !family.members.iter().all(|row| is_armed(row))
            })
            .map(|(number, _)| ProcedureId::root(*number))
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Family> {
        match self.unfreeze(number) {
            Some(family) => Some(self.awake.get_or_insert_with(number, || family)),
            None => self.awake.get_mut(number),
        }
    }

    pub(crate) fn get_or_begin(&mut self, number: u64) -> &mut Family {
        let frozen = self.unfreeze(number);
        self.awake.get_or_insert_with(number, || frozen.unwrap_or_default())
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Box<Family>> {
        self.unfreeze(number).or_else(|| self.awake.remove(number))
    }

    fn unfreeze(&mut self, number: u64) -> Option<Box<Family>> {
        if self.frozen.is_empty() {
            return None;
        }
        let frozen = self.frozen.remove(&number)?;
        let thawed = frozen.thawed.into_inner();
        let family = thawed.unwrap_or_else(|| self.names.thaw(number, &frozen.bytes));
        self.timers -= timers_of(&family);
        Some(family)
    }

    /// Freezes a family, if it is at rest.
    pub(crate) fn freeze(&mut self, number: u64) {
        let Some(family) = self.awake.get(number).filter(|family| rest::is_at_rest(family)) else {
            return;
        };
        self.timers += timers_of(family);
        let bytes = self.names.freeze(family, &mut self.pack);
        debug_assert_eq!(*self.names.thaw(number, &bytes), *family, "frozen and thawed");
        self.awake.remove(number);
        let thawed = OnceCell::new();
        self.frozen.insert(number, Frozen { bytes, thawed });
    }

    /// Drops all thawed copies.
    pub(crate) fn cool(&mut self) {
        for number in std::mem::take(self.asked.get_mut()) {
            if let Some(frozen) = self.frozen.get_mut(&number) {
                frozen.thawed.take();
            }
        }
    }
}

/// Returns the timers of a row. Two timers that are due at the same instant count as one.
pub(crate) fn arms(row: &Row) -> impl Iterator<Item = Timestamp> {
    let [wait, own] = deadlines(row);
    wait.into_iter().chain(own.filter(|own| Some(*own) != wait))
}

fn timers_of(family: &Family) -> usize {
    family.members.iter().map(|row| arms(row).count()).sum()
}

/// Iterator over all families by number, created by [`Families::iter`].
#[derive(Debug)]
pub struct Iter<'a> {
    awake: Peekable<awake::Range<'a>>,
    frozen: Peekable<btree_map::Range<'a, u64, Frozen>>,
    names: &'a Names,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (u64, FamilyRef<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let is_awake = match (self.awake.peek(), self.frozen.peek()) {
            (Some((awake, _)), Some((frozen, _))) => awake < *frozen,
            (awake, _) => awake.is_some(),
        };
        if is_awake {
            let (number, family) = self.awake.next()?;
            return Some((number, FamilyRef::Awake(family)));
        }
        let (number, frozen) = self.frozen.next()?;
        let family = self.names.thaw(*number, &frozen.bytes);
        Some((*number, FamilyRef::Thawed(family)))
    }
}

impl<'a> IntoIterator for &'a Families {
    type Item = (u64, &'a Family);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    /// Thaws all families, as [`values`](Families::values) does.
    fn into_iter(self) -> Self::IntoIter {
        let frozen = self.frozen.iter();
        let thawed = frozen.filter_map(|(number, frozen)| Some((*number, self.thaw(*number, frozen)?)));
        let mut all: Vec<_> = self.awake.from(0..).chain(thawed).collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        all.into_iter()
    }
}

impl PartialEq for Families {
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.iter().zip(other.iter());
        self.len() == other.len() && pairs.all(|((number, family), (other, same))| number == other && *family == *same)
    }
}

impl Eq for Families {}
