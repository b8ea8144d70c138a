//! The closed list of messages that the supervisor accepts from outside.
//!
//! Each answer rests on durable state: it waits for the newest commit that it was computed from.

use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{
    AuditEntry, Blob, BypassAs, BypassScope, EventName, HistoryEntry, Key, Limit, LimitKey, LimitUse, Operated,
    OperatorRequest, PauseScope, ProcedureId, RevealScope, UserWrite, Verb,
};
use serde::Serialize;

use crate::error::{AskError, CodecError, SubmitError};
use crate::export::FamilyExport;
use crate::journal::{StoreBounds, codec};
pub use crate::signal::SendSignal;
pub use crate::submit::Submit;
use crate::view::{
    self, ArchivedFamily, ChangeFeed, DrainReport, Explanation, LatestFeed, ListFilter, LockView, Outcome, Page,
    Snapshot, Status, Verdict,
};

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

/// Asks for a page of the failures that nobody has acknowledged, newest first.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<view::FailurePage, AskError>")]
pub struct Failures {
    /// Where the page before ended; `None` begins with the newest.
    pub after: Option<view::FailureCursor>,
    /// The maximum number of failures; at most 1,000 per request.
    pub limit: usize,
}

/// Asks for a page of a family's history, newest first.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<view::HistoryPage, AskError>")]
pub struct ReadHistoryPage {
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

/// Acknowledges a finished procedure's result: that of a success may be evicted earlier, and a failure is not listed any
/// more.
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
pub struct ReadMailbox(pub ProcedureId);

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

/// Writes user data in a commit of its own: all of it or none. Answered once it is durable.
///
/// The writes have the bounds of a stage's: 10,000 at most, with 32 MiB together, unless the builder says otherwise. A
/// draining engine refuses them. Commits have one order: a stage that begins after the answer reads what was written.
///
/// ```
/// # use procession_actors::CodecError;
/// # use procession_actors::messages::WriteUserData;
/// # fn main() -> Result<(), CodecError> {
/// let moved = WriteUserData::new().delete("stock", "shelf-1").put("stock", "shelf-2", &12_u32)?;
/// # drop(moved);
/// # Ok(())
/// # }
/// ```
#[derive(Message, Clone, Default)]
#[rtype(result = "Result<(), AskError>")]
pub struct WriteUserData {
    pub(crate) writes: Vec<UserWrite>,
}

impl WriteUserData {
    /// Starts with nothing to write.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a value. The last write of a key counts.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded. A name or a key that the store cannot hold is refused when the
    /// message is answered.
    pub fn put<T: Serialize>(self, space: &str, key: impl AsRef<[u8]>, value: &T) -> Result<Self, CodecError> {
        let value = codec::encode_user(value)?;
        Ok(self.and(space, key.as_ref(), Some(value.as_slice().to_vec())))
    }

    /// Deletes a value. A key that does not exist is none to delete, and no error.
    #[must_use]
    pub fn delete(self, space: &str, key: impl AsRef<[u8]>) -> Self {
        self.and(space, key.as_ref(), None)
    }

    fn and(mut self, space: &str, key: &[u8], value: Option<Vec<u8>>) -> Self {
        self.writes.push(UserWrite {
            space: Key::from(space),
            key: key.to_vec(),
            value,
        });
        self
    }

    /// Returns the writes that the store takes. A write that it refuses would fail the whole commit, and stop the engine.
    pub(crate) fn checked(self, bounds: &StoreBounds) -> Result<Vec<UserWrite>, CodecError> {
        let mut writes = self.writes;
        for write in writes.iter().filter(|write| write.value.is_some()) {
            bounds.check_user(write.space.as_str(), &write.key)?;
        }
        // What cannot exist needs no deletion.
        writes.retain(|write| bounds.check_user(write.space.as_str(), &write.key).is_ok());
        Ok(writes)
    }
}

/// An operator's request: a verb with its operands, who sends it, and why. Answered with what changed once its audit
/// entry is durable. A dry run is answered with what would change.
///
/// ```
/// # use actix::Addr;
/// # use procession_actors::{Supervisor, messages::Operate};
/// # use procession_kernel::{OperatorRequest, PauseScope};
/// # async fn pause_all(supervisor: Addr<Supervisor>) -> Result<(), Box<dyn std::error::Error>> {
/// let by = OperatorRequest::new("ann", "the disk is full");
/// let paused = supervisor.send(Operate::pause(PauseScope::All, by)).await??;
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
    pub const fn pause(what: PauseScope, by: OperatorRequest) -> Self {
        Self::new(Verb::Pause(what), by)
    }

    /// Resumes a procedure that was paused by an operator, as poison, or for running one stage too often in a row.
    #[must_use]
    pub const fn resume(what: PauseScope, by: OperatorRequest) -> Self {
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

    /// Acknowledges the result of a finished root: that of a success may be evicted earlier, and a failure is not listed any
    /// more. Any member identifies the family.
    #[must_use]
    pub const fn acknowledge(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::Acknowledge(id), by)
    }

    /// Submits a failed root again, with the value that it was submitted with, and acknowledges its failure, in one
    /// commit. Any member identifies the family. The answer's `submitted` is the new root. Its key is `again` and the id
    /// of the old one, and is kept as long as the old one, so a repeat submits nothing and finds the same root. It has
    /// the name, the labels and the priority of the old one, and tells the same procedure of its end.
    ///
    /// Refused if the root has not failed, if its kind is not registered any more, or if its value is not kept: a root
    /// that was born with children runs only with them, and earlier releases kept no value.
    #[must_use]
    pub const fn run_again(id: ProcedureId, by: OperatorRequest) -> Self {
        Self::new(Verb::RunAgain(id), by)
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

/// Submits a procedure in the name of an operator: the audit log has who submitted it, and why. The answer's `submitted`
/// is the new root. A repeat of its idempotency key and value submits nothing, and finds the first one.
#[derive(Message)]
#[rtype(result = "Result<Operated, AskError>")]
pub struct SubmitBy {
    /// What is submitted.
    pub submit: Submit,
    /// Who submits it, and why.
    pub by: OperatorRequest,
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
