//! One executed stage or undo: rollback stack and timeline at once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::id::{Blob, Timestamp};
use crate::lock::LockNeed;

/// How an executed stage or an undo ended. Append-only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// Went on with another stage.
    #[serde(rename = "n")]
    Next,
    /// Ended the procedure with its output.
    #[serde(rename = "d")]
    Done,
    /// Gave birth to children.
    #[serde(rename = "s")]
    Spawn,
    /// Went to sleep.
    #[serde(rename = "z")]
    Sleep,
    /// Waits for an event.
    #[serde(rename = "w")]
    Wait,
    /// Asked for another attempt.
    #[serde(rename = "r")]
    Retry,
    /// Failed.
    #[serde(rename = "f")]
    Fail,
    /// Panicked.
    #[serde(rename = "p")]
    Panic,
    /// An undo that succeeded.
    #[serde(rename = "u")]
    Undone,
    /// An undo that failed.
    #[serde(rename = "v")]
    UndoFailed,
    /// An undo that an operator skipped.
    #[serde(rename = "k")]
    UndoSkipped,
}

/// Says of entries that were read which of them stand: of each visit the newest attempt alone.
/// On disk an older one may still say that it does.
pub fn settle_standing(entries: &mut [HistoryEntry]) {
    let mut newest: BTreeMap<(u64, u32, u32), u32> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.ending.is_stage()) {
        let number = newest.entry((entry.family, entry.member, entry.visit)).or_default();
        *number = entry.number.max(*number);
    }
    for entry in entries {
        let of_visit = newest.get(&(entry.family, entry.member, entry.visit));
        entry.stands &= of_visit == Some(&entry.number);
    }
}

/// One executed stage or undo: rollback stack and timeline at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// The family; part of the key on disk.
    #[serde(skip)]
    pub family: u64,
    /// Its number in the family, dense from 1; part of the key on disk.
    #[serde(skip)]
    pub number: u32,
    /// Whose stage.
    #[serde(rename = "m")]
    pub member: u32,
    /// The stage, encoded.
    #[serde(rename = "g")]
    pub stage: Blob,
    /// Which visit of the member it is.
    #[serde(rename = "i")]
    pub visit: u32,
    /// Which attempt, from 1. Only the last few of a visit are kept, and the newest is never
    /// left out: its number is how many there were.
    #[serde(rename = "a")]
    pub attempt: u32,
    /// How it ended.
    #[serde(rename = "o")]
    pub ending: Ending,
    /// What it said when it failed, cut; or who skipped it and why.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// It stands on the rollback stack, unless a newer entry of the same visit does.
    #[serde(rename = "s", default, skip_serializing_if = "std::ops::Not::not")]
    pub stands: bool,
    /// When it became ready to run.
    #[serde(rename = "q")]
    pub queued: Timestamp,
    /// When it was admitted, if it had to wait for a lock or a permit after it was ready.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub admitted: Option<Timestamp>,
    /// When user code began.
    #[serde(rename = "b")]
    pub begun: Timestamp,
    /// When user code ended.
    #[serde(rename = "t")]
    pub ended: Timestamp,
    /// The locks that a stage ran under, if the one that came next needed others. Undone newest first,
    /// each stage that does not say ran under those that its member's row names then.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<Vec<LockNeed>>,
}
