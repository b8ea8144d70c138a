//! The awake families: found by number in constant time, and walked in the order of their numbers.

use std::collections::{BTreeSet, btree_set};
use std::ops::RangeFrom;

use rustc_hash::FxHashMap;

use crate::family::Family;

/// Each stage looks up its family several times, and nothing else is looked up as often: a search in an ordered map
/// costs four times as much. The order is kept beside it, because whatever walks over families must do so in an order
/// that depends on nothing but their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Awake {
    /// Boxed, so that a map that grows moves little.
    families: FxHashMap<u64, Box<Family>>,
    numbers: BTreeSet<u64>,
}

impl Awake {
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&Family> {
        self.families.get(&number).map(|family| &**family)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Family> {
        self.families.get_mut(&number).map(|family| &mut **family)
    }

    #[inline]
    pub(super) fn contains(&self, number: u64) -> bool {
        self.families.contains_key(&number)
    }

    pub(super) fn len(&self) -> usize {
        self.families.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.families.is_empty()
    }

    pub(super) fn insert(&mut self, number: u64, family: Box<Family>) {
        self.numbers.insert(number);
        self.families.insert(number, family);
    }

    #[inline]
    pub(super) fn get_or_insert_with(&mut self, number: u64, family: impl FnOnce() -> Box<Family>) -> &mut Family {
        let numbers = &mut self.numbers;
        self.families.entry(number).or_insert_with(|| {
            numbers.insert(number);
            family()
        })
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Box<Family>> {
        let family = self.families.remove(&number)?;
        self.numbers.remove(&number);
        Some(family)
    }

    /// Returns the numbers in order.
    pub(super) fn numbers(&self) -> btree_set::Iter<'_, u64> {
        self.numbers.iter()
    }

    /// Returns the families from this number on, in order.
    pub(super) fn from(&self, from: RangeFrom<u64>) -> Range<'_> {
        Range {
            numbers: self.numbers.range(from),
            awake: self,
        }
    }
}

/// Iterator over awake families in the order of their numbers.
#[derive(Clone, Debug)]
pub(super) struct Range<'a> {
    numbers: btree_set::Range<'a, u64>,
    awake: &'a Awake,
}

impl<'a> Iterator for Range<'a> {
    type Item = (&'a u64, &'a Family);

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.numbers.next()?;
        Some((number, self.awake.get(*number)?))
    }
}
