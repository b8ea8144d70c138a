//! Ordered maps from short keys, one for each of a few parts, in groups of keys that begin with the same eight bytes.
//!
//! Those eight bytes are a family's number in most of the engine's keys. Each commit writes several keys of one family in
//! several parts, most of them again and again. One search finds the group for all of them, and a group is mostly a
//! handful of entries.

use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::ops::Bound;
use std::slice;

use super::index::ShortKey;

/// How many entries a group keeps in one piece. A new entry in the middle of so many moves less than a kilobyte.
const IN_ONE_PIECE: usize = 32;

/// How many entries a group of more than one has room for.
const FEW: usize = 8;

/// What tells apart keys that begin with the same eight bytes, in the order of parts, and in each in the order of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tail {
    /// The other eight bytes as a number.
    rest: u64,
    part: u8,
    /// Length of the whole key.
    length: u8,
}

impl Tail {
    const fn new(part: u8, (rest, length): (u64, u8)) -> Self {
        Self { rest, part, length }
    }

    /// Returns the bounds of a part.
    const fn of_part(part: u8) -> (Bound<Self>, Bound<Self>) {
        let first = Self::new(part, (0, 0));
        let last = Self::new(part, (u64::MAX, u8::MAX));
        (Bound::Included(first), Bound::Included(last))
    }

    /// Returns all that is compared, as one number.
    fn order(self) -> u128 {
        u128::from(self.part) << 72 | u128::from(self.rest) << 8 | u128::from(self.length)
    }
}

impl Ord for Tail {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for Tail {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

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
                let mut few = Vec::with_capacity(FEW);
                few.extend(if one.0 < tail { [*one, other] } else { [other, *one] });
                *self = Self::Few(few);
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

/// Looks at both ends first: a commit mostly overwrites the first key of its family, and adds one behind the last.
fn position<V>(few: &[(Tail, V)], tail: Tail) -> Result<usize, usize> {
    match (few.first(), few.last()) {
        (Some((first, _)), _) if *first == tail => Ok(0),
        (_, Some((last, _))) if *last < tail => Err(few.len()),
        _ => few.binary_search_by(|(known, _)| known.cmp(&tail)),
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

/// The maps.
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
    /// Inserts entries of several parts in their order. Those that follow each other with the same first eight bytes cost
    /// one search.
    pub(super) fn insert_all(&mut self, entries: impl Iterator<Item = (u8, ShortKey, V)>) {
        let mut entries = entries.peekable();
        while let Some((part, key, value)) = entries.next() {
            let (head, tail) = key.split();
            let tail = Tail::new(part, tail);
            let group = match self.groups.entry(head) {
                btree_map::Entry::Occupied(group) => {
                    let group = group.into_mut();
                    group.insert(tail, value);
                    group
                }
                btree_map::Entry::Vacant(place) => place.insert(Group::One((tail, value))),
            };
            while let Some((part, key, value)) = entries.next_if(|(_, key, _)| key.split().0 == head) {
                group.insert(Tail::new(part, key.split().1), value);
            }
        }
    }

    pub(super) fn get(&self, part: u8, key: ShortKey) -> Option<&V> {
        let (head, tail) = key.split();
        self.groups.get(&head)?.get(Tail::new(part, tail))
    }

    /// Returns all entries of a part in key order.
    pub(super) fn iter(&self, part: u8) -> impl Iterator<Item = (ShortKey, &V)> {
        self.range(part, (Bound::Unbounded, Bound::Unbounded))
    }

    /// Returns the entries of a range of a part in key order. The range must not be empty by its bounds alone.
    pub(super) fn range(
        &self,
        part: u8,
        (from, to): (Bound<ShortKey>, Bound<ShortKey>),
    ) -> impl Iterator<Item = (ShortKey, &V)> {
        let split = |key: ShortKey| (key.split().0, Tail::new(part, key.split().1));
        let (from, to) = (from.map(split), to.map(split));
        let (first, last) = Tail::of_part(part);
        let groups = self.groups.range((heads(from), heads(to)));
        groups.flat_map(move |(head, group)| {
            let entries = group.range((within(*head, from, first), within(*head, to, last)));
            let joined = |tail: Tail| ShortKey::joined(*head, (tail.rest, tail.length));
            entries.map(move |(tail, value)| (joined(tail), value))
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

/// Returns what a bound means within a group; if it is one of another group, the bound of the part.
fn within(head: u64, bound: Bound<(u64, Tail)>, of_part: Bound<Tail>) -> Bound<Tail> {
    match bound {
        Bound::Included((of, tail)) if of == head => Bound::Included(tail),
        Bound::Excluded((of, tail)) if of == head => Bound::Excluded(tail),
        Bound::Included(_) | Bound::Excluded(_) | Bound::Unbounded => of_part,
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
        /// Each part is a map of whole keys.
        #[test]
        fn it_reads_as_ordered_maps(
            batches in vec(vec((0..3_u8, keys(), any::<u32>()), 0..60), 0..6),
            asked in vec((0..3_u8, keys()), 20),
            part in 0..3_u8,
            from in bounds(),
            to in bounds(),
        ) {
            let (mut groups, mut map) = (Groups::default(), BTreeMap::new());
            for batch in batches {
                groups.insert_all(batch.iter().copied());
                map.extend(batch.into_iter().map(|(part, key, value)| ((part, key), value)));
            }
            let of_part = |part: u8| {
                let all = map.iter().filter(move |((of, _), _)| *of == part);
                all.map(|((_, key), value)| (*key, value)).collect::<BTreeMap<_, _>>()
            };
            for part in 0..3 {
                prop_assert!(groups.iter(part).eq(of_part(part)));
            }
            for (part, key) in asked {
                prop_assert_eq!(groups.get(part, key), map.get(&(part, key)));
            }
            if !is_disordered(from, to) {
                let expected = of_part(part);
                let expected = expected.range((from, to)).map(|(key, value)| (*key, *value));
                prop_assert!(groups.range(part, (from, to)).eq(expected));
            }
        }
    }
}
