//! Every message that the supervisor takes from outside: one closed list.
//!
//! Each answer rests on what is on disk: it waits for the newest commit that it
//! was computed from.

use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{
    AuditEntry, Birth, Blob, BypassAs, BypassScope, EventName, HistoryEntry, Key, LimitKey, LimitUse, Operated,
    OperatorRequest, Pause, ProcedureId, RevealScope, TraceParent, Verb,
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

/// A request of an operator: a verb with its operands, who sends it, and why. It is answered once its audit entry
/// is durable, with what changed; a dry run is answered with what would change.
///
/// ```
/// # #[actix_rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use procession::{Executor, Noop, OperatorRequest, Pause, messages::Operate};
/// # let directory = tempfile::tempdir()?;
/// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
/// let by = OperatorRequest::new("ann", "the disk is full");
/// let paused = executor.supervisor().send(Operate::pause(Pause::All, by)).await??;
/// assert_eq!(paused.number, Some(0));
/// # Ok(())
/// # }
/// ```
#[derive(Message, Clone, Debug)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct Operate {
    /// What is requested.
    pub verb: Verb,
    /// Who sends the request, why, and on which conditions it takes effect.
    pub by: OperatorRequest,
}

impl Operate {
    /// Aborts a procedure: it stops between stages, and rolls back. The answer's `abort` says what the abort met.
    #[must_use]
    pub const fn abort(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::Abort(id), by)
    }

    /// Pauses a procedure with all below it, a kind, or everything. A running stage ends first.
    #[must_use]
    pub const fn pause(what: Pause, by: OperatorRequest) -> Self {
        Self::new(Verb::Pause(what), by)
    }

    /// Resumes what was paused by an operator, as poison, or for running one stage too often in a row.
    #[must_use]
    pub const fn resume(what: Pause, by: OperatorRequest) -> Self {
        Self::new(Verb::Resume(what), by)
    }

    /// Ends a backoff now, or the rest of a procedure that waits for an operator as poison or with a failed rollback.
    /// The attempt, or the undo, begins at once. Failed attempts stay counted.
    #[must_use]
    pub const fn retry_now(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::RetryNow(id), by)
    }

    /// Ends a procedure without its code, from any state: nothing is undone, its locks are freed, and its parent goes
    /// on by its join policy (HBase). A procedure with live children ends only together with them.
    #[must_use]
    pub const fn bypass(id: ProcedureId, scope: BypassScope, outcome: BypassAs, by: OperatorRequest) -> Self {
        Self::new(Verb::Bypass(id, scope, outcome), by)
    }

    /// Bypasses a procedure as a success with this output, which must be of the procedure's own type.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the output cannot be encoded.
    pub fn bypass_with_output<T: Serialize>(
        id: ProcedureId,
        scope: BypassScope,
        output: &T,
        by: OperatorRequest,
    ) -> Result<Self, CodecError> {
        let outcome = BypassAs::Output(codec::encode_user(output)?);
        Ok(Self::bypass(id, scope, outcome, by))
    }

    /// Tries an undo again whose attempts are exhausted.
    #[must_use]
    pub const fn retry_undo(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::RetryUndo(id), by)
    }

    /// Counts an undo as done whose attempts are exhausted.
    #[must_use]
    pub const fn skip_undo(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::SkipUndo(id), by)
    }

    /// Replaces the output of a procedure that succeeded, by one of the procedure's own type.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the output cannot be encoded.
    pub fn override_result<T: Serialize>(id: ProcedureId, output: &T, by: OperatorRequest) -> Result<Self, CodecError> {
        Ok(Self::new(Verb::OverrideResult(id, codec::encode_user(output)?), by))
    }

    /// Changes the priority of a procedure, and its place in the queues.
    #[must_use]
    pub const fn set_priority(id: ProcedureId, priority: i16, by: OperatorRequest) -> Self {
        Self::new(Verb::SetPriority(id, priority), by)
    }

    /// Sets the capacity of a limit, durably; `None` is unlimited. The limit of a kind has the kind's name.
    #[must_use]
    pub fn set_limit(key: impl Into<String>, limit: Option<u32>, by: OperatorRequest) -> Self {
        Self::new(Verb::SetLimit(LimitKey::from(key.into()), limit), by)
    }

    /// Puts a quarantined family into the archive, and frees all that it holds: locks, permits, its idempotency key.
    /// Nothing of it is undone.
    #[must_use]
    pub const fn discharge(family: u64, by: OperatorRequest) -> Self {
        Self::new(Verb::Discharge(family), by)
    }

    /// Records in the audit log that user data of a procedure is shown in full. Show none of it before this is
    /// answered.
    #[must_use]
    pub const fn audit_reveal(id: ProcedureId, scope: RevealScope, by: OperatorRequest) -> Self {
        Self::new(Verb::AuditReveal(id, scope), by)
    }

    /// Sends a signal. The key of the request is the sender's key as well.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the payload cannot be encoded.
    pub fn signal<T: Serialize>(
        id: ProcedureId,
        name: impl Into<String>,
        payload: &T,
        by: OperatorRequest,
    ) -> Result<Self, CodecError> {
        let name = EventName::from(name.into());
        Ok(Self::new(Verb::Signal(id, name, codec::encode_user(payload)?), by))
    }

    /// Takes note of the result of a finished root, so that it may be evicted sooner. Any member names the family.
    #[must_use]
    pub const fn acknowledge(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::Acknowledge(id), by)
    }

    /// Begins to stop the engine in order. It is answered once that is durable and no further stage is started;
    /// the engine stops when its running stages have ended, or after the deadline.
    #[must_use]
    pub const fn drain(deadline: Duration, by: OperatorRequest) -> Self {
        Self::new(Verb::Drain(deadline), by)
    }

    const fn new(verb: Verb, by: OperatorRequest) -> Self {
        Self { verb, by }
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

/// Asks why a procedure does not move: who waits for whom, why, and since when.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Explanation, AskError>")]
pub struct Explain(pub ProcedureId);

/// Runs a health check, and asks what is stuck. Answered also when the store does not
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
