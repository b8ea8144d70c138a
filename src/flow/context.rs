//! What a processor is given while it runs: who it is, what its parents left, and what becomes part of its commit.

use std::future::Future;
use std::time::Duration;

use procession_actors::journal::codec;
use procession_actors::messages::{SendSignal, Submit};
use procession_actors::view::Status;
use procession_actors::{CallContext, CodecError, Elapsed, Procedure, ReadError, StageError, SubmitError, Token};
use procession_kernel::{Blob, ProcedureId, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::ParentError;
use super::node::Node;
use super::set::Set;
use super::state::{NodeState, cause_of, state_by_itself};
use super::stream::{AppendError, StreamName, StreamRecord, append_in_stage, notify_event};
use super::task::{NOTIFY, Woken};
use crate::executor::EngineLink;

/// What a [processor](super::Processor) may use while it runs.
///
/// Writes, submissions and signals are part of the node's commit: they happen exactly once, together with its output and
/// with what its end sets going. An attempt that fails leaves none of them.
pub struct NodeContext<'a> {
    call: CallContext<'a>,
    called: Called<'a>,
    /// The note of a stream's node, which is part of its record.
    note: Option<Blob>,
    /// A stream could not be opened, because the engine drains.
    met_drain: bool,
}

/// What a call leaves.
pub(super) struct Left<'a> {
    pub(super) call: CallContext<'a>,
    pub(super) note: Option<Blob>,
    pub(super) met_drain: bool,
}

/// A node as its call sees it.
pub(super) struct Called<'a> {
    pub(super) name: &'a str,
    pub(super) place: u32,
    /// What tells its token from those of other nodes of the same procedure.
    pub(super) visit: u32,
    pub(super) woken: Option<&'a Woken>,
    pub(super) engine: &'a EngineLink,
    pub(super) parents: Parents,
    #[cfg(feature = "testkit")]
    pub(super) injections: Option<&'a super::injected::Injections>,
}

/// Where the parents of a node are found.
#[derive(Clone, Copy)]
pub(super) enum Parents {
    /// They are the siblings before its gate: it is a node of a set.
    Siblings,
    /// The one before it is in the newest record: it is a node of a stream.
    NewestRecord,
}

impl<'a> NodeContext<'a> {
    pub(super) fn new(call: CallContext<'a>, called: Called<'a>) -> Self {
        Self {
            call,
            called,
            note: None,
            met_drain: false,
        }
    }

