//! Every message that the supervisor takes from outside: one closed list.
//!
//! Each answer rests on what is on disk: it waits for the newest commit that it
//! was computed from.

use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{
    AuditEntry, Birth, Blob, BypassAs, BypassScope, HistoryEntry, Key, LimitUse, Operated, OperatorRequest,
    ProcedureId, RevealScope, TraceParent,
};
use serde::Serialize;

use crate::error::{AskError, CodecError, SubmitError};
use crate::export::FamilyExport;
use crate::journal::codec;
use crate::procedure::Procedure;
use crate::step::birth_of;
use crate::view::{
    ArchivedFamily, ChangeFeed, DrainReport, Explanation, LatestFeed, ListFilter, LockView, Outcome, Page, Snapshot,
    Status, Verdict,
};

/// Submits a procedure; answered once it is durable.
#[derive(Message, Clone)]
#[rtype(result = "Result<ProcedureId, SubmitError>")]
pub struct Submit {
    pub(crate) birth: Birth,
    pub(crate) key: Option<Key>,
    pub(crate) key_for: Option<Duration>,
}

impl Submit {
    /// Encodes the procedure and asks it what the engine must know.
    ///
    /// It does not ask [`Procedure::check`], which needs the environment that the procedure's kind is registered with.
    /// The engine takes such a message, and quarantines the family if its value cannot run. `into_message` of the
    /// facade's `Submission` makes the same message and checks first.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn new<P: Procedure>(procedure: &P) -> Result<Self, CodecError> {
        Ok(Self {
            birth: birth_of(procedure)?,
            key: None,
            key_for: None,
        })
    }

    /// Sets the idempotency key: the same key and value give the same id, and one run.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(Key::from(key.into()));
        self
    }

    /// Sets the idempotency key, and how long it is kept, from the submission on,
    /// if that is longer than the result.
    #[must_use]
    pub fn key_for(mut self, key: impl Into<String>, time: Duration) -> Self {
        self.key_for = Some(time);
        self.key(key)
    }

    /// Overrides the procedure's own priority.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.birth.priority = priority;
        self
    }
}

impl Submit {
    /// Says in which trace it is submitted: spans of its stages name it, and so do its pages.
    #[must_use]
    pub fn trace_parent(mut self, parent: TraceParent) -> Self {
        self.birth.trace = Some(Box::new(parent));
        self
    }
}

/// Submits several procedures in one commit: all of them, or none.
#[derive(Message, Clone)]
#[rtype(result = "Result<Vec<ProcedureId>, SubmitError>")]
pub struct SubmitBatch(pub Vec<Submit>);

/// Asks how a procedure stands.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Status, AskError>")]
pub struct Query(pub ProcedureId);

/// Lists procedures by id, page by page.
#[derive(Message, Clone)]
#[rtype(result = "Result<Page, AskError>")]
pub struct List {
    /// Which ones.
    pub filter: ListFilter,
    /// Where to begin; none is the first.
    pub cursor: Option<ProcedureId>,
    /// How many at most; 1,000 at once.
    pub limit: usize,
}

/// Asks for a whole family, by member.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<Status>, AskError>")]
pub struct Tree(pub ProcedureId);

/// Asks for the executed stages and undos of a family, in commit order.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<HistoryEntry>, AskError>")]
pub struct History(pub ProcedureId);

/// Copies everything that the journal holds of a family: of a quarantined or a
/// finished one as well.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<FamilyExport, AskError>")]
pub struct Export(pub ProcedureId);

/// Puts a quarantined family into the archive, and frees all that it holds:
/// locks, permits, its idempotency key. Nothing of it is undone.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct Discharge {
    /// Number of the family.
    pub family: u64,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Lists the families that were discharged, by number.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<ArchivedFamily>, AskError>")]
pub struct Archived;

/// Reads a family that was discharged, as it was.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<FamilyExport, AskError>")]
pub struct ReadArchive(pub u64);

