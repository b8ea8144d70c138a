//! One word for each reason, ending and mark: what filters and programs go by.

use std::fmt;
use std::str::FromStr;

use procession_kernel::{Ending, Mark, WaitReason};
use serde::{Serialize, Serializer};

/// Why a procedure does not run, without its particulars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Reason {
    /// Held back by its parent's width.
    Width,
    /// Waits for a permit.
    Permit,
    /// Waits for its children.
    Children,
    /// Sleeps.
    Timer,
    /// Waits for an event.
    Event,
    /// Its next attempt is due later.
    Backoff,
    /// Queued.
    Queue,
    /// Queued behind a suspect.
    Suspect,
    /// Paused as poison.
    Poison,
    /// An undo used up its attempts.
    RollbackFailed,
    /// Waits for a lock.
    Lock,
    /// Paused by an operator.
    Paused,
    /// Ran one stage too often in a row.
    RepeatLimit,
    /// Its family is set aside.
    Quarantined,
    /// Waits at its gate for siblings that come before it.
    Gate,
    /// Waits for a person's decision.
    Decision,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 16] = [
        Self::Width,
        Self::Permit,
        Self::Children,
        Self::Timer,
        Self::Event,
        Self::Backoff,
        Self::Queue,
        Self::Suspect,
        Self::Poison,
        Self::RollbackFailed,
        Self::Lock,
        Self::Paused,
        Self::RepeatLimit,
        Self::Quarantined,
        Self::Gate,
        Self::Decision,
    ];

    /// Returns the word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Width => "width",
            Self::Permit => "permit",
            Self::Children => "children",
            Self::Timer => "timer",
            Self::Event => "event",
            Self::Backoff => "backoff",
            Self::Queue => "queue",
            Self::Suspect => "suspect",
            Self::Poison => "poison",
            Self::RollbackFailed => "rollback_failed",
            Self::Lock => "lock",
            Self::Paused => "paused",
            Self::RepeatLimit => "repeat_limit",
            Self::Quarantined => "quarantined",
            Self::Gate => "gate",
            Self::Decision => "decision",
        }
    }
}

impl From<&WaitReason> for Reason {
    fn from(reason: &WaitReason) -> Self {
        match reason {
            WaitReason::Width => Self::Width,
            WaitReason::Permit(_) => Self::Permit,
            WaitReason::Children => Self::Children,
            WaitReason::Timer(_) => Self::Timer,
            WaitReason::Event(..) => Self::Event,
            WaitReason::Backoff(..) => Self::Backoff,
            WaitReason::Queue => Self::Queue,
            WaitReason::Suspect => Self::Suspect,
            WaitReason::Poison => Self::Poison,
            WaitReason::RollbackFailed => Self::RollbackFailed,
            WaitReason::Lock(_) => Self::Lock,
            WaitReason::Paused => Self::Paused,
            WaitReason::RepeatLimit => Self::RepeatLimit,
            WaitReason::Quarantined => Self::Quarantined,
            WaitReason::Gate => Self::Gate,
            WaitReason::Decision(_) => Self::Decision,
        }
    }
}

impl FromStr for Reason {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word).ok_or(())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Says in a word how an executed stage or an undo ended.
#[must_use]
pub const fn ending_word(ending: Ending) -> &'static str {
    match ending {
        Ending::Next => "next",
        Ending::Done => "done",
        Ending::Spawn => "spawn",
        Ending::Sleep => "sleep",
        Ending::Wait => "wait",
        Ending::Asked => "asked",
        Ending::Retry => "retry",
        Ending::Fail => "fail",
        Ending::Panic => "panic",
        Ending::Undone => "undone",
        Ending::UndoFailed => "undo_failed",
        Ending::UndoSkipped => "undo_skipped",
        _ => "other",
    }
}

/// Says in a word what an operator did to a procedure's end.
#[must_use]
pub const fn mark_word(mark: Mark) -> &'static str {
    match mark {
        Mark::Bypassed => "bypassed",
        Mark::Overridden => "overridden",
        _ => "marked",
    }
}
