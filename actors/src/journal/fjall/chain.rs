//! The row in `meta` by which a commit names its predecessor.
//!
//! fjall removes a log once its data is in tables, and takes the logs that it finds for complete. So each commit
//! names its predecessor: if a log is missing or ends too early, some commit has a predecessor that is nowhere. The
//! row also names its own commit. A release that does not write the row leaves an outdated one, which is then
//! ignored.

use procession_kernel::{Epoch, Seq};

/// Key in `meta` of this row.
pub(super) const CHAIN_KEY: &[u8] = b"chain";
/// The first byte of the row.
const VERSION: u8 = 1;
/// Bytes of the row: its version, two commits, two numbers of records.
const LENGTH: usize = 1 + 16 + 16 + 8 + 8;

/// What a commit says about itself and its predecessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) commit: (Epoch, Seq),
    /// The preceding commit; zeros for the first of all.
    pub(super) before: (Epoch, Seq),
    /// The oldest record in `recent` after this commit, and the newest that ever was. There are none if the oldest is
    /// greater than the newest.
    pub(super) oldest: u64,
    pub(super) newest: u64,
}

impl Link {
    pub(super) fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [VERSION; LENGTH];
        let numbers = [
            self.commit.0.0,
            self.commit.1.0,
            self.before.0.0,
            self.before.1.0,
            self.oldest,
            self.newest,
        ];
        let (_, places) = bytes.split_at_mut(1);
        for (place, number) in places.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// Decodes the row of this commit; `None` if its layout is unknown, or if it belongs to another commit.
    pub(super) fn decode(bytes: &[u8], commit: (Epoch, Seq)) -> Option<Self> {
        let (version, numbers) = bytes.split_first().filter(|_| bytes.len() == LENGTH)?;
        let number = |index: usize| -> Option<u64> {
            let bytes = numbers.get(index * 8..index * 8 + 8)?;
            Some(u64::from_be_bytes(bytes.try_into().ok()?))
        };
        let link = Self {
            commit: (Epoch(number(0)?), Seq(number(1)?)),
            before: (Epoch(number(2)?), Seq(number(3)?)),
            oldest: number(4)?,
            newest: number(5)?,
        };
        (*version == VERSION && link.commit == commit).then_some(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored data stays readable: these bytes never change.
    #[test]
    fn a_link_of_the_first_version_is_read_and_written() {
        let link = Link {
            commit: (Epoch(1), Seq(2)),
            before: (Epoch(3), Seq(4)),
            oldest: 5,
            newest: 6,
        };
        let mut golden = vec![1];
        for number in 1..=6 {
            golden.extend([0, 0, 0, 0, 0, 0, 0, number]);
        }
        assert_eq!(link.encode().to_vec(), golden);
        assert_eq!(Link::decode(&golden, link.commit), Some(link));
        assert_eq!(Link::decode(&golden, link.before), None, "it is of another commit");
        golden.push(0);
        assert_eq!(Link::decode(&golden, link.commit), None);
    }
}
