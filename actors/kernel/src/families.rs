//! The live families: those that something is going on in as they are, those
//! that only wait for a time or an event *frozen*, in a few dozen bytes each.
//!
//! A frozen family is thawed by whoever asks for it, stays thawed until the
//! next commit is folded in, and is one as any other again once a record
//! changes it. Nobody outside can tell the difference but by the memory. What
//! has to look at all families looks at those awake, and at what stands in
//! front of a frozen one: [`rest`] says what such a one cannot be.

mod frozen;
mod rest;
#[cfg(test)]
mod tests;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::iter::Peekable;
use std::ops::Deref;

use crate::family::{Family, deadlines};
use crate::id::{ProcedureId, Timestamp};
use crate::row::Row;
use frozen::{Names, Pack};

pub use rest::{SAME_STAGE_FROZEN, STAGES_FROZEN};

/// One that is frozen, and as it was before while somebody looks at it.
#[derive(Clone, Debug)]
struct Frozen {
    bytes: Box<[u8]>,
    thawed: OnceCell<Box<Family>>,
}

/// All live families by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Families {
    awake: BTreeMap<u64, Family>,
    frozen: BTreeMap<u64, Frozen>,
    names: Names,
    pack: Pack,
    /// Timers that the frozen ones have.
    timers: usize,
    /// Those of the frozen that were asked for.
    asked: RefCell<Vec<u64>>,
}

/// A family of a walk: one that is frozen is thawed for the walk alone.
#[derive(Debug)]
pub enum Seen<'a> {
    /// It is in memory anyway.
    Awake(&'a Family),
    /// It was thawed just now.
    Thawed(Box<Family>),
}

impl Deref for Seen<'_> {
    type Target = Family;

    fn deref(&self) -> &Family {
        match self {
            Self::Awake(family) => family,
            Self::Thawed(family) => family,
        }
    }
}

impl Families {
    /// Gives a family.
    #[must_use]
    pub fn get(&self, number: &u64) -> Option<&Family> {
        match self.awake.get(number) {
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

    /// Tells whether a family is live.
    #[must_use]
    pub fn contains_key(&self, number: &u64) -> bool {
        self.awake.contains_key(number) || self.frozen.contains_key(number)
    }

    /// Gives how many are live.
    #[must_use]
    pub fn len(&self) -> usize {
        self.awake.len() + self.frozen.len()
    }

    /// Tells whether none is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.awake.is_empty() && self.frozen.is_empty()
    }

    /// Gives how many are frozen.
    #[must_use]
    pub fn frozen(&self) -> usize {
        self.frozen.len()
    }

    /// Gives those that are not frozen, by number. A frozen one has one member,
    /// which has not ended, waits for a time or an event, and has no stage out,
    /// no failed attempt, and no lock.
    pub fn awake(&self) -> impl Iterator<Item = &Family> {
        self.awake.values()
    }

    /// Gives those that are not frozen, from this number on.
    pub fn awake_from(&self, number: u64) -> impl Iterator<Item = (u64, &Family)> {
        self.awake.range(number..).map(|(number, family)| (*number, family))
    }

    /// Gives all, by number; a frozen one is thawed as long as it is looked at.
    pub fn iter(&self) -> Iter<'_> {
        self.iter_from(0)
    }

    /// Gives those from this number on.
    pub fn iter_from(&self, number: u64) -> Iter<'_> {
        Iter {
            awake: self.awake.range(number..).peekable(),
            frozen: self.frozen.range(number..).peekable(),
            names: &self.names,
        }
    }

    /// Gives all, by number, each thawed until the next commit: for tests and tools, where they are few.
    pub fn values(&self) -> impl Iterator<Item = &Family> {
        self.into_iter().map(|(_, family)| family)
    }

    /// Gives the numbers of all, in order.
    pub fn keys(&self) -> impl Iterator<Item = &u64> {
        let numbers: BTreeSet<&u64> = self.awake.keys().chain(self.frozen.keys()).collect();
        numbers.into_iter()
    }

    /// Gives the frozen ones of which a timer is not among these, of which `awake`
    /// are of other families. Looks at each only if the count says that one is missing.
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
        if let Some(family) = self.unfreeze(number) {
            self.awake.insert(number, family);
        }
        self.awake.get_mut(&number)
    }

    pub(crate) fn get_or_begin(&mut self, number: u64) -> &mut Family {
        let frozen = self.unfreeze(number);
        let place = self.awake.entry(number);
        place.or_insert_with(|| frozen.unwrap_or_default())
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<Family> {
        self.unfreeze(number).or_else(|| self.awake.remove(&number))
    }

    fn unfreeze(&mut self, number: u64) -> Option<Family> {
        if self.frozen.is_empty() {
            return None;
        }
        let frozen = self.frozen.remove(&number)?;
        let thawed = frozen.thawed.into_inner();
        let family = thawed.unwrap_or_else(|| self.names.thaw(number, &frozen.bytes));
        self.timers -= timers_of(&family);
        Some(*family)
    }

    /// Freezes a family, if nothing of it is awake.
    pub(crate) fn freeze(&mut self, number: u64) {
        let Some(family) = self.awake.get(&number).filter(|family| rest::is_at_rest(family)) else {
            return;
        };
        self.timers += timers_of(family);
        let bytes = self.names.freeze(family, &mut self.pack);
        debug_assert_eq!(*self.names.thaw(number, &bytes), *family, "frozen and thawed");
        self.awake.remove(&number);
        let thawed = OnceCell::new();
        self.frozen.insert(number, Frozen { bytes, thawed });
    }

    /// Lets go of what was thawed for a look.
    pub(crate) fn cool(&mut self) {
        for number in std::mem::take(self.asked.get_mut()) {
            if let Some(frozen) = self.frozen.get_mut(&number) {
                frozen.thawed.take();
            }
        }
    }
}

/// Both of its timers are one if they are due at the same time.
pub(crate) fn arms(row: &Row) -> impl Iterator<Item = Timestamp> {
    let [wait, own] = deadlines(row);
    wait.into_iter().chain(own.filter(|own| Some(*own) != wait))
}

fn timers_of(family: &Family) -> usize {
    family.members.iter().map(|row| arms(row).count()).sum()
}

/// All families by number; made by [`Families::iter`].
#[derive(Debug)]
pub struct Iter<'a> {
    awake: Peekable<btree_map::Range<'a, u64, Family>>,
    frozen: Peekable<btree_map::Range<'a, u64, Frozen>>,
    names: &'a Names,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (u64, Seen<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let is_awake = match (self.awake.peek(), self.frozen.peek()) {
            (Some((awake, _)), Some((frozen, _))) => awake < frozen,
            (awake, _) => awake.is_some(),
        };
        if is_awake {
            let (number, family) = self.awake.next()?;
            return Some((*number, Seen::Awake(family)));
        }
        let (number, frozen) = self.frozen.next()?;
        let family = self.names.thaw(*number, &frozen.bytes);
        Some((*number, Seen::Thawed(family)))
    }
}

impl<'a> IntoIterator for &'a Families {
    type Item = (&'a u64, &'a Family);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    /// Thaws all, as [`values`](Families::values) does.
    fn into_iter(self) -> Self::IntoIter {
        let frozen = self.frozen.iter();
        let thawed = frozen.filter_map(|(number, frozen)| Some((number, self.thaw(*number, frozen)?)));
        let mut all: Vec<_> = self.awake.iter().chain(thawed).collect();
        all.sort_unstable_by_key(|(number, _)| **number);
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
