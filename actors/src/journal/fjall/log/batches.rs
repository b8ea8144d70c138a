//! Parses the batches in the bytes of a log, and what they say about commits.

use procession_kernel::{Epoch, Seq};
use xxhash_rust::xxh3::xxh3_64;

use super::super::chain::{CHAIN_KEY, Link, Newest};
use crate::journal::layout::SEQ_KEY;

/// Ends every batch, behind its checksum.
const TRAILER: &[u8] = b"FJL\x03";
const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
/// Type of an item that puts a value; all others delete.
const VALUE: u8 = 0;

/// A write of a batch; empty for an item that clears a keyspace.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Item<'a> {
    pub(super) keyspace: u64,
    pub(super) key: &'a [u8],
    /// `None` deletes.
    pub(super) value: Option<&'a [u8]>,
}

/// A whole batch of a log.
pub(super) struct Batch<'a> {
    pub(super) length: usize,
    pub(super) seqno: u64,
    count: u64,
    items: &'a [u8],
    /// The last two items. They are kept because a log is walked at each start, and most need not be walked again for
    /// them.
    ends: [Item<'a>; 2],
}

/// A batch that is a commit of the journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Commit {
    pub(super) number: (Epoch, Seq),
    /// `None` if an older release wrote the commit without naming its predecessor.
    pub(super) link: Option<Link>,
    /// The keyspace `meta`, as fjall numbers it.
    pub(super) meta: u64,
}

impl<'a> Batch<'a> {
    pub(super) fn items(&self) -> impl Iterator<Item = Item<'a>> {
        let mut cursor = Cursor {
            bytes: self.items,
            at: 0,
        };
        (0..self.count).map_while(move |_| read_item(&mut cursor))
    }

    /// Returns the key and the value of the last write.
    pub(super) fn last(&self) -> (&'a [u8], &'a [u8]) {
        let [_, last] = self.ends;
        (last.key, last.value.unwrap_or_default())
    }

    /// Returns the commit. Each ends with the row of its number; up to format 5 the row before it has the link.
    pub(super) fn commit(&self) -> Option<Commit> {
        let [chain, seq] = self.ends;
        let is_chain = chain.keyspace == seq.keyspace && chain.key == CHAIN_KEY;
        let row = seq.value.filter(|_| seq.key == SEQ_KEY)?;
        let newest = Newest::decode(row, chain.value.filter(|_| is_chain))?;
        Some(Commit {
            number: newest.number,
            link: newest.link,
            meta: seq.keyspace,
        })
    }
}

/// Returns the batch at the beginning of the bytes, if it is whole.
pub(super) fn read_batch(bytes: &[u8]) -> Option<Batch<'_>> {
    let mut cursor = Cursor { bytes, at: 0 };
    if cursor.byte()? != START {
        return None;
    }
    let count = cursor.number::<4>()?;
    let seqno = cursor.number::<8>()?;
    let from = cursor.at;
    let mut ends = [Item::default(); 2];
    for _ in 0..count {
        let [_, before] = ends;
        ends = [before, read_item(&mut cursor)?];
    }
    let items = bytes.get(from..cursor.at)?;
    let sum = xxh3_64(items);
    if cursor.byte()? != END || cursor.number::<8>()? != sum {
        return None;
    }
    let is_whole = cursor.take(TRAILER.len())? == TRAILER;
    is_whole.then_some(Batch {
        length: cursor.at,
        seqno,
        count,
        items,
        ends,
    })
}

/// Returns `true` if there is a batch anywhere in the bytes. The checksum makes a match by chance practically
/// impossible.
pub(super) fn holds_batch(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .enumerate()
        .any(|(at, byte)| *byte == START && bytes.get(at..).and_then(read_batch).is_some())
}

/// Reads tag, value type, compression, keyspace, three lengths, key and value.
fn read_item<'a>(cursor: &mut Cursor<'a>) -> Option<Item<'a>> {
    match cursor.byte()? {
        ITEM => {
            let kind = cursor.byte()?;
            cursor.skip(1)?;
            let keyspace = cursor.number::<8>()?;
            let key = usize::try_from(cursor.number::<2>()?).ok()?;
            cursor.skip(4)?;
            let value = usize::try_from(cursor.number::<4>()?).ok()?;
            let (key, value) = (cursor.take(key)?, cursor.take(value)?);
            Some(Item {
                keyspace,
                key,
                value: (kind == VALUE).then_some(value),
            })
        }
        CLEAR => cursor.skip(8).map(|()| Item::default()),
        _ => None,
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn skip(&mut self, length: u64) -> Option<()> {
        self.take(usize::try_from(length).ok()?).map(|_| ())
    }

    /// Reads a little-endian number of this many bytes.
    fn number<const BYTES: usize>(&mut self) -> Option<u64> {
        let bytes = self.take(BYTES)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| (number << 8) | u64::from(*byte)),
        )
    }
}
