//! Actions to perform once the records that cause them are on disk.

use crate::audit::{AuditEntry, Changed, Reach};
use crate::cause::{Cause, NotUndone};
use crate::id::{Blob, ClaimId, EventName, Key, Kind, LimitKey, ProcedureId, RequestId, Seq, Timestamp, TraceParent};
use crate::label::LabelError;
use crate::lifecycle::ProcedureState;
use crate::limit::Limit;
use crate::needs::Needs;
use crate::plan::Plan;
use crate::row::{Mark, Round};
use crate::verb::AbortAnswer;
use crate::wait::Wake;

/// One call of user code. The kernel builds it from a decision, or from a row whose stage is out. It travels unchanged
/// to the worker that runs it; the shell adds only the data that it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCall {
    /// The procedure.
    pub id: ProcedureId,
    /// Its type.
    pub kind: Kind,
    /// Schema version of the stored payload.
    pub version: u16,
    /// The encoded stage. For a rule or a clean-up, the stage that the procedure has reached.
    pub stage: Blob,
    /// Number of the visit.
    pub visit: u32,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Since when the attempt could have begun.
    pub ready: Timestamp,
    /// The procedure's value, if the decision or the shell has it at hand. Otherwise the procedure's actor or the
    /// store provides it.
    pub payload: Option<Blob>,
    /// The value is the one that a root was submitted with. The report of a call that changes it brings this one along.
    pub as_submitted: bool,
    /// For a child with a gate: the siblings that come before it, in the order given.
    pub before: Vec<ProcedureId>,
    /// How many further stages may run after this one without a call for each, as long as each leaves nothing but the value
    /// and is followed by a pure one. They are part of [the same report](crate::StageEnded::earlier). 0 if the stage is to be
    /// reported alone.
    pub ahead: u32,
    /// The trace in which the procedure was submitted. The kernel knows it of a root alone; the shell adds that of the root to
    /// the call of a child.
    pub trace: Option<Box<TraceParent>>,
    /// The task for user code.
    pub task: StageTask,
}

/// What user code is called for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageTask {
    /// Run the stage.
    Execute {
        /// The commit that started the stage. The report must carry this number.
        run: Seq,
        /// The event that woke the procedure, if its data has to be read.
        wake: Option<Wake>,
        /// The procedure's deadline has passed, and its code is told so.
        out_of_time: bool,
        /// How many processes ended, or drains gave up, while this attempt was out.
        repeated: u32,
    },
    /// Undo the stage.
    Undo {
        /// Root of the part of the family that rolls back.
        scope: ProcedureId,
        /// Number of the history entry.
        number: u32,
        /// What the stage noted.
        note: Option<Blob>,
    },
    /// Ask the stage's join rule about these children.
    Join(Round),
    /// Ask the procedure's rule about the siblings before its gate.
    Gate,
    /// Clean up after the procedure has ended.
    CleanUp,
}

impl StageCall {
    /// Returns the commit that started the stage, if this call runs a stage.
    #[must_use]
    pub const fn run(&self) -> Option<Seq> {
        match self.task {
            StageTask::Execute { run, .. } => Some(run),
            StageTask::Undo { .. } | StageTask::Join(_) | StageTask::Gate | StageTask::CleanUp => None,
        }
    }

    /// Returns the scope and the history entry, if this call undoes a stage.
    #[must_use]
    pub const fn undone(&self) -> Option<(ProcedureId, u32)> {
        match self.task {
            StageTask::Undo { scope, number, .. } => Some((scope, number)),
            StageTask::Execute { .. } | StageTask::Join(_) | StageTask::Gate | StageTask::CleanUp => None,
        }
    }
}

/// The call of a stage that may begin before its decision is on disk.
///
/// User code says that the stage is pure: it reaches nothing but its report. What it reports is a later decision, which is
/// behind this one in the journal, and whose own effects wait for a later receipt. So if the process dies, everything
/// that rests on the call is lost with it. Only a decision makes such a call, and only
/// [`Kernel::fold`](crate::Kernel::fold) releases it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpeculativeCall(Box<StageCall>);

impl SpeculativeCall {
    pub(crate) fn new(call: StageCall) -> Self {
        Self(Box::new(call))
    }

    /// Returns the call.
    #[must_use]
    pub fn get(&self) -> &StageCall {
        &self.0
    }

    /// Returns the call, to make it now.
    #[must_use]
    pub fn into_call(self) -> Box<StageCall> {
        self.0
    }
}

