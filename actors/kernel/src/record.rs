//! Durable facts: what a decision leaves behind.
//!
//! A record *is* what goes to disk: a row as it now stands, a history entry, a
//! signal. Recovery reads rows back and feeds them to the same `evolve`, so
//! there is no second way to build the state.

use serde::{Deserialize, Serialize};

use crate::id::{Blob, Epoch, EventName, Key, Kind, LimitKey, ProcedureId, Seq, Timestamp};
use crate::lifecycle::ProcedureState;
use crate::wait::{SignalEntry, WaitReason, Wake};

/// What becomes of a succeeded child when its family rolls back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnFailure {
    /// Its result stands (HBase).
    #[default]
    #[serde(rename = "k")]
    Keep,
    /// It is undone with the rest (Seata).
    #[serde(rename = "c")]
    Compensate,
}

impl OnFailure {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }
}

/// When a parent that waits for its children goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum JoinPolicy {
    /// When all have succeeded; a failed one fails the parent.
    #[default]
    #[serde(rename = "a")]
    AllSucceeded,
    /// When all have ended, however they ended.
    #[serde(rename = "f")]
    AllFinished,
    /// When this many have succeeded.
    #[serde(rename = "n")]
    AtLeast(u32),
    /// When those at these places of the list (counted from 0) have succeeded.
    #[serde(rename = "s")]
    Named(Vec<u32>),
    /// When the procedure's own rule says so.
    #[serde(rename = "c")]
    Custom,
}

/// One list of children, born together, that their parent waits or waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Member number of the first.
    #[serde(rename = "f")]
    pub first: u32,
    /// How many there are; their numbers follow each other.
    #[serde(rename = "n")]
    pub count: u32,
    /// When the parent goes on.
    #[serde(rename = "j")]
    pub join: JoinPolicy,
    /// How many may run at once; 0 is no limit.
    #[serde(rename = "w", default)]
    pub width: u32,
}

impl Round {
    /// Tells whether the member is one of these children.
    #[must_use]
    pub const fn contains(&self, member: u32) -> bool {
        member >= self.first && member - self.first < self.count
    }
}

/// Mark of a stage that is out: set on disk before user code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Going {
    /// The commit that set it going; a report with another number is late.
    #[serde(rename = "r")]
    pub run: Seq,
    /// How often the engine had died when it was set going.
    #[serde(rename = "d", default)]
    pub deaths: u32,
    /// It runs as the only suspect.
    #[serde(rename = "a", default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
}

/// Why something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CauseKind {
    /// A stage said so.
    #[serde(rename = "f")]
    Failed,
    /// A stage asked for another attempt, and had no more.
    #[serde(rename = "r")]
    AttemptsExhausted,
    /// User code panicked.
    #[serde(rename = "p")]
    Panicked,
    /// Somebody aborted it.
    #[serde(rename = "a")]
    Aborted,
    /// Its time was up.
    #[serde(rename = "t")]
    TimedOut,
    /// It asked for more than a bound allows.
    #[serde(rename = "b")]
    OverBound,
    /// Its children could no longer meet the join policy.
    #[serde(rename = "j")]
    JoinUnmet,
}

/// Cause of a failure: kind, text, and the procedure in which it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// What sort of failure it is.
    #[serde(rename = "k")]
    pub kind: CauseKind,
    /// What user code, or who aborted, said of it; cut to [`Cause::TEXT_MAX`] bytes.
    #[serde(rename = "t")]
    pub text: String,
    /// The procedure in which it began.
    #[serde(rename = "o")]
    pub origin: ProcedureId,
}

impl Cause {
    /// Longest text kept, in bytes: enough for a chain of errors, little enough for a row.
    pub const TEXT_MAX: usize = 2048;

    /// Makes a cause; the text is cut at a character boundary.
    #[must_use]
    pub fn new(kind: CauseKind, text: impl Into<String>, origin: ProcedureId) -> Self {
        let mut text = text.into();
        if text.len() > Self::TEXT_MAX {
            let end = text.floor_char_boundary(Self::TEXT_MAX);
            text.truncate(end);
        }
        Self { kind, text, origin }
    }
}

