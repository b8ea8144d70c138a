//! What was committed lately and is not in a store's tables yet.
//!
//! Rows and values are written over and over while a procedure runs. To put each version into a table of a store's,
//! in memory and then on disk, costs more than all else that a commit does. So a batch is one value, its *record*,
//! and its writes are found through an *index* in memory. From time to time a checkpoint of the store puts the newest
//! version of each key into tables.
//!
//! Nothing here knows a store: records are bytes of whatever type a store reads and writes without a copy.

mod index;
mod record;

pub(super) use index::{LAST, Layers, PARTS, RangeEntries, ShortKey, Table, part_of};
#[cfg(feature = "testkit")]
pub(crate) use record::rewritten;
pub(super) use record::{BatchRecord, Encoder, decode};

/// Bytes as a store has them, cheap to clone.
pub(super) trait Bytes: AsRef<[u8]> + Clone + for<'a> From<&'a [u8]> {}

impl<B: AsRef<[u8]> + Clone + for<'a> From<&'a [u8]>> Bytes for B {}
