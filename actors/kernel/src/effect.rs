//! What is to be done once the records that cause it are on disk.

use crate::audit::{AuditEntry, Changed};
use crate::cause::{Cause, NotUndone};
use crate::id::{Blob, Key, Kind, LimitKey, ProcedureId, Seq, Ticket, Timestamp};
use crate::lifecycle::ProcedureState;
use crate::needs::Needs;
use crate::plan::Plan;
use crate::row::{Mark, Round};
use crate::wait::Wake;

/// One call of user code. The kernel makes it, from a decision or from the row that says that it is out, and it goes
/// as it is to the worker that runs it; the shell adds what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCall {
    /// The procedure.
    pub id: ProcedureId,
    /// Its type.
    pub kind: Kind,
    /// Schema of its stored payload.
    pub version: u16,
    /// The stage, encoded. For a join rule and a clean-up, the one that the procedure is at.
    pub stage: Blob,
    /// The number of the visit.
    pub visit: u32,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The procedure's value, if the decision or the shell has it at hand. Otherwise its actor has it, or the store.
    pub payload: Option<Blob>,
    /// What the code is to do.
    pub task: StageTask,
}

/// What a call has user code do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageTask {
    /// Run the stage.
    Execute {
        /// The commit that set the stage going. The report must carry it.
        run: Seq,
        /// What set it going, if that has to be read.
        wake: Option<Wake>,
        /// The procedure's own time is up, and its code is to be told.
        out_of_time: bool,
    },
    /// Undo the stage.
    Undo {
        /// Root of the part of the family that rolls back.
        scope: ProcedureId,
        /// Number of the history entry.
        number: u32,
    },
    /// Ask the stage's join rule about these children.
    Join(Round),
    /// Clean up: the procedure has ended.
    CleanUp,
}

impl StageCall {
    /// Returns the commit that set the stage going, if this call runs it.
    #[must_use]
    pub const fn run(&self) -> Option<Seq> {
        match self.task {
            StageTask::Execute { run, .. } => Some(run),
            StageTask::Undo { .. } | StageTask::Join(_) | StageTask::CleanUp => None,
        }
    }

    /// Returns the scope and the history entry, if this call undoes the stage.
    #[must_use]
    pub const fn undone(&self) -> Option<(ProcedureId, u32)> {
        match self.task {
            StageTask::Undo { scope, number } => Some((scope, number)),
            StageTask::Execute { .. } | StageTask::Join(_) | StageTask::CleanUp => None,
        }
    }
}

/// How a procedure ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Who.
    pub id: ProcedureId,
    /// Its type.
    pub kind: Kind,
    /// Its last state.
    pub state: ProcedureState,
    /// Why, if it failed.
    pub cause: Option<Cause>,
    /// Executed stages that were not undone.
    pub not_undone: Vec<NotUndone>,
    /// Its output, if it succeeded in this decision.
    pub output: Option<Blob>,
    /// What an operator did to its end.
    pub mark: Option<Mark>,
    /// When it was born.
    pub submitted: Timestamp,
}

/// What an abort meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbortAnswer {
    /// It will be rolled back once what runs has ended.
    WillRollBack,
    /// It was failing already, for another reason.
    AlreadyRollingBack,
    /// It can no longer be aborted, because of this.
    TooLate(String),
}

/// What a request of an operator did; with a dry run, what it would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operated {
    /// Number of its entry in the audit; none for a dry run, and where nothing changed.
    pub number: Option<u64>,
    /// What changed, as far as it is named.
    pub changes: Vec<Changed>,
    /// How many procedures changed in all.
    pub changed: u32,
    /// What an abort met.
    pub abort: Option<AbortAnswer>,
    /// Of a dry run: what else it would lead to.
    pub plan: Option<Box<Plan>>,
}

/// An answer to who asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The roots, in the order of the submissions.
    Submitted(Vec<ProcedureId>),
    /// The signal's number.
    Signalled(u32),
    /// How many a broadcast woke.
    Broadcast(u32),
    /// What a request did, or would do.
    Operated(Box<Operated>),
    /// It is done.
    Done,
    /// It is not done.
    Refused(Refusal),
}

