//! Why a procedure is not running, and what its next stage is told when it wakes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{Blob, EventName, Key, Kind, LimitKey, ProcedureId, Timestamp};
use crate::lock::LockPath;
use crate::needs::Lacking;

/// Why a procedure does not run. Append-only: the short names are on disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitReason {
    /// Held back by its parent's limit on concurrently running children.
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
    /// Waits for this event, at most until the given instant.
    #[serde(rename = "e")]
    Event(EventName, Option<Timestamp>),
    /// This many attempts failed; the next one is at the given instant.
    #[serde(rename = "b")]
    Backoff(u32, Timestamp),
    /// Runnable, but not started because the engine drained.
    #[serde(rename = "q")]
    Queue,
    /// Was running at two crashes, and waits until the previous suspect has ended.
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
    /// An operator has paused the procedure, its kind, or everything.
    #[serde(rename = "u")]
    Paused,
    /// Past its point of no return, it ran one stage as often in a row as its kind allows: waits for an operator.
    #[serde(rename = "o")]
    RepeatLimit,
    /// Its family could not be loaded, or its kind is not registered.
    #[serde(rename = "z")]
    Quarantined,
    /// Waits for siblings that come before it.
    #[serde(rename = "g")]
    Gate,
    /// Waits for a person's answer to this question.
    #[serde(rename = "d")]
    Decision(Box<Question>),
}

impl WaitReason {
    /// Returns the instant at which this wait times out, or `None` if it has no timer.
    #[must_use]
    pub const fn deadline(&self) -> Option<Timestamp> {
        match self {
            Self::Timer(until) | Self::Backoff(_, until) => Some(*until),
            Self::Event(_, until) => *until,
            Self::Decision(question) => question.until,
            Self::Width
            | Self::Permit(_)
            | Self::Children
            | Self::Queue
            | Self::Suspect
            | Self::Poison
            | Self::RollbackFailed
            | Self::Lock(_)
            | Self::Paused
            | Self::RepeatLimit
            | Self::Quarantined
            | Self::Gate => None,
        }
    }
}

impl WaitReason {
    /// Returns the question, if it waits for an answer.
    #[must_use]
    pub const fn question(&self) -> Option<&Question> {
        match self {
            Self::Decision(question) => Some(question),
            Self::Width
            | Self::Permit(_)
            | Self::Children
            | Self::Timer(_)
            | Self::Event(..)
            | Self::Backoff(..)
            | Self::Queue
            | Self::Suspect
            | Self::Poison
            | Self::RollbackFailed
            | Self::Lock(_)
            | Self::Paused
            | Self::RepeatLimit
            | Self::Quarantined
            | Self::Gate => None,
        }
    }

    /// Returns `true` if it waits for a timer, an event or a person, hence for nothing inside the engine.
    pub(crate) const fn is_rest(&self) -> bool {
        matches!(self, Self::Timer(_) | Self::Event(..) | Self::Decision(_))
    }

    /// Returns `true` if it waits for a permit or a lock.
    #[must_use]
    pub const fn is_admission(&self) -> bool {
        matches!(self, Self::Permit(_) | Self::Lock(_))
    }

    /// Returns the permit or the lock that it waits for.
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
            | Self::RepeatLimit
            | Self::Quarantined
            | Self::Gate
            | Self::Decision(_) => None,
        }
    }
}

impl fmt::Display for PauseScope {
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
pub enum PauseScope {
    /// This procedure and all its descendants.
    #[serde(rename = "o")]
    One(crate::id::ProcedureId),
    /// All procedures of this kind.
    #[serde(rename = "k")]
    Kind(Kind),
    /// Everything.
    #[serde(rename = "a")]
    All,
}

impl fmt::Display for WaitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Width => f.write_str("waits for a slot among its parent's children"),
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
            Self::RepeatLimit => f.write_str("ran one stage too often in a row"),
            Self::Quarantined => f.write_str("quarantined"),
            Self::Gate => f.write_str("waits at its gate"),
            Self::Decision(_) => f.write_str("waits for a decision"),
        }
    }
}

/// A question that a stage asks a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The question, cut to 2,048 bytes.
    #[serde(rename = "q")]
    pub text: String,
    /// Until when it may be answered; `None` is for ever.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// `true` if the procedure keeps its place in its parent's width meanwhile.
    #[serde(rename = "p", default, skip_serializing_if = "is_false")]
    pub keeps_place: bool,
}

/// What woke a procedure. It is kept until the stage commits anything but a retry, so that every attempt sees the
/// same. Past the point of no return a failure is a retry, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wake {
    /// Children: the number of the first, and how many there are.
    #[serde(rename = "c")]
    Children(u32, u32),
    /// The event of this name arrived as the signal with this number.
    #[serde(rename = "s")]
    Signal(EventName, u32),
    /// The wait for the event of this name timed out.
    #[serde(rename = "o")]
    Timeout(EventName),
    /// A person's answer to its question; `None` if the time for it was up.
    #[serde(rename = "d")]
    Decision(Option<Blob>),
}

/// A delivered signal as the kernel remembers it. Its payload stays in the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalEntry {
    /// Name of the event.
    #[serde(rename = "n")]
    pub name: EventName,
    /// The sender's key, which identifies a repeat.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// `true` if the signal was consumed and is kept only for its key.
    #[serde(rename = "c", default, skip_serializing_if = "is_false")]
    pub consumed: bool,
    /// [Digest](Blob::digest) of the payload, if the signal has a key: a repeat has the same digest. `None` in signals
    /// stored before digests were recorded; their repeats are recognised by name alone.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<u64>,
    /// When it was sent. `None` in signals stored before this was recorded.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Timestamp>,
    /// `true` if its sender declared it the last of its name.
    #[serde(rename = "l", default, skip_serializing_if = "is_false")]
    pub last: bool,
}

impl SignalEntry {
    /// Returns `true` if the given signal repeats this one: the same name, payload and end of the name.
    #[must_use]
    pub fn is_repeated_by(&self, signal: &SentSignal) -> bool {
        self.name == signal.name
            && self.last == signal.last
            && self.digest.is_none_or(|digest| digest == signal.payload.digest())
    }
}

/// A signal on its way to its receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentSignal {
    /// The receiver.
    pub to: ProcedureId,
    /// Name of the event.
    pub name: EventName,
    /// The payload.
    pub payload: Blob,
    /// The sender's key.
    pub key: Option<Key>,
    /// `true` if later signals of this name must be refused.
    pub last: bool,
}

/// The signal that a family sends once it has ended, whatever its end. It is a notice and nothing more: a receiver that
/// has ended, or takes no more signals, is not told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSignal {
    /// The receiver.
    #[serde(rename = "i")]
    pub to: ProcedureId,
    /// Name of the event.
    #[serde(rename = "n")]
    pub name: EventName,
    /// The payload.
    #[serde(rename = "p", default, skip_serializing_if = "Blob::is_empty")]
    pub payload: Blob,
}

/// Most bytes of the name and the payload of an [`EndSignal`]. They are part of the row, which is written with every
/// stage.
pub const END_SIGNAL_MAX: usize = 256;

impl EndSignal {
    /// Returns the size that counts against [`END_SIGNAL_MAX`].
    #[must_use]
    pub fn size(&self) -> usize {
        self.name.as_str().len() + self.payload.len()
    }
}

pub(crate) fn is_false(flag: &bool) -> bool {
    !flag
}
