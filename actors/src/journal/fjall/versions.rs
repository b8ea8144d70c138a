//! The row in `meta` that says how new the tables of each keyspace are.
//!
//! Data in tables is no longer in any log. Nothing in a keyspace shows whether its tables are the newest, so an older
//! copy of it would be accepted. fjall numbers each change of a keyspace's tables, and stores the number on disk
//! before the change takes effect. So a commit notes the numbers, and an opening may find higher ones, never lower.
//! The numbers only grow, whichever release is running.

use std::collections::BTreeMap;

use fjall::{AbstractTree, Database, Keyspace};

/// Key in `meta` of this row.
pub(super) const VERSIONS_KEY: &[u8] = b"versions";
/// The first byte of the row. For each keyspace its number and that of its tables follow, big-endian.
const VERSION: u8 = 1;
/// Commits after which the numbers are checked in any case. A change may take its sequence number before it takes
/// effect, so that a check in between does not see it.
const LOOK_EVERY: u32 = 64;

/// The numbers that were noted last.
#[derive(Debug, Default)]
pub(super) struct Versions {
    noted: BTreeMap<u64, u64>,
    /// The next sequence number if no tables have changed.
    expected: u64,
    looked: u32,
}

impl Versions {
    /// Returns the row if a commit must note it anew. Every change of tables takes a sequence number, and so does
    /// every commit. If no number was skipped, nothing has changed.
    pub(super) fn row<'a>(
        &mut self,
        database: &Database,
        must_look: bool,
        keyspaces: impl FnOnce() -> Vec<&'a Keyspace>,
    ) -> Option<Vec<u8>> {
        let next = database.seqno();
        let has_changed = next != self.expected;
        // The commit itself takes one number.
        self.expected = next + 1;
        self.looked += 1;
        if !has_changed && !must_look && self.looked < LOOK_EVERY {
            return None;
        }
        self.looked = 0;
        let found = keyspaces().into_iter();
        let found = found.map(|keyspace| (keyspace.id(), keyspace.tree.current_version().id()));
        let found: BTreeMap<u64, u64> = found.collect();
        if found == self.noted {
            return None;
        }
        self.noted = found;
        Some(encode(&self.noted))
    }
}

fn encode(numbers: &BTreeMap<u64, u64>) -> Vec<u8> {
    let mut bytes = vec![VERSION];
    for (keyspace, version) in numbers {
        bytes.extend(keyspace.to_be_bytes());
        bytes.extend(version.to_be_bytes());
    }
    bytes
}

/// Decodes the row; an unknown layout yields nothing.
pub(super) fn decode(bytes: &[u8]) -> BTreeMap<u64, u64> {
    let Some((&VERSION, pairs)) = bytes.split_first() else {
        return BTreeMap::new();
    };
    let (pairs, _) = pairs.as_chunks::<16>();
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte));
    let pairs = pairs.iter().map(|pair| pair.split_at(8));
    pairs
        .map(|(keyspace, version)| (number(keyspace), number(version)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored data stays readable: these bytes never change.
    #[test]
    fn a_row_of_the_first_version_is_read_and_written() {
        let golden = [
            1, // version
            0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 0, // keyspace 2: 256
            0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, // keyspace 3: 7
        ];
        let numbers = BTreeMap::from([(2, 256), (3, 7)]);
        assert_eq!(encode(&numbers), golden);
        assert_eq!(decode(&golden), numbers);
        assert_eq!(decode(&[2, 0]), BTreeMap::new());
        assert_eq!(decode(&[]), BTreeMap::new());
    }
}
