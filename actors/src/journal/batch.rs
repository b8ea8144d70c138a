//! One atomic batch of writes to any keyspaces. The writes are encoded one behind the other in one buffer, so that a
//! batch of thousands costs a few allocations.

use procession_kernel::{Epoch, Seq};

use super::keys::Space;

/// One write of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write<'a> {
    /// The keyspace.
    pub space: &'a Space,
    /// The key.
    pub key: &'a [u8],
    /// The value; `None` deletes the key.
    pub value: Option<&'a [u8]>,
}

/// Where a write is in the buffer: its key from `begin` on, its value behind the key.
#[derive(Debug, Clone)]
struct Slot {
    space: Space,
    begin: usize,
    /// Where the key ends and the value begins.
    middle: usize,
    end: usize,
    is_delete: bool,
}

/// Writes that take effect together, with the epoch of their owner and their number.
#[derive(Debug, Clone)]
pub struct Batch {
    epoch: Epoch,
    seq: Seq,
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

impl Batch {
    /// Creates an empty batch of this owner.
    #[must_use]
    pub fn new(epoch: Epoch) -> Self {
        Self {
            epoch,
            seq: Seq::default(),
            bytes: Vec::new(),
            slots: Vec::new(),
        }
    }

    /// Creates an empty batch with room for half as much again as this one holds. Growing it from nothing would copy
    /// each of its bytes several times, and without the reserve every second batch would grow.
    #[must_use]
    pub fn like(other: &Self) -> Self {
        let room = |length: usize| length.saturating_add(length / 2);
        Self {
            epoch: other.epoch,
            seq: Seq::default(),
            bytes: Vec::with_capacity(room(other.bytes.len())),
            slots: Vec::with_capacity(room(other.slots.len())),
        }
    }

    /// Returns the epoch of the owner.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the number of the newest commit in the batch.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// Records that the batch now holds everything up to this commit.
    pub fn advance_to(&mut self, seq: Seq) {
        self.seq = seq;
    }

    /// Returns the number of writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns `true` if there are no writes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the size of all keys and values in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Reserves room for this many more writes, of this many bytes in total.
    pub fn reserve(&mut self, writes: usize, bytes: usize) {
        self.slots.reserve(writes);
        self.bytes.reserve(bytes);
    }

    /// Adds a put, encoded straight into the buffer.
    ///
    /// # Errors
    ///
    /// The error of `encode`; the batch is then unchanged.
    pub fn put_with<E>(
        &mut self,
        space: Space,
        key: &[u8],
        encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        match encode(&mut self.bytes) {
            Ok(()) => {
                let end = self.bytes.len();
                self.slots.push(Slot {
                    space,
                    begin,
                    middle,
                    end,
                    is_delete: false,
                });
                Ok(())
            }
            Err(error) => {
                self.bytes.truncate(begin);
                Err(error)
            }
        }
    }

    /// Adds a put of these bytes.
    pub fn put(&mut self, space: Space, key: &[u8], value: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        let end = self.bytes.len();
        self.slots.push(Slot {
            space,
            begin,
            middle,
            end,
            is_delete: false,
        });
    }

    /// Adds a delete.
    pub fn delete(&mut self, space: Space, key: &[u8]) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(key);
        let end = self.bytes.len();
        self.slots.push(Slot {
            space,
            begin,
            middle: end,
            end,
            is_delete: true,
        });
    }

    /// Returns the writes in the order in which they were added.
    pub fn writes(&self) -> impl ExactSizeIterator<Item = Write<'_>> {
        self.slots.iter().map(|slot| self.write_of(slot))
    }

    fn write_of<'a>(&'a self, slot: &'a Slot) -> Write<'a> {
        let bytes = |from: usize, to: usize| self.bytes.get(from..to).unwrap_or_default();
        Write {
            space: &slot.space,
            key: bytes(slot.begin, slot.middle),
            value: (!slot.is_delete).then(|| bytes(slot.middle, slot.end)),
        }
    }
}
