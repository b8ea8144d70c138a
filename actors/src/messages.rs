//! The closed list of messages that the supervisor accepts from outside.
//!
//! Each answer rests on durable state: it waits for the newest commit that it was computed from.

use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{
    AuditEntry, Birth, Blob, Brood, BypassAs, BypassScope, EventName, HistoryEntry, Key, Limit, LimitKey, LimitUse,
    Operated, OperatorRequest, Pause, ProcedureId, RevealScope, TraceParent, Verb,
};
use serde::Serialize;

use crate::error::{AskError, CodecError, SubmitError};
use crate::export::FamilyExport;
use crate::journal::codec;
use crate::procedure::Procedure;
pub use crate::signal::SendSignal;
use crate::step::{Children, birth_of};
use crate::view::{
    self, ArchivedFamily, ChangeFeed, DrainReport, Explanation, LatestFeed, ListFilter, LockView, Outcome, Page,
    Snapshot, Status, Verdict,
};

/// Submits a procedure. Answered once the submission is durable.
#[derive(Message, Clone)]
#[rtype(result = "Result<ProcedureId, SubmitError>")]
pub struct Submit {
    pub(crate) birth: Birth,
    pub(crate) key: Option<Key>,
    pub(crate) key_for: Option<Duration>,
}

impl Submit {
    /// Encodes the procedure, and asks it for what the engine must know.
    ///
    /// Does not call [`Procedure::check`], which needs the environment that the procedure's kind is registered with.
    /// The engine accepts such a message, and quarantines the family if its value cannot run. `into_message` of the
    /// facade's `Submission` makes the same message, but checks first.
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

    /// Sets the idempotency key: submitting the same key and value again returns the same id, and runs once.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(Key::from(key.into()));
        self
    }

    /// Sets the idempotency key, and how long it is kept after the submission, if that is longer than the result is
    /// kept.
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

    /// Sets the name that people see in lists, in trees and on the dashboard, at most 200 characters. Names need not be
    /// unique, and the idempotency key does not stand for them: a repeat keeps the first one's name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.birth.graph.get_or_insert_default().name = Some(name.into());
        self
    }

    /// Sets children that are born with the procedure, in the same commit. Its first stage runs when their join policy
    /// is met, and sees their outcomes. The idempotency key stands for them, too.
    #[must_use]
    pub fn children(mut self, children: Children) -> Self {
        let output = self.birth.brood.take().and_then(|brood| brood.output);
        let brood = Brood {
            output,
            ..children.into_brood()
        };
        self.birth.brood = Some(Box::new(brood));
        self
    }

    /// Sets the output with which the procedure ends when its children let it, without a call. Without children the
    /// submission is refused.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the output cannot be encoded.
    pub fn ends_with<T: Serialize>(mut self, output: &T) -> Result<Self, CodecError> {
        let output = codec::encode_user(output)?;
        self.birth.brood.get_or_insert_default().output = Some(output);
        Ok(self)
    }
}

impl Submit {
    /// Sets the trace that the submission belongs to. The spans of its stages and its pages refer to that trace.
    #[must_use]
    pub fn trace_parent(mut self, parent: TraceParent) -> Self {
        self.birth.trace = Some(Box::new(parent));
        self
    }
}

/// Submits several procedures in one commit: either all of them or none.
#[derive(Message, Clone)]
#[rtype(result = "Result<Vec<ProcedureId>, SubmitError>")]
pub struct SubmitBatch(pub Vec<Submit>);

/// Asks for the status of a procedure.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Status, AskError>")]
pub struct Query(pub ProcedureId);

/// Lists procedures by id, one page at a time.
#[derive(Message, Clone)]
#[rtype(result = "Result<Page, AskError>")]
pub struct List {
    /// Which procedures to list.
    pub filter: ListFilter,
    /// Where to begin; `None` begins at the first procedure.
    pub cursor: Option<ProcedureId>,
    /// The maximum number of procedures; at most 1,000 per request.
    pub limit: usize,
}

/// Asks for all members of a family, in the order of their numbers.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<Status>, AskError>")]
pub struct Tree(pub ProcedureId);

/// Asks for the executed stages and undos of a family, in commit order.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<HistoryEntry>, AskError>")]
pub struct History(pub ProcedureId);

