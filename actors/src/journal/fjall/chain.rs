//! The row in `meta` that numbers the newest commit, and names its predecessor.
//!
//! fjall removes a log once its data is in tables, and takes the logs that it finds for complete. So each commit
//! names its predecessor: if a log is missing or ends too early, some commit has a predecessor that is nowhere.
//!
//! Up to format 5 the row has only the number, and what a commit says about its predecessor is in a row of its own,
//! which names the commit as well: a release that does not write that row leaves an outdated one, which is then
//! ignored.

use procession_kernel::{Epoch, Seq};

/// Key in `meta` of the link up to format 5.
pub(super) const CHAIN_KEY: &[u8] = b"chain";
/// The first byte of that row.
const VERSION: u8 = 1;
/// Bytes of the row of a commit: two commits, two numbers of records.
const LENGTH: usize = 16 + 16 + 8 + 8;

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
        let mut bytes = [0; LENGTH];
        let numbers = [
            self.commit.0.0,
            self.commit.1.0,
            self.before.0.0,
            self.before.1.0,
            self.oldest,
            self.newest,
        ];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let number = |index: usize| -> Option<u64> {
            let bytes = bytes.get(index * 8..index * 8 + 8)?;
            Some(u64::from_be_bytes(bytes.try_into().ok()?))
        };
        let link = Self {
            commit: (Epoch(number(0)?), Seq(number(1)?)),
            before: (Epoch(number(2)?), Seq(number(3)?)),
            oldest: number(4)?,
            newest: number(5)?,
        };
        (bytes.len() == LENGTH).then_some(link)
    }
}

/// The newest commit, as the rows of `meta` have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Newest {
    pub(super) number: (Epoch, Seq),
    /// `None` if a release that did not name the predecessor wrote the commit.
    pub(super) link: Option<Link>,
}

impl Newest {
    /// Decodes the row of a commit. `chain` is the row beside it, which counts for a commit of format 5 or older.
    /// Returns `None` if the row has no known layout.
    pub(super) fn decode(row: &[u8], chain: Option<&[u8]>) -> Option<Self> {
        if let Some(link) = Link::decode(row) {
            return Some(Self {
                number: link.commit,
                link: Some(link),
            });
        }
        let number = decode_number(row)?;
        let link = chain.and_then(|chain| {
            let (version, link) = chain.split_first()?;
            Link::decode(link).filter(|link| *version == VERSION && link.commit == number)
        });
        Some(Self { number, link })
    }
}

/// Returns the number of a commit as a row has it: epoch and `Seq`.
pub(super) fn encode_number(epoch: Epoch, seq: Seq) -> [u8; 16] {
    ((u128::from(epoch.0) << 64) | u128::from(seq.0)).to_be_bytes()
}

fn decode_number(bytes: &[u8]) -> Option<(Epoch, Seq)> {
    let number = u128::from_be_bytes(bytes.try_into().ok()?);
    let seq = u64::try_from(number & u128::from(u64::MAX)).ok()?;
    Some((Epoch(u64::try_from(number >> 64).ok()?), Seq(seq)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link {
        commit: (Epoch(1), Seq(2)),
        before: (Epoch(3), Seq(4)),
        oldest: 5,
        newest: 6,
    };

    fn numbers(to: u8) -> Vec<u8> {
        (1..=to).flat_map(|number| [0, 0, 0, 0, 0, 0, 0, number]).collect()
    }

    /// Stored data stays readable: these bytes never change.
    #[test]
    fn a_row_of_format_6_is_read_and_written() {
        let mut golden = numbers(6);
        assert_eq!(LINK.encode().to_vec(), golden);
        let newest = Newest {
            number: LINK.commit,
            link: Some(LINK),
        };
        assert_eq!(Newest::decode(&golden, None), Some(newest));
        let outdated = [vec![VERSION], numbers(6)].concat();
        assert_eq!(Newest::decode(&golden, Some(&outdated)), Some(newest));
        golden.push(0);
        assert_eq!(Newest::decode(&golden, None), None);
    }

    #[test]
    fn a_row_of_format_5_has_its_link_beside_it() {
        let number = numbers(2);
        let golden = [vec![1], numbers(6)].concat();
        let newest = |link| Newest {
            number: LINK.commit,
            link,
        };
        assert_eq!(encode_number(Epoch(1), Seq(2)).to_vec(), number);
        assert_eq!(Newest::decode(&number, Some(&golden)), Some(newest(Some(LINK))));
        assert_eq!(Newest::decode(&number, None), Some(newest(None)));
        let later = encode_number(Epoch(1), Seq(3));
        let outdated = Newest::decode(&later, Some(&golden)).map(|newest| newest.link);
        assert_eq!(outdated, Some(None), "the row is of another commit");
        let unknown = [vec![2], numbers(6)].concat();
        assert_eq!(Newest::decode(&number, Some(&unknown)), Some(newest(None)));
    }
}
