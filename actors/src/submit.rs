//! `Submit`: the message that submits a procedure, and what a stage submits with it.

use std::time::Duration;

use actix::prelude::*;
use procession_kernel::{Birth, Brood, EndSignal, EventName, Key, Label, Labels, ProcedureId, TraceParent};
use serde::Serialize;

use crate::error::{CodecError, SubmitError};
use crate::journal::codec;
use crate::procedure::Procedure;
use crate::step::{Children, birth_of};

/// Submits a procedure. Answered once the submission is durable.
#[derive(Message, Clone)]
#[rtype(result = "Result<ProcedureId, SubmitError>")]
pub struct Submit {
    /// In a box, because a submission is moved through several futures and a mailbox.
    pub(crate) birth: Box<Birth>,
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
        Ok(Self::of(birth_of(procedure)?))
    }

    pub(crate) fn of(birth: Birth) -> Self {
        Self {
            birth: Box::new(birth),
            key: None,
            key_for: None,
        }
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

    /// Sets a label by which people find the procedure: a name of at most 64 bytes, and a value of at most 256. A
    /// second one of the same name replaces the first; 16 are the most. The idempotency key does not stand for them: a
    /// repeat keeps the first one's labels.
    #[must_use]
    pub fn label(mut self, name: impl Into<Box<str>>, value: impl Into<Box<str>>) -> Self {
        self.birth.labels.set(Label::new(name, value));
        self
    }

    /// Sets several labels, as [`label`](Self::label) does.
    #[must_use]
    pub fn labels(mut self, labels: &Labels) -> Self {
        self.birth.labels = self.birth.labels.with(labels);
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
    /// Sends this signal once the whole family has ended, however it ended, in the commit of that end. It is a notice:
    /// a receiver that has ended is not told, nor is one that takes no more signals, and its kind is not asked. So the
    /// receiver should look how the procedure stands, and not rely on the notice alone.
    ///
    /// Name and payload together have at most 256 bytes, since they are part of the procedure's row.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the payload cannot be encoded.
    pub fn signal_at_end<T: Serialize>(
        mut self,
        to: ProcedureId,
        name: impl Into<String>,
        payload: &T,
    ) -> Result<Self, CodecError> {
        self.birth.end_signal = Some(Box::new(EndSignal {
            to,
            name: EventName::from(name.into()),
            payload: codec::encode_user(payload)?,
        }));
        Ok(self)
    }

    /// Sets the trace that the submission belongs to. The spans of its stages and its pages refer to that trace.
    #[must_use]
    pub fn trace_parent(mut self, parent: TraceParent) -> Self {
        self.birth.trace = Some(Box::new(parent));
        self
    }
}
