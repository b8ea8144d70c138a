//! What happened, as it enters the kernel.

use std::time::Duration;

use crate::audit::OperatorRequest;
use crate::history::HistoryEntry;
use crate::id::{
    Blob, ClaimId, Epoch, EventName, Key, Kind, LimitKey, ProcedureId, RequestId, Seq, Timestamp, TraceParent,
};
use crate::needs::Lacking;
use crate::record::{EvictedFamily, KeyEntry, UserWrite};
use crate::row::{ChildPermits, Hold, JoinPolicy, NextStageNeeds, OnFailure, OnTimeout, Row};
use crate::verb::Verb;

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
    pub ahead: NextStageNeeds,
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
    pub ahead: NextStageNeeds,
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

/// What the store holds of a request's target. It is read before the decision, because the target may not be
/// in memory: it has ended, or its family is quarantined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StoredTarget {
    /// Nothing was read: the verb does not need it, or the store does not have it.
    #[default]
    None,
    /// The row of a finished procedure, for an override or an acknowledgement.
    Row(Box<Row>),
    /// A quarantined family as it goes into the archive, and the keys that a discharge deletes.
    Archive(Blob, Box<EvictedFamily>),
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
    /// An operator sends a request, with what the store holds of its target.
    Requested(RequestId, Box<Verb>, Box<OperatorRequest>, StoredTarget),
    /// Somebody has taken note of the result of a finished root; its row as it stands on disk.
    Acknowledged(RequestId, Box<Row>),
    /// These finished families are due.
    EvictionDue(Vec<EvictedFamily>),
    /// The code of one that has ended has cleaned up after it.
    CleanedUp(ProcedureId),
    /// Look for wakes that were lost. The limiter says who holds all that it waits for, and whom it does not know.
    HealthCheckDue {
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
