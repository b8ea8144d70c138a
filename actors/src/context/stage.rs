//! The context as one kind's own stages see it: what every call may use, and the environment of the kind.

use std::ops::{Deref, DerefMut};

use procession_kernel::ProcedureId;
use serde::Serialize;

use super::{Call, CallContext, Host};
use crate::error::CodecError;
use crate::procedure::Procedure;
use crate::signal::SendSignal;
use crate::submit::Submit;

/// What a stage or an undo of one kind may use while it runs: the kind's environment, and everything of a
/// [`CallContext`].
pub struct StageContext<'a, P: Procedure> {
    context: CallContext<'a>,
    env: &'a P::Env,
}

impl<'a, P: Procedure> StageContext<'a, P> {
    pub(crate) fn new(call: &'a Call, host: &'a Host, env: &'a P::Env) -> Self {
        Self {
            context: CallContext::new(call, host),
            env,
        }
    }

    /// Returns the environment with which the host registered the kind.
    #[must_use]
    pub fn env(&self) -> &'a P::Env {
        self.env
    }
}

// What takes `&mut self` is repeated here, because the borrow checker accepts `cx.put(name, cx.id().to_string(), value)`
// for methods of the type itself, and refuses it through `DerefMut`.
impl<P: Procedure> StageContext<'_, P> {
    /// See [`CallContext::add_child`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn add_child<Q: Procedure>(&mut self, procedure: &Q) -> Result<(), CodecError> {
        self.context.add_child(procedure)
    }

    /// See [`CallContext::add_compensated_child`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn add_compensated_child<Q: Procedure>(&mut self, procedure: &Q) -> Result<(), CodecError> {
        self.context.add_compensated_child(procedure)
    }

    /// See [`CallContext::note`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the note cannot be encoded.
    pub fn note<T: Serialize>(&mut self, note: &T) -> Result<(), CodecError> {
        self.context.note(note)
    }

    /// See [`CallContext::put`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded, or cannot be stored under this name and key.
    pub fn put<T: Serialize>(&mut self, space: &str, key: impl AsRef<[u8]>, value: &T) -> Result<(), CodecError> {
        self.context.put(space, key, value)
    }

    /// See [`CallContext::delete`].
    pub fn delete(&mut self, space: &str, key: impl AsRef<[u8]>) {
        self.context.delete(space, key);
    }

    /// See [`CallContext::submit`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn submit<Q: Procedure>(&mut self, procedure: &Q) -> Result<(), CodecError> {
        self.context.submit(procedure)
    }

    /// See [`CallContext::submit_message`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the procedure cannot be submitted here.
    pub fn submit_message(&mut self, submit: Submit) -> Result<(), CodecError> {
        self.context.submit_message(submit)
    }

    /// See [`CallContext::send_signal`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the payload cannot be encoded.
    pub fn send_signal<T: Serialize>(
        &mut self,
        id: ProcedureId,
        name: impl Into<String>,
        payload: &T,
    ) -> Result<(), CodecError> {
        self.context.send_signal(id, name, payload)
    }

    /// See [`CallContext::send_signal_keyed`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the payload cannot be encoded.
    pub fn send_signal_keyed<T: Serialize>(
        &mut self,
        id: ProcedureId,
        name: impl Into<String>,
        payload: &T,
        key: impl Into<String>,
    ) -> Result<(), CodecError> {
        self.context.send_signal_keyed(id, name, payload, key)
    }

    /// See [`CallContext::send`].
    pub fn send(&mut self, signal: SendSignal) {
        self.context.send(signal);
    }
}

impl<'a, P: Procedure> Deref for StageContext<'a, P> {
    type Target = CallContext<'a>;

    fn deref(&self) -> &Self::Target {
        &self.context
    }
}

impl<P: Procedure> DerefMut for StageContext<'_, P> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.context
    }
}
