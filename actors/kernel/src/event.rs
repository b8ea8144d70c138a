//! What happened, as it enters the kernel.

use std::time::Duration;

use crate::id::{Blob, Epoch, EventName, Key, Kind, LimitKey, ProcedureId, Seq, Ticket, Timestamp};
use crate::record::{Doomed, HistoryEntry, JoinPolicy, KeyEntry, OnFailure, Row, UserWrite};

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
    /// A limit besides its kind's own.
    pub limit: Option<LimitKey>,
    /// The whole time it may take.
    pub timeout: Option<Duration>,
    /// What becomes of it, once succeeded, when the family rolls back.
    pub on_failure: OnFailure,
    /// It is a family of its own, though a stage gives birth to it.
    pub detached: bool,
}

/// Where the admission of a root stands when it is born.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// Limits of which it needs one permit each.
    pub limits: Vec<LimitKey>,
    /// It has them all.
    pub granted: bool,
}

/// A submission with its idempotency key and its admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// What is born.
    pub birth: Birth,
    /// The key, and the digest of kind and payload that it stands for.
    pub key: Option<(Key, u128)>,
    /// What the store knows of that key.
    pub known: Option<KeyEntry>,
    /// Permits asked for.
    pub admission: Admission,
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
        /// Admission of those that are detached, in order.
        admissions: Vec<Admission>,
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
    /// Writes of user data.
    pub writes: Vec<UserWrite>,
    /// Families submitted through the context, with their admission.
    pub submitted: Vec<(Birth, Admission)>,
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

/// Who asked for something, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operator {
    /// Name of the person or program.
    pub who: String,
    /// The reason given.
    pub why: String,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody submits; all of it or nothing.
    Submitted(Ticket, Vec<Submission>),
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
        /// Who asks.
        ticket: Ticket,
        /// To whom.
        id: ProcedureId,
        /// Name of the event.
        name: EventName,
        /// What is sent.
        payload: Blob,
        /// The sender's key.
        key: Option<Key>,
    },
    /// Somebody aborts.
    AbortRequested(Ticket, ProcedureId, Operator),
    /// Somebody sets a limit; none is unlimited.
    LimitSet(Ticket, LimitKey, Option<u32>),
    /// Somebody has taken note of the result of a finished root; its row as it stands on disk.
    Acknowledged(Ticket, Box<Row>),
    /// An operator tries a failed undo again.
    UndoRetryRequested(Ticket, ProcedureId, Operator),
    /// An operator skips a failed undo.
    UndoSkipRequested(Ticket, ProcedureId, Operator),
    /// An operator resumes what was paused as poison.
    ResumeRequested(Ticket, ProcedureId, Operator),
    /// These finished families are due.
    EvictionDue(Vec<Doomed>),
    /// No more stages are to be set going.
    DrainBegan,
    /// Whatever still runs is left for the next start.
    DrainEnded(Ticket),
    /// All rows have been read; the engine opens.
    Recovered,
}