/// Why something was refused. Nothing of it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The kind is not registered.
    UnknownKind(Kind),
    /// The key stands for another submission.
    KeyConflict(Key, ProcedureId),
    /// Two submissions of one batch, counted from 0, have one key and are not the same.
    BatchConflict(Key, usize, usize),
    /// The sender's key stands for another signal to this procedure, of this number.
    SignalConflict(Key, ProcedureId, u32),
    /// A key cannot be stored: size, limit.
    BadKey(usize, usize),
    /// The payload, or the signal, is too large: size, limit.
    TooLarge(usize, usize),
    /// Too many submissions in one batch: size, limit.
    BatchTooLarge(usize, usize),
    /// The engine is draining.
    Draining,
    /// No numbers are left for new families and new audit entries.
    NumbersExhausted,
    /// The procedure is not live.
    NotLive(ProcedureId),
    /// The row is of another revision than the one expected: expected, found, and the state that the row has.
    Revised(Seq, Seq, ProcedureState),
    /// It is not in a state in which this makes sense; the sentence says why.
    NotNow(String),
}

/// Something to do after the receipt, by the part of the shell that does it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Calls of user code, and the actors that take them.
    Dispatch(DispatchEffect),
    /// What the limiter is asked and told.
    Admission(AdmissionEffect),
    /// What callers learn.
    Requests(RequestEffect),
    /// Timers.
    Lifecycle(LifecycleEffect),
}

/// A call of user code, or what happens to the actor that takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DispatchEffect {
    /// Call user code.
    Call(StageCall),
    /// Read the rollback stack of the family, for this scope.
    LoadStack(ProcedureId),
    /// Let the procedure's actor go; the procedure is parked or has ended.
    Stop(ProcedureId),
}

/// What the limiter is asked and told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionEffect {
    /// Ask the limiter for all that this procedure lacks for its next stage, or undo.
    Ask(ProcedureId),
    /// Tell the limiter that this procedure needs nothing more of it.
    Release(ProcedureId),
    /// Tell the limiter that no member of this family needs anything more of it.
    ReleaseFamily(u64),
    /// Tell the limiter that this procedure gives these back, and goes on.
    GiveBack(ProcedureId, Needs),
    /// Tell the limiter that this procedure waits no more, and keeps what it holds.
    Cancel(ProcedureId),
    /// Tell the limiter that this procedure waits no more, and keeps these alone, whatever it was granted.
    Keep(ProcedureId, Needs),
    /// Tell the limiter that a capacity has changed.
    SetLimit(LimitKey, Option<u32>),
    /// Tell the limiter that a procedure's position in its queues has changed.
    SetPriority(ProcedureId, i16),
}

/// What callers and operators learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestEffect {
    /// Answer a request.
    Reply(Ticket, Answer),
    /// Tell callers that wait for the outcome.
    Ended(Box<Ended>),
    /// A quarantined family is in the archive: callers that wait for an outcome of it get none.
    Discharged(u64),
    /// An operator acted; for the log.
    Operated(Box<AuditEntry>),
}

/// What the engine does for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifecycleEffect {
    /// Look at the earliest deadline again.
    ArmTimer,
}

impl Effect {
    /// Returns the call of user code, if the effect is one.
    #[must_use]
    pub const fn call(&self) -> Option<&StageCall> {
        match self {
            Self::Dispatch(DispatchEffect::Call(call)) => Some(call),
            Self::Dispatch(DispatchEffect::LoadStack(_) | DispatchEffect::Stop(_))
            | Self::Admission(_)
            | Self::Requests(_)
            | Self::Lifecycle(_) => None,
        }
    }
}

impl From<DispatchEffect> for Effect {
    fn from(effect: DispatchEffect) -> Self {
        Self::Dispatch(effect)
    }
}

impl From<AdmissionEffect> for Effect {
    fn from(effect: AdmissionEffect) -> Self {
        Self::Admission(effect)
    }
}

impl From<RequestEffect> for Effect {
    fn from(effect: RequestEffect) -> Self {
        Self::Requests(effect)
    }
}

impl From<LifecycleEffect> for Effect {
    fn from(effect: LifecycleEffect) -> Self {
        Self::Lifecycle(effect)
    }
}

/// Every decision of the hot path moves its effects through two lists, so their size is a cost of each stage. The
/// groups must not add a word to what the largest effect takes.
const _: () = assert!(size_of::<Effect>() == size_of::<DispatchEffect>());
