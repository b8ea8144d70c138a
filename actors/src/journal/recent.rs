//! Recent commits that are not in a store's tables yet.
//!
//! Rows and values are overwritten many times while a procedure runs. Putting each version into a table, in memory
//! and then on disk, costs more than everything else in a commit. So a batch is stored as one value, its *record*,
//! and its writes are found through an *index* in memory. From time to time a checkpoint of the store puts the newest
//! version of each key into tables.
//!
//! This module does not depend on a store: records are of any byte type that the store reads and writes without a
//! copy.

mod groups;
mod index;
mod record;

pub(super) use index::{LAST, Layers, PARTS, RangeEntries, ShortKey, Table, part_of};
#[cfg(feature = "testkit")]
pub(crate) use record::rewritten;
pub(super) use record::{BatchRecord, Encoder, decode};

/// The store's byte type, cheap to clone.
pub(super) trait Bytes: AsRef<[u8]> + Clone + for<'a> From<&'a [u8]> {}

impl<B: AsRef<[u8]> + Clone + for<'a> From<&'a [u8]>> Bytes for B {}
