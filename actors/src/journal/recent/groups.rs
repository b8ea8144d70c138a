//! An ordered map from short keys, in groups of keys that begin with the same eight bytes.
//!
//! Those eight bytes are a family's number in most of the engine's keys. Each commit writes several keys of one family,
//! most of them again and again. One number finds the group, and a group is mostly a handful of entries, so a write
//! costs a quarter of what it costs in one map of whole keys.

use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;
use std::slice;

use super::index::{ShortKey, Tail};

/// How many entries a group keeps in one piece. A new entry in the middle of so many moves less than a kilobyte.
const IN_ONE_PIECE: usize = 32;

/// The entries of a group.
#[derive(Debug)]
enum Group<V> {
    One((Tail, V)),
    /// Sorted by tail.
    Few(Vec<(Tail, V)>),
    Many(BTreeMap<Tail, V>),
}

impl<V: Copy> Group<V> {
    fn insert(&mut self, tail: Tail, value: V) {
        match self {
            Self::One((known, old)) if *known == tail => *old = value,
            Self::One(one) => {
                let other = (tail, value);
                let both = if one.0 < tail { [*one, other] } else { [other, *one] };
                *self = Self::Few(both.to_vec());
            }
            Self::Few(few) => {
                match position(few, tail) {
                    Ok(at) => {
                        if let Some((_, old)) = few.get_mut(at) {
                            *old = value;
                        }
                    }
                    Err(at) => few.insert(at, (tail, value)),
                }
                if few.len() > IN_ONE_PIECE {
                    *self = Self::Many(few.drain(..).collect());
                }
            }
            Self::Many(many) => {
                many.insert(tail, value);
            }
        }
    }

    fn get(&self, tail: Tail) -> Option<&V> {
        match self {
            Self::One((known, value)) => (*known == tail).then_some(value),
            Self::Few(few) => few.get(position(few, tail).ok()?).map(|(_, value)| value),
            Self::Many(many) => many.get(&tail),
        }
    }

    fn iter(&self) -> GroupEntries<'_, V> {
        match self {
            Self::One(one) => GroupEntries::Few(slice::from_ref(one).iter()),
            Self::Few(few) => GroupEntries::Few(few.iter()),
            Self::Many(many) => GroupEntries::Many(many.range(..)),
        }
    }

    /// The bounds must not be an empty range in the wrong order.
    fn range(&self, bounds: (Bound<Tail>, Bound<Tail>)) -> GroupEntries<'_, V> {
        let few = match self {
            Self::One(one) => slice::from_ref(one),
            Self::Few(few) => few.as_slice(),
            Self::Many(many) => return GroupEntries::Many(many.range(bounds)),
        };
        let from = few.partition_point(|(tail, _)| is_before(*tail, bounds.0));
        let to = few.partition_point(|(tail, _)| !is_behind(*tail, bounds.1));
        GroupEntries::Few(few.get(from..to).unwrap_or_default().iter())
    }
}

/// Looks at the end first: keys of a family are mostly written in their order.
fn position<V>(few: &[(Tail, V)], tail: Tail) -> Result<usize, usize> {
    match few.last() {
        Some((last, _)) if *last < tail => Err(few.len()),
        Some(_) | None => few.binary_search_by(|(known, _)| known.cmp(&tail)),
    }
}

fn is_before(tail: Tail, from: Bound<Tail>) -> bool {
    match from {
        Bound::Included(from) => tail < from,
        Bound::Excluded(from) => tail <= from,
        Bound::Unbounded => false,
    }
}

fn is_behind(tail: Tail, to: Bound<Tail>) -> bool {
    match to {
        Bound::Included(to) => tail > to,
        Bound::Excluded(to) => tail >= to,
        Bound::Unbounded => false,
    }
}

/// Entries of one group, in key order.
enum GroupEntries<'a, V> {
    Few(slice::Iter<'a, (Tail, V)>),
    Many(btree_map::Range<'a, Tail, V>),
}

impl<'a, V> Iterator for GroupEntries<'a, V> {
    type Item = (Tail, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Few(few) => few.next().map(|(tail, value)| (*tail, value)),
            Self::Many(many) => many.next().map(|(tail, value)| (*tail, value)),
        }
    }
}