/// A stage that was executed and could not be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotUndone {
    /// Whose stage it is.
    #[serde(rename = "m")]
    pub member: u32,
    /// The stage, encoded.
    #[serde(rename = "s")]
    pub stage: Blob,
}

/// Current row of a procedure; overwritten in place by each commit that touches it.
///
/// The payload and the output stand beside it under keys of their own, so that
/// a parked procedure can be moved on without having them in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Who it is; the key on disk, not part of the value.
    #[serde(skip, default = "unnamed")]
    pub id: ProcedureId,
    /// The commit that wrote this row: its revision.
    #[serde(rename = "q")]
    pub revision: Seq,
    /// Its type.
    #[serde(rename = "k")]
    pub kind: Kind,
    /// Schema of its payload.
    #[serde(rename = "v")]
    pub version: u16,
    /// Its parent's member number; none for a root.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// What becomes of it, once succeeded, when the family rolls back.
    #[serde(rename = "f", default, skip_serializing_if = "OnFailure::is_keep")]
    pub on_failure: OnFailure,
    /// Its state.
    #[serde(rename = "s")]
    pub state: ProcedureState,
    /// Why it does not run.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitReason>,
    /// Since when state and reason are as they are.
    #[serde(rename = "n")]
    pub since: Timestamp,
    /// The stage that runs, or runs next, encoded.
    #[serde(rename = "g")]
    pub stage: Blob,
    /// How many stages have been committed: the number of the visit that runs next.
    #[serde(rename = "i", default)]
    pub visit: u32,
    /// Failed attempts of this visit.
    #[serde(rename = "a", default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Set while a stage is out.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub going: Option<Going>,
    /// Number of its newest history entry in the family; 0 is none.
    #[serde(rename = "h", default)]
    pub history: u32,
    /// How many of its executed stages stand on the rollback stack.
    #[serde(rename = "x", default)]
    pub standing: u32,
    /// History numbers of the failed attempts of this visit that are kept.
    #[serde(rename = "y", default, skip_serializing_if = "Vec::is_empty")]
    pub attempts_kept: Vec<u32>,
    /// What the stage that runs next is told.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    pub wake: Option<Wake>,
    /// The lists of children that may still be live; the newest last.
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<Round>,
    /// Limits of which it holds, or waits for, one permit each.
    #[serde(rename = "l", default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitKey>,
    /// It holds a permit of each of its limits.
    #[serde(rename = "m", default, skip_serializing_if = "std::ops::Not::not")]
    pub holds: bool,
    /// Higher goes first where it waits for a permit.
    #[serde(rename = "d", default, skip_serializing_if = "is_normal")]
    pub priority: i16,
    /// Why it failed.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Failed attempts of the undo that is on top of its rollback stack.
    #[serde(rename = "u", default, skip_serializing_if = "is_zero")]
    pub undo_attempts: u32,
    /// Executed stages of its subtree that were not undone.
    #[serde(rename = "z", default, skip_serializing_if = "Vec::is_empty")]
    pub not_undone: Vec<NotUndone>,
    /// Number of the newest signal delivered to it.
    #[serde(rename = "j", default, skip_serializing_if = "is_zero")]
    pub signals: u32,
    /// Idempotency key of its submission.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// When its own time is up.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// When it was born.
    #[serde(rename = "0")]
    pub submitted: Timestamp,
    /// When it ended.
    #[serde(rename = "9", default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
    /// When its result goes; of a root whose family has ended.
    #[serde(rename = "8", default, skip_serializing_if = "Option::is_none")]
    pub due: Option<Timestamp>,
}

impl Going {
    /// Count of deaths of a stage that a drain left behind: nothing is held against it.
    pub const UNCOUNTED: u32 = u32::MAX;
}

impl Row {
    /// Tells whether it has ended for good, as things stand.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Tells whether it failed and its rollback is not over.
    #[must_use]
    pub const fn is_failing(&self) -> bool {
        matches!(self.state, ProcedureState::Failed) && self.ended.is_none()
    }
}

