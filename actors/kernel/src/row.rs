//! The row of a procedure: all that the engine knows of it, in memory and on disk alike.

mod large;
mod locks;
mod make;
mod said;

pub use large::Large;
pub use said::Said;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cause::{Cause, NotUndone};
use crate::id::{Blob, EventName, Key, Kind, LimitKey, ProcedureId, Seq, Timestamp, TraceParent};
use crate::lifecycle::ProcedureState;
use crate::lock::LockNeed;
use crate::needs::Needs;
use crate::wait::{WaitReason, Wake};

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

/// How long a permit is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hold {
    /// From the first stage to the end (Tera).
    #[default]
    #[serde(rename = "l")]
    ForLife,
    /// While it is active: given back whenever it is parked.
    #[serde(rename = "a")]
    WhileActive,
}

impl Hold {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_for_life(&self) -> bool {
        matches!(self, Self::ForLife)
    }
}

/// Whose permits a child runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChildPermits {
    /// Nobody's: it needs none (Tera).
    #[default]
    Exempt,
    /// Its parent's, which the parent keeps until all such children have ended,
    /// though it is parked.
    Inherited,
    /// Its own, as if it were a root.
    Own,
}

/// What happens when the whole time of a procedure is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnTimeout {
    /// It fails, and rolls back.
    #[default]
    #[serde(rename = "f")]
    Fail,
    /// Its next stage runs, at once if it is parked, and is told.
    #[serde(rename = "e")]
    Execute,
}

impl OnTimeout {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_fail(&self) -> bool {
        matches!(self, Self::Fail)
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
    /// When those at these places of the list (counted from 0) have succeeded. A detached child
    /// has a place and cannot be named. In a [`Round`] the places count the attached children.
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

    /// Tells whether a child is one of those that the policy names. A stored place that is not in
    /// the list names them all: nobody knows which was meant.
    #[must_use]
    pub fn names(&self, member: u32) -> bool {
        match &self.join {
            JoinPolicy::Named(places) => self.names_all() || places.contains(&(member - self.first)),
            JoinPolicy::AllSucceeded | JoinPolicy::AllFinished | JoinPolicy::AtLeast(_) | JoinPolicy::Custom => false,
        }
    }

    /// Gives how many children the policy names.
    #[must_use]
    pub fn named(&self) -> u32 {
        let JoinPolicy::Named(places) = &self.join else {
            return 0;
        };
        if self.names_all() {
            return self.count;
        }
        let places: BTreeSet<u32> = places.iter().copied().collect();
        u32::try_from(places.len()).unwrap_or(u32::MAX)
    }

