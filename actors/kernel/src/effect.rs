//! What is to be done once the records that cause it are on disk.

use crate::audit::{AuditEntry, Changed};
use crate::cause::{Cause, NotUndone};
use crate::id::{Blob, ClaimId, Key, Kind, LimitKey, ProcedureId, Seq, Ticket, Timestamp};
use crate::lifecycle::ProcedureState;
use crate::needs::Needs;
use crate::plan::Plan;
use crate::row::{Mark, Round};
use crate::wait::Wake;

/// One stage to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Whose stage.
    pub id: ProcedureId,
    /// Its type.
    pub kind: Kind,
    /// Schema of its stored payload.
    pub version: u16,
    /// The stage, encoded.
    pub stage: Blob,
    /// The number of the visit.
    pub visit: u32,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// What the report must carry.
    pub run: Seq,
    /// What set it going.
    pub wake: Option<Wake>,
    /// Its own time is up, and its code is to be told.
    pub out_of_time: bool,
    /// Its value, if this decision had it at hand; else it is in the store.
    pub payload: Option<Blob>,
}

/// One executed stage to be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undo {
    /// Root of the part of the family that rolls back.
    pub scope: ProcedureId,
    /// Whose stage.
    pub id: ProcedureId,
    /// Its type.
    pub kind: Kind,
    /// Schema of its stored payload.
    pub version: u16,
    /// Number of the history entry.
    pub number: u32,
    /// The stage, encoded.
    pub stage: Blob,
    /// The number of the visit.
    pub visit: u32,
    /// The number of the attempt, from 1.
    pub attempt: u32,
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
    /// The row is of another revision than the one expected: expected, found.
    Revised(Seq, Seq),
    /// It is not in a state in which this makes sense; the sentence says why.
    NotNow(String),
}

/// Something to do after the receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Answer a request.
    Reply(Ticket, Answer),
    /// Run a stage.
    Advance(Advance),
    /// Undo a stage.
    Undo(Box<Undo>),
    /// Ask a custom join policy about these children.
    Judge(ProcedureId, Kind, u16, Round, Blob),
    /// Read the rollback stack of the family, for this scope.
    LoadStack(ProcedureId),
    /// Let the procedure's actor go; it is parked or has ended.
    Stop(ProcedureId),
    /// Look at the earliest deadline again.
    ArmTimer,
    /// Tell the limiter that this procedure needs nothing more of it.
    Release(ProcedureId),
    /// Tell the limiter that this procedure gives these back, and goes on.
    GiveBack(ProcedureId, Needs),
    /// Ask the limiter for all that this procedure lacks for its next stage, or undo.
    Ask(ProcedureId),
    /// Tell the limiter that this procedure waits no more, and keeps what it holds.
    Cancel(ProcedureId),
    /// Tell the limiter that this procedure waits no more, and keeps these alone, whatever it was granted.
    Keep(ProcedureId, Needs),
    /// From now on this claim is this procedure's.
    Bound(ClaimId, ProcedureId),
    /// Tell the limiter that a capacity has changed.
    SetLimit(LimitKey, Option<u32>),
    /// Tell the limiter that a place in its queues has changed.
    SetPriority(ProcedureId, i16),
    /// Tell those who wait for the outcome.
    Ended(Box<Ended>),
    /// Have the code of one that has ended clean up.
    CleanUp(ProcedureId, Kind, u16),
    /// A quarantined family is in the archive.
    Discharged(u64),
    /// An operator acted; for the log.
    Operated(Box<AuditEntry>),
}