/// The map.
#[derive(Debug)]
pub(super) struct Groups<V> {
    groups: BTreeMap<u64, Group<V>>,
}

impl<V> Default for Groups<V> {
    fn default() -> Self {
        Self {
            groups: BTreeMap::new(),
        }
    }
}

impl<V: Copy> Groups<V> {
    pub(super) fn insert(&mut self, key: ShortKey, value: V) {
        let (head, tail) = key.split();
        match self.groups.entry(head) {
            btree_map::Entry::Occupied(mut group) => group.get_mut().insert(tail, value),
            btree_map::Entry::Vacant(place) => {
                place.insert(Group::One((tail, value)));
            }
        }
    }

    pub(super) fn get(&self, key: ShortKey) -> Option<&V> {
        let (head, tail) = key.split();
        self.groups.get(&head)?.get(tail)
    }

    /// Returns all entries in key order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ShortKey, &V)> {
        let groups = self.groups.iter();
        groups.flat_map(|(head, group)| group.iter().map(|(tail, value)| (ShortKey::joined(*head, tail), value)))
    }

    /// Returns the entries of a range in key order. The range must not be empty by its bounds alone.
    pub(super) fn range(&self, (from, to): (Bound<ShortKey>, Bound<ShortKey>)) -> impl Iterator<Item = (ShortKey, &V)> {
        let (from, to) = (from.map(ShortKey::split), to.map(ShortKey::split));
        let groups = self.groups.range((heads(from), heads(to)));
        groups.flat_map(move |(head, group)| {
            let entries = group.range((tails(*head, from), tails(*head, to)));
            entries.map(|(tail, value)| (ShortKey::joined(*head, tail), value))
        })
    }
}

/// Returns which groups a bound leaves in. The group of the bound itself is one of them.
fn heads(bound: Bound<(u64, Tail)>) -> Bound<u64> {
    match bound {
        Bound::Included((head, _)) | Bound::Excluded((head, _)) => Bound::Included(head),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Returns what a bound means within a group.
fn tails(head: u64, bound: Bound<(u64, Tail)>) -> Bound<Tail> {
    match bound {
        Bound::Included((of, tail)) if of == head => Bound::Included(tail),
        Bound::Excluded((of, tail)) if of == head => Bound::Excluded(tail),
        Bound::Included(_) | Bound::Excluded(_) | Bound::Unbounded => Bound::Unbounded,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Few different bytes, so that keys meet, share heads and are beginnings of each other.
    fn keys() -> impl Strategy<Value = ShortKey> {
        let bytes = prop_oneof![
            vec(0..2_u8, 0..4),
            (0..3_u8, 0..60_u8).prop_map(|(head, tail)| [&[head; 8][..], &[0, 0, tail][..]].concat()),
            vec(prop_oneof![Just(0), Just(1), Just(255)], 7..17),
        ];
        bytes.prop_filter_map("at most 16 bytes", |key| ShortKey::of(&key))
    }

    fn bounds() -> impl Strategy<Value = Bound<ShortKey>> {
        prop_oneof![
            keys().prop_map(Bound::Included),
            keys().prop_map(Bound::Excluded),
            Just(Bound::Unbounded)
        ]
    }

    /// Returns `true` if a map would refuse the range.
    fn is_disordered(from: Bound<ShortKey>, to: Bound<ShortKey>) -> bool {
        match (from, to) {
            (Bound::Excluded(from), Bound::Excluded(to)) => from >= to,
            (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from > to,
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        }
    }

    proptest! {
        /// It is the map of whole keys.
        #[test]
        fn it_reads_as_one_ordered_map(
            writes in vec((keys(), any::<u32>()), 0..300),
            asked in vec(keys(), 20),
            from in bounds(),
            to in bounds(),
        ) {
            let (mut groups, mut map) = (Groups::default(), BTreeMap::new());
            for (key, value) in writes {
                groups.insert(key, value);
                map.insert(key, value);
            }
            prop_assert!(groups.iter().eq(map.iter().map(|(key, value)| (*key, value))));
            for key in asked {
                prop_assert_eq!(groups.get(key), map.get(&key));
            }
            if !is_disordered(from, to) {
                let expected = map.range((from, to)).map(|(key, value)| (*key, value));
                prop_assert!(groups.range((from, to)).eq(expected));
            }
        }
    }
}