    pub(super) fn into_parts(self) -> Left<'a> {
        Left {
            call: self.call,
            note: self.note,
            met_drain: self.met_drain,
        }
    }

    /// Returns the id of the procedure that the node is; of a stream's node, that of the stream.
    #[must_use]
    pub fn id(&self) -> ProcedureId {
        self.call.id()
    }

    /// Returns the node's name; empty if a stream's node has none.
    #[must_use]
    pub fn name(&self) -> &str {
        self.called.name
    }

    /// Returns the node's place: in its set, from 0, and parents stand before their children; in its stream, from 1, and
    /// places grow.
    #[must_use]
    pub fn place(&self) -> u32 {
        self.called.place
    }

    /// Returns the number of this attempt, from 1. It begins anew after a wait, and when a person retries the node.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.call.attempt()
    }

    /// Returns how many processes ended, or drains gave up, while this very attempt was out: see
    /// [`CallContext::repeated`].
    #[must_use]
    pub fn repeated(&self) -> u32 {
        self.call.repeated()
    }

    /// Returns the token of the node, for callees that deduplicate. It is the same for every call of the node, whatever
    /// crash, attempt, wait or retry lies between, and no other node has it.
    #[must_use]
    pub fn token(&self) -> Token {
        let mut token = self.call.token();
        // The engine's token changes with each commit of a procedure. A node has one piece of work.
        token.visit = self.called.visit;
        token
    }

    /// Returns the time of the engine's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.call.now()
    }

    /// Reads how the node's parents stand, in the order in which they were given. No output is read. In a stream the
    /// parent is the node before this one.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read.
    pub async fn parents(&self) -> Result<Vec<ParentNode<'_>>, ReadError> {
        if let Parents::NewestRecord = self.called.parents {
            return Ok(self.node_before().await?.into_iter().collect());
        }
        let mut parents = Vec::new();
        for id in self.call.before() {
            parents.extend(self.read_parent(*id).await?);
        }
        Ok(parents)
    }

    /// Reads how one parent stands.
    ///
    /// It looks at the parents one after the other, so a node with thousands of them uses [`parents`](Self::parents).
    ///
    /// # Errors
    ///
    /// [`ParentError::Unknown`] if the node has no parent of this name; it lists those that it has.
    pub async fn parent(&self, name: &str) -> Result<ParentNode<'_>, ParentError> {
        let mut others = Vec::new();
        if let Parents::NewestRecord = self.called.parents
            && let Some(parent) = self.node_before().await?
        {
            if parent.name() == name {
                return Ok(parent);
            }
            others.push(parent.name().to_owned());
        }
        for id in self.call.before() {
            let Some(parent) = self.read_parent(*id).await? else {
                continue;
            };
            if parent.name() == name {
                return Ok(parent);
            }
            others.push(parent.name().to_owned());
        }
        Err(ParentError::Unknown {
            node: self.called.name.to_owned(),
            name: name.to_owned(),
            parents: others,
        })
    }

    async fn read_parent(&self, id: ProcedureId) -> Result<Option<ParentNode<'_>>, ReadError> {
        let status = self.call.status(id).await?;
        Ok(status.map(|status| ParentNode {
            call: &self.call,
            read: ParentRead::Row(Box::new(status)),
        }))
    }

    async fn node_before(&self) -> Result<Option<ParentNode<'_>>, ReadError> {
        let record = StreamRecord::newest(&self.call).await?;
        Ok(record.map(|record| ParentNode {
            call: &self.call,
            read: ParentRead::Record(Box::new(record)),
        }))
    }

    /// Returns what the node was notified with, if a [notification](super::SetHandle::notify) has ended its wait. Each call
    /// is told until the node has ended or parks itself again.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it is not of this type.
    pub fn notified<T: DeserializeOwned>(&self) -> Result<Option<T>, CodecError> {
        match self.called.woken {
            Some(Woken::Notified(payload)) => codec::decode_user(payload.as_slice()).map(Some),
            Some(Woken::TimedOut) | None => Ok(None),
        }
    }

    /// Returns `true` if the node's wait ended because its time was up.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        matches!(self.called.woken, Some(Woken::TimedOut))
    }

    /// Reads a value of user data: see [`CallContext::get`].
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or the value is not of this type.
    pub async fn get<T: DeserializeOwned>(&self, space: &str, key: impl AsRef<[u8]>) -> Result<Option<T>, ReadError> {
        self.call.get(space, key).await
    }

    /// Reads all committed user data whose key begins with `prefix`: see [`CallContext::scan`].
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or a value is not of this type.
    pub async fn scan<T: DeserializeOwned>(
        &self,
        space: &str,
        prefix: impl AsRef<[u8]>,
    ) -> Result<Vec<(Vec<u8>, T)>, ReadError> {
        self.call.scan(space, prefix).await
    }

    /// Puts a value of user data in the node's commit: see [`CallContext::put`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded, or cannot be stored under this name and key.
    pub fn put<T: Serialize>(&mut self, space: &str, key: impl AsRef<[u8]>, value: &T) -> Result<(), CodecError> {
        self.call.put(space, key, value)
    }

    /// Deletes a value of user data in the node's commit.
    pub fn delete(&mut self, space: &str, key: impl AsRef<[u8]>) {
        self.call.delete(space, key);
    }

    /// Submits a procedure of its own in the node's commit: see [`CallContext::submit`].
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn submit<P: Procedure>(&mut self, procedure: &P) -> Result<(), CodecError> {
        self.call.submit(procedure)
    }

    /// Submits in the node's commit what a message says: see [`CallContext::submit_message`]. With
    /// [`Set::into_message`] it is a set, and with `signal_at_end(cx.id(), cx.notify_event(), ..)` its end notifies this
    /// node:
    ///
    /// ```
    /// # use procession::StageError;
    /// # use procession::flow::{NodeContext, Processed, Set};
    /// async fn build_all(cx: &mut NodeContext<'_>, parts: Set) -> Result<Processed<()>, StageError> {
    ///     if cx.notified::<()>()?.is_some() {
    ///         return Ok(Processed::Done(()));
    ///     }
    ///     let parts = parts.into_message()?.key(format!("parts of {}", cx.name()));
    ///     cx.submit_message(parts.signal_at_end(cx.id(), cx.notify_event(), &())?)?;
    ///     Ok(Processed::Park { timeout: None })
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the procedure cannot be submitted here.
    pub fn submit_message(&mut self, submit: Submit) -> Result<(), CodecError> {
        self.call.submit_message(submit)
    }

    /// Starts a set in the node's commit.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it cannot be started here.
    pub fn start_set(&mut self, set: Set) -> Result<(), CodecError> {
        self.submit_message(set.into_message()?)
    }

    /// Appends a node to a stream in this node's commit: exactly once, however often this node runs. A stream that is not
    /// there yet is opened first, in commits of its own. An engine that drains opens none: an attempt that fails by that
    /// does not count, and the node runs again after the next start.
    ///
    /// The attempt fails if the stream refuses the node at the commit: it has finished, is full, or has another node of
    /// this name.
    ///
    /// # Errors
    ///
    /// [`AppendError`] if the stream cannot be opened, or a stream cannot take such a node.
    pub async fn append(&mut self, stream: &StreamName, node: Node) -> Result<(), AppendError> {
        let signal = append_in_stage(&self.call, self.called.engine, stream, node).await;
        self.met_drain |= matches!(signal, Err(AppendError::Open(SubmitError::Draining)));
        self.call.send(signal?);
        Ok(())
    }

    /// Returns the name of the event that notifies this node, for whoever sends it as a signal:
    /// [`NOTIFY`](super::NOTIFY), and in a stream a name with the place behind it.
    #[must_use]
    pub fn notify_event(&self) -> String {
        match self.called.parents {
            Parents::Siblings => NOTIFY.to_owned(),
            Parents::NewestRecord => notify_event(self.called.place),
        }
    }

    /// Sends a signal in the node's commit: see [`CallContext::send_signal`].
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
        self.call.send_signal(id, name, payload)
    }

    /// Sends a signal in the node's commit: with a key, or as the last of its name.
    pub fn send(&mut self, signal: SendSignal) {
        self.call.send(signal);
    }

    /// Leaves a note in the history entry of this attempt: see [`CallContext::note`]. An attempt that fails leaves its
    /// note as well. In a stream it is part of the node's [record](StreamRecord::note).
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the note cannot be encoded.
    pub fn note<T: Serialize>(&mut self, note: &T) -> Result<(), CodecError> {
        match self.called.parents {
            Parents::Siblings => self.call.note(note),
            Parents::NewestRecord => {
                self.note = Some(codec::encode_user(note)?);
                Ok(())
            }
        }
    }

    /// Runs blocking work on a thread of its own: see [`CallContext::blocking`].
    ///
    /// # Errors
    ///
    /// [`StageError::Retry`] if the work panics.
    pub async fn blocking<T, F>(&self, work: F) -> Result<T, StageError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        self.call.blocking(work).await
    }

    /// Awaits a future for at most this long by the engine's clock: see [`CallContext::within`].
    ///
    /// # Errors
    ///
    /// [`Elapsed`] reads `timed out after 3 s`; with `?` it is a failed attempt.
    pub fn within<F: Future>(
        &self,
        time: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
        self.call.within(time, future)
    }
}

