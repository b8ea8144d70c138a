//! Durable facts: what a decision leaves behind.
//!
//! A record *is* what goes to disk: a row as it now stands, a history entry, a
//! signal. Recovery reads rows back and feeds them to the same `evolve`, so
//! there is no second way to build the state.

use serde::{Deserialize, Serialize};

use crate::audit::AuditEntry;
use crate::cause::NotUndone;
use crate::history::HistoryEntry;
use crate::id::{Blob, Epoch, EventName, Key, LimitKey, ProcedureId, Seq, Timestamp};
use crate::row::Row;
use crate::wait::{Pause, SignalEntry};
use crate::waiters::Broadcast;

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

impl UserWrite {
    /// Returns the bytes of its key and value.
    #[must_use]
    pub fn size(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, Vec::len)
    }
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
    /// Until when it is kept, if that is longer than the result.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
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
    /// Until when that key is to be kept, if it outlives the rest.
    pub key_until: Option<Timestamp>,
    /// More keys, as they are, each with the name of its keyspace: of a family that may not be readable.
    pub raw: Vec<(String, Blob)>,
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
    /// What a kept key stands for is gone, and the key now, too.
    KeyExpired(Key, Timestamp, u64),
    /// An operator acted.
    Audit(Box<AuditEntry>),
    /// The entry of an old act is gone.
    AuditDropped(u64),
    /// A broadcast of this commit has more waiters than are woken at once: commits after it wake them.
    Broadcast(Seq, Box<Broadcast>),
    /// All waiters of the broadcast of that commit are woken.
    BroadcastOver(Seq),
    /// Something is paused, or no more.
    Pause(Pause, bool),
    /// A quarantined family was put into the archive, as these bytes.
    Archived(u64, Blob),
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
    /// Not stored: a wake was lost, and has been made up for.
    WakeFound(ProcedureId),
    /// Not stored: a report or wake came too late and changed nothing.
    Late(ProcedureId),
    /// Not stored: the timers of this procedure have nothing to wake.
    Disarmed(ProcedureId),
    /// Not stored: no more stages are set going.
    Draining,
}

impl Record {
    /// Returns the bytes of the value or output that the record carries; 0 if it carries none.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        if let Self::Payload(_, value) | Self::Output(_, value) = self {
            value.len()
        } else {
            0
        }
    }

    /// Tells whether the record goes to disk.
    #[must_use]
    pub const fn is_durable(&self) -> bool {
        !matches!(
            self,
            Self::StackAsked(_)
                | Self::StackHeld(..)
                | Self::StackPopped(_)
                | Self::UndoOut(..)
                | Self::WakeFound(_)
                | Self::Late(_)
                | Self::Disarmed(_)
                | Self::Draining
        )
    }
}
