//! What happened, as it enters the kernel.

use std::fmt;
use std::time::Duration;

use crate::audit::OperatorRequest;
use crate::history::HistoryEntry;
use crate::id::{
    Blob, ClaimId, Epoch, EventName, Key, Kind, LimitKey, ProcedureId, RequestId, Seq, Timestamp, TraceParent,
};
use crate::needs::Lacking;
use crate::record::{Doomed, KeyEntry, UserWrite};
use crate::row::{Ahead, ChildPermits, Hold, JoinPolicy, OnFailure, OnTimeout, Row};
use crate::wait::Pause;

mod make;

/// A procedure to be born: all the kernel needs to know of user code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Birth {
    /// Its type.
    pub kind: Kind,
    /// Schema of its payload.
    pub version: u16,
    /// Its first stage, encoded.
    pub stage: Blob,
    /// Its value, encoded.
    pub payload: Blob,
    /// Higher goes first where it waits.
    pub priority: i16,
    /// The trace in which it is submitted.
    pub trace: Option<Box<TraceParent>>,
    /// A limit besides its kind's own.
    pub limit: Option<LimitKey>,
    /// How long it holds its permits.
    pub hold: Hold,
    /// As a child: whose permits it runs on.
    pub permits: ChildPermits,
    /// It holds its locks for life, not for the stage alone.
    pub locks_for_life: bool,
    /// What its code says of its first stage.
    pub ahead: Ahead,
    /// The whole time it may take.
    pub timeout: Option<Duration>,
    /// What happens when that is up.
    pub on_timeout: OnTimeout,
    /// Where its admission stands.
    pub admission: Admission,
    /// What becomes of it, once succeeded, when the family rolls back.
    pub on_failure: OnFailure,
    /// It is a family of its own, though a stage gives birth to it.
    pub detached: bool,
}

/// Where an admission stands when a decision is made on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Limits of which it needs one permit each.
    pub limits: Vec<LimitKey>,
    /// The request that the limiter has; it was asked before the decision.
    pub asked: Option<ClaimId>,
    /// What it lacks; it was granted all if it was asked and lacks nothing.
    pub lacking: Option<Lacking>,
}

impl Admission {
    /// Tells whether the limiter has granted it.
    #[must_use]
    pub const fn is_granted(&self) -> bool {
        self.asked.is_some() && self.lacking.is_none()
    }
}

/// An idempotency key as it is submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAsked {
    /// The key.
    pub key: Key,
    /// Digest of kind and payload.
    pub digest: u128,
    /// How long it is to be kept, if longer than the result.
    pub keep: Option<Duration>,
}

/// A submission with its idempotency key and its admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// What is born.
    pub birth: Birth,
    /// The key.
    pub key: Option<KeyAsked>,
    /// What the store knows of that key.
    pub known: Option<KeyEntry>,
}

/// What a stage said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageOutcome {
    /// Run that stage next.
    Next(Blob),
    /// Succeeded with this output.
    Done(Blob),
    /// Give birth to children, then run that stage.
    Spawn {
        /// The children in order.
        births: Vec<Birth>,
        /// When the parent goes on.
        join: JoinPolicy,
        /// How many run at once; 0 is no limit.
        width: u32,
        /// The stage after.
        then: Blob,
    },
    /// Run that stage at this instant.
    Sleep(Timestamp, Blob),
    /// Run that stage when the event comes or the time is up.
    Wait(EventName, Option<Duration>, Blob),
    /// Run the same stage again; nothing is stored.
    Yield,
    /// Run the same stage again after a backoff.
    Retry(String),
    /// Fail for good.
    Fail(String),
    /// User code panicked; counts as a retry.
    Panicked(String),
    /// User code asked for more than a bound allows; fails for good.
    Refused(String),
}

/// The report of one stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageEnded {
    /// Whose stage.
    pub id: ProcedureId,
    /// The commit that had set it going; another number is a late report.
    pub run: Seq,
    /// The ownership of the store in which it ran; a report of an earlier one is late.
    pub epoch: Epoch,
    /// When user code began.
    pub begun: Timestamp,
    /// When user code ended.
    pub ended: Timestamp,
    /// What it said.
    pub outcome: StageOutcome,
    /// The value, if the stage changed it.
    pub payload: Option<Blob>,
    /// The value as it was made of one of an older version, if no commit holds it yet:
    /// it is stored whatever the stage said, unless the stage left a newer one.
    pub upgraded: Option<Blob>,
    /// Writes of user data.
    pub writes: Vec<UserWrite>,
    /// Families submitted through the context.
    pub submitted: Vec<Birth>,
    /// Children collected one by one.
    pub children: Vec<Birth>,
    /// What its code says of the stage that runs next.
    pub ahead: Ahead,
    /// The limiter's word on the next stage, if it was asked before this report was decided on.
    pub admission: Option<Admission>,
}