/// A parent of a node that runs, as it stood when it was read.
pub struct ParentNode<'a> {
    call: &'a CallContext<'a>,
    read: ParentRead,
}

/// What was read of a parent.
enum ParentRead {
    /// The row of a set's node.
    Row(Box<Status>),
    /// The record of a stream's node.
    Record(Box<StreamRecord>),
}

impl ParentNode<'_> {
    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.read {
            ParentRead::Row(status) => status.name.as_deref().unwrap_or_default(),
            ParentRead::Record(record) => &record.name,
        }
    }

    /// Returns its id: of a stream's node, that of the stream.
    #[must_use]
    pub fn id(&self) -> ProcedureId {
        match &self.read {
            ParentRead::Row(status) => status.id,
            ParentRead::Record(_) => self.call.id(),
        }
    }

    /// Returns its state. A parent that waits for its own parents reads WAIT, whatever they are.
    #[must_use]
    pub fn state(&self) -> NodeState {
        match &self.read {
            ParentRead::Row(status) => state_by_itself(status),
            ParentRead::Record(record) => record.state,
        }
    }

    /// Returns why it failed, or what it asks a person.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        match &self.read {
            ParentRead::Row(status) => cause_of(status),
            ParentRead::Record(record) => record.cause.as_deref(),
        }
    }

    /// Reads its output.
    ///
    /// # Errors
    ///
    /// [`ParentError::NoOutput`] with its state and cause if it has not succeeded; [`ParentError::WrongType`] if its output
    /// is of another type.
    pub async fn output<T: DeserializeOwned>(&self) -> Result<T, ParentError> {
        let no_output = || ParentError::NoOutput {
            name: self.name().to_owned(),
            state: self.state(),
            cause: self.cause().map(str::to_owned),
        };
        let (output, kind) = match &self.read {
            ParentRead::Row(status) => {
                let outcome = self.call.outcome(status.id).await?.ok_or_else(no_output)?;
                (outcome.output::<T>(), &status.kind)
            }
            ParentRead::Record(record) => (record.output::<T>(), &record.kind),
        };
        let output = output.map_err(|why| ParentError::WrongType {
            name: self.name().to_owned(),
            processor: kind.to_string(),
            why,
        })?;
        output.ok_or_else(no_output)
    }
}
