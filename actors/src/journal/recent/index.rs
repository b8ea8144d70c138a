//! The index of recent commits: which record holds the newest version of each key, and where.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use super::Bytes;
use super::groups::Groups;
use super::record::{BatchRecord, DELETED};
use crate::journal::keys::Space;

/// Keyspaces whose writes pass through here: those written by every stage or every procedure. A keyspace's position
/// in this list is stored on disk.
pub(in crate::journal) const PARTS: [Space; 5] = [
    Space::Procedures,
    Space::Payloads,
    Space::History,
    Space::Live,
    Space::Finished,
];

/// How many of these, from the first, have keys that begin with a family's number.
const FAMILY_PARTS: u8 = 4;

/// The order of the parts within the index, which is in memory alone. The rows are first and the histories last of a family,
/// because each stage overwrites a row and adds to a history, and both ends are found at once.
const ORDER: [u8; PARTS.len()] = [0, 1, 3, 2, 4];

/// Returns where a part is in [`ORDER`].
fn rank(part: u8) -> u8 {
    ORDER.get(usize::from(part)).copied().unwrap_or(part)
}

/// Longest key that passes through here. The engine's keys have at most 16 bytes.
const KEY_MAX: usize = 16;

/// The last key of each of these keyspaces, once a checkpoint has written to it. It has no meaning, and readers do
/// not see it; it keeps the keyspace's newest number up.
pub(in crate::journal) const LAST: [u8; KEY_MAX + 1] = [0xff; KEY_MAX + 1];

/// Approximate memory that the index needs for a write.
const INDEX_BYTES: usize = 48;

/// Returns the position of a keyspace in [`PARTS`].
pub(in crate::journal) fn part_of(space: &Space) -> Option<u8> {
    let position = PARTS.iter().position(|part| part == space)?;
    u8::try_from(position).ok()
}

/// A short key: its bytes, padded with zeros, followed by their number. It sorts as the key does. Stored as bytes to
/// keep it small, so that a cache line holds as many index entries as possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::journal) struct ShortKey {
    bytes: [u8; KEY_MAX],
    length: u8,
}

impl Ord for ShortKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for ShortKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl ShortKey {
    /// Returns `None` if the key is too long.
    pub(in crate::journal) fn of(key: &[u8]) -> Option<Self> {
        let mut bytes = [0; KEY_MAX];
        bytes.get_mut(..key.len())?.copy_from_slice(key);
        Some(Self {
            bytes,
            length: u8::try_from(key.len()).ok()?,
        })
    }

    /// Compares the bytes as one number.
    const fn order(self) -> (u128, u8) {
        (u128::from_be_bytes(self.bytes), self.length)
    }

    /// Returns the first eight bytes as a number, the other eight as a number, and the length. In this order they sort as
    /// the key does.
    pub(super) const fn split(self) -> (u64, (u64, u8)) {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.bytes;
        let head = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        (head, (u64::from_be_bytes([i, j, k, l, m, n, o, p]), self.length))
    }

    pub(super) const fn joined(head: u64, (rest, length): (u64, u8)) -> Self {
        let [a, b, c, d, e, f, g, h] = head.to_be_bytes();
        let [i, j, k, l, m, n, o, p] = rest.to_be_bytes();
        Self {
            bytes: [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p],
            length,
        }
    }

    pub(in crate::journal) const fn length(self) -> u8 {
        self.length
    }