/// What a decision does at once, before it is on disk, because it reaches memory of this process alone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Immediate {
    /// What the limiter is told.
    pub admission: Vec<AdmissionEffect>,
    /// Calls that may be made at once. The caller may [defer](crate::Commit::defer) each of them instead.
    pub calls: Vec<SpeculativeCall>,
}

/// How a procedure ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The procedure.
    pub id: ProcedureId,
    /// Its type.
    pub kind: Kind,
    /// Its final state.
    pub state: ProcedureState,
    /// Why it failed, if it did.
    pub cause: Option<Cause>,
    /// Executed stages that were not undone.
    pub not_undone: Vec<NotUndone>,
    /// Its output, if it succeeded in this decision.
    pub output: Option<Blob>,
    /// How an operator changed its end, if one did.
    pub mark: Option<Mark>,
    /// When it was submitted or spawned.
    pub submitted: Timestamp,
}

/// What an operator's request did, or would do in a dry run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Operated {
    /// Number of its audit entry; `None` for a dry run, and if nothing changed.
    pub number: Option<u64>,
    /// The changes that are listed by name.
    pub changes: Vec<Changed>,
    /// Total number of procedures that changed.
    pub changed: u32,
    /// The procedure that runs it again, if that was requested.
    pub submitted: Option<ProcedureId>,
    /// Result of the abort, if the request was one.
    pub abort: Option<AbortAnswer>,
    /// For a dry run: the further consequences.
    pub plan: Option<Box<Plan>>,
    /// For an abort or a bypass, and for a dry run of one: how many executed stages it concerns.
    pub reach: Option<Reach>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The roots, in the order of the submissions.
    Submitted(Vec<ProcedureId>),
    /// The signals' numbers, in the order of the signals.
    Signalled(Vec<u32>),
    /// How many procedures the broadcast woke.
    Broadcast(u32),
    /// What the operator's request did, or would do.
    Operated(Box<Operated>),
    /// The request was carried out and returns no data.
    Done,
    /// The request was refused.
    Refused(Refusal),
}

/// Why a request was refused. Nothing of the request is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The kind is not registered.
    UnknownKind(Kind),
    /// The key already stands for a different submission.
    KeyConflict(Key, ProcedureId),
    /// Two different submissions of one batch, counted from 0, have the same key.
    BatchConflict(Key, usize, usize),
    /// The sender's key already stands for a different signal to this procedure, with this number.
    SignalConflict(Key, ProcedureId, u32),
    /// The receiver takes no further signals of this name: its last was sent.
    Closed(ProcedureId, EventName),
    /// The key cannot be stored: its size and the limit.
    BadKey(usize, usize),
    /// The name of a submission is too long: its characters and the limit.
    BadName(usize, usize),
    /// The labels of a submission, or of a child in its list, are out of bounds.
    BadLabels(LabelError),
    /// The payload or the signal is too large: its size and the limit.
    TooLarge(usize, usize),
    /// The batch has too many submissions: its size and the limit.
    BatchTooLarge(usize, usize),
    /// The list of children that a submission brings breaks a rule; the sentence names it.
    BadChildren(String),
    /// The engine is draining.
    Draining,
    /// No numbers are left for new families and new audit entries.
    NumbersExhausted,
    /// The procedure is not live.
    NotLive(ProcedureId),
    /// The row's revision is not the expected one: expected, found, and the state that the row has.
    Revised(Seq, Seq, ProcedureState),
    /// The request makes no sense in the current state; the sentence says why.
    NotNow(NotNow, String),
}

/// Why a request makes no sense in the current state of a procedure, or of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotNow {
    /// As many are there as may be: signals for one procedure, broadcasts, subscribers, names that are closed,
    /// keyspaces of user data.
    Full,
    /// The key stands for another request.
    KeyUsed,
    /// The family is quarantined.
    Quarantined,
    /// The family is not quarantined.
    NotQuarantined,
    /// The procedure, or what it is part of, fails: it is rolled back, and does not run again.
    Failing,
    /// The rollback has not failed.
    RollbackNotFailed,
    /// The procedure is not paused.
    NotPaused,
    /// The procedure neither backs off nor waits for an operator.
    NothingToRetry,
    /// The procedure asks no question.
    NoQuestion,
    /// Descendants are live that the request does not include.
    LiveBelow,
    /// The procedure has not ended.
    NotEnded,
    /// The procedure has not succeeded.
    NotSucceeded,
    /// The procedure has not failed.
    NotFailed,
    /// The value that the procedure was submitted with is not kept.
    ValueNotKept,
    /// The same was requested before and is under way, or what it needs is still being read.
    UnderWay,
    /// The engine drains.
    Draining,
    /// The journal has no numbers left for it.
    NumbersExhausted,
    /// The request itself is wrong.
    Invalid,
}

