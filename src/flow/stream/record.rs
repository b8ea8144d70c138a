//! The record of a node that has ended: the note of its history entry.

use procession_actors::journal::codec;
use procession_actors::{CallContext, CodecError, ReadError};
use procession_kernel::{Blob, Ending, HistoryEntry, Kind, Timestamp};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::flow::state::NodeState;

/// Entries of the history that are kept: the records among them are the newest ones that there are.
pub(super) const KEPT: u32 = 1_000;
/// Bytes of an output and a note together. They stand in the note of a history entry, which has at most 64 KiB, beside
/// the names.
pub(super) const OUTPUT_MAX: usize = 60_000;
/// Entries that are read at once to find the newest record. Usually it is the newest entry.
const READ: usize = 8;
/// The most, as each may have 64 KiB.
const READ_MAX: usize = 128;
/// Bytes of a cause that are kept, as many as the engine keeps of one.
const CAUSE_MAX: usize = 2_048;

/// What is noted of an attempt.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredRecord {
    #[serde(rename = "p")]
    pub(super) place: u32,
    #[serde(rename = "n", default, skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(rename = "k")]
    pub(super) kind: Kind,
    /// The state in which the attempt left the node.
    #[serde(rename = "s")]
    pub(super) state: NodeState,
    #[serde(rename = "a")]
    pub(super) attempts: u32,
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub(super) output: Option<Blob>,
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub(super) cause: Option<String>,
    /// What its code noted.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<Blob>,
}

/// Cuts a cause to what is kept of one.
pub(super) fn cut(mut cause: String) -> String {
    cause.truncate(cause.floor_char_boundary(CAUSE_MAX));
    cause
}

/// How a node of a stream has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamRecord {
    /// Its place.
    pub place: u32,
    /// Its name; empty if it has none.
    pub name: String,
    /// The name of its processor.
    pub kind: Kind,
    /// SUCCESS or ERROR.
    pub state: NodeState,
    /// The number of attempts of its last run; 0 if a person has ended it without one.
    pub attempts: u32,
    /// Why it failed.
    pub cause: Option<String>,
    /// When it ended.
    pub ended: Timestamp,
    output: Option<Blob>,
    note: Option<Blob>,
}

impl StreamRecord {
    /// Returns its output, if it has succeeded.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it is not of this type.
    pub fn output<T: DeserializeOwned>(&self) -> Result<Option<T>, CodecError> {
        decoded(self.output.as_ref())
    }

    /// Returns what its code has [noted](crate::flow::NodeContext::note) in its last attempt.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it is not of this type.
    pub fn note<T: DeserializeOwned>(&self) -> Result<Option<T>, CodecError> {
        decoded(self.note.as_ref())
    }

    /// Returns the size of its output in bytes.
    #[must_use]
    pub fn output_bytes(&self) -> usize {
        self.output.as_ref().map_or(0, Blob::len)
    }

    /// Returns what its code has noted, as it is stored.
    #[cfg(feature = "dashboard")]
    pub(crate) const fn note_bytes(&self) -> Option<&Blob> {
        self.note.as_ref()
    }

    /// Shows what a crash must not change.
    #[cfg(feature = "testkit")]
    pub(crate) fn line(&self) -> String {
        let Self { name, state, .. } = self;
        let output = self.output.as_ref().map(|output| codec::describe(output.as_slice()));
        format!("{name} {state} {output:?} {:?}", self.cause)
    }

    /// Reads the record that is the note of an entry; `None` if the entry is not the end of a node.
    ///
    /// The note alone does not tell: a stage whose commit is refused keeps the note that it left.
    pub(super) fn of(entry: &HistoryEntry) -> Option<Self> {
        Self::noted(entry).filter(|record| record.state.is_final())
    }

    /// Reads what an entry notes of an attempt, whether or not it was the last one; `None` if it notes nothing of one.
    pub(crate) fn noted(entry: &HistoryEntry) -> Option<Self> {
        let noted = codec::decode_user::<StoredRecord>(entry.note.as_ref()?.as_slice()).ok()?;
        let (state, output, cause) = if entry.ending == Ending::Wait {
            (noted.state, noted.output, noted.cause)
        } else if entry.ending == Ending::Fail {
            // The node has stopped its stream, or its commit broke a bound of the engine, which ends the stream as well.
            (NodeState::Error, None, noted.cause.or_else(|| entry.error.clone()))
        } else if noted.state.is_final() {
            // Its commit was refused.
            (NodeState::Running, None, noted.cause)
        } else {
            (noted.state, None, noted.cause)
        };
        Some(Self {
            place: noted.place,
            name: noted.name,
            kind: noted.kind,
            state,
            attempts: noted.attempts,
            cause,
            ended: entry.ended,
            output,
            note: noted.note,
        })
    }

    /// Reads the newest record of the stream that makes this call.
    pub(crate) async fn newest(cx: &CallContext<'_>) -> Result<Option<Self>, ReadError> {
        let (mut before, mut wanted) = (None, READ);
        loop {
            let entries = cx.history(before, wanted).await?;
            if let Some(record) = entries.iter().find_map(Self::of) {
                return Ok(Some(record));
            }
            // Failed attempts and questions of the node in hand stand before it.
            before = entries.last().map(|entry| entry.number);
            if entries.len() < wanted {
                return Ok(None);
            }
            wanted = (2 * wanted).min(READ_MAX);
        }
    }
}

fn decoded<T: DeserializeOwned>(bytes: Option<&Blob>) -> Result<Option<T>, CodecError> {
    bytes.map(|bytes| codec::decode_user(bytes.as_slice())).transpose()
}

/// Records, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordPage {
    /// The records.
    pub items: Vec<StreamRecord>,
    /// What to pass as `before` for the next page; `None` if this is the last.
    pub next: Option<u32>,
}