    /// Returns the key.
    pub(in crate::journal) fn key(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// Returns the first position at or behind a key of any length.
fn from_bound(key: &[u8]) -> Bound<ShortKey> {
    bound(key, Bound::Included, Bound::Excluded)
}

/// Returns the end of the positions before a key of any length.
fn to_bound(key: &[u8]) -> Bound<ShortKey> {
    bound(key, Bound::Excluded, Bound::Included)
}

/// A key that is too long for a position sorts right behind the position of its prefix.
fn bound(key: &[u8], at: fn(ShortKey) -> Bound<ShortKey>, behind: fn(ShortKey) -> Bound<ShortKey>) -> Bound<ShortKey> {
    match (ShortKey::of(key), key.get(..KEY_MAX).and_then(ShortKey::of)) {
        (Some(short), _) => at(short),
        (None, Some(beginning)) => behind(beginning),
        (None, None) => Bound::Unbounded,
    }
}

/// Where in its record the value of a write is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::journal) struct ValueSpan {
    record: u32,
    at: u32,
    length: u32,
}

impl ValueSpan {
    pub(in crate::journal) const fn new(at: u32, length: u32) -> Self {
        Self { record: 0, at, length }
    }

    /// Returns the length of the value in bytes.
    pub(in crate::journal) fn len(self) -> usize {
        if self.length == DELETED {
            return 0;
        }
        usize::try_from(self.length).unwrap_or(usize::MAX)
    }

    /// Returns the value, or `None` if the key is deleted.
    pub(in crate::journal) fn value(self, record: &[u8]) -> Option<&[u8]> {
        let at = usize::try_from(self.at).unwrap_or(usize::MAX);
        let value = record.get(at..at.saturating_add(self.len())).unwrap_or_default();
        (self.length != DELETED).then_some(value)
    }
}

/// Records, and an index of the newest write of each key in them.
pub(in crate::journal) struct Table<B> {
    records: Vec<B>,
    /// Keys of the records in the keyspace `recent`.
    numbers: Vec<u64>,
    bytes: usize,
    /// The keyspaces whose keys begin with a family's number. A commit writes mostly to one family.
    families: Groups<ValueSpan>,
    /// The others. A walk over these must not pass all families.
    others: Groups<ValueSpan>,
}

impl<B> Default for Table<B> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            numbers: Vec::new(),
            bytes: 0,
            families: Groups::default(),
            others: Groups::default(),
        }
    }
}

impl<B: Bytes> Table<B> {
    /// Adds a commit that is newer than everything in the table.
    pub(in crate::journal) fn add(&mut self, number: u64, record: &BatchRecord<B>) {
        let index = u32::try_from(self.records.len()).unwrap_or(u32::MAX);
        self.numbers.push(number);
        self.bytes += record.bytes.as_ref().len() + record.writes.len() * INDEX_BYTES;
        let writes = |of_family: bool| {
            let writes = record
                .writes
                .iter()
                .filter(move |(part, ..)| (*part < FAMILY_PARTS) == of_family);
            writes.map(move |(part, short, span)| (rank(*part), *short, ValueSpan { record: index, ..*span }))
        };
        self.families.insert_all(writes(true));
        self.others.insert_all(writes(false));
        self.records.push(record.bytes.clone());
    }

    /// Returns the memory in bytes, including the index.
    pub(in crate::journal) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(in crate::journal) fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Returns the newest value of each key of a part, in key order; `None` marks a deleted key.
    pub(in crate::journal) fn entries(&self, part: u8) -> impl Iterator<Item = (ShortKey, Option<&[u8]>)> {
        let entries = self.groups(part).iter(rank(part));
        entries.map(|(short, span)| (short, self.value(*span)))
    }

    const fn groups(&self, part: u8) -> &Groups<ValueSpan> {
        if part < FAMILY_PARTS {
            &self.families
        } else {
            &self.others
        }
    }

    fn value(&self, span: ValueSpan) -> Option<&[u8]> {
        let record = usize::try_from(span.record)
            .ok()
            .and_then(|record| self.records.get(record));
        span.value(record?.as_ref())
    }

    /// Returns `None` if the key is not here, and `Some(None)` if it is deleted.
    fn get(&self, part: u8, short: ShortKey) -> Option<Option<&[u8]>> {
        let span = self.groups(part).get(rank(part), short)?;
        Some(self.value(*span))
    }

    fn range(
        &self,
        part: u8,
        bounds: (Bound<ShortKey>, Bound<ShortKey>),
    ) -> impl Iterator<Item = (ShortKey, Option<&[u8]>)> {
        let entries = self.groups(part).range(rank(part), bounds);
        entries.map(|(short, span)| (short, self.value(*span)))
    }
}

