//! Durable facts: what a decision leaves behind.
//!
//! A record *is* what goes to disk: a row as it now stands, a history entry, a signal. Recovery reads rows back and
//! passes them to the same `evolve`, so there is no second way to build the state.

use serde::{Deserialize, Serialize};

use crate::audit::AuditEntry;
use crate::cause::NotUndone;
use crate::failure::FailureEntry;
use crate::history::HistoryEntry;
use crate::id::{Blob, Epoch, EventName, Key, LimitKey, ProcedureId, Seq, Timestamp};
use crate::label::{LabelDigest, Labels};
use crate::limit::Limit;
use crate::rate_window::RateWindow;
use crate::row::Row;
use crate::wait::{PauseScope, SignalEntry};
use crate::waiters::Broadcast;

/// A write of user data, made in the commit of the stage that requested it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserWrite {
    /// Name of the user keyspace, without its prefix.
    pub space: Key,
    /// The key.
    pub key: Vec<u8>,
    /// The value; `None` deletes the key.
    pub value: Option<Vec<u8>>,
}

impl UserWrite {
    /// Returns the combined size of key and value, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Vec::len)
    }
}

/// What an idempotency key stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyEntry {
    /// The root that was submitted with the key.
    #[serde(rename = "i")]
    pub id: ProcedureId,
    /// Digest of kind and payload.
    #[serde(rename = "h")]
    pub digest: u128,
    /// Until when the key is kept, if that is longer than the result.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

/// A finished family as eviction sees it: everything needed to delete all of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvictedFamily {
    /// The family.
    pub family: u64,
    /// When its retention expired.
    pub due: Timestamp,
    /// How many members it has.
    pub members: u32,
    /// The value that its root was submitted with has a key of its own.
    pub submitted: bool,
    /// Number of the oldest history entry that it may still have.
    pub history_from: u32,
    /// Number of its newest history entry.
    pub history: u32,
    /// Its signals: member, name and number.
    pub signals: Vec<(u32, EventName, u32)>,
    /// The digests under which the index of labels has it, each once. A label may be among them in both forms.
    pub labels: Vec<LabelDigest>,
    /// Its members that have an entry of labels.
    pub labelled: Vec<u32>,
    /// When it ended, if it may be in the list of failures.
    pub failed: Option<Timestamp>,
    /// The idempotency key of its root.
    pub key: Option<Key>,
    /// Until when that key is kept, if it outlives the rest.
    pub key_until: Option<Timestamp>,
    /// Further raw keys, each with the name of its keyspace, for a family that may be unreadable.
    pub raw: Vec<(String, Blob)>,
}

/// One fact. All but the last group go to disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The row of a procedure as it now stands.
    Row(Box<Row>),
    /// The root's row of a finished family, which is no longer in memory.
    FinishedRow(Box<Row>),
    /// The encoded value of a procedure.
    Payload(ProcedureId, Blob),
    /// The value that a root was submitted with, of that schema version, when another value replaces it and no history
    /// entry [has it](crate::HistoryEntry::submitted).
    Submitted(ProcedureId, u16, Blob),
    /// The encoded output of a procedure.
    Output(ProcedureId, Blob),
    /// A history entry, new or overwritten.
    History(Box<HistoryEntry>),
    /// The entry of an old attempt is deleted, because only the last few are kept.
    HistoryDropped(u64, u32),
    /// A signal, delivered or consumed, with its payload.
    Signal(ProcedureId, u32, SignalEntry, Blob),
    /// A consumed signal is deleted.
    SignalDropped(ProcedureId, u32, EventName),
    /// What an idempotency key stands for.
    Key(Key, KeyEntry),
    /// The labels of the rows that name this member, itself among them.
    Labels(ProcedureId, Labels),
    /// A member of a family has these labels. The index of the family may have some of them already.
    Labelled(u64, Labels),
    /// A family is live.
    FamilyBegan(u64),
    /// A family has ended; its result is evicted at the given instant.
    FamilyEnded(u64, Timestamp),
    /// A root has failed, and is listed until somebody acknowledges that.
    FailureListed(Box<FailureEntry>),
    /// The failure of a family that ended at that instant is not listed any more.
    FailureClosed(u64, Timestamp),
    /// The result of a finished family is evicted at another instant: old, new.
    DueChanged(u64, Timestamp, Timestamp),
    /// A finished family is deleted.
    Evicted(Box<EvictedFamily>),
    /// An idempotency key whose family was evicted earlier is deleted.
    KeyExpired(Key, Timestamp, u64),
    /// An operator acted.
    Audit(Box<AuditEntry>),
    /// An old entry of the audit log is deleted.
    AuditDropped(u64),
    /// The broadcast of this commit has more waiters than one commit may wake. Later commits wake them.
    Broadcast(Seq, Box<Broadcast>),
    /// All waiters of the broadcast of that commit are woken.
    BroadcastOver(Seq),
    /// A pause begins or ends.
    Pause(PauseScope, bool),
    /// A quarantined family was moved to the archive, as these bytes.
    Archived(u64, Blob),
    /// What a limit allows.
    Limit(LimitKey, Limit),
    /// The begins that count for the rate of a limit; none if the window is empty.
    RateWindow(LimitKey, Box<RateWindow>),
    /// Family numbers below this one may have been assigned.
    FamiliesReserved(u64),
    /// An engine took the store; engines had died this often before.
    Started(Epoch, u32),
    /// The engine of this epoch stopped in order.
    Stopped(Epoch),
    /// A write of user data.
    User(UserWrite),

    /// Not stored: the rollback of this scope waits for its stack.
    StackAsked(ProcedureId),
    /// Not stored: the stack of this scope is in memory, and its top is being undone.
    StackHeld(ProcedureId, Vec<HistoryEntry>, Vec<NotUndone>),
    /// Not stored: the top of this scope's stack is removed, and no undo is out.
    StackPopped(ProcedureId),
    /// Not stored: whether the undo on top of the stack is out.
    UndoOut(ProcedureId, bool),
    /// Not stored: the own rule of the gate at which this child waits says for what reason it can no longer open, with
    /// all children before it ended. A person must decide.
    GateUnmeetable(ProcedureId, String),
    /// Not stored: a lost wake was found and repaired.
    WakeFound(ProcedureId),
    /// Not stored: a report or wake was late and changed nothing.
    Late(ProcedureId),
    /// Not stored: the timers of this procedure have nothing to wake.
    Disarmed(ProcedureId),
    /// Not stored: no more stages are started.
    Draining,
}

impl Record {
    /// Returns the size of the values, output or note that the record carries, or 0.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        if let Self::Payload(_, value) | Self::Submitted(_, _, value) | Self::Output(_, value) = self {
            value.len()
        } else if let Self::History(entry) = self {
            entry.note.as_ref().map_or(0, Blob::len) + entry.value.as_ref().map_or(0, |value| value.kept())
        } else {
            0
        }
    }

    /// Returns `true` if the record goes to disk.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        !matches!(
            self,
            Self::StackAsked(_)
                | Self::StackHeld(..)
                | Self::StackPopped(_)
                | Self::UndoOut(..)
                | Self::GateUnmeetable(..)
                | Self::WakeFound(_)
                | Self::Late(_)
                | Self::Disarmed(_)
                | Self::Draining
        )
    }
}
