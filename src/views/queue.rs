//! A stream: the node in hand, those that wait, and the newest records.

use std::time::Duration;

use procession_actors::view::Status;
use procession_actors::{AskError, Procedure};
use procession_kernel::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::history::note_shown;
use super::time;
use crate::flow::{NodePage, NodeStatus, RecordPage, StreamReader, StreamRecord, StreamRoot, StreamStatus};

/// The time that `per_minute` is about.
const MINUTE: Duration = Duration::from_mins(1);
/// Nodes that are shown behind the one in hand.
const NEXT: usize = 64;

/// Returns `true` for a stream.
#[must_use]
pub fn is_stream(status: &Status) -> bool {
    status.parent.is_none() && status.kind.as_str() == StreamRoot::KIND
}

/// A node of a stream that has not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueuedView {
    /// Its place: of two nodes the one with the lower place was appended first.
    pub place: u32,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The name of its processor.
    pub kind: String,
    /// Its state, such as `RUNNING`.
    pub state: String,
    /// Why it does not run, in words.
    pub reason: Option<String>,
    /// Since when it is so; of one that waits, when it was appended.
    pub since: String,
    /// Failed attempts that count.
    pub attempt: u32,
    /// What it asks a person.
    #[serde(deserialize_with = "super::read::said")]
    pub question: Option<String>,
}

impl From<&NodeStatus> for QueuedView {
    fn from(node: &NodeStatus) -> Self {
        Self {
            place: node.place,
            name: Some(node.name.clone()).filter(|name| !name.is_empty()),
            kind: node.kind.to_string(),
            state: node.state.to_string(),
            reason: node.reason.clone(),
            since: time(node.since),
            attempt: node.attempt,
            question: node.cause.clone(),
        }
    }
}

/// How a node of a stream has ended, or stands after an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordView {
    /// Its place.
    pub place: u32,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The name of its processor.
    pub kind: String,
    /// `SUCCESS` or `ERROR`; in a history also how an attempt left it that was not the last.
    pub state: String,
    /// The number of attempts of its last run; 0 if a person has ended it without one.
    pub attempts: u32,
    /// Why it failed.
    #[serde(deserialize_with = "super::read::said")]
    pub cause: Option<String>,
    /// When it ended.
    pub ended: String,
    /// The size of its output.
    pub output_bytes: usize,
    /// What its code noted: its `size`, and its `value` as far as the host shows it.
    pub note: Option<Value>,
}

impl From<&StreamRecord> for RecordView {
    fn from(record: &StreamRecord) -> Self {
        Self {
            place: record.place,
            name: Some(record.name.clone()).filter(|name| !name.is_empty()),
            kind: record.kind.to_string(),
            state: record.state.to_string(),
            attempts: record.attempts,
            cause: record.cause.clone(),
            ended: time(record.ended),
            output_bytes: record.output_bytes(),
            note: record.note_bytes().map(note_shown),
        }
    }
}

/// A stream at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueueView {
    /// The id of the stream.
    pub id: String,
    /// Its name, as `scene:group`.
    pub name: Option<String>,
    /// `INIT`, `RUNNING`, `PENDING` or `FINISH`.
    pub state: String,
    /// Since when its root has been as it is.
    pub since: Option<String>,
    /// The node that it has begun and not ended.
    pub in_hand: Option<QueuedView>,
    /// How many nodes wait behind it.
    pub waiting: u32,
    /// When the oldest of those was appended.
    pub oldest: Option<String>,
    /// How many nodes have ended.
    pub done: u32,
    /// How many of them ended in a minute, by the newest records; none of an older page.
    pub per_minute: Option<u64>,
    /// Nothing more can be appended.
    pub sealed: bool,
    /// The nodes that run next, in their order.
    pub next: Vec<QueuedView>,
    /// The newest records, the newest first.
    pub records: Vec<RecordView>,
    /// What to send as `before` for the records behind these.
    pub before: Option<u32>,
}

/// What is read of a stream to show its queue.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueueReading {
    /// How it stands.
    pub status: StreamStatus,
    /// The nodes behind the one in hand: 64 at most.
    pub next: NodePage,
    /// The newest records.
    pub records: RecordPage,
}

impl QueueReading {
    /// Reads a stream, with at most `limit` records; of those behind a page, with that page's `next` as `before`.
    ///
    /// # Errors
    ///
    /// [`AskError`] if it cannot be read.
    pub async fn of(reader: &StreamReader, before: Option<u32>, limit: usize) -> Result<Self, AskError> {
        let status = reader.status().await?;
        let from = status.in_hand.as_ref().map_or(0, |node| node.place + 1);
        let next = reader.waiting(from, NEXT).await?;
        let records = reader.records(before, limit).await?;
        Ok(Self { status, next, records })
    }
}

impl QueueView {
    /// Describes a stream by what was read of it.
    #[must_use]
    pub fn new(root: &Status, reading: &QueueReading) -> Self {
        let QueueReading { status, next, records } = reading;
        Self {
            id: root.id.to_string(),
            name: root.name.clone(),
            state: status.state.to_string(),
            since: status.since.map(time),
            in_hand: status.in_hand.as_ref().map(QueuedView::from),
            waiting: status.waiting,
            oldest: status.oldest.map(time),
            done: status.ended,
            per_minute: None,
            sealed: status.sealed,
            next: next.items.iter().map(QueuedView::from).collect(),
            records: records.items.iter().map(RecordView::from).collect(),
            before: records.next,
        }
    }

    /// Says how many nodes ended in a minute, by the newest records.
    #[must_use]
    pub fn at(mut self, now: Timestamp, newest: &RecordPage) -> Self {
        self.per_minute = Some(per_minute(now, newest));
        self
    }
}

/// Counts the records of the last minute. If there are more than were read, those that were read tell the rate.
fn per_minute(now: Timestamp, newest: &RecordPage) -> u64 {
    let recent: Vec<Duration> = newest.items.iter().map(|record| now.since(record.ended)).collect();
    let count = recent.iter().filter(|age| **age < MINUTE).count() as u64;
    match recent.last() {
        Some(span) if *span < MINUTE && newest.next.is_some() => {
            let span = u64::try_from(span.as_micros()).unwrap_or(u64::MAX).max(1);
            count * u64::try_from(MINUTE.as_micros()).unwrap_or(u64::MAX) / span
        }
        Some(_) | None => count,
    }
}
