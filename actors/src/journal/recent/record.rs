//! A batch as one value of the keyspace `recent`: a version byte, followed by the writes.
//!
//! Each write is its part (1 byte), the length of its key (1), the length of its value (4, little-endian; all ones:
//! the key is deleted), the key, and the value. A large batch is split into several such values.

use super::Bytes;
use super::index::{PARTS, ShortKey, ValueSpan};

/// The first byte of every record.
const VERSION: u8 = 1;
/// Size beyond which a batch continues in another record.
const PIECE_BYTES: usize = 16 * 1024 * 1024;
/// Length of a value that marks its key as deleted.
pub(in crate::journal) const DELETED: u32 = u32::MAX;
/// Bytes of a write in addition to its key and its value.
const FRAME: usize = 6;

/// Most bytes and writes for which room is kept from one batch to the next.
const KEPT_BYTES: usize = 1024 * 1024;
const KEPT_WRITES: usize = 16 * 1024;

/// A record, and where each of its writes is in it.
#[derive(Debug)]
pub(in crate::journal) struct BatchRecord<B> {
    pub(in crate::journal) bytes: B,
    pub(in crate::journal) writes: Vec<(u8, ShortKey, ValueSpan)>,
}

/// Collects the writes of a batch into records. It keeps its buffers from batch to batch, because touching fresh
/// memory costs more than writing to it.
#[derive(Debug)]
pub(in crate::journal) struct Encoder<B> {
    done: Vec<BatchRecord<B>>,
    bytes: Vec<u8>,
    writes: Vec<(u8, ShortKey, ValueSpan)>,
}

impl<B> Default for Encoder<B> {
    fn default() -> Self {
        Self {
            done: Vec::new(),
            bytes: Vec::new(),
            writes: Vec::new(),
        }
    }
}

impl<B: Bytes> Encoder<B> {
    /// Reserves room for a batch of this size, and discards leftovers of an earlier batch.
    pub(in crate::journal) fn begin(&mut self, writes: usize, bytes: usize) {
        let frames = writes.saturating_mul(FRAME).saturating_add(1);
        self.done.clear();
        self.bytes.clear();
        self.writes.clear();
        self.bytes.reserve(bytes.saturating_add(frames).min(PIECE_BYTES));
        self.writes.reserve(writes);
    }

    /// Takes back the buffers of records that are no longer needed.
    pub(in crate::journal) fn take_back(&mut self, records: Vec<(u64, BatchRecord<B>)>) {
        let room = records.into_iter().next().map(|(_, record)| record.writes);
        if let Some(room) = room.filter(|room| room.capacity() <= KEPT_WRITES) {
            self.writes = room;
        }
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
    }

    /// Adds a write; a value of `None` deletes. A value is shorter than 4 GiB, since every store has a lower bound.
    pub(in crate::journal) fn push(&mut self, part: u8, short: ShortKey, value: Option<&[u8]>) {
        let length = value.map_or(DELETED, |value| u32::try_from(value.len()).unwrap_or(DELETED));
        if self.bytes.is_empty() {
            self.bytes.push(VERSION);
        }
        let [a, b, c, d] = length.to_le_bytes();
        self.bytes.extend_from_slice(&[part, short.length(), a, b, c, d]);
        self.bytes.extend_from_slice(short.key());
        let at = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.writes.push((part, short, ValueSpan::new(at, length)));
        if self.bytes.len() >= PIECE_BYTES {
            self.end_record();
        }
    }

    fn end_record(&mut self) {
        if !self.writes.is_empty() {
            self.done.push(BatchRecord {
                bytes: B::from(&self.bytes[..]),
                writes: std::mem::take(&mut self.writes),
            });
            self.bytes.clear();
        }
    }

    /// Returns the records of the batch.
    pub(in crate::journal) fn finish(&mut self) -> Vec<BatchRecord<B>> {
        self.end_record();
        std::mem::take(&mut self.done)
    }
}

/// Decodes a record; returns `None` if its layout is unknown.
pub(in crate::journal) fn decode<B: Bytes>(record: B) -> Option<BatchRecord<B>> {
    let mut writes = Vec::new();
    let bytes = record.as_ref();
    let (version, mut rest) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    while let Some((head, behind)) = rest.split_first_chunk::<FRAME>() {
        let [part, key_length, length @ ..] = *head;
        let (key, behind) = behind.split_at_checked(usize::from(key_length))?;
        let short = ShortKey::of(key).filter(|_| usize::from(part) < PARTS.len())?;
        let at = u32::try_from(bytes.len() - behind.len()).ok()?;
        let span = ValueSpan::new(at, u32::from_le_bytes(length));
        rest = behind.get(span.len()..)?;
        writes.push((part, short, span));
    }
    let is_whole = rest.is_empty();
    is_whole.then_some(BatchRecord { bytes: record, writes })
}

