//! The context of a pure stage: what reaches nothing but the stage's own report.

use procession_kernel::{ProcedureId, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{CallContext, Signal, StageContext};
use crate::error::CodecError;
use crate::procedure::Procedure;
use crate::signal::SendSignal;
use crate::step::{ChildOutcome, Children};
use crate::submit::Submit;

/// What a [pure stage](Procedure::is_pure) may use while it runs.
///
/// It is what [`StageContext`] offers without whatever reaches beyond the stage's own report: there is no token, no fence,
/// no reading of user data, no history, no waiting and no other thread. A stage that needs these is one of
/// [`execute`](Procedure::execute).
pub struct PureContext<'a, P: Procedure> {
    context: CallContext<'a>,
    env: &'a P::Env,
}

impl<'a, P: Procedure> PureContext<'a, P> {
    /// Returns a context of the same call, which has done nothing yet.
    pub(crate) fn of(stage: &StageContext<'a, P>) -> Self {
        Self {
            context: stage.branch(),
            env: stage.env(),
        }
    }

    /// Returns `true` if the store is asked about what the stage has done, before it is committed: who receives its signals,
    /// and what its keys stand for.
    pub(crate) fn asks_the_store(&self) -> bool {
        self.context.effects().is_some_and(|effects| {
            !effects.signals.is_empty() || effects.submitted.iter().any(|submission| submission.key.is_some())
        })
    }

    /// Returns what the stage has done.
    pub(crate) fn into_done(self) -> CallContext<'a> {
        self.context
    }

    /// Returns the environment with which the host registered the kind. Use it for what does not change, such as prices or
    /// a configuration.
    #[must_use]
    pub fn env(&self) -> &'a P::Env {
        self.env
    }

    /// Returns the procedure's id.
    #[must_use]
    pub fn id(&self) -> ProcedureId {
        self.context.id()
    }

    /// See [`CallContext::attempt`].
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.context.attempt()
    }

    /// See [`CallContext::ready_since`].
    #[must_use]
    pub fn ready_since(&self) -> Timestamp {
        self.context.ready_since()
    }

    /// Returns the time of the engine's clock. It is another one if the stage runs again.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.context.now()
    }

    /// See [`CallContext::max_payload`].
    #[must_use]
    pub fn max_payload(&self) -> usize {
        self.context.max_payload()
    }

    /// See [`CallContext::max_depth`].
    #[must_use]
    pub fn max_depth(&self) -> usize {
        self.context.max_depth()
    }

    /// See [`CallContext::max_children`].
    #[must_use]
    pub fn max_children(&self) -> usize {
        self.context.max_children()
    }

    /// See [`CallContext::children`].
    #[must_use]
    pub fn children(&self) -> &'a [ChildOutcome] {
        self.context.children()
    }

    /// See [`CallContext::before`].
    #[must_use]
    pub fn before(&self) -> &'a [ProcedureId] {
        self.context.before()
    }

    /// See [`CallContext::signal`].
    #[must_use]
    pub fn signal(&self) -> Option<&'a Signal> {
        self.context.signal()
    }

    /// See [`CallContext::answer`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the answer is not of this type.
    pub fn answer<T: DeserializeOwned>(&self) -> Result<Option<T>, CodecError> {
        self.context.answer()
    }

    /// See [`CallContext::timed_out`].
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.context.timed_out()
    }

    /// See [`CallContext::out_of_time`].
    #[must_use]
    pub fn out_of_time(&self) -> bool {
        self.context.out_of_time()
    }

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
    /// [`CodecError`] if the note cannot be encoded. The earlier note, if any, is kept then.
    pub fn note<T: Serialize>(&mut self, note: &T) -> Result<(), CodecError> {
        self.context.note(note)
    }

    /// See [`CallContext::nothing_to_undo`].
    pub fn nothing_to_undo(&mut self) {
        self.context.nothing_to_undo();
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

    /// See [`CallContext::submit_message`]. The store is asked for an idempotency key, so a stage that ran ahead of the disk
    /// and submits with one runs again once the disk has caught up.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the procedure cannot be submitted here.
    pub fn submit_message(&mut self, submit: Submit) -> Result<(), CodecError> {
        self.context.submit_message(submit)
    }

    /// See [`CallContext::submit_with`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn submit_with<Q: Procedure>(&mut self, procedure: &Q, children: Children) -> Result<(), CodecError> {
        self.context.submit_with(procedure, children)
    }

    /// See [`CallContext::submit_ending_with`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value or the output cannot be encoded.
    pub fn submit_ending_with<Q: Procedure>(
        &mut self,
        procedure: &Q,
        children: Children,
        output: &Q::Output,
    ) -> Result<(), CodecError> {
        self.context.submit_ending_with(procedure, children, output)
    }

    /// See [`CallContext::send_signal`]. The store is asked for the receiver, so a stage that ran ahead of the disk and sends
    /// a signal runs again once the disk has caught up.
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

    /// See [`CallContext::send_signal_keyed`], and [`send_signal`](Self::send_signal).
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

    /// See [`CallContext::send`], and [`send_signal`](Self::send_signal).
    pub fn send(&mut self, signal: SendSignal) {
        self.context.send(signal);
    }
}