/// Asks for a page of a family's history, newest first.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<view::HistoryPage, AskError>")]
pub struct HistoryPage {
    /// Any member of the family.
    pub id: ProcedureId,
    /// Returns only entries with a lower number; `None` begins with the newest.
    pub before: Option<u32>,
    /// The maximum number of entries; at most 1,000 per request.
    pub limit: usize,
}

/// Copies everything that the journal holds of a family, including quarantined and finished families.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<FamilyExport, AskError>")]
pub struct Export(pub ProcedureId);

/// Lists the discharged families, by number.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<ArchivedFamily>, AskError>")]
pub struct Archived;

/// Reads a discharged family as it was when it was discharged.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<FamilyExport, AskError>")]
pub struct ReadArchive(pub u64);

/// Waits for a procedure to end.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Outcome, AskError>")]
pub struct AwaitOutcome(pub ProcedureId);

/// Acknowledges a finished procedure's result, so that it may be evicted earlier.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<(), AskError>")]
pub struct Acknowledge(pub ProcedureId);

/// Sends signals in one commit: all of them or none, at most 10,000 and 32 MiB. Answered with their numbers once they
/// are durable. Signals to the same procedure get numbers that follow each other, except repeats.
#[derive(Message, Clone)]
#[rtype(result = "Result<Vec<u32>, AskError>")]
pub struct SendSignals(pub Vec<SendSignal>);

/// Asks which signals a procedure has yet to consume, and which events it takes no further signals of.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<view::Mailbox, AskError>")]
pub struct Mailbox(pub ProcedureId);

/// Wakes every procedure that waits for an event, when the broadcast commits, in the order in which they began to wait
/// (HBase's `ProcedureEvent`). The broadcast is not kept. Answered with the number of procedures it woke.
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

    /// Sets the key by which a repeated broadcast is recognised.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(Key::from(key.into()));
        self
    }
}

/// An operator's request: a verb with its operands, who sends it, and why. Answered with what changed once its audit
/// entry is durable. A dry run is answered with what would change.
///
/// ```
/// # use actix::Addr;
/// # use procession_actors::{Supervisor, messages::Operate};
/// # use procession_kernel::{OperatorRequest, Pause};
/// # async fn pause_all(supervisor: Addr<Supervisor>) -> Result<(), Box<dyn std::error::Error>> {
/// let by = OperatorRequest::new("ann", "the disk is full");
/// let paused = supervisor.send(Operate::pause(Pause::All, by)).await??;
/// println!("{} procedures were paused", paused.changed);
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
    /// Aborts a procedure: it stops between stages and rolls back. The answer's `abort` describes the state that the
    /// abort found it in.
    #[must_use]
    pub const fn abort(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::Abort(id), by)
    }

    /// Pauses a procedure with all its descendants, a kind, or everything. A running stage ends first.
    #[must_use]
    pub const fn pause(what: Pause, by: OperatorRequest) -> Self {
        Self::new(Verb::Pause(what), by)
    }

    /// Resumes a procedure that was paused by an operator, as poison, or for running one stage too often in a row.
    #[must_use]
    pub const fn resume(what: Pause, by: OperatorRequest) -> Self {
        Self::new(Verb::Resume(what), by)
    }

    /// Ends a backoff now, or the wait of a procedure that needs an operator, as poison or with a failed rollback. The
    /// attempt, or the undo, begins at once. Failed attempts stay counted. One that asks a person goes on without an
    /// answer.
    #[must_use]
    pub const fn retry_now(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::RetryNow(id), by)
    }

    /// Ends a procedure from any state without running its code. Nothing is undone, its locks are released, and its
    /// parent continues according to its join policy (HBase). A procedure with live children can only be ended together
    /// with them.
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

    /// Retries an undo that has exhausted its attempts.
    #[must_use]
    pub const fn retry_undo(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::RetryUndo(id), by)
    }

    /// Counts an undo that has exhausted its attempts as done.
    #[must_use]
    pub const fn skip_undo(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::SkipUndo(id), by)
    }

    /// Replaces the output of a procedure that succeeded. The new output must be of the procedure's own type.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the output cannot be encoded.
    pub fn override_result<T: Serialize>(id: ProcedureId, output: &T, by: OperatorRequest) -> Result<Self, CodecError> {
        Ok(Self::new(Verb::OverrideResult(id, codec::encode_user(output)?), by))
    }

    /// Changes the priority of a procedure, and with it its place in the queues.
    #[must_use]
    pub const fn set_priority(id: ProcedureId, priority: i16, by: OperatorRequest) -> Self {
        Self::new(Verb::SetPriority(id, priority), by)
    }

    /// Sets what a limit allows, durably: a number of permits at once, a rate, or `None` for anything. The limit of a kind
    /// has the kind's name.
    #[must_use]
    pub fn set_limit(key: impl Into<String>, limit: impl Into<Limit>, by: OperatorRequest) -> Self {
        Self::new(Verb::SetLimit(LimitKey::from(key.into()), limit.into()), by)
    }

    /// Moves a quarantined family to the archive, and releases all that it holds: locks, permits, its idempotency key.
    /// None of its stages are undone.
    #[must_use]
    pub const fn discharge(family: u64, by: OperatorRequest) -> Self {
        Self::new(Verb::Discharge(family), by)
    }

    /// Records in the audit log that unredacted user data of a procedure was viewed. Wait for the answer before showing
    /// it.
    #[must_use]
    pub const fn audit_reveal(id: ProcedureId, scope: RevealScope, by: OperatorRequest) -> Self {
        Self::new(Verb::AuditReveal(id, scope), by)
    }

    /// Sends a signal. The request's key also serves as the sender's key of the signal.
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

    /// Answers the question that a procedure asks. Refused if it asks none, so an answer never meets a later question.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the answer cannot be encoded.
    pub fn decide<T: Serialize>(id: ProcedureId, answer: &T, by: OperatorRequest) -> Result<Self, CodecError> {
        Ok(Self::new(Verb::Decide(id, codec::encode_user(answer)?), by))
    }

    /// Acknowledges the result of a finished root, so that it may be evicted earlier. Any member identifies the family.
    #[must_use]
    pub const fn acknowledge(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::Acknowledge(id), by)
    }

    /// Begins an orderly stop of the engine. Answered once the request is durable and no further stage is started. The
    /// engine stops once its running stages have ended, or after the deadline.
    #[must_use]
    pub const fn drain(deadline: Duration, by: OperatorRequest) -> Self {
        Self::new(Verb::Drain(deadline), by)
    }

    const fn new(verb: Verb, by: OperatorRequest) -> Self {
        Self { verb, by }
    }
}