fn unnamed() -> ProcedureId {
    ProcedureId::new(0, 0)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_normal(priority: &i16) -> bool {
    *priority == 0
}

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
    /// Which attempt, from 1.
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
    /// When user code began.
    #[serde(rename = "b")]
    pub begun: Timestamp,
    /// When user code ended.
    #[serde(rename = "t")]
    pub ended: Timestamp,
}

/// A write of user data, made in the commit of the stage that asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserWrite {
    /// Name of the user keyspace, without prefix.
    pub space: Key,
    /// The key.
    pub key: Vec<u8>,
    /// The value; none deletes.
    pub value: Option<Vec<u8>>,
}

/// What an idempotency key stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEntry {
    /// The root that was submitted with it.
    #[serde(rename = "i")]
    pub id: ProcedureId,
    /// Digest of kind and payload.
    #[serde(rename = "h")]
    pub digest: u128,
}

/// A finished family as eviction sees it: all that is needed to delete every key of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// The family.
    pub family: u64,
    /// When it fell due.
    pub due: Timestamp,
    /// How many members it has.
    pub members: u32,
    /// The highest number of its history.
    pub history: u32,
    /// Its signals: member, name and number.
    pub signals: Vec<(u32, EventName, u32)>,
    /// The idempotency key of its root.
    pub key: Option<Key>,
}

/// One fact. All but the last group go to disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The row of a procedure as it now stands.
    Row(Box<Row>),
    /// The root's row of a finished family, which is in memory no more.
    FinishedRow(Box<Row>),
    /// The value of a procedure, encoded.
    Payload(ProcedureId, Blob),
    /// The output of a procedure, encoded.
    Output(ProcedureId, Blob),
    /// A history entry, new or overwritten.
    History(Box<HistoryEntry>),
    /// The entry of an old attempt, beyond those that are kept.
    HistoryDropped(u64, u32),
    /// A signal, delivered or consumed, with its payload.
    Signal(ProcedureId, u32, SignalEntry, Blob),
    /// A consumed signal without a key is gone.
    SignalDropped(ProcedureId, u32, EventName),
    /// What an idempotency key stands for.
    Key(Key, KeyEntry),
    /// A family is live.
    FamilyBegan(u64),
    /// A family has ended; its result goes at the instant given.
    FamilyEnded(u64, Timestamp),
    /// The result of a finished family goes at another instant: old, new.
    DueChanged(u64, Timestamp, Timestamp),
    /// A finished family is gone.
    Evicted(Box<Doomed>),
    /// The capacity of a limit; none is unlimited.
    Limit(LimitKey, Option<u32>),
    /// Family numbers below this may have been given.
    FamiliesReserved(u64),
    /// An engine took the store; it died this often before.
    Started(Epoch, u32),
    /// The engine of this epoch stopped in order.
    Stopped(Epoch),
    /// A write of user data.
    User(UserWrite),

    /// Not stored: rollback of this scope waits for its stack.
    StackAsked(ProcedureId),
    /// Not stored: the stack of this scope is in memory, and its top is being undone.
    StackHeld(ProcedureId, Vec<HistoryEntry>, Vec<NotUndone>),
    /// Not stored: the top of this scope's stack is gone; tells whether the next is being undone.
    StackPopped(ProcedureId),
    /// Not stored: the undo on top of the stack is out, or is not.
    UndoOut(ProcedureId, bool),
    /// Not stored: a report or wake came too late and changed nothing.
    Late(ProcedureId),
    /// Not stored: the timers of this procedure have nothing to wake.
    Disarmed(ProcedureId),
    /// Not stored: no more stages are set going.
    Draining,
}

impl Record {
    /// Tells whether the record goes to disk.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        !matches!(
            self,
            Self::StackAsked(_)
                | Self::StackHeld(..)
                | Self::StackPopped(_)
                | Self::UndoOut(..)
                | Self::Late(_)
                | Self::Disarmed(_)
                | Self::Draining
        )
    }
}