/// The report of one undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoEnded {
    /// Root of the part of the family that rolls back.
    pub scope: ProcedureId,
    /// Number of the history entry that was undone.
    pub number: u32,
    /// When user code began.
    pub begun: Timestamp,
    /// When user code ended.
    pub ended: Timestamp,
    /// What it said when it failed.
    pub outcome: Result<(), String>,
    /// The value, if the undo changed it.
    pub payload: Option<Blob>,
    /// The value as it was made of one of an older version; as with a stage.
    pub upgraded: Option<Blob>,
    /// Writes of user data.
    pub writes: Vec<UserWrite>,
}

/// What a custom join policy says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JoinRuling {
    /// The parent may go on.
    Met,
    /// Not yet.
    Pending,
    /// It can no longer be met, because of this.
    Unmeetable(String),
}

/// The members of a family that end with a bypassed procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BypassScope {
    /// The procedure alone; refused if it has live children.
    #[default]
    Alone,
    /// The procedure and all its descendants.
    Descendants,
    /// The procedure and all its ancestors; refused if an ancestor has other live children.
    Ancestors,
    /// The whole family.
    Family,
}

/// As what a bypassed procedure ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BypassAs {
    /// `Success` without output (HBase).
    #[default]
    Success,
    /// `Success` with this output.
    Output(Blob),
    /// `Failed`, with the reason given.
    Failed,
}

/// The user data that is shown in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RevealScope {
    /// Its payload and its output.
    Values,
    /// All that the journal holds of its family.
    Family,
}

/// What an operator asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Stop between stages and roll back.
    Abort(ProcedureId),
    /// Let nothing more of it run.
    Pause(Pause),
    /// Let it go on: what was paused, poison, or going in circles.
    Resume(Pause),
    /// End a backoff now.
    RetryNow(ProcedureId),
    /// End it without its code.
    Bypass(ProcedureId, BypassScope, BypassAs),
    /// Try a failed undo again.
    RetryUndo(ProcedureId),
    /// Count a failed undo as done.
    SkipUndo(ProcedureId),
    /// Replace the output of one that succeeded; its row, if it is not in memory.
    OverrideResult(ProcedureId, Blob, Option<Box<Row>>),
    /// Change its place in the queues.
    SetPriority(ProcedureId, i16),
    /// Change a capacity; none is unlimited.
    SetLimit(LimitKey, Option<u32>),
    /// Put a quarantined family into the archive, as these bytes, and free what it holds.
    Discharge(u64, Blob, Box<Doomed>),
    /// Record that user data of a procedure is shown in full. Nothing changes.
    AuditReveal(ProcedureId, RevealScope),
    /// Send it a signal, as a sender would; the key of the request is the sender's.
    Signal(ProcedureId, EventName, Blob),
    /// Take note of the result of a finished root; its row as it stands on disk.
    Acknowledge(ProcedureId, Box<Row>),
    /// Set nothing more going, and stop once all has come to rest, or after this time.
    Drain(Duration),
}

impl Verb {
    /// Gives the one procedure that it concerns, if it is one.
    #[must_use]
    pub const fn target(&self) -> Option<ProcedureId> {
        match self {
            Self::Abort(id)
            | Self::Pause(Pause::One(id))
            | Self::Resume(Pause::One(id))
            | Self::RetryNow(id)
            | Self::Bypass(id, ..)
            | Self::RetryUndo(id)
            | Self::SkipUndo(id)
            | Self::OverrideResult(id, ..)
            | Self::SetPriority(id, _)
            | Self::AuditReveal(id, _)
            | Self::Signal(id, ..)
            | Self::Acknowledge(id, _) => Some(*id),
            Self::Discharge(family, ..) => Some(ProcedureId::root(*family)),
            Self::Pause(_) | Self::Resume(_) | Self::SetLimit(..) | Self::Drain(_) => None,
        }
    }

