//! Why a procedure is not running, and what its next stage is told when it wakes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{Blob, EventName, Key, Kind, LimitKey, Timestamp};
use crate::lock::LockPath;
use crate::needs::Lacking;

/// Why a procedure does not run. Append-only: the short names stand on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitReason {
    /// Held back by its parent's limit on children that run at once.
    #[serde(rename = "w")]
    Width,
    /// Waits for a permit of this limit.
    #[serde(rename = "p")]
    Permit(LimitKey),
    /// Waits for its children.
    #[serde(rename = "c")]
    Children,
    /// Sleeps until this instant.
    #[serde(rename = "t")]
    Timer(Timestamp),
    /// Waits for this event, at most until the instant given.
    #[serde(rename = "e")]
    Event(EventName, Option<Timestamp>),
    /// Failed this many attempts; the next is at the instant given.
    #[serde(rename = "b")]
    Backoff(u32, Timestamp),
    /// Runnable, and not set going because the engine drained.
    #[serde(rename = "q")]
    Queue,
    /// Met by two crashes; waits until the suspect before it has ended.
    #[serde(rename = "s")]
    Suspect,
    /// The process died while it ran alone: paused until an operator resumes it.
    #[serde(rename = "x")]
    Poison,
    /// An undo used up its attempts: waits for an operator.
    #[serde(rename = "r")]
    RollbackFailed,
    /// Waits for this lock.
    #[serde(rename = "l")]
    Lock(LockPath),
    /// An operator has paused it, its kind, or everything.
    #[serde(rename = "u")]
    Paused,
    /// Past its point of no return, it ran one stage as often in a row as its kind allows: waits for an operator.
    #[serde(rename = "o")]
    Circling,
    /// Its family could not be loaded, or has no code.
    #[serde(rename = "z")]
    Quarantined,
}

impl WaitReason {
    /// Gives the instant at which time ends this wait, if time does.
    #[must_use]
    pub const fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Timer(until) | Self::Backoff(_, until) => Some(*until),
            Self::Event(_, until) => *until,
            Self::Width
            | Self::Permit(_)
            | Self::Children
            | Self::Queue
            | Self::Suspect
            | Self::Poison
            | Self::RollbackFailed
            | Self::Lock(_)
            | Self::Paused
            | Self::Circling
            | Self::Quarantined => None,
        }
    }
}

impl WaitReason {
    /// Tells whether it waits for a time or an event: for nothing in the engine.
    pub(crate) const fn is_rest(&self) -> bool {
        matches!(self, Self::Timer(_) | Self::Event(..))
    }

    /// Tells whether it waits for a permit or a lock.
    #[must_use]
    pub const fn is_admission(&self) -> bool {
        matches!(self, Self::Permit(_) | Self::Lock(_))
    }

    /// Gives the permit or the lock that it waits for.
    #[must_use]
    pub fn lacking(&self) -> Option<Lacking> {
        match self {
            Self::Permit(limit) => Some(Lacking::Permit(limit.clone())),
            Self::Lock(path) => Some(Lacking::Lock(path.clone())),
            Self::Width
            | Self::Children
            | Self::Timer(_)
            | Self::Event(..)
            | Self::Backoff(..)
            | Self::Queue
            | Self::Suspect
            | Self::Poison
            | Self::RollbackFailed
            | Self::Paused
            | Self::Circling
            | Self::Quarantined => None,
        }
    }
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(id) => write!(f, "{id}"),
            Self::Kind(kind) => write!(f, "the kind {kind}"),
            Self::All => f.write_str("everything"),
        }
    }
}

impl From<Lacking> for WaitReason {
    fn from(lacking: Lacking) -> Self {
        match lacking {
            Lacking::Permit(limit) => Self::Permit(limit),
            Lacking::Lock(path) => Self::Lock(path),
        }
    }
}

/// What an operator pauses or resumes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Pause {
    /// This procedure, and all below it.
    #[serde(rename = "o")]
    One(crate::id::ProcedureId),
    /// All of this kind.
    #[serde(rename = "k")]
    Kind(Kind),
    /// Everything.
    #[serde(rename = "a")]
    All,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Width => f.write_str("held back by its parent's width"),
            Self::Permit(key) => write!(f, "waits for a permit of {key}"),
            Self::Children => f.write_str("waits for its children"),
            Self::Timer(_) => f.write_str("sleeps"),
            Self::Event(name, _) => write!(f, "waits for the event {name}"),
            Self::Backoff(attempt, _) => write!(f, "backs off after attempt {attempt}"),
            Self::Queue => f.write_str("queued"),
            Self::Suspect => f.write_str("queued behind a suspect"),
            Self::Poison => f.write_str("paused as poison"),
            Self::RollbackFailed => f.write_str("rollback failed"),
            Self::Lock(path) => write!(f, "waits for the lock {path}"),
            Self::Paused => f.write_str("paused"),
            Self::Circling => f.write_str("ran one stage too often in a row"),
            Self::Quarantined => f.write_str("quarantined"),
        }
    }
}

/// What set a stage going, kept until that stage commits anything but a retry,
/// so that every attempt of it sees the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wake {
    /// The children numbered from the first given, that many.
    #[serde(rename = "c")]
    Children(u32, u32),
    /// The event of this name arrived as the signal with this number.
    #[serde(rename = "s")]
    Signal(EventName, u32),
    /// The time for the event of this name was up.
    #[serde(rename = "o")]
    Timeout(EventName),
}

/// A delivered signal as the kernel remembers it; its payload stays in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalEntry {
    /// Name of the event.
    #[serde(rename = "n")]
    pub name: EventName,
    /// The sender's key, by which a repeat is recognised.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// Consumed already; kept for its key alone.
    #[serde(rename = "c", default, skip_serializing_if = "is_false")]
    pub consumed: bool,
    /// [Digest](Blob::digest) of what it carries, if it has a key: a repeat carries the same. None of
    /// one that was kept before this was noted; its repeats are told by their name alone.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<u64>,
}

impl SignalEntry {
    /// Tells whether a signal is the same again: its name, and what it carries.
    #[must_use]
    pub fn is_repeated_by(&self, name: &EventName, payload: &Blob) -> bool {
        self.name == *name && self.digest.is_none_or(|digest| digest == payload.digest())
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}
