//! Every message that the supervisor takes from outside: one closed list.
//!
//! Each answer rests on what is on disk: it waits for the newest commit that it
//! was computed from.

use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{AbortAnswer, Birth, HistoryEntry, Key, LimitUse, ProcedureId};
use serde::Serialize;

use crate::error::{AskError, CodecError, SubmitError};
use crate::journal::codec;
use crate::procedure::Procedure;
use crate::step::birth_of;
use crate::view::{DrainReport, Feed, ListFilter, Outcome, Page, Snapshot, Status};

/// Submits a procedure; answered once it is durable.
#[derive(Message, Clone)]
#[rtype(result = "Result<ProcedureId, SubmitError>")]
pub struct Submit {
    pub(crate) birth: Birth,
    pub(crate) key: Option<Key>,
}

impl Submit {
    /// Encodes the procedure and asks it what the engine must know.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn new<P: Procedure>(procedure: &P) -> Result<Self, CodecError> {
        Ok(Self {
            birth: birth_of(procedure)?,
            key: None,
        })
    }

    /// Sets the idempotency key: the same key and value give the same id, and one run.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(Key::from(key.into()));
        self
    }

    /// Overrides the procedure's own priority.
    #[must_use]
    pub fn priority(mut self, priority: i16) -> Self {
        self.birth.priority = priority;
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

/// Waits for the end of a procedure.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Outcome, AskError>")]
pub struct AwaitOutcome(pub ProcedureId);

/// Says that the result was taken note of: it may go sooner.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<(), AskError>")]
pub struct Acknowledge(pub ProcedureId);

/// Aborts a procedure: it stops between stages, and rolls back.
#[derive(Message, Clone)]
#[rtype(result = "Result<AbortAnswer, AskError>")]
pub struct Abort {
    /// Which one.
    pub id: ProcedureId,
    /// Who aborts it.
    pub who: String,
    /// Why.
    pub why: String,
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

/// Sets the capacity of a limit, durably; none is unlimited.
#[derive(Message, Clone)]
#[rtype(result = "Result<(), AskError>")]
pub struct SetLimit {
    /// Which limit; a kind's own has the kind's name.
    pub key: String,
    /// Its capacity.
    pub limit: Option<u32>,
}

/// Asks how every limit stands.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Vec<LimitUse>, AskError>")]
pub struct Limits;

/// Tries an undo again that has used up its attempts.
#[derive(Message, Clone)]
#[rtype(result = "Result<(), AskError>")]
pub struct RetryUndo {
    /// A member of the family.
    pub id: ProcedureId,
    /// Who asks.
    pub who: String,
    /// Why.
    pub why: String,
}

/// Skips an undo that has used up its attempts.
#[derive(Message, Clone)]
#[rtype(result = "Result<(), AskError>")]
pub struct SkipUndo {
    /// A member of the family.
    pub id: ProcedureId,
    /// Who asks.
    pub who: String,
    /// Why.
    pub why: String,
}

/// Resumes a procedure that was paused as poison.
#[derive(Message, Clone)]
#[rtype(result = "Result<(), AskError>")]
pub struct Resume {
    /// Which one.
    pub id: ProcedureId,
    /// Who asks.
    pub who: String,
    /// Why.
    pub why: String,
}

/// Asks how the engine stands.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<Snapshot, AskError>")]
pub struct TakeSnapshot;

/// Follows every committed change, in commit order. The subscriber's mailbox is
/// the bound: one too slow gets [`Feed::Lagged`], and slows nobody.
#[derive(Message, Clone)]
#[rtype(result = "Result<(), AskError>")]
pub struct Subscribe(pub Recipient<Feed>);

/// Stops the engine in order: no new stages, running ones finish, what is left
/// goes on at the next start. Answered when nothing is out any more, or the
/// deadline has passed.
#[derive(Message, Clone, Copy)]
#[rtype(result = "Result<DrainReport, AskError>")]
pub struct Drain {
    /// How long running stages may take.
    pub deadline: Duration,
}
