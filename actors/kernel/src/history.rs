//! History entries. They serve as rollback stack and as timeline.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::id::{Blob, LimitKey, Timestamp};
use crate::lock::LockNeed;

/// How an executed stage or an undo ended. Append-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Ending {
    /// The procedure went on with another stage.
    #[serde(rename = "n")]
    Next,
    /// The procedure ended with its output.
    #[serde(rename = "d")]
    Done,
    /// The procedure spawned children.
    #[serde(rename = "s")]
    Spawn,
    /// The procedure went to sleep.
    #[serde(rename = "z")]
    Sleep,
    /// The procedure waits for an event.
    #[serde(rename = "w")]
    Wait,
    /// The procedure asked a person, and waits for the answer.
    #[serde(rename = "q")]
    Asked,
    /// The stage asked for another attempt.
    #[serde(rename = "r")]
    Retry,
    /// The stage failed.
    #[serde(rename = "f")]
    Fail,
    /// The stage panicked.
    #[serde(rename = "p")]
    Panic,
    /// The undo succeeded.
    #[serde(rename = "u")]
    Undone,
    /// The undo failed.
    #[serde(rename = "v")]
    UndoFailed,
    /// An operator skipped the undo.
    #[serde(rename = "k")]
    UndoSkipped,
}

/// Settles which of the read entries stand: of each visit that was not undone, the newest attempt. On disk, an older
/// attempt and a stage that was undone may still be marked as standing. What is not among the entries settles nothing.
pub fn settle_standing(entries: &mut [HistoryEntry]) {
    settle(entries);
}

/// A stage of a procedure: family, member and number of the visit.
type Visit = (u64, u32, u32);

/// Does the same, and returns the newest attempts.
pub(crate) fn settle(entries: &mut [HistoryEntry]) -> BTreeMap<Visit, u32> {
    let mut newest: BTreeMap<Visit, u32> = BTreeMap::new();
    let mut undone = BTreeSet::new();
    for entry in entries.iter() {
        let visit = (entry.family, entry.member, entry.visit);
        if entry.ending.is_stage() {
            let number = newest.entry(visit).or_default();
            *number = entry.number.max(*number);
        } else if entry.ending.takes_off() {
            undone.insert(visit);
        }
    }
    for entry in entries {
        let visit = (entry.family, entry.member, entry.visit);
        entry.stands &= newest.get(&visit) == Some(&entry.number) && !undone.contains(&visit);
    }
    newest
}

/// One executed stage or undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The family; part of the key on disk.
    #[serde(skip)]
    pub family: u64,
    /// Number of the entry in the family, dense from 1; part of the key on disk.
    #[serde(skip)]
    pub number: u32,
    /// Member number of the procedure.
    #[serde(rename = "m")]
    pub member: u32,
    /// The encoded stage.
    #[serde(rename = "g")]
    pub stage: Blob,
    /// Number of the member's visit.
    #[serde(rename = "i")]
    pub visit: u32,
    /// Number of the attempt, from 1. Only the last few attempts of a visit are kept. The newest is never dropped, so
    /// its number is the number of attempts.
    #[serde(rename = "a")]
    pub attempt: u32,
    /// How the stage or undo ended.
    #[serde(rename = "o")]
    pub ending: Ending,
    /// Text of the failure, cut; the question; or the operator who skipped the undo, and why.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The stage was put on the rollback stack. It stands there until a newer entry of the same visit ends a stage, or
    /// [takes it off](Ending::takes_off): see [`settle_standing`].
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub stands: bool,
    /// When the stage became ready to run.
    #[serde(rename = "q")]
    pub queued: Timestamp,
    /// When the stage was admitted, if it had to wait for a lock or a permit after it was ready.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<Timestamp>,
    /// When user code began.
    #[serde(rename = "b")]
    pub begun: Timestamp,
    /// When user code ended.
    #[serde(rename = "t")]
    pub ended: Timestamp,
    /// The locks that the stage ran under, if the following stage needed others. Undos go newest first, so an entry
    /// without this field ran under the locks that the member's row names by then.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Vec<LockNeed>>,
    /// The stage held a permit of each of these limits. Its undo needs the same.
    #[serde(rename = "p", default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitKey>,
    /// What its code noted, encoded.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Blob>,
    /// What the call did to the value, if its kind kept values then.
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Box<LeftValue>>,
    /// The value that the root was submitted with, if the call of this entry replaced it. It is users' data, whatever
    /// their kind keeps. Only an early entry has it, and only if it is small; others have a key of their own.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<Box<SubmittedValue>>,
}

/// The largest value, in bytes, with which a root was submitted and which is kept in a history entry. For a larger one a
/// key of its own costs little beside the bytes, which would burden everyone who reads the history.
pub const SUBMITTED_IN_ENTRY_MAX: usize = 1024;
/// The number of the last history entry that may have that value. Whoever looks for it reads no entry behind this one.
pub const SUBMITTED_ENTRY_LAST: u32 = 64;

/// The value that a root was submitted with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubmittedValue {
    /// The schema version of its encoding.
    #[serde(rename = "v")]
    pub version: u16,
    /// The encoded value.
    #[serde(rename = "b")]
    pub value: Blob,
}

/// Up to how many bytes of a value a history entry has, whatever its kind asks for. Pages have hundreds of entries, and
/// a rollback has its stack in memory.
pub const LEFT_VALUE_MAX: usize = 64 * 1024;

/// What a stage or an undo did to its procedure's value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftValue {
    /// The size of the value in bytes; `None` if it was left as it was.
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// The encoded value, if it was changed and is not larger than its kind keeps.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Blob>,
}

impl LeftValue {
    /// Keeps a value of up to this many bytes and [`LEFT_VALUE_MAX`], and of a larger one the size.
    #[must_use]
    pub fn within(value: &Blob, most: usize) -> Self {
        Self {
            size: Some(u32::try_from(value.len()).unwrap_or(u32::MAX)),
            bytes: (value.len() <= most.min(LEFT_VALUE_MAX)).then(|| value.clone()),
        }
    }

    /// Returns how many bytes of the value are kept.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.bytes.as_ref().map_or(0, Blob::len)
    }
}
