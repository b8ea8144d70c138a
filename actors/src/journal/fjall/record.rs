//! A batch as one value of the keyspace `recent`: a version byte, and its writes one behind the other.
//!
//! Each write is its part (1 byte), the length of its key (1), the length of its value (4, little-endian;
//! all ones: the key is deleted), the key, and the value. A large batch is several such values.

use fjall::Slice;

use super::recent::{PARTS, Place, Spot};

/// The first byte of every record.
const VERSION: u8 = 1;
/// A batch goes on in another record beyond so many bytes.
const PIECE_BYTES: usize = 16 * 1024 * 1024;
/// Length of a value that says that its key is deleted.
pub(super) const DELETED: u32 = u32::MAX;
/// Bytes of a write beside its key and its value.
const FRAME: usize = 6;

/// A record, and where each of its writes is in it.
pub(super) struct Record {
    pub(super) bytes: Slice,
    pub(super) writes: Vec<(u8, Place, Spot)>,
}

/// Writes of a batch on their way into records.
pub(super) struct Encoder {
    done: Vec<Record>,
    bytes: Vec<u8>,
    writes: Vec<(u8, Place, Spot)>,
}

impl Encoder {
    /// Makes room for a batch of so many writes and bytes.
    pub(super) fn with_room(writes: usize, bytes: usize) -> Self {
        let room = bytes.saturating_add(writes.saturating_mul(FRAME)).min(PIECE_BYTES);
        Self {
            done: Vec::new(),
            bytes: Vec::with_capacity(room),
            writes: Vec::with_capacity(writes),
        }
    }

    /// Adds a write; none deletes. A value is not longer than [`VALUE_MAX`](super::VALUE_MAX).
    pub(super) fn push(&mut self, part: u8, place: Place, value: Option<&[u8]>) {
        let length = value.map_or(DELETED, |value| u32::try_from(value.len()).unwrap_or(DELETED));
        if self.bytes.is_empty() {
            self.bytes.push(VERSION);
        }
        let (key, key_length) = place.key();
        self.bytes.push(part);
        self.bytes.push(key_length);
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes
            .extend_from_slice(key.get(..usize::from(key_length)).unwrap_or_default());
        let at = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.writes.push((part, place, Spot::new(at, length)));
        if self.bytes.len() >= PIECE_BYTES {
            self.end_record();
        }
    }

    fn end_record(&mut self) {
        if !self.writes.is_empty() {
            self.done.push(Record {
                bytes: Slice::from(std::mem::take(&mut self.bytes)),
                writes: std::mem::take(&mut self.writes),
            });
        }
    }

    pub(super) fn finish(mut self) -> Vec<Record> {
        self.end_record();
        self.done
    }
}

/// Reads a record back; none if its shape is not known.
pub(super) fn decode(bytes: Slice) -> Option<Record> {
    let mut writes = Vec::new();
    let (version, mut rest) = bytes.split_first()?;
    if *version != VERSION {
        return None;
    }
    while let Some((head, behind)) = rest.split_first_chunk::<FRAME>() {
        let [part, key_length, length @ ..] = *head;
        let (key, behind) = behind.split_at_checked(usize::from(key_length))?;
        let place = Place::of(key).filter(|_| usize::from(part) < PARTS.len())?;
        let at = u32::try_from(bytes.len() - behind.len()).ok()?;
        let spot = Spot::new(at, u32::from_le_bytes(length));
        rest = behind.get(spot.len()..)?;
        writes.push((part, place, spot));
    }
    let is_whole = rest.is_empty();
    is_whole.then_some(Record {
        bytes: bytes.clone(),
        writes,
    })
}

/// Reads a record and writes its writes again, as one.
#[cfg(feature = "testkit")]
pub(crate) fn rewritten(bytes: &[u8]) -> Option<Vec<u8>> {
    let record = decode(Slice::from(bytes))?;
    let mut encoder = Encoder::with_room(record.writes.len(), bytes.len());
    for (part, place, spot) in record.writes {
        encoder.push(part, place, spot.value(&record.bytes));
    }
    let again: Vec<u8> = encoder
        .finish()
        .iter()
        .flat_map(|record| record.bytes.to_vec())
        .collect();
    // A record without writes is not written at all.
    Some(if again.is_empty() { vec![VERSION] } else { again })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Record> {
        let mut encoder = Encoder::with_room(3, 100);
        for (part, key, value) in [
            (0, &b"key"[..], Some(&b"value"[..])),
            (1, b"", Some(b"")),
            (4, &[9; 16], None),
        ] {
            encoder.push(part, Place::of(key).expect("it is short"), value);
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
        let values: Vec<_> = read.writes.iter().map(|(_, _, spot)| spot.value(&read.bytes)).collect();
        assert_eq!(values, [Some(&b"value"[..]), Some(&b""[..]), None]);
    }

    /// What has landed stays readable: these bytes never change.
    #[test]
    fn a_record_of_the_first_version_is_read() {
        let golden: &[u8] = &[
            1, // version
            0, 3, 5, 0, 0, 0, b'k', b'e', b'y', b'v', b'a', b'l', b'u', b'e', // procedures
            1, 0, 0, 0, 0, 0, // payloads: an empty key, an empty value
            4, 16, 255, 255, 255, 255, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, // finished: deleted
        ];
        let read = decode(Slice::from(golden)).expect("it is whole");
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
        // Where a write ends, a shorter record is whole: fjall's checksums tell that it was cut.
        let ends = [1, 1 + 6 + 3 + 5, 1 + 6 + 3 + 5 + 6];
        for cut in (0..whole.len()).filter(|cut| !ends.contains(cut)) {
            assert!(decode(Slice::from(&whole[..cut])).is_none(), "cut at {cut}");
        }
    }

    #[test]
    fn a_large_batch_is_several_records() {
        let value = vec![7; PIECE_BYTES / 2];
        let mut encoder = Encoder::with_room(5, 5 * value.len());
        for key in 0..5_u8 {
            encoder.push(0, Place::of(&[key]).expect("it is short"), Some(&value));
        }
        let lengths: Vec<_> = encoder.finish().iter().map(|record| record.writes.len()).collect();
        assert_eq!(lengths, [2, 2, 1]);
    }
}