/// Asks for operators' requests, newest first, from before the given number if there is one.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<AuditEntry>, AskError>")]
pub struct Audit {
    /// Returns only entries before this one.
    pub before: Option<u64>,
    /// The maximum number of entries; at most 1,000 per request.
    pub limit: usize,
}

/// Asks which procedures hold each lock, and which wait for it.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<LockView>, AskError>")]
pub struct Locks;

/// Asks for the state of every limit.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<LimitUse>, AskError>")]
pub struct Limits;

/// Asks why a procedure does not move: what blocks it, why, and since when.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Explanation, AskError>")]
pub struct Explain(pub ProcedureId);

/// Runs a health check, and asks what is stuck. It is answered even if the store does not respond or has failed.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<Verdict>, AskError>")]
pub struct Verdicts;

/// Asks for the state of the engine.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Snapshot, AskError>")]
pub struct TakeSnapshot;

/// Follows every committed change, in commit order. The subscriber's mailbox is the bound: a subscriber that is too
/// slow receives [`ChangeFeed::Lagged`], and slows down nobody else.
#[derive(Message, Clone)]
#[rtype(result = "Result<(), AskError>")]
pub struct Subscribe(pub Recipient<ChangeFeed>);

/// Follows the latest rows, for user interfaces. A message is sent only on request. It holds each row that has changed
/// since the last message, once. The cost to the engine is small, however often rows change.
///
/// The first message, [`LatestFeed::From`], is sent without a request. To get each further message, send
/// [`PollLatest`].
#[derive(Message, Clone)]
#[rtype(result = "Result<(), AskError>")]
pub struct SubscribeLatest(pub Recipient<LatestFeed>);

/// Asks for all changes since the last message to this follower. Answered as soon as there are any.
#[derive(Message, Clone)]
#[rtype(result = "()")]
pub struct PollLatest(pub Recipient<LatestFeed>);

/// Stops the engine in an orderly way: it starts no new stages, and running stages finish. The remaining work continues
/// at the next start. Answered once no call is running any more, or the deadline has passed.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<DrainReport, AskError>")]
pub struct Drain {
    /// How long running stages may take to finish.
    pub deadline: Duration,
}