/// Waits for the end of a procedure.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Outcome, AskError>")]
pub struct AwaitOutcome(pub ProcedureId);

/// Says that the result was taken note of: it may go sooner.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<(), AskError>")]
pub struct Acknowledge(pub ProcedureId);

/// Takes note of the result of a finished root as an operator does: with who and why.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct AcknowledgeBy {
    /// A member of its family.
    pub id: ProcedureId,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Has it written down that users' data of a procedure is shown in full. Nothing of it is
/// to be shown before this is answered.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct AuditReveal {
    /// Which one.
    pub id: ProcedureId,
    /// What of it is shown.
    pub what: RevealScope,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Aborts a procedure: it stops between stages, and rolls back. What it met is
/// in the answer's `abort`.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct Abort {
    /// Which one.
    pub id: ProcedureId,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Sends a signal to a procedure; answered with its number once it is durable.
#[derive(Message, Clone)]
#[rtype(result = "Result<u32, AskError>")]
pub struct SendSignal {
    pub(crate) id: ProcedureId,
    pub(crate) name: String,
    pub(crate) payload: procession_kernel::Blob,
    pub(crate) key: Option<Key>,
}

impl SendSignal {
    /// Encodes a signal.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the payload cannot be encoded.
    pub fn new<T: Serialize>(id: ProcedureId, name: impl Into<String>, payload: &T) -> Result<Self, CodecError> {
        Ok(Self {
            id,
            name: name.into(),
            payload: codec::encode_user(payload)?,
            key: None,
        })
    }

    /// Sets the key by which a repeat is recognised.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(Key::from(key.into()));
        self
    }
}

/// Sends a signal as an operator does: with who and why. The key of the request is the
/// sender's as well.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct SignalBy {
    /// The signal. A key of its own is not looked at.
    pub signal: SendSignal,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Wakes all who wait for an event at its commit, first waiter first (HBase's
/// `ProcedureEvent`). It is not kept; answered with how many it woke.
#[derive(Message, Clone)]
#[rtype(result = "Result<u32, AskError>")]
pub struct Broadcast {
    pub(crate) name: String,
    pub(crate) payload: Blob,
    pub(crate) key: Option<Key>,
}

impl Broadcast {
    /// Encodes a broadcast.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the payload cannot be encoded.
    pub fn new<T: Serialize>(name: impl Into<String>, payload: &T) -> Result<Self, CodecError> {
        Ok(Self {
            name: name.into(),
            payload: codec::encode_user(payload)?,
            key: None,
        })
    }

    /// Sets the key by which a repeat is recognised.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(Key::from(key.into()));
        self
    }
}

