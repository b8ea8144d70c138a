//! One executed stage or undo, with the time that it waited and the time that it took.

use std::borrow::Cow;

use procession_actors::journal::codec;
use procession_kernel::{Blob, HistoryEntry, ProcedureId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ending_word, millis, read, revealed, time};

/// Bytes of a note up to which it is shown. Pages have hundreds of entries.
const NOTE_SHOWN: usize = 4 << 10;

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
    /// What is shown of the note of its code: `redacted`, and its `size` in bytes. A dashboard whose host shows more adds
    /// the `value`, or `raw` bytes in hexadecimal if JSON has no words for it, of notes up to 4 KiB. Of a stream the
    /// `value` is the [`RecordView`](super::RecordView) of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Value>,
    /// What it did to the value, if its kind kept values then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<LeftValueView>,
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

/// What a stage or an undo did to its procedure's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LeftValueView {
    /// It changed the value.
    pub changed: bool,
    /// The size of the changed value, in bytes.
    pub size: Option<u32>,
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
            note: entry
                .note
                .as_ref()
                .map(|note| json!({ "redacted": true, "size": note.len() })),
            value: entry.value.as_ref().map(|left| LeftValueView {
                changed: left.size.is_some(),
                size: left.size,
            }),
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

impl HistoryView {
    /// Returns an entry with its note in full, however large: `size`, `value`, and `raw` bytes in hexadecimal if JSON
    /// cannot express it. A note is users' data.
    #[must_use]
    pub fn revealed(entry: &HistoryEntry) -> Self {
        Self {
            note: entry.note.as_ref().map(|note| revealed(note.as_slice())),
            ..Self::from(entry)
        }
    }

    /// Returns the note as one line of text: its value, or else its size.
    #[must_use]
    pub fn note_text(&self) -> Option<String> {
        let note = self.note.as_ref()?;
        let value = note.get("value").filter(|value| !value.is_null());
        let size = || note.get("size").and_then(Value::as_u64);
        Some(match (value, size()) {
            (Some(value), _) => value.to_string(),
            (None, Some(size)) => format!("{size} bytes"),
            (None, None) => "(redacted)".to_owned(),
        })
    }
}

/// Returns a note as a dashboard shows it, unless its host hides it.
pub(crate) fn note_shown(note: &Blob) -> Value {
    let size = note.len();
    if size > NOTE_SHOWN {
        return json!({ "size": size });
    }
    match codec::decode_user::<Value>(note.as_slice()) {
        Ok(value) => json!({ "size": size, "value": value }),
        Err(_) => {
            let raw: String = note.as_slice().iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "size": size, "raw": raw })
        }
    }
}
