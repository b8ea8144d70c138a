//! How a stream stands, read off what is stored: its row and value, its signals, its history.

use procession_actors::offline::Offline;
use procession_actors::view::Status;
use procession_actors::{AskError, CommittedReader, Procedure, journal::codec, within};
use procession_kernel::{Blob, Ending, HistoryEntry, ProcedureId, Timestamp, WaitReason};
use serde::{Deserialize, Serialize};

use super::name::StreamName;
use super::node::{NODE, StoredNode};
use super::record::{RecordPage, StreamRecord};
use super::root::StreamRoot;
use crate::executor::Executor;
use crate::flow::node::When;
use crate::flow::reading::{NodePage, NodeStatus};
use crate::flow::state::{NodeState, state_by_itself};

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Nodes, and records, that one page has at most.
const PAGE: usize = 1_000;
/// Signals that are read at once: each may have a mebibyte.
const AT_ONCE: usize = 64;
/// How long a reader waits for the engine. Every other reading is of the store.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a stream that moves meanwhile is read again. Then it is shown as it is, with parts of two moments.
const READS: usize = 3;

/// The state of a whole stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StreamState {
    /// It was not opened, or has not begun: its first stage waits for a permit of its scene.
    Init,
    /// It runs, or is idle.
    Running,
    /// Its node in hand asks, or it is paused as poison, which may be before its first node: nothing goes on unless a person
    /// decides.
    Pending,
    /// It has ended.
    Finish,
}

impl fmt::Display for StreamState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Init => "INIT",
            Self::Running => "RUNNING",
            Self::Pending => "PENDING",
            Self::Finish => "FINISH",
        })
    }
}

/// How a stream stands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamStatus {
    /// Its state.
    pub state: StreamState,
    /// Since when its root has been as it is; `None` if it is not there.
    pub since: Option<Timestamp>,
    /// The node that it has begun and not ended.
    pub in_hand: Option<NodeStatus>,
    /// How many nodes wait behind it.
    pub waiting: u32,
    /// When the oldest of those was appended.
    pub oldest: Option<Timestamp>,
    /// How many nodes have ended, by their code or by a person.
    pub ended: u32,
    /// Nothing more can be appended.
    pub sealed: bool,
}

impl StreamStatus {
    /// Of a stream that was not opened.
    pub(super) const fn absent() -> Self {
        Self {
            state: StreamState::Init,
            since: None,
            in_hand: None,
            waiting: 0,
            oldest: None,
            ended: 0,
            sealed: false,
        }
    }

    /// Returns `true` if it runs and has nothing to do.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.state == StreamState::Running && self.in_hand.is_none() && self.waiting == 0
    }
}

/// Reads one stream by its id, of a running engine or of a closed journal. [`Stream`](super::Stream) has the same
/// readings by name.
#[derive(Clone)]
pub struct StreamReader {
    committed: CommittedReader,
    /// Counts what waits from memory.
    executor: Option<Executor>,
    id: ProcedureId,
}

impl fmt::Debug for StreamReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamReader")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// A stream at one moment.
struct Seen {
    status: Status,
    root: StreamRoot,
    taken: Taken,
}

/// The signal that its stage was set going with.
enum Taken {
    Nothing,
    /// It is in its mailbox until the stage has ended.
    Node(u32, Box<StoredNode>),
    /// It is about to end.
    Last,
}

/// A signal that was not consumed.
struct Kept {
    place: u32,
    sent: Option<Timestamp>,
    is_last: bool,
    payload: Blob,
}

impl StreamReader {
    /// Reads a stream of a running engine.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if there is no stream with this id.
    pub async fn live(executor: &Executor, id: ProcedureId) -> Result<Self, AskError> {
        let committed = executor.engine().committed();
        Self::checked(committed, Some(executor.clone()), id).await
    }

    /// Reads a stream of a closed journal.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if there is no stream with this id.
    pub async fn closed(journal: &Offline, id: ProcedureId) -> Result<Self, AskError> {
        Self::checked(journal.committed().clone(), None, id).await
    }

    async fn checked(
        committed: CommittedReader,
        executor: Option<Executor>,
        id: ProcedureId,
    ) -> Result<Self, AskError> {
        let reader = Self {
            committed,
            executor,
            id,
        };
        reader.row().await?;
        Ok(reader)
    }

