//! The row of a procedure: everything that the engine knows about it, in memory and on disk alike.

mod failure_streak;
mod graph;
mod locks;
mod make;
mod payload_size;
mod permits;
mod rare;
mod write;

pub use failure_streak::FailureStreak;
pub use graph::{CHILD_NAME_MAX, Gate, GraphNode};
pub use payload_size::PayloadSizeNote;
pub use rare::Rare;

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{Blob, EventName, Key, Kind, LimitKey, ProcedureId, Seq, Timestamp};
use crate::label::RowLabels;
use crate::lifecycle::ProcedureState;
use crate::list::List;
use crate::lock::LockNeed;
use crate::needs::Needs;
use crate::wait::{WaitReason, Wake};

/// What becomes of a succeeded child when its family rolls back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
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
#[non_exhaustive]
pub enum Hold {
    /// From the first stage to the end (Tera).
    #[default]
    #[serde(rename = "l")]
    ForLife,
    /// While the procedure is active: released whenever it is parked.
    #[serde(rename = "a")]
    WhileActive,
}

impl Hold {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    fn is_for_life(&self) -> bool {
        matches!(self, Self::ForLife)
    }
}

/// Which permits a child runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ChildPermits {
    /// None: it needs no permits (Tera).
    #[default]
    Exempt,
    /// Its parent's. A parked parent keeps them until all such children have ended.
    Inherited,
    /// Its own, as if it were a root.
    Own,
}

/// What happens when a procedure's deadline passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum OnTimeout {
    /// It fails, and rolls back.
    #[default]
    #[serde(rename = "f")]
    Fail,
    /// Its next stage runs and is told so, at once if the procedure is parked.
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
#[non_exhaustive]
pub enum JoinPolicy {
    /// When all have succeeded; a failed child fails the parent.
    #[default]
    #[serde(rename = "a")]
    AllSucceeded,
    /// When all have ended, with or without success.
    #[serde(rename = "f")]
    AllFinished,
    /// When this many have succeeded. The list must have as many attached children.
    #[serde(rename = "n")]
    AtLeast(u32),
    /// When the children at these places of the list (counted from 0) have succeeded. A detached child has a place but
    /// cannot be named. In a [`Round`] the places count only the attached children.
    #[serde(rename = "s")]
    Named(Vec<u32>),
    /// When the rule of the procedure that waits says so.
    #[serde(rename = "c")]
    Custom,
}

/// One list of children, born together, that their parent waits or waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Member number of the first child.
    #[serde(rename = "f")]
    pub first: u32,
    /// How many children there are; their numbers are consecutive.
    #[serde(rename = "n")]
    pub count: u32,
    /// When the parent goes on.
    #[serde(rename = "j")]
    pub join: JoinPolicy,
    /// How many may run at once; 0 means no limit.
    #[serde(rename = "w", default)]
    pub width: u32,
    /// `true` if children keep their places in the width while they ask a person.
    #[serde(rename = "k", default, skip_serializing_if = "crate::wait::is_false")]
    pub keep_places: bool,
}

impl Round {
    /// Returns `true` if the member is one of these children.
    #[must_use]
    pub const fn contains(&self, member: u32) -> bool {
        member >= self.first && member - self.first < self.count
    }

    /// Returns `true` if the policy names this child. If a stored place is not in the list, all children count as
    /// named, because the intended child is unknown.
    #[must_use]
    pub fn names(&self, member: u32) -> bool {
        match &self.join {
            JoinPolicy::Named(places) => self.names_all() || places.contains(&(member - self.first)),
            JoinPolicy::AllSucceeded | JoinPolicy::AllFinished | JoinPolicy::AtLeast(_) | JoinPolicy::Custom => false,
        }
    }

    /// Returns the number of children that the policy names.
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

    /// Returns `true` if a stored place is not in the list. Engines that did not check places could store such a
    /// policy. The intended child is unknown, so the parent waits for all: never for less than was asked.
    fn names_all(&self) -> bool {
        match &self.join {
            JoinPolicy::Named(places) => places.iter().any(|place| *place >= self.count),
            JoinPolicy::AllSucceeded | JoinPolicy::AllFinished | JoinPolicy::AtLeast(_) | JoinPolicy::Custom => false,
        }
    }
}

/// Mark of a stage that is out. It is on disk before user code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// The commit that started the stage. A report with another number is late.
    #[serde(rename = "r")]
    pub run: Seq,
    /// How often the engine had died when the stage was started.
    #[serde(rename = "d", default)]
    pub deaths: u32,
    /// The procedure runs as the only suspect.
    #[serde(rename = "a", default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The number of deaths when a drain gave the stage up, since that replaces `deaths`. Later ones are counted from
    /// here.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub counted_from: Option<u32>,
}

/// How an operator changed a procedure's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Mark {
    /// The procedure was ended without its code.
    #[serde(rename = "b")]
    Bypassed,
    /// Its output was replaced.
    #[serde(rename = "o")]
    Overridden,
}

