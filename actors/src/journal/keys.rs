//! The layout of keys. Numbers are big-endian, so that byte order is numeric order and a family is one contiguous
//! range.

use std::ops::Deref;

use procession_kernel::{Key, LABEL_BIT, LabelDigest, NUMBER_MAX, ProcedureId, Timestamp};

/// A keyspace of the journal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// root · index → row; root · index · 0, or root · `ff` for index 0 → the labels of the rows that name this member.
    Procedures,
    /// root · index · [`PAYLOAD`] or [`OUTPUT`] → the user's bytes; root · 0 · [`SUBMITTED`] → schema version and bytes.
    Payloads,
    /// root · number → history entry.
    History,
    /// root · index · number · name → signal.
    Signals,
    /// idempotency key → the procedure for which it stands.
    Keys,
    /// root → nothing; present while the family is live. Behind these, digest of a label · root, in one of two forms →
    /// nothing; present as long as the family is stored.
    Live,
    /// due time · root → nothing; the order of eviction. Behind these, end, newest first · root → a failure that nobody
    /// has acknowledged.
    Finished,
    /// name → engine value.
    Meta,
    /// number → act of an operator, for the audit log.
    Audit,
    /// root → a discharged family, in its last state.
    Archive,
    /// `user.` name: user data.
    User(Key),
}

impl Space {
    /// The engine's own keyspaces.
    pub const ENGINE: [Self; 10] = [
        Self::Procedures,
        Self::Payloads,
        Self::History,
        Self::Signals,
        Self::Keys,
        Self::Live,
        Self::Finished,
        Self::Meta,
        Self::Audit,
        Self::Archive,
    ];

    /// Returns the name on disk.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Procedures => "procedures".to_owned(),
            Self::Payloads => "payloads".to_owned(),
            Self::History => "history".to_owned(),
            Self::Signals => "signals".to_owned(),
            Self::Keys => "keys".to_owned(),
            Self::Live => "live".to_owned(),
            Self::Finished => "finished".to_owned(),
            Self::Meta => "meta".to_owned(),
            Self::Audit => "audit".to_owned(),
            Self::Archive => "archive".to_owned(),
            Self::User(name) => format!("user.{name}"),
        }
    }

    /// Returns a sort key for keyspaces. All user keyspaces share one value. Not stored on disk.
    pub(super) const fn number(&self) -> u8 {
        match self {
            Self::Procedures => 0,
            Self::Payloads => 1,
            Self::History => 2,
            Self::Signals => 3,
            Self::Keys => 4,
            Self::Live => 5,
            Self::Finished => 6,
            Self::Meta => 7,
            Self::Audit => 8,
            Self::Archive => 9,
            Self::User(_) => 10,
        }
    }
}

/// Tag of a payload's key.
pub const PAYLOAD: u8 = 0;
/// Tag of an output's key.
pub const OUTPUT: u8 = 1;
/// Tag of the key under which the value that a root was submitted with is kept, once another has replaced it and unless a
/// history entry has it.
pub const SUBMITTED: u8 = 2;

/// Last byte of the key of a procedure's labels.
const LABELS: u8 = 0;
/// Last byte of the key of a root's labels. No member has a number that begins with it.
const LABELS_OF_ROOT: u8 = 0xff;

/// Returns the key of a row.
#[must_use]
pub fn procedure(id: ProcedureId) -> [u8; 12] {
    let mut key = [0; 12];
    key[..8].copy_from_slice(&id.family.to_be_bytes());
    key[8..].copy_from_slice(&id.member.to_be_bytes());
    key
}

/// A key of labels, or of their index. It has at most 16 bytes: no longer key passes through the records of the newest
/// commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelKey {
    /// The key, followed by zeros.
    bytes: [u8; 16],
    length: u8,
}

