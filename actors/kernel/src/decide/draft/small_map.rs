//! An ordered map for what is mostly a single entry.
//!
//! Nearly every decision changes one row of one family. That entry is stored inline. Only further entries go to a
//! tree, whose first entry costs an allocation. It is boxed, because each decision makes and drops some
//! of these maps, and nearly always has no tree to look through and drop. Wide fan-outs put a hundred thousand there.
//!
//! No crate serves: small maps on crates.io are sorted or unsorted vectors, and each insertion costs a step per entry.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// An ordered map that stores its first entry inline.
#[expect(
    clippy::box_collection,
    reason = "one word, which is dropped by one test, in place of three"
)]
pub(super) struct SmallMap<K, V> {
    /// The inline entry. Its key is less than every key in `others`.
    first: Option<(K, V)>,
    others: Option<Box<BTreeMap<K, V>>>,
}

impl<K: Ord + Copy, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Ord + Copy, V> SmallMap<K, V> {
    pub(super) const fn new() -> Self {
        Self {
            first: None,
            others: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.as_ref().is_none_or(|others| others.is_empty())
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.others.as_ref().map_or(0, |others| others.len())
    }

    pub(super) fn clear(&mut self) {
        self.first = None;
        self.others = None;
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        match &self.first {
            Some((first, value)) if *first == key => Some(value),
            Some(_) | None => self.others.as_ref()?.get(&key),
        }
    }

    /// Inserts a value, or replaces the one with the same key.
    pub(super) fn insert(&mut self, key: K, value: V) {
        let Some(first) = &mut self.first else {
            if self.is_least(key) {
                self.first = Some((key, value));
            } else {
                self.insert_other(key, value);
            }
            return;
        };
        match key.cmp(&first.0) {
            Ordering::Equal => first.1 = value,
            Ordering::Greater => self.insert_other(key, value),
            Ordering::Less => {
                let (later, value) = std::mem::replace(first, (key, value));
                self.insert_other(later, value);
            }
        }
    }

    fn is_least(&self, key: K) -> bool {
        let least = self.others.as_ref().and_then(|others| others.first_key_value());
        least.is_none_or(|(least, _)| key < *least)
    }

    fn insert_other(&mut self, key: K, value: V) {
        self.others.get_or_insert_default().insert(key, value);
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        // The least of the others is not moved up: most likely this key returns soon.
        match self.first.take_if(|(first, _)| *first == key) {
            Some((_, value)) => Some(value),
            None => self.others.as_mut()?.remove(&key),
        }
    }

    /// Returns the entries in the order of their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let first = self.first.iter().map(|(key, value)| (key, value));
        first.chain(self.others.iter().flat_map(|others| others.iter()))
    }

    pub(super) fn range(&self, keys: RangeInclusive<K>) -> impl Iterator<Item = (&K, &V)> {
        let first = self.first.as_ref().filter(|(key, _)| keys.contains(key));
        let first = first.map(|(key, value)| (key, value));
        let others = self.others.iter();
        first
            .into_iter()
            .chain(others.flat_map(move |others| others.range(keys.clone())))
    }

    /// Returns the value with the greatest key of a range.
    pub(super) fn last_mut(&mut self, keys: RangeInclusive<K>) -> Option<&mut V> {
        let first = self.first.as_mut().filter(|(key, _)| keys.contains(key));
        let last = self
            .others
            .as_mut()
            .and_then(|others| others.range_mut(keys).next_back());
        last.map(|(_, value)| value).or(first.map(|(_, value)| value))
    }

    /// Hands out the values in the order of their keys.
    pub(super) fn each_value(self, mut take: impl FnMut(V)) {
        if let Some((_, value)) = self.first {
            take(value);
        }
        if let Some(others) = self.others {
            others.into_values().for_each(take);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Act {
        Insert(u8, u32),
        Remove(u8),
        Clear,
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let key = 0..6_u8;
        let act = prop_oneof![
            8 => (key.clone(), any::<u32>()).prop_map(|(key, value)| Act::Insert(key, value)),
            6 => key.prop_map(Act::Remove),
            1 => Just(Act::Clear),
        ];
        prop::collection::vec(act, 0..24)
    }

    proptest! {
        #[test]
        fn it_does_what_a_map_does(acts in acts(), from in 0..6_u8, to in 0..6_u8) {
            let (mut small, mut map) = (SmallMap::new(), BTreeMap::new());
            for act in acts {
                match act {
                    Act::Insert(key, value) => {
                        small.insert(key, value);
                        map.insert(key, value);
                    }
                    Act::Remove(key) => prop_assert_eq!(small.remove(key), map.remove(&key)),
                    Act::Clear => {
                        small.clear();
                        map.clear();
                    }
                }
                prop_assert!(small.iter().eq(map.iter()));
                prop_assert_eq!((small.is_empty(), small.len()), (map.is_empty(), map.len()));
                prop_assert!((0..6).all(|key| small.get(key) == map.get(&key)));
                if from <= to {
                    prop_assert!(small.range(from..=to).eq(map.range(from..=to)));
                    let last = map.range_mut(from..=to).next_back().map(|(_, value)| value);
                    prop_assert_eq!(small.last_mut(from..=to), last);
                }
            }
            let mut values = Vec::new();
            small.each_value(|value| values.push(value));
            prop_assert!(values.into_iter().eq(map.into_values()));
        }
    }
}