/// What user code says about the next stage; evaluated on the worker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextStageNeeds {
    /// Locks that it needs.
    pub locks: Vec<LockNeed>,
    /// It needs a permit of each of these limits while it runs. Limits of the procedure itself are not counted again.
    pub limits: Vec<LimitKey>,
    /// Its name, if it does not support rollback.
    pub next_is_no_return: Option<String>,
    /// Its name, if the kind limits how often one stage runs in a row.
    pub name: Option<String>,
    /// How long it is expected to take.
    pub expected: Option<Duration>,
    /// It reaches nothing but its report, so it may run before the stages before it are on disk.
    pub is_pure: bool,
}

impl NextStageNeeds {
    /// Returns `true` if the stage needs neither locks nor permits of its own.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.locks.is_empty() && self.limits.is_empty()
    }
}

/// Current row of a procedure, overwritten by each commit that touches the procedure.
///
/// The payload and the output have keys of their own, so that a parked procedure can move without loading them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Row {
    /// Id of the procedure; it is the key on disk, not part of the value.
    #[serde(skip, default = "unnamed")]
    pub id: ProcedureId,
    /// The commit that wrote this row: its revision.
    #[serde(rename = "q")]
    pub revision: Seq,
    /// Type of the procedure.
    #[serde(rename = "k")]
    pub kind: Kind,
    /// Schema version of its payload.
    #[serde(rename = "v")]
    pub version: u16,
    /// Member number of its parent; `None` for a root.
    #[serde(rename = "p", default)]
    pub parent: Option<u32>,
    /// What becomes of it, once succeeded, when the family rolls back.
    #[serde(rename = "f", default)]
    pub on_failure: OnFailure,
    /// Its state.
    #[serde(rename = "s")]
    pub state: ProcedureState,
    /// Why it does not run.
    #[serde(rename = "w", default)]
    pub wait: Option<WaitReason>,
    /// Since when state and reason have been as they are.
    #[serde(rename = "n")]
    pub since: Timestamp,
    /// The encoded stage that runs, or runs next.
    #[serde(rename = "g")]
    pub stage: Blob,
    /// How many stages have been committed: the number of the next visit.
    #[serde(rename = "i", default)]
    pub visit: u32,
    /// Failed attempts of this visit.
    #[serde(rename = "a", default)]
    pub attempt: u32,
    /// Set while a stage is out.
    #[serde(rename = "o", default)]
    pub in_flight: Option<InFlight>,
    /// Number of its newest history entry in the family; 0 means none.
    #[serde(rename = "h", default)]
    pub history: u32,
    /// How many of its executed stages are on the rollback stack.
    #[serde(rename = "x", default)]
    pub standing: u32,
    /// For a root: its value is still the one that it was submitted with. It may have been upgraded.
    #[serde(rename = "P", default)]
    pub as_submitted: bool,
    /// What the next stage is told about its wake.
    #[serde(rename = "e", default)]
    pub wake: Option<Wake>,
    /// The lists of children that may still be live; the newest is last.
    #[serde(rename = "r", default)]
    pub rounds: List<Round>,
    /// It holds, or waits for, a permit of each of these limits.
    #[serde(rename = "l", default)]
    pub limits: List<LimitKey>,
    /// It holds a permit of each of its limits.
    #[serde(rename = "m", default)]
    pub holds: bool,
    /// How long it holds its permits.
    #[serde(rename = "1", default)]
    pub hold: Hold,
    /// The next stage, or the next undo, needs a permit of each of these limits while it runs.
    #[serde(rename = "X", default)]
    pub stage_limits: List<LimitKey>,
    /// It holds a permit of each of these.
    #[serde(rename = "Y", default)]
    pub stage_permits: bool,
    /// Locks needed by the next stage, or by the next undo.
    #[serde(rename = "2", default)]
    pub locks: List<LockNeed>,
    /// Locks that it holds.
    #[serde(rename = "3", default)]
    pub locked: List<LockNeed>,
    /// Since when it holds each of them, in the same order. Shorter, or `None`, for locks that were taken before times
    /// were recorded.
    #[serde(rename = "J", default)]
    pub locked_at: List<Option<Timestamp>>,
    /// It holds its locks from the first grant to its end, not just for one stage.
    #[serde(rename = "4", default)]
    pub locks_for_life: bool,
    /// Since when it was ready to run, if it had to wait for admission, or because its process ended.
    #[serde(rename = "5", default)]
    pub ready: Option<Timestamp>,
    /// Name of the next stage, if that stage does not support rollback.
    #[serde(rename = "6", default)]
    pub next_is_no_return: Option<Box<str>>,
    /// How often the next stage was run immediately before, without another stage in between.
    #[serde(rename = "A", default)]
    pub same_stage: u32,
    /// How long the next stage is expected to take.
    #[serde(rename = "B", default)]
    pub expected: Option<Duration>,
    /// The next stage reaches nothing but its report, as its code says.
    #[serde(rename = "U", default)]
    pub is_pure: bool,
    /// Its deadline has passed, and its code is told so.
    #[serde(rename = "D", default)]
    pub out_of_time: bool,
    /// Priority: higher values are served first where it waits for a permit.
    #[serde(rename = "d", default)]
    pub priority: i16,
    /// Number of the newest signal delivered to it.
    #[serde(rename = "j", default)]
    pub signals: u32,
    /// While it waits for an event: the newest broadcast of that event that was still waking others when the wait
    /// began. That broadcast and all earlier ones do not wake it. While it waits for a permit or a lock: the commit in
    /// which the wait began, or 0 if that was before this was recorded.
    #[serde(rename = "W", default)]
    pub waits_after: Seq,
    /// How many processes ended, or drains gave up, while the next attempt was out before, without those that its mark
    /// counts. See [`Self::repeated_at`].
    #[serde(rename = "S", default)]
    pub repeated: u32,
    /// The oldest entry that its family may still have, if its kind keeps only the newest; else 0.
    #[serde(rename = "N", default)]
    pub history_from: u32,
    /// The labels under which people find it; inherited ones are among them.
    #[serde(rename = "T", default)]
    pub labels: RowLabels,
    /// Idempotency key of its submission.
    #[serde(rename = "b", default)]
    pub key: Option<Key>,
    /// Its deadline; `None` if it has none, or once a stage has been told that it passed.
    #[serde(rename = "t", default)]
    pub deadline: Option<Timestamp>,
    /// When it was submitted or spawned.
    #[serde(rename = "0")]
    pub submitted: Timestamp,
    /// When it ended.
    #[serde(rename = "9", default)]
    pub ended: Option<Timestamp>,
    /// When its result is evicted; set on the root of an ended family.
    #[serde(rename = "8", default)]
    pub due: Option<Timestamp>,
    /// What few procedures have; `None` if it has none of it. It is read with [`Self::rare`], and changed with
    /// [`Self::rare_mut`].
    #[serde(flatten, deserialize_with = "rare::read")]
    pub rare: Option<Box<Rare>>,
}