impl Deref for LabelKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// Returns the key of a procedure's labels. Those of a root, which most labels are, have a short key, behind all rows of
/// the family; all others stand right behind their row.
#[must_use]
pub fn labels(id: ProcedureId) -> LabelKey {
    let mut bytes = [0; 16];
    if id.is_root() {
        bytes[..8].copy_from_slice(&family(id.family));
        bytes[8] = LABELS_OF_ROOT;
        return LabelKey { bytes, length: 9 };
    }
    bytes[..13].copy_from_slice(&payload(id, LABELS));
    LabelKey { bytes, length: 13 }
}

/// Returns the key of a payload or an output.
#[must_use]
pub fn payload(id: ProcedureId, tag: u8) -> [u8; 13] {
    let mut key = [tag; 13];
    key[..12].copy_from_slice(&procedure(id));
    key
}

/// Returns the key of a history entry.
#[must_use]
pub fn history(family: u64, number: u32) -> [u8; 12] {
    procedure(ProcedureId::new(family, number))
}

/// Returns the key of a signal.
#[must_use]
pub fn signal(id: ProcedureId, number: u32, name: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(16 + name.len());
    key.extend_from_slice(&procedure(id));
    key.extend_from_slice(&number.to_be_bytes());
    key.extend_from_slice(name.as_bytes());
    key
}

/// Returns the key of a family in `live`, which is also the prefix of every key of that family.
#[must_use]
pub fn family(family: u64) -> [u8; 8] {
    family.to_be_bytes()
}

/// Set in the first four bytes of a key with a short digest. The bit above it is not set.
const SHORT_BIT: u32 = 1 << 30;
/// The bits behind a short digest, which say how many bytes the family has.
const COUNT_BITS: u32 = 3;

/// Returns the key in `live` under which a label's digest leads to a family.
///
/// With a short digest it has four bytes, which are `01` in binary, the digest, and in three bits how many bytes the
/// family has, less one; then the family in so many bytes, as few as it takes. With a long digest it is the digest and
/// the family, eight bytes each. The keys of a digest are in the order of families in both forms.
#[must_use]
pub fn label(digest: LabelDigest, family: u64) -> LabelKey {
    let mut bytes = [0; 16];
    match digest {
        LabelDigest::Short(digest) => {
            let zeros = (family.leading_zeros() / 8).min(7);
            bytes[..4].copy_from_slice(&(short(digest) | (7 - zeros)).to_be_bytes());
            bytes[4..12].copy_from_slice(&(family << (8 * zeros)).to_be_bytes());
            let length = 12 - u8::try_from(zeros).unwrap_or_default();
            LabelKey { bytes, length }
        }
        LabelDigest::Long(digest) => {
            bytes[..8].copy_from_slice(&(digest | LABEL_BIT).to_be_bytes());
            bytes[8..].copy_from_slice(&family.to_be_bytes());
            LabelKey { bytes, length: 16 }
        }
    }
}

/// Returns the first four bytes of a short digest's keys, of families of one byte.
const fn short(digest: u32) -> u32 {
    digest << COUNT_BITS & (SHORT_BIT - 1) | SHORT_BIT
}

/// Returns the first key behind all keys of a label's digest. Returns `None` if no key can stand behind them.
#[must_use]
pub(crate) fn after_label(digest: LabelDigest) -> Option<Vec<u8>> {
    match digest {
        LabelDigest::Short(digest) => Some((short(digest) + (1 << COUNT_BITS)).to_be_bytes().to_vec()),
        LabelDigest::Long(digest) => after_prefix(&(digest | LABEL_BIT).to_be_bytes()),
    }
}

/// Returns the first key of the label index, which is the end of the families in `live`. Families stand before it, short
/// digests behind it, and long digests behind those.
#[must_use]
pub const fn first_label() -> [u8; 1] {
    let [first, ..] = NUMBER_MAX.to_be_bytes();
    [first]
}

/// Returns the key of a family in `finished`.
#[must_use]
pub fn finished(due: Timestamp, family: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&due.0.to_be_bytes());
    key[8..].copy_from_slice(&family.to_be_bytes());
    key
}

/// Set in the first eight bytes of the keys of failures, and in no instant.
const FAILURE_BIT: u64 = 1 << 63;