/// Sets the capacity of a limit, durably; none is unlimited.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct SetLimit {
    /// Which limit; a kind's own has the kind's name.
    pub key: String,
    /// Its capacity.
    pub limit: Option<u32>,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Changes the priority of a procedure, and its place in the queues.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct SetPriority {
    /// Which one.
    pub id: ProcedureId,
    /// Higher goes first.
    pub priority: i16,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Lets nothing more run of what it names; a stage that runs ends first.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct Pause {
    /// One with all below it, a kind, or everything.
    pub what: procession_kernel::Pause,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Lets go on what was paused, by an operator or as poison, or went in circles.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct Resume {
    /// One with all below it, a kind, or everything.
    pub what: procession_kernel::Pause,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Ends a backoff now, or the rest of one that waits for an operator as poison, or with
/// a rollback that failed. The attempt, or the undo, begins at once; what has failed stays counted.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct RetryNow {
    /// Which one.
    pub id: ProcedureId,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Ends a procedure without its code, from any state: nothing is undone, its
/// locks are free, its parent goes on by its join policy (HBase).
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct Bypass {
    /// Which one.
    pub id: ProcedureId,
    /// Who ends with it; one with live children does not end without them.
    pub scope: BypassScope,
    /// As what it ends.
    pub outcome: BypassAs,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

impl Bypass {
    /// Ends it as a success with this output, which must be of the procedure's own type.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it cannot be encoded.
    pub fn with_output<T: Serialize>(
        id: ProcedureId,
        scope: BypassScope,
        output: &T,
        by: OperatorRequest,
    ) -> Result<Self, CodecError> {
        let outcome = BypassAs::Output(codec::encode_user(output)?);
        Ok(Self { id, scope, outcome, by })
    }
}

/// Replaces the output of a procedure that succeeded.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct OverrideResult {
    pub(crate) id: ProcedureId,
    pub(crate) output: Blob,
    pub(crate) by: OperatorRequest,
}

impl OverrideResult {
    /// Encodes the new output, which must be of the procedure's own type.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it cannot be encoded.
    pub fn new<T: Serialize>(id: ProcedureId, output: &T, by: OperatorRequest) -> Result<Self, CodecError> {
        Ok(Self::encoded(id, codec::encode_user(output)?, by))
    }

    /// Takes an output that is encoded already.
    #[must_use]
    pub const fn encoded(id: ProcedureId, output: Blob, by: OperatorRequest) -> Self {
        Self { id, output, by }
    }
}

/// Asks what operators did, newest first, before the number given if one is.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<AuditEntry>, AskError>")]
pub struct Audit {
    /// Only entries before this one.
    pub before: Option<u64>,
    /// How many at most; 1,000 at once.
    pub limit: usize,
}

/// Asks who holds and who waits for each lock.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<LockView>, AskError>")]
pub struct Locks;

/// Asks how every limit stands.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<LimitUse>, AskError>")]
pub struct Limits;

/// Tries an undo again that has used up its attempts.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct RetryUndo {
    /// A member of the family.
    pub id: ProcedureId,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Skips an undo that has used up its attempts.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct SkipUndo {
    /// A member of the family.
    pub id: ProcedureId,
    /// Who asks, and why.
    pub by: OperatorRequest,
}

/// Asks why a procedure does not move: who waits for whom, why, and since when.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Explanation, AskError>")]
pub struct Explain(pub ProcedureId);

/// Runs an audit, and asks what is stuck. Answered also when the store does not
/// answer or has failed.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<Verdict>, AskError>")]
pub struct Verdicts;

/// Asks how the engine stands.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Snapshot, AskError>")]
pub struct TakeSnapshot;

/// Follows every committed change, in commit order. The subscriber's mailbox is
/// the bound: one too slow gets [`ChangeFeed::Lagged`], and slows nobody.
#[derive(Message, Clone)]
#[rtype(result = "Result<(), AskError>")]
pub struct Subscribe(pub Recipient<ChangeFeed>);

/// Follows the newest rows, for who shows them to people: a message comes only when asked for, with what
/// has changed since the last one, each row once. It costs the engine little, however often rows change.
/// The first message, [`LatestFeed::From`], comes by itself; for each further one send [`PollLatest`].
#[derive(Message, Clone)]
#[rtype(result = "Result<(), AskError>")]
pub struct SubscribeLatest(pub Recipient<LatestFeed>);

/// Asks for what has changed since the last message to this follower, as soon as anything has.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct PollLatest(pub Recipient<LatestFeed>);

/// Stops the engine in order: no new stages, running ones finish, what is left
/// goes on at the next start. Answered when nothing is out any more, or the
/// deadline has passed.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<DrainReport, AskError>")]
pub struct Drain {
    /// How long running stages may take.
    pub deadline: Duration,
}

/// Stops the engine in order, as an operator does: with who and why. Answered once that is on
/// disk and nothing more is set going; the engine stops later.
#[derive(Message, Clone)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct DrainBy {
    /// How long running stages may take.
    pub deadline: Duration,
    /// Who asks, and why.
    pub by: OperatorRequest,
}