/// The table that commits go to, and the table that a checkpoint is writing, if any.
pub(in crate::journal) struct Layers<B> {
    pub(in crate::journal) current: Table<B>,
    pub(in crate::journal) frozen: Option<Arc<Table<B>>>,
}

impl<B> Default for Layers<B> {
    fn default() -> Self {
        Self {
            current: Table::default(),
            frozen: None,
        }
    }
}

/// Entries of a range, including deletes, which hide the tables' entries.
#[derive(Debug, Default)]
pub(in crate::journal) struct RangeEntries {
    pub(in crate::journal) entries: Vec<(ShortKey, Option<Vec<u8>>)>,
    /// `true` if there are more entries behind the last.
    pub(in crate::journal) is_cut: bool,
}

impl<B: Bytes> Layers<B> {
    pub(in crate::journal) fn bytes(&self) -> usize {
        self.current.bytes() + self.frozen.as_ref().map_or(0, |frozen| frozen.bytes())
    }

    /// Returns `None` if the key was not written recently, and `Some(None)` if it was deleted.
    pub(in crate::journal) fn get(&self, part: u8, key: &[u8]) -> Option<Option<Vec<u8>>> {
        let short = ShortKey::of(key)?;
        let newer = self.current.get(part, short);
        let found = newer.or_else(|| self.frozen.as_ref()?.get(part, short))?;
        Some(found.map(<[u8]>::to_vec))
    }

    /// Returns the entries of a range, until `limit` of them have a value.
    pub(in crate::journal) fn range(&self, part: u8, from: &[u8], to: Option<&[u8]>, limit: usize) -> RangeEntries {
        let mut found = RangeEntries::default();
        let mut values = 0;
        for (short, value) in self.newest(part, from, to) {
            if values == limit {
                found.is_cut = true;
                return found;
            }
            values += usize::from(value.is_some());
            found.entries.push((short, value.map(<[u8]>::to_vec)));
        }
        found
    }

    /// Returns the entries of a range, or `None` if they have more than so many bytes.
    pub(in crate::journal) fn few(
        &self,
        part: u8,
        from: &[u8],
        to: Option<&[u8]>,
        bytes: usize,
    ) -> Option<Vec<(ShortKey, Option<Vec<u8>>)>> {
        let mut found = Vec::new();
        let mut room = bytes;
        for (short, value) in self.newest(part, from, to) {
            room = room.checked_sub(KEY_MAX + value.map_or(0, <[u8]>::len))?;
            found.push((short, value.map(<[u8]>::to_vec)));
        }
        Some(found)
    }

    /// Returns the newest entry of each key of a range, in key order.
    fn newest(&self, part: u8, from: &[u8], to: Option<&[u8]>) -> impl Iterator<Item = (ShortKey, Option<&[u8]>)> {
        let bounds = (from_bound(from), to.map_or(Bound::Unbounded, to_bound));
        let tables = (!is_empty(&bounds)).then_some((&self.current, self.frozen.as_deref()));
        let newer = tables.map(|(current, _)| current.range(part, bounds));
        let older = tables
            .and_then(|(_, frozen)| frozen)
            .map(|frozen| frozen.range(part, bounds));
        let mut newer = newer.into_iter().flatten().peekable();
        let mut older = older.into_iter().flatten().peekable();
        std::iter::from_fn(move || match (newer.peek(), older.peek()) {
            (Some((new, _)), Some((old, _))) if new == old => {
                older.next();
                newer.next()
            }
            (Some((new, _)), Some((old, _))) if old < new => older.next(),
            (Some(_), _) => newer.next(),
            (None, _) => older.next(),
        })
    }
}

/// Returns `true` for an empty range, over which a map would panic.
fn is_empty(bounds: &(Bound<ShortKey>, Bound<ShortKey>)) -> bool {
    match bounds {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from >= to,
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
    }
}
