//! A signal as its sender makes it, outside of a stage or in one.

use actix::Message;
use procession_kernel::{EventName, Key, ProcedureId, SentSignal};
use serde::Serialize;

use crate::error::{AskError, CodecError};
use crate::journal::codec;

/// Sends a signal to a procedure. Answered with the signal's number once it is durable.
#[derive(Message, Clone)]
#[rtype(result = "Result<u32, AskError>")]
pub struct SendSignal(pub(crate) SentSignal);

impl SendSignal {
    /// Encodes a signal.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the payload cannot be encoded.
    pub fn new<T: Serialize>(id: ProcedureId, name: impl Into<String>, payload: &T) -> Result<Self, CodecError> {
        Ok(Self(SentSignal {
            to: id,
            name: EventName::from(name.into()),
            payload: codec::encode_user(payload)?,
            key: None,
            last: false,
        }))
    }

    /// Sets the key by which a repeated signal is recognised.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.0.key = Some(Key::from(key.into()));
        self
    }

    /// Declares the signal the last of its name: later ones to this procedure are refused with [`AskError::Closed`].
    #[must_use]
    pub fn last(mut self) -> Self {
        self.0.last = true;
        self
    }
}