/// Decodes a record and encodes its writes again, as one record.
#[cfg(feature = "testkit")]
pub(crate) fn rewritten(bytes: &[u8]) -> Option<Vec<u8>> {
    let record = decode(bytes.to_vec())?;
    let mut encoder = Encoder::<Vec<u8>>::default();
    encoder.begin(record.writes.len(), bytes.len());
    for (part, short, span) in record.writes {
        encoder.push(part, short, span.value(&record.bytes));
    }
    let again: Vec<u8> = encoder
        .finish()
        .iter()
        .flat_map(|record| record.bytes.clone())
        .collect();
    // A record without writes is never written.
    Some(if again.is_empty() { vec![VERSION] } else { again })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<BatchRecord<Vec<u8>>> {
        let mut encoder = Encoder::default();
        encoder.begin(3, 100);
        for (part, key, value) in [
            (0, &b"key"[..], Some(&b"value"[..])),
            (1, b"", Some(b"")),
            (4, &[9; 16], None),
        ] {
            encoder.push(part, ShortKey::of(key).expect("it is short"), value);
        }
        encoder.finish()
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let [record] = &sample()[..] else {
            panic!("it is one record")
        };
        let read = decode(record.bytes.clone()).expect("it is whole");
        assert_eq!(read.writes, record.writes);
        let values: Vec<_> = read.writes.iter().map(|(_, _, span)| span.value(&read.bytes)).collect();
        assert_eq!(values, [Some(&b"value"[..]), Some(&b""[..]), None]);
    }

    /// Stored data stays readable: these bytes never change.
    #[test]
    fn a_record_of_the_first_version_is_read() {
        let golden: &[u8] = &[
            1, // version
            0, 3, 5, 0, 0, 0, b'k', b'e', b'y', b'v', b'a', b'l', b'u', b'e', // procedures
            1, 0, 0, 0, 0, 0, // payloads: an empty key, an empty value
            4, 16, 255, 255, 255, 255, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, // finished: deleted
        ];
        let read = decode(golden.to_vec()).expect("it is whole");
        let [record] = &sample()[..] else {
            panic!("it is one record")
        };
        assert_eq!(read.writes, record.writes);
        assert_eq!(&record.bytes[..], golden, "it is written in the same way");
        let parts = PARTS.map(|space| space.name());
        assert_eq!(parts, ["procedures", "payloads", "history", "live", "finished"]);
    }

    #[test]
    fn a_record_that_is_cut_is_none() {
        let [record] = &sample()[..] else {
            panic!("it is one record")
        };
        let whole = record.bytes.to_vec();
        // A record cut at the end of a write is a valid record. The store's checksums detect such a cut.
        let ends = [1, 1 + 6 + 3 + 5, 1 + 6 + 3 + 5 + 6];
        for cut in (0..whole.len()).filter(|cut| !ends.contains(cut)) {
            assert!(decode(whole[..cut].to_vec()).is_none(), "cut at {cut}");
        }
    }

    /// Growing by one byte would copy the whole batch.
    #[test]
    fn the_room_that_is_made_is_enough_and_is_kept() {
        let mut encoder = Encoder::<Vec<u8>>::default();
        let (key, value) = ([7; 16], [8; 100]);
        encoder.begin(1_000, 1_000 * (key.len() + value.len()));
        let room = |encoder: &Encoder<Vec<u8>>| (encoder.bytes.capacity(), encoder.writes.capacity());
        let made = room(&encoder);
        for _ in 0..1_000 {
            encoder.push(0, ShortKey::of(&key).expect("it is short"), Some(&value));
        }
        assert_eq!(room(&encoder), made);
        let records = encoder.finish();
        assert_eq!(records.len(), 1);
        encoder.take_back((1..).zip(records).collect());
        assert_eq!(room(&encoder), made);
        encoder.begin(10, 10);
        assert_eq!(room(&encoder), made);
        assert!(encoder.finish().is_empty(), "what was there before is gone");
    }

    #[test]
    fn a_large_batch_is_several_records() {
        let value = vec![7; PIECE_BYTES / 2];
        let mut encoder = Encoder::<Vec<u8>>::default();
        encoder.begin(5, 5 * value.len());
        for key in 0..5_u8 {
            encoder.push(0, ShortKey::of(&[key]).expect("it is short"), Some(&value));
        }
        let lengths: Vec<_> = encoder.finish().iter().map(|record| record.writes.len()).collect();
        assert_eq!(lengths, [2, 2, 1]);
    }
}