    /// Returns the id of the stream.
    #[must_use]
    pub const fn id(&self) -> ProcedureId {
        self.id
    }

    /// Reads its name.
    ///
    /// # Errors
    ///
    /// [`AskError`] if it cannot be read.
    pub async fn name(&self) -> Result<StreamName, AskError> {
        let root = self.root().await?;
        root.name().ok_or(AskError::Unknown(self.id))
    }

    async fn row(&self) -> Result<Status, AskError> {
        let status = self.committed.status(self.id).await?;
        let is_stream = |status: &Status| status.kind.as_str() == StreamRoot::KIND;
        status.filter(is_stream).ok_or(AskError::Unknown(self.id))
    }

    async fn root(&self) -> Result<StreamRoot, AskError> {
        let root = self.committed.value::<StreamRoot>(self.id).await?;
        root.ok_or(AskError::Unknown(self.id))
    }

    async fn seen(&self) -> Result<Seen, AskError> {
        let mut reads = 0;
        loop {
            let status = self.row().await?;
            let root = self.root().await?;
            let has_taken = status.ended.is_none() && root.in_hand().is_none() && !is_at_rest(&status);
            let first = if has_taken { self.kept(0).await? } else { None };
            let taken = match first {
                None => Taken::Nothing,
                Some(kept) if kept.is_last => Taken::Last,
                Some(kept) => match codec::decode_user(kept.payload.as_slice()) {
                    Ok(node) => Taken::Node(kept.place, Box::new(node)),
                    Err(_) => Taken::Nothing,
                },
            };
            reads += 1;
            if reads == READS || self.row().await?.revision == status.revision {
                return Ok(Seen { status, root, taken });
            }
        }
    }

    /// Reads the first signal from this number on that is a node, or the end, and was not consumed.
    async fn kept(&self, from: u32) -> Result<Option<Kept>, AskError> {
        Ok(self.kept_page(from, 1).await?.pop())
    }

    /// Reads the signals from this number on that are nodes, or the end, and were not consumed: at most `limit`, and 64.
    /// None are left if there are none.
    async fn kept_page(&self, from: u32, limit: usize) -> Result<Vec<Kept>, AskError> {
        let limit = limit.min(AT_ONCE);
        let (mut from, mut wanted, mut found) = (from, limit, Vec::new());
        loop {
            let signals = self.committed.signals_from(self.id, from, wanted).await?;
            let is_full = signals.len() == wanted;
            for (signal, payload) in signals {
                from = signal.number.saturating_add(1);
                if !signal.entry.consumed && signal.entry.name.as_str() == NODE {
                    found.push(Kept {
                        place: signal.number,
                        sent: signal.entry.sent,
                        is_last: signal.entry.last,
                        payload,
                    });
                    if found.len() == limit {
                        return Ok(found);
                    }
                }
            }
            if !is_full {
                return Ok(found);
            }
            // Those in the way were consumed, and their names are remembered: a hundred at most.
            wanted = (2 * wanted).min(AT_ONCE);
        }
    }

    /// Returns how the stream stands.
    ///
    /// # Errors
    ///
    /// [`AskError`] if it cannot be read; [`AskError::NotYet`] if the engine does not answer within 2 s.
    pub async fn status(&self) -> Result<StreamStatus, AskError> {
        let seen = self.seen().await?;
        let in_hand = seen.in_hand();
        let has_ended = seen.status.ended.is_some();
        let (kept, sealed) = if has_ended { (0, true) } else { self.counted().await? };
        let behind = seen.first_waiting();
        let oldest = match has_ended {
            true => None,
            false => self.kept(behind).await?.filter(|kept| !kept.is_last),
        };
        // What its stage was set going with is in the mailbox until that stage has ended, and so is the end.
        let waiting = kept.saturating_sub(u32::from(matches!(seen.taken, Taken::Node(..))) + u32::from(sealed));
        // Before its first node, too: as poison.
        let is_pending = state_by_itself(&seen.status) == NodeState::Pending;
        let state = match () {
            () if has_ended => StreamState::Finish,
            () if is_pending => StreamState::Pending,
            () if seen.status.stage == OPEN => StreamState::Init,
            () => StreamState::Running,
        };
        Ok(StreamStatus {
            state,
            since: Some(seen.status.since),
            waiting,
            oldest: oldest.and_then(|kept| kept.sent),
            ended: self.ended(&seen.root).await?,
            sealed,
            in_hand,
        })
    }