    /// Gives the value that it brings, which its words do not tell.
    #[must_use]
    pub const fn value(&self) -> Option<&Blob> {
        match self {
            Self::Signal(_, _, value)
            | Self::OverrideResult(_, value, _)
            | Self::Bypass(_, _, BypassAs::Output(value)) => Some(value),
            Self::Abort(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::RetryNow(_)
            | Self::Bypass(_, _, BypassAs::Success | BypassAs::Failed)
            | Self::RetryUndo(_)
            | Self::SkipUndo(_)
            | Self::SetPriority(..)
            | Self::SetLimit(..)
            | Self::Discharge(..)
            | Self::AuditReveal(..)
            | Self::Acknowledge(..)
            | Self::Drain(_) => None,
        }
    }

    /// Tells whether it is written down though nothing of it goes to disk.
    #[must_use]
    pub const fn is_always_noted(&self) -> bool {
        matches!(self, Self::AuditReveal(..) | Self::Drain(_))
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Abort(id) => write!(f, "abort {id}"),
            Self::Pause(what) => write!(f, "pause {what}"),
            Self::Resume(what) => write!(f, "resume {what}"),
            Self::RetryNow(id) => write!(f, "retry {id} now"),
            Self::Bypass(id, scope, outcome) => write!(f, "bypass {id}{} as {}", scope.words(), outcome.words()),
            Self::RetryUndo(id) => write!(f, "retry the undo of {id}"),
            Self::SkipUndo(id) => write!(f, "skip the undo of {id}"),
            Self::OverrideResult(id, output, _) => write!(f, "override the result of {id} by {} bytes", output.len()),
            Self::SetPriority(id, priority) => write!(f, "set the priority of {id} to {priority}"),
            Self::SetLimit(key, Some(limit)) => write!(f, "set the limit {key} to {limit}"),
            Self::SetLimit(key, None) => write!(f, "lift the limit {key}"),
            Self::Discharge(family, ..) => write!(f, "discharge the family {family}"),
            Self::AuditReveal(id, RevealScope::Values) => write!(f, "reveal the values of {id}"),
            Self::AuditReveal(id, RevealScope::Family) => write!(f, "export the family of {id}"),
            Self::Signal(id, name, payload) => write!(f, "signal {name} to {id} with {} bytes", payload.len()),
            Self::Acknowledge(id, _) => write!(f, "acknowledge {id}"),
            Self::Drain(time) => write!(f, "drain within {} ms", time.as_millis()),
        }
    }
}

impl BypassScope {
    const fn words(self) -> &'static str {
        match self {
            Self::Alone => "",
            Self::Descendants => " and all below it",
            Self::Ancestors => " and all above it",
            Self::Family => " and its whole family",
        }
    }
}

impl BypassAs {
    const fn words(&self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Output(_) => "success with an output",
            Self::Failed => "failed",
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody submits; all of it or nothing.
    Submitted(RequestId, Vec<Submission>),
    /// A stage has ended.
    StageEnded(Box<StageEnded>),
    /// An undo has ended.
    UndoEnded(Box<UndoEnded>),
    /// The rollback stack of this scope was read: every standing entry of the family.
    StackLoaded(ProcedureId, Vec<HistoryEntry>),
    /// The custom join policy of this parent has ruled.
    JoinRuled {
        /// Whose rule.
        parent: ProcedureId,
        /// Number of the first child of the list that it ruled on.
        first: u32,
        /// How many of those children it saw ended: what it said may be older than what is known.
        seen: u32,
        /// What it said.
        ruling: JoinRuling,
    },
    /// Time has come to this timer.
    TimerDue(ProcedureId),
    /// The limiter has granted all that this procedure waits for.
    Granted(ProcedureId),
    /// Somebody sends a signal.
    Signalled {
        /// Where the reply goes.
        request: RequestId,
        /// To whom.
        id: ProcedureId,
        /// Name of the event.
        name: EventName,
        /// What is sent.
        payload: Blob,
        /// The sender's key.
        key: Option<Key>,
    },
    /// Somebody sends an event to all who wait for it now.
    Broadcast {
        /// Where the reply goes.
        request: RequestId,
        /// Name of the event.
        name: EventName,
        /// What is sent.
        payload: Blob,
        /// The sender's key.
        key: Option<Key>,
    },
    /// More of those are to be woken who wait for the broadcast of this commit.
    WaveDue(Seq),
    /// An operator asks for something.
    Requested(RequestId, Box<Verb>, Box<OperatorRequest>),
    /// Somebody has taken note of the result of a finished root; its row as it stands on disk.
    Acknowledged(RequestId, Box<Row>),
    /// These finished families are due.
    EvictionDue(Vec<Doomed>),
    /// The code of one that has ended has cleaned up after it.
    CleanedUp(ProcedureId),
    /// Look for wakes that were lost. The limiter says who holds all that it waits for, and whom it does not know.
    AuditDue {
        /// They hold all, and were not told.
        granted: Vec<ProcedureId>,
        /// They wait, and are in no queue.
        unknown: Vec<ProcedureId>,
    },
    /// The wall clock was set back while the engine runs.
    ClockSetBack,
    /// A family was put aside with [`Kernel::forget`](crate::Kernel::forget) while the engine runs.
    FamilyForgotten,
    /// No more stages are to be set going.
    DrainBegan,
    /// Whatever still runs is left for the next start.
    DrainEnded(RequestId),
    /// All rows have been read; the engine opens.
    Recovered,
}