/// Returns the key in `finished` under which a failure is listed. The newest are first.
#[must_use]
pub fn failure(ended: Timestamp, family: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&(u64::MAX - (ended.0 & !FAILURE_BIT)).to_be_bytes());
    key[8..].copy_from_slice(&family.to_be_bytes());
    key
}

/// Returns the first key of the list of failures, which is the end of the order of eviction.
#[must_use]
pub fn first_failure() -> [u8; 8] {
    FAILURE_BIT.to_be_bytes()
}

/// Parses the key of a failure: when it ended, and its family.
#[must_use]
pub fn parse_failure(key: &[u8]) -> Option<(Timestamp, u64)> {
    let (first, family) = key.split_first_chunk()?;
    let first = u64::from_be_bytes(*first);
    let family = u64::from_be_bytes(family.try_into().ok()?);
    (first & FAILURE_BIT != 0).then_some((Timestamp(u64::MAX - first), family))
}

/// Parses the key of a family in `live`. Returns `None` for the key of a label.
#[must_use]
pub fn parse_family(key: &[u8]) -> Option<u64> {
    let family = u64::from_be_bytes(key.try_into().ok()?);
    (family < NUMBER_MAX).then_some(family)
}

/// Parses a key of the label index: the digest and the family. Returns `None` for a key that [`label`] does not return.
#[must_use]
pub fn parse_label(key: &[u8]) -> Option<(LabelDigest, u64)> {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let (first, rest) = key.split_first_chunk()?;
    let first = u32::from_be_bytes(*first);
    let (digest, family) = if first < SHORT_BIT << 1 {
        (
            LabelDigest::Short((first & (SHORT_BIT - 1)) >> COUNT_BITS),
            number(rest),
        )
    } else {
        let (digest, family) = key.split_first_chunk()?;
        (LabelDigest::Long(u64::from_be_bytes(*digest)), number(family))
    };
    (*label(digest, family) == *key).then_some((digest, family))
}

/// Parses the key of a row. Returns `None` for the key of labels.
#[must_use]
pub fn parse_row(key: &[u8]) -> Option<ProcedureId> {
    parse_procedure(key).filter(|_| key.len() == 12)
}

/// Parses the key of a procedure's labels.
#[must_use]
pub fn parse_labels(key: &[u8]) -> Option<ProcedureId> {
    let family = key.split_first_chunk().map(|(family, _)| u64::from_be_bytes(*family))?;
    let id = parse_procedure(key).unwrap_or(ProcedureId::root(family));
    (*labels(id) == *key).then_some(id)
}

/// Parses the id with which the key of a row, of labels, of a value, of a signal or of a history entry begins.
#[must_use]
pub fn parse_procedure(key: &[u8]) -> Option<ProcedureId> {
    let family = u64::from_be_bytes(key.get(..8)?.try_into().ok()?);
    let member = u32::from_be_bytes(key.get(8..12)?.try_into().ok()?);
    Some(ProcedureId::new(family, member))
}

/// Parses the key of a signal.
#[must_use]
pub fn parse_signal(key: &[u8]) -> Option<(ProcedureId, u32, String)> {
    let id = parse_procedure(key)?;
    let number = u32::from_be_bytes(key.get(12..16)?.try_into().ok()?);
    let name = String::from_utf8(key.get(16..)?.to_vec()).ok()?;
    Some((id, number, name))
}

/// Parses the key of a finished family. Returns `None` for the key of a failure.
#[must_use]
pub fn parse_finished(key: &[u8]) -> Option<(Timestamp, u64)> {
    let due = u64::from_be_bytes(key.get(..8)?.try_into().ok()?);
    let family = u64::from_be_bytes(key.get(8..16)?.try_into().ok()?);
    (due & FAILURE_BIT == 0).then_some((Timestamp(due), family))
}

/// Returns the smallest key greater than `key`, where a scan continues after an entry.
pub(crate) fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// Returns the first key after all keys with this prefix, or `None` if there is no such key.
#[must_use]
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

#[cfg(test)]
mod tests;