    /// Engines before places were checked stored some that are not in the list. Nobody knows which
    /// child was meant, so the parent waits until all have succeeded: never less than was asked for.
    fn names_all(&self) -> bool {
        match &self.join {
            JoinPolicy::Named(places) => places.iter().any(|place| *place >= self.count),
            JoinPolicy::AllSucceeded | JoinPolicy::AllFinished | JoinPolicy::AtLeast(_) | JoinPolicy::Custom => false,
        }
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

/// What an operator did to a procedure's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mark {
    /// It was ended without its code.
    #[serde(rename = "b")]
    Bypassed,
    /// Its output was replaced.
    #[serde(rename = "o")]
    Overridden,
}

/// What user code says of the stage that runs next; asked on the worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ahead {
    /// Locks that it needs.
    pub locks: Vec<LockNeed>,
    /// Its name, if it does not support rollback.
    pub one_way: Option<String>,
    /// Its name, if the kind bounds how often one stage runs in a row.
    pub name: Option<String>,
    /// How long it is expected to take.
    pub expected: Option<Duration>,
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
    /// How long it holds its permits.
    #[serde(rename = "1", default, skip_serializing_if = "Hold::is_for_life")]
    pub hold: Hold,
    /// Locks that the stage needs that runs next, or is undone next.
    #[serde(rename = "2", default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockNeed>,
    /// Locks that it holds.
    #[serde(rename = "3", default, skip_serializing_if = "Vec::is_empty")]
    pub locked: Vec<LockNeed>,
    /// Since when it holds each of them, in the same order; less than that, or none, of locks that
    /// were taken before this was recorded.
    #[serde(rename = "J", default, skip_serializing_if = "Vec::is_empty")]
    pub locked_at: Vec<Option<Timestamp>>,
    /// It holds its locks from the first grant to its end, not for the stage alone.
    #[serde(rename = "4", default, skip_serializing_if = "std::ops::Not::not")]
    pub locks_for_life: bool,
    /// Since when it was ready to run, if it had to wait for its admission.
    #[serde(rename = "5", default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Timestamp>,
    /// Name of the stage that runs next, if it does not support rollback.
    #[serde(rename = "6", default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<String>,
    /// Name of the stage with which it passed its point of no return.
    #[serde(rename = "7", default, skip_serializing_if = "Option::is_none")]
    pub past: Option<String>,
    /// How often the stage that runs next was run just before, without another between.
    #[serde(rename = "A", default, skip_serializing_if = "is_zero")]
    pub same_stage: u32,
    /// How long the stage that runs next is expected to take.
    #[serde(rename = "B", default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Duration>,
    /// What happens when its own time is up.
    #[serde(rename = "C", default, skip_serializing_if = "OnTimeout::is_fail")]
    pub on_timeout: OnTimeout,
    /// Its own time is up, and its code is told so.
    #[serde(rename = "D", default, skip_serializing_if = "std::ops::Not::not")]
    pub out_of_time: bool,
    /// An operator has paused it and all below it.
    #[serde(rename = "E", default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,
    /// An operator has ended it, or replaced its result.
    #[serde(rename = "F", default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Mark>,
    /// Its output, while it still waits for its last children.
    #[serde(rename = "G", default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Blob>,
    /// It has ended, and its code has yet to clean up.
    #[serde(rename = "H", default, skip_serializing_if = "std::ops::Not::not")]
    pub cleaning: bool,
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
    /// The trace in which it was submitted.
    #[serde(rename = "I", default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Box<TraceParent>>,
    /// How large its value is, while that is a quarter or more of what is allowed.
    #[serde(rename = "K", default, skip_serializing_if = "Option::is_none")]
    pub large: Option<Box<Large>>,
    /// What the newest failure said of that which is tried again, and how many in a row said so;
    /// none if nothing has failed since it succeeded last, or since before this was recorded.
    #[serde(rename = "L", default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Box<Said>>,
    /// While it waits for an event: the newest broadcast of it that was still waking others when it
    /// began to wait. That one and all before it do not wake it.
    #[serde(rename = "W", default, skip_serializing_if = "is_none")]
    pub waits_after: Seq,
    /// Idempotency key of its submission.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// When its own time is up; none once a stage was told so.
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

    /// Tells whether nothing of it is left to be done.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.ended.is_some() && !self.cleaning
    }

    /// Tells whether it holds all that its next stage needs.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        (self.holds || self.limits.is_empty()) && self.has_locks()
    }

    /// What it holds of the limiter.
    #[must_use]
    pub fn held(&self) -> Needs {
        Needs {
            limits: if self.holds { self.limits.clone() } else { Vec::new() },
            locks: self.locked.clone(),
        }
    }

    /// Tells whether it holds the locks that its next stage needs.
    #[must_use]
    pub fn has_locks(&self) -> bool {
        self.locks.iter().all(|need| self.locked.contains(need))
    }

    /// Tells whether it is beyond its point of no return, and has not ended.
    #[must_use]
    pub const fn is_past_return(&self) -> bool {
        self.past.is_some() && self.ended.is_none()
    }

    /// Tells whether it waits for this event.
    #[must_use]
    pub fn waits_for(&self, event: &EventName) -> bool {
        matches!(&self.wait, Some(WaitReason::Event(name, _)) if name == event)
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
fn is_none(seq: &Seq) -> bool {
    *seq == Seq::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_normal(priority: &i16) -> bool {
    *priority == 0
}