    /// Counts the signals that are nodes or the end, and tells whether the end is among them.
    async fn counted(&self) -> Result<(u32, bool), AskError> {
        if let Some(executor) = &self.executor {
            let asked = within(
                Arc::clone(executor.engine().clock()),
                PATIENCE,
                executor.mailbox(self.id),
            );
            match asked.await.map_err(|_| AskError::NotYet)? {
                Ok(mailbox) => {
                    let kept = mailbox.kept.get(NODE).copied().unwrap_or_default();
                    return Ok((kept, mailbox.closed.iter().any(|name| name == NODE)));
                }
                // It has ended since its row was read.
                Err(AskError::Finished { .. }) => return Ok((0, true)),
                // It is quarantined, so it is on disk alone.
                Err(AskError::NotNow { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let (mut count, mut from, mut sealed) = (0, 0, false);
        loop {
            let page = self.kept_page(from, AT_ONCE).await?;
            let Some(last) = page.last() else {
                return Ok((count, sealed));
            };
            from = last.place.saturating_add(1);
            sealed |= last.is_last;
            count += u32::try_from(page.len()).unwrap_or(u32::MAX);
        }
    }

    /// Reads the record that is the newest entry of the history, if that is one.
    async fn newest_record(&self) -> Result<Option<StreamRecord>, AskError> {
        let page = self.committed.history_page(self.id.family, None, 1).await?;
        Ok(page.entries.first().and_then(StreamRecord::of))
    }

    /// Counts the nodes that have ended: the stages that were committed, without those that have ended no node.
    async fn ended(&self, root: &StreamRoot) -> Result<u32, AskError> {
        let page = self.committed.history_page(self.id.family, None, 1).await?;
        let Some(newest) = page.entries.first() else {
            return Ok(0);
        };
        let others = root.other_stages().saturating_add(1);
        Ok(committed_stages(newest).saturating_sub(others))
    }

    /// Returns the nodes that wait, from this place on, at most `limit`, and 1,000. Of a stream that has ended they read
    /// CANCELLED.
    ///
    /// # Errors
    ///
    /// [`AskError`] if they cannot be read.
    pub async fn waiting(&self, from: u32, limit: usize) -> Result<NodePage, AskError> {
        let seen = self.seen().await?;
        let limit = limit.clamp(1, PAGE);
        let mut items = Vec::new();
        if let Some(node) = seen.cut_off().filter(|node| node.place >= from)
            && self
                .newest_record()
                .await?
                .is_none_or(|record| record.place != node.place)
        {
            items.push(node);
        }
        let mut from = from.max(seen.first_waiting());
        loop {
            let page = self.kept_page(from, limit + 1 - items.len()).await?;
            if page.is_empty() {
                return Ok(NodePage { items, next: None });
            }
            for kept in page {
                if kept.is_last {
                    return Ok(NodePage { items, next: None });
                }
                if items.len() == limit {
                    let next = Some(kept.place);
                    return Ok(NodePage { items, next });
                }
                from = kept.place.saturating_add(1);
                // What is no node is not run.
                if let Ok(node) = codec::decode_user::<StoredNode>(kept.payload.as_slice()) {
                    let mut node = seen.shown(kept.place, node);
                    node.since = kept.sent.unwrap_or(node.since);
                    items.push(node);
                }
            }
        }
    }

    /// Returns the records of nodes that have ended, newest first, at most `limit`, and 1,000. Pass the page's `next` as
    /// `before` for the one after it; `None` begins with the newest.
    ///
    /// # Errors
    ///
    /// [`AskError`] if they cannot be read.
    pub async fn records(&self, before: Option<u32>, limit: usize) -> Result<RecordPage, AskError> {
        let limit = limit.clamp(1, PAGE);
        let (mut items, mut before, mut wanted) = (Vec::new(), before, limit);
        loop {
            let page = self.committed.history_page(self.id.family, before, wanted).await?;
            let mut entries = page.entries.iter();
            while let Some(entry) = entries.next() {
                items.extend(StreamRecord::of(entry));
                if items.len() == limit {
                    let is_over = page.next.is_none() && entries.len() == 0;
                    let next = (!is_over).then_some(entry.number);
                    return Ok(RecordPage { items, next });
                }
            }
            before = page.next;
            if before.is_none() {
                return Ok(RecordPage { items, next: None });
            }
            // Failed attempts, questions and waits stand between records: the more, the more are read at once.
            wanted = (2 * wanted).min(PAGE);
        }
    }

    /// Returns `true` if the node at this place has not ended.
    pub(super) async fn is_to_come(&self, place: u32) -> Result<bool, AskError> {
        let mut reads = 0;
        loop {
            let seen = self.seen().await?;
            match seen.place_in_hand() {
                _ if seen.status.ended.is_some() => return Ok(false),
                Some(in_hand) if in_hand == place => return Ok(true),
                // Nodes run by their places.
                Some(in_hand) if in_hand > place => return Ok(false),
                Some(_) | None => {}
            }
            let next = self.kept(place).await?;
            if next.is_some_and(|kept| kept.place == place && !kept.is_last) {
                return Ok(true);
            }
            // It may have been in the mailbox at first, and in hand by the second read.
            reads += 1;
            if reads == READS || self.row().await?.revision == seen.status.revision {
                return Ok(false);
            }
        }
    }
}

/// How [`Status::stage`] reads before the stream has begun.
const OPEN: &str = "Open";

/// Returns `true` if nothing was taken from the mailbox.
fn is_at_rest(status: &Status) -> bool {
    let waits = |wait: &WaitReason| matches!(wait, WaitReason::Event(name, _) if name.as_str() == NODE);
    status.stage == OPEN || status.wait.as_ref().is_some_and(waits)
}

fn committed_stages(newest: &HistoryEntry) -> u32 {
    // The end of the stream is the end of no node. A node that stops its stream leaves its record.
    let is_counted = matches!(newest.ending, Ending::Wait | Ending::Asked) || StreamRecord::of(newest).is_some();
    newest.visit.saturating_add(u32::from(is_counted))
}

impl Seen {
    fn in_hand(&self) -> Option<NodeStatus> {
        if self.status.ended.is_some() {
            return None;
        }
        let (place, node, question) = match (self.root.in_hand(), &self.taken) {
            (Some(hand), _) => (hand.place, &hand.node, hand.question.as_ref()),
            (None, Taken::Node(place, node)) => (*place, &**node, None),
            (None, Taken::Nothing | Taken::Last) => return None,
        };
        let status = &self.status;
        let state = state_by_itself(status);
        let asked = status.question.as_ref().or(question).cloned();
        let reason = match (state, &status.wait) {
            (NodeState::Running, Some(wait)) if !status.going => Some(format!("parked: {wait}")),
            (NodeState::Running, _) => None,
            (_, Some(wait)) => Some(wait.to_string()),
            (_, None) => Some("queued".to_owned()),
        };
        let mut shown = self.shown(place, node.clone());
        (shown.state, shown.reason, shown.attempt) = (state, reason, status.attempt);
        shown.cause = asked.filter(|_| state == NodeState::Pending);
        Some(shown)
    }

    /// The node that asked or was parked when the stream ended.
    fn cut_off(&self) -> Option<NodeStatus> {
        let hand = self.root.in_hand().filter(|_| self.status.ended.is_some());
        hand.map(|hand| self.shown(hand.place, hand.node.clone()))
    }

    fn place_in_hand(&self) -> Option<u32> {
        match (self.root.in_hand(), &self.taken) {
            (Some(hand), _) => Some(hand.place),
            (None, Taken::Node(place, _)) => Some(*place),
            (None, Taken::Nothing | Taken::Last) => None,
        }
    }

    /// The lowest place at which a node may wait.
    fn first_waiting(&self) -> u32 {
        self.place_in_hand().map_or(0, |place| place.saturating_add(1))
    }

    /// Shows a node that waits, or never ran.
    fn shown(&self, place: u32, node: StoredNode) -> NodeStatus {
        let has_ended = self.status.ended.is_some();
        NodeStatus {
            name: node.name,
            place,
            id: self.status.id,
            kind: node.kind,
            state: if has_ended {
                NodeState::Cancelled
            } else {
                NodeState::Wait
            },
            reason: (!has_ended).then(|| "waits for its turn".to_owned()),
            since: self.status.since,
            attempt: 0,
            cause: None,
            after: Vec::new(),
            when: if node.all_finished {
                When::AllFinished
            } else {
                When::AllSucceeded
            },
            revision: self.status.revision,
            is_at_repeat_limit: false,
        }
    }
}