/// An action to perform after the receipt, grouped by the part of the shell that performs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Calls of user code, and the actors that run them.
    Dispatch(DispatchEffect),
    /// Answers and notices to callers.
    Requests(RequestEffect),
    /// Timers.
    Lifecycle(LifecycleEffect),
}

/// A call of user code, or a change to the actor that runs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DispatchEffect {
    /// Call user code.
    Call(Box<StageCall>),
    /// Read the rollback stack of the family, for this scope.
    LoadStack(ProcedureId),
    /// Stop the procedure's actor: the procedure is parked or has ended.
    Stop(ProcedureId),
}

/// Requests and notices to the limiter.
///
/// They are not [`Effect`]s: [`Kernel::fold`](crate::Kernel::fold) returns them at once, before the decision's records
/// are on disk. The limiter is memory, which a start builds anew from the rows. Whom it serves is decided later, so it
/// stands behind this decision in the journal, and its user code runs only once both are on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionEffect {
    /// This claim, under which the limiter was asked before the decision, belongs to this procedure.
    Bind(ClaimId, ProcedureId),
    /// Request everything that this procedure lacks for its next stage or undo. From here on, a grant for an earlier
    /// request may belong to another stage.
    Ask(ProcedureId),
    /// This procedure needs nothing more: release all that it holds, and drop its request.
    Release(ProcedureId),
    /// No member of this family needs anything more.
    ReleaseFamily(u64),
    /// This procedure returns these permits and locks, and goes on.
    GiveBack(ProcedureId, Needs),
    /// This procedure withdraws its request, and keeps what it holds.
    Cancel(ProcedureId),
    /// This procedure withdraws its request, and keeps exactly these permits and locks, whatever it was granted.
    Keep(ProcedureId, Needs),
    /// What a limit allows has changed.
    SetLimit(LimitKey, Limit),
    /// The priority of a procedure has changed, and with it its position in the queues.
    SetPriority(ProcedureId, i16),
}

/// Answers and notices to callers and operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestEffect {
    /// Answer a request.
    Reply(RequestId, Answer),
    /// Notify callers that wait for the outcome.
    Ended(Box<Ended>),
    /// A quarantined family was moved to the archive. Callers that wait for an outcome of it get none.
    Discharged(u64),
    /// An operator acted; this is for the log.
    Operated(Box<AuditEntry>),
}

/// What the engine does for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LifecycleEffect {
    /// Reconsider the earliest deadline.
    ArmTimer,
}

impl Effect {
    /// Returns `true` if somebody or something waits for it. A timer that is armed later is served all the same.
    pub(crate) const fn is_awaited(&self) -> bool {
        match self {
            Self::Lifecycle(LifecycleEffect::ArmTimer) => false,
            Self::Dispatch(_) | Self::Requests(_) => true,
        }
    }

    /// Returns `true` if it is the answer to a submission.
    pub(crate) const fn answers_submission(&self) -> bool {
        matches!(self, Self::Requests(RequestEffect::Reply(_, Answer::Submitted(_))))
    }

    /// Returns the call of user code, if the effect is one.
    #[must_use]
    pub const fn call(&self) -> Option<&StageCall> {
        match self {
            Self::Dispatch(DispatchEffect::Call(call)) => Some(call),
            Self::Dispatch(DispatchEffect::LoadStack(_) | DispatchEffect::Stop(_))
            | Self::Requests(_)
            | Self::Lifecycle(_) => None,
        }
    }
}

impl DispatchEffect {
    pub(crate) fn call(call: StageCall) -> Self {
        Self::Call(Box::new(call))
    }
}

impl From<DispatchEffect> for Effect {
    fn from(effect: DispatchEffect) -> Self {
        Self::Dispatch(effect)
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

/// Every decision of the hot path moves its effects through two lists, and each call on to its actor. So the size of an
/// effect is a cost of each stage: a call is boxed once, where it is made, and the grouping must not add a word.
const _: () = assert!(size_of::<Effect>() == size_of::<RequestEffect>());
