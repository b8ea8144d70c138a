//! One executed stage or undo, with the time that it waited and the time that it took.

use std::borrow::Cow;

use procession_actors::journal::codec;
use procession_kernel::{HistoryEntry, ProcedureId};
use serde::{Deserialize, Serialize};

use super::{ending_word, millis, read, time};

/// One executed stage or undo.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistoryView {
    /// Its number in the family, in the order of commits.
    pub number: u32,
    /// Whose stage.
    pub id: String,
    /// The stage.
    pub stage: String,
    /// Which visit of the procedure it is.
    pub visit: u32,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// How it ended.
    pub ending: Cow<'static, str>,
    /// What it said when it failed.
    #[serde(default, deserialize_with = "read::said")]
    pub error: Option<String>,
    /// It stands on the rollback stack.
    pub stands: bool,
    /// When it became ready to run.
    pub queued: String,
    /// When it was admitted, if it had to wait for a lock or a permit.
    pub admitted: Option<String>,
    /// When user code began.
    pub begun: String,
    /// When user code ended.
    pub ended: String,
    /// From ready to begun, in milliseconds.
    pub waited_ms: u64,
    /// From begun to ended, in milliseconds.
    pub took_ms: u64,
}

impl From<&HistoryEntry> for HistoryView {
    fn from(entry: &HistoryEntry) -> Self {
        Self {
            number: entry.number,
            id: ProcedureId::new(entry.family, entry.member).to_string(),
            stage: codec::describe(entry.stage.as_slice()),
            visit: entry.visit,
            attempt: entry.attempt,
            ending: Cow::Borrowed(ending_word(entry.ending)),
            error: entry.error.clone(),
            stands: entry.stands,
            queued: time(entry.queued),
            admitted: entry.admitted.map(time),
            begun: time(entry.begun),
            ended: time(entry.ended),
            waited_ms: millis(entry.begun.since(entry.queued)),
            took_ms: millis(entry.ended.since(entry.begun)),
        }
    }
}