impl InFlight {
    /// Death count of a stage that a drain left behind. Deaths from there on count from [`Self::counted_from`].
    pub const UNCOUNTED: u32 = u32::MAX;

    /// Returns how many deaths count against the stage. `deaths` is how often engines of this store have died.
    pub(crate) fn deaths_since(self, deaths: u32) -> u32 {
        deaths.saturating_sub(self.counted_from.unwrap_or(self.deaths))
    }
}

impl Row {
    /// Returns how many processes ended, or drains gave up, while its current attempt was out, so that the attempt may
    /// have run in part or wholly. `deaths` is how often engines of this store have died.
    #[must_use]
    pub fn repeated_at(&self, deaths: u32) -> u32 {
        let out = self.in_flight.map_or(0, |in_flight| match in_flight.counted_from {
            // A drain of an engine that kept no count.
            None if in_flight.deaths == InFlight::UNCOUNTED => 1,
            Some(_) | None => in_flight.deaths_since(deaths),
        });
        self.repeated.saturating_add(out)
    }

    /// Returns how many of its committed stages its history may still hold.
    #[must_use]
    pub fn stages_kept(&self) -> u32 {
        let from = self.history_from;
        if from == 0 {
            return self.visit;
        }
        let entries = self.history.saturating_add(1).saturating_sub(from);
        self.visit.min(entries)
    }

    /// Returns `true` if it has ended.
    #[must_use]
    pub const fn is_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Returns `true` if nothing remains to be done for it.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.ended.is_some() && !self.rare().cleaning
    }

    /// Returns `true` if it holds everything that its next stage needs.
    #[must_use]
    pub fn is_admitted(&self) -> bool {
        (self.holds || self.limits.is_empty()) && self.has_stage_permits() && self.has_locks()
    }

    /// Returns the permits and locks that it holds.
    #[must_use]
    pub fn held(&self) -> Needs {
        Needs {
            limits: self.held_limits(),
            locks: self.locked.to_vec(),
        }
    }

    /// Returns `true` if it holds the locks that its next stage needs.
    #[must_use]
    pub fn has_locks(&self) -> bool {
        self.lacking_locks().next().is_none()
    }

    /// Returns `true` if it is past its point of no return and has not ended.
    #[must_use]
    pub const fn is_past_return(&self) -> bool {
        self.rare().past_no_return.is_some() && self.ended.is_none()
    }

    /// Returns `true` if it waits for this event.
    #[must_use]
    pub fn waits_for(&self, event: &EventName) -> bool {
        matches!(&self.wait, Some(WaitReason::Event(name, _)) if name == event)
    }

    /// Returns `true` if it has failed and its rollback is not over.
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
