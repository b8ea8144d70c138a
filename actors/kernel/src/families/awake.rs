//! The awake families, in blocks of consecutive numbers.
//!
//! Each stage looks up its family several times, and nothing else is looked up as often. Numbers are given in order, so
//! families that are awake at one time mostly have numbers close to each other: a map of blocks is a small part of a map
//! of families, and within a block the number is the place.

use std::collections::{BTreeMap, btree_map};
use std::ops::RangeFrom;

use crate::family::Family;

/// Numbers of one block. A block with a single family has 120 bytes to spare.
const BLOCK: usize = 16;

/// Families by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Awake {
    /// At least one family of each block is awake.
    blocks: BTreeMap<u64, Block>,
    len: usize,
}

#[derive(Clone, Debug, Default)]
struct Block([Option<Box<Family>>; BLOCK]);

/// Returns the number of a family's block, and its place there.
#[inline]
fn place_of(number: u64) -> (u64, usize) {
    let place = usize::try_from(number % BLOCK as u64).unwrap_or_default();
    (number / BLOCK as u64, place)
}

/// Returns the number of the family at a place.
const fn number_of(block: u64, place: usize) -> u64 {
    block * BLOCK as u64 + place as u64
}

impl Awake {
    #[inline]
    pub(super) fn get(&self, number: u64) -> Option<&Family> {
        let (block, place) = place_of(number);
        self.blocks.get(&block)?.0.get(place)?.as_deref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u64) -> Option<&mut Family> {
        let (block, place) = place_of(number);
        self.blocks.get_mut(&block)?.0.get_mut(place)?.as_deref_mut()
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        self.get(number).is_some()
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the family; one that is not there is made.
    pub(super) fn get_or_insert_with(&mut self, number: u64, family: impl FnOnce() -> Box<Family>) -> &mut Family {
        let (block, place) = place_of(number);
        let Block([first, others @ ..]) = self.blocks.entry(block).or_default();
        let other = place.checked_sub(1).and_then(|place| others.get_mut(place));
        let len = &mut self.len;
        other.unwrap_or(first).get_or_insert_with(|| {
            *len += 1;
            family()
        })
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Box<Family>> {
        let (number, place) = place_of(number);
        let block = self.blocks.get_mut(&number)?;
        let family = block.0.get_mut(place)?.take()?;
        self.len -= 1;
        if block.0.iter().all(Option::is_none) {
            self.blocks.remove(&number);
        }
        Some(family)
    }

    /// Returns the families from this number on, in order.
    pub(super) fn from(&self, from: RangeFrom<u64>) -> Range<'_> {
        let (block, place) = place_of(from.start);
        Range {
            blocks: self.blocks.range(block..),
            current: None,
            skipped: (block, place),
        }
    }
}

/// Iterator over awake families in the order of their numbers.
#[derive(Clone, Debug)]
pub(super) struct Range<'a> {
    blocks: btree_map::Range<'a, u64, Block>,
    /// The block that is being walked, and the next place in it.
    current: Option<(u64, &'a Block, usize)>,
    /// Places before this one of this block are not visited.
    skipped: (u64, usize),
}

impl<'a> Iterator for Range<'a> {
    type Item = (u64, &'a Family);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (number, block, from) = match self.current.take() {
                Some(current) => current,
                None => {
                    let (number, block) = self.blocks.next()?;
                    let (first, place) = self.skipped;
                    (*number, block, if *number == first { place } else { 0 })
                }
            };
            let mut places = (from..).zip(block.0.get(from..).unwrap_or_default());
            if let Some((place, family)) = places.find_map(|(place, family)| Some((place, family.as_deref()?))) {
                self.current = Some((number, block, place + 1));
                return Some((number_of(number, place), family));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn family(history: u32) -> Box<Family> {
        Box::new(Family {
            history,
            ..Family::default()
        })
    }

    fn seen<'a>(families: impl Iterator<Item = (u64, &'a Family)>) -> Vec<(u64, u32)> {
        families.map(|(number, family)| (number, family.history)).collect()
    }

    proptest! {
        /// It is the ordered map of families.
        #[test]
        fn it_is_an_ordered_map(
            changes in vec((prop_oneof![0..60_u64, Just(u64::MAX)], any::<bool>()), 0..200),
            from in prop_oneof![0..70_u64, Just(u64::MAX)],
        ) {
            let (mut awake, mut map) = (Awake::default(), BTreeMap::new());
            for (time, (number, is_there)) in (0..).zip(changes) {
                if is_there {
                    awake.get_or_insert_with(number, || family(time));
                    map.entry(number).or_insert_with(|| family(time));
                } else {
                    prop_assert_eq!(awake.remove(number), map.remove(&number));
                }
                prop_assert_eq!(awake.get(number), map.get(&number).map(|family| &**family));
            }
            prop_assert_eq!((awake.len(), awake.is_empty()), (map.len(), map.is_empty()));
            let expected = map.range(from..).map(|(number, family)| (*number, &**family));
            prop_assert_eq!(seen(awake.from(from..)), seen(expected));
            for number in map.keys() {
                prop_assert!(awake.contains(*number) && awake.get_mut(*number).is_some());
                awake.remove(*number);
            }
            prop_assert!(awake.blocks.is_empty(), "no block is left");
        }
    }
}
