//! `Executor`: the handle that users hold. Thin sugar over the supervisor's messages.

mod builder;
mod link;
mod operate;
mod place;
mod signal;
mod submission;

#[cfg(any(feature = "flow", feature = "saga"))]
pub(crate) use builder::AtStart;
pub use builder::Builder;
pub(crate) use link::EngineLink;
pub use place::JournalPlace;
pub use signal::OutgoingSignal;
pub use submission::Submission;

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use procession_actors::messages::{
    self, Acknowledge, Archived, AwaitOutcome, Broadcast, Drain, Explain, Export, Failures, History, Limits, List,
    Locks, Query, SendSignal, SendSignals, SubmitBatch, Subscribe, SubscribeLatest, TakeSnapshot, Tree, Verdicts,
    WriteUserData,
};
use procession_actors::view::{
    ArchivedFamily, ChangeFeed, DrainReport, Explanation, FailureCursor, FailurePage, HistoryPage, KeyedProcedure,
    LatestFeed, ListFilter, LockView, Mailbox, Mailboxes, MemberPage, Outcome, Page, ShutdownReport, Snapshot, Status,
    Verdict,
};
use procession_actors::{
    AskError, CountedMessage, Engine, FamilyExport, Procedure, ReadError, SubmitError, Supervisor,
};
use procession_kernel::{HistoryEntry, Labels, LimitUse, ProcedureId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::handle::Handle;

/// A running engine. Cheap to clone, and usable from any thread.
///
/// Dropping it does not stop the engine: [`drain`](Self::drain) does, in order, and
/// [`shutdown`](Self::shutdown) at once.
#[derive(Clone)]
pub struct Executor {
    /// In one place: each copy of an address takes memory of its own, and every submission and every handle has an executor.
    engine: Arc<Engine>,
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor")
            .field("kinds", &self.engine.kinds().count())
            .field("durable", &self.engine.durable())
            .field("is_stopping", &self.engine.is_stopping())
            .finish_non_exhaustive()
    }
}

impl Executor {
    /// Begins to set up an engine whose journal is in this directory, or in this store.
    ///
    /// ```
    /// use procession::procedure::Noop;
    /// use procession::Executor;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("journal");
    /// actix_rt::System::new().block_on(async {
    ///     let executor = Executor::builder(path).register::<Noop>(()).start().await?;
    ///     executor.submit(Noop).await?.await?;
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub fn builder(journal: impl Into<JournalPlace>) -> Builder {
        Builder::new(journal.into())
    }

    pub(crate) fn new(engine: Engine) -> Self {
        Self {
            engine: Arc::new(engine),
        }
    }

    /// Returns the supervisor's address, for the messages of [`messages`](crate::messages).
    #[must_use]
    pub fn supervisor(&self) -> &Addr<Supervisor> {
        self.engine.supervisor()
    }

    /// Submits a procedure. Await the result: it is there once the procedure is durable.
    #[must_use = "a submission does nothing until it is awaited"]
    pub fn submit<P: Procedure>(&self, procedure: P) -> Submission<P> {
        Submission {
            executor: self.clone(),
            procedure,
            key: None,
            key_for: None,
            priority: None,
            trace: None,
            name: None,
            labels: Labels::default(),
            children: None,
            output: None,
        }
    }

    /// Submits several procedures of one type in one commit: all of them, or none. Each has the key and the
    /// priority of its own submission; the handles come in the order of the batch.
    ///
    /// ```
    /// # #[actix_rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use procession::errors::SubmitError;
    /// # use procession::procedure::Noop;
    /// # use procession::Executor;
    /// # let directory = tempfile::tempdir()?;
    /// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
    /// let batch = [executor.submit(Noop).key("a"), executor.submit(Noop).key("b")];
    /// let handles = executor.submit_batch(batch).await?;
    /// assert_eq!(handles.len(), 2);
    /// for handle in handles {
    ///     handle.await?;
    /// }
    /// // One that cannot be stored keeps the others out.
    /// let batch = [executor.submit(Noop).key("c"), executor.submit(Noop).key("")];
    /// assert!(matches!(executor.submit_batch(batch).await, Err(SubmitError::BadKey { .. })));
    /// assert_eq!(executor.list(Default::default(), None, 10).await?.items.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`SubmitError`], also if one of them alone cannot be accepted. Nothing of the batch is stored then.
    pub fn submit_batch<P: Procedure>(
        &self,
        batch: impl IntoIterator<Item = Submission<P>>,
    ) -> impl Future<Output = Result<Vec<Handle<P>>, SubmitError>> + Send {
        let encoded: Vec<_> = batch.into_iter().map(Submission::encode).collect();
        async move {
            let mut submits = Vec::with_capacity(encoded.len());
            for submission in encoded {
                submits.push(submission.checked().await?);
            }
            let sent = self.engine.ask(SubmitBatch(submits)).await;
            let ids = sent.map_err(|_| self.engine.unsubmitted())??;
            Ok(ids.into_iter().map(|id| self.handle(id)).collect())
        }
    }

    /// Returns a handle of a procedure that was submitted before.
    #[must_use]
    pub fn handle<P: Procedure>(&self, id: ProcedureId) -> Handle<P> {
        Handle {
            executor: self.clone(),
            id,
            procedure: PhantomData,
        }
    }

    #[cfg(any(
        feature = "dashboard",
        feature = "flow",
        feature = "saga",
        feature = "schedule",
        feature = "testkit"
    ))]
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.engine.sleep(time).await;
    }

    pub(crate) async fn ask<M, T>(&self, message: M) -> Result<T, AskError>
    where
        M: Message<Result = Result<T, AskError>> + Send + 'static,
        T: Send + 'static,
        Supervisor: Handler<CountedMessage<M>>,
    {
        match self.engine.ask(message).await {
            // A read that fails because the engine ends says nothing about the store.
            Ok(Err(AskError::Read(ReadError::Store(_)))) if self.engine.is_stopping() => Err(self.engine.unanswered()),
            Ok(answer) => answer,
            Err(_) => Err(self.engine.unanswered()),
        }
    }

    /// Returns how a procedure stands.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone.
    pub async fn status(&self, id: ProcedureId) -> Result<Status, AskError> {
        self.ask(Query(id)).await
    }

    /// Finds the procedure that was submitted with an idempotency key. Returns `None` if none was, or if the key has
    /// been forgotten: it goes with the result, unless [`key_for`](Submission::key_for) keeps it longer.
    ///
    /// ```
    /// # #[actix_rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use procession::procedure::Noop;
    /// # use procession::status::KeyedProcedure;
    /// # use procession::Executor;
    /// # let directory = tempfile::tempdir()?;
    /// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
    /// executor.submit(Noop).key("order-4711").await?.await?;
    /// let answer = match executor.find("order-4711").await? {
    ///     Some(KeyedProcedure::Live(status)) => format!("under way, {}", status.next),
    ///     Some(KeyedProcedure::Ended(status)) => format!("ended as {}", status.state),
    ///     Some(_) => "ended a while ago".to_owned(),
    ///     None => "no such order".to_owned(),
    /// };
    /// assert_eq!(answer, "ended as Success");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AskError`] if the key or the procedure cannot be read, or the engine has stopped.
    pub async fn find(&self, key: &str) -> Result<Option<KeyedProcedure>, AskError> {
        let Some(entry) = self.engine.committed().key_entry(key).await? else {
            return Ok(None);
        };
        match self.status(entry.id).await {
            Ok(status) => Ok(Some(KeyedProcedure::of(&entry, Some(status)))),
            Err(AskError::Unknown(_)) => Ok(Some(KeyedProcedure::of(&entry, None))),
            Err(error) => Err(error),
        }
    }

    /// Waits for the end of a procedure.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone; [`AskError::Busy`] if more callers wait for
    /// outcomes than may.
    pub async fn outcome(&self, id: ProcedureId) -> Result<Outcome, AskError> {
        self.ask(AwaitOutcome(id)).await
    }

    /// Lists procedures by id, `limit` at most (1,000 at once), from `cursor` on.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the store cannot be read.
    pub async fn list(&self, filter: ListFilter, cursor: Option<ProcedureId>, limit: usize) -> Result<Page, AskError> {
        self.ask(List { filter, cursor, limit }).await
    }

    /// Returns all members of a family, by number.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone.
    pub async fn tree(&self, id: ProcedureId) -> Result<Vec<Status>, AskError> {
        self.ask(Tree(id)).await
    }

    /// Reads a family page by page, as it stands on disk: its members from number `from` on, at most `limit`, and never
    /// more than 1,000. Families are large: [`tree`](Self::tree) reads all of one at once.
    ///
    /// Members of a quarantined family are shown as their rows say.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if the family is not known, or its result has gone.
    pub async fn members(&self, root: ProcedureId, from: u32, limit: usize) -> Result<MemberPage, AskError> {
        let limit = limit.clamp(1, MemberPage::MAX);
        let members = self.engine.committed().family(root.family, from, limit + 1).await?;
        if members.is_empty() && self.engine.committed().status(root).await?.is_none() {
            return Err(AskError::Unknown(root));
        }
        Ok(MemberPage::cut(members, limit))
    }

    /// Returns the executed stages and undos of a family, in commit order.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone.
    pub async fn history(&self, id: ProcedureId) -> Result<Vec<HistoryEntry>, AskError> {
        self.ask(History(id)).await
    }

    /// Returns a page of the executed stages and undos of a family, newest first: at most `limit` entries, and 1,000.
    /// Pass the page's `next` as `before` for the one after it; `None` begins with the newest.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone.
    pub async fn history_page(
        &self,
        id: ProcedureId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<HistoryPage, AskError> {
        self.ask(messages::ReadHistoryPage { id, before, limit }).await
    }

    /// Copies everything that the journal holds of a family, live, finished or quarantined.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone;
    /// [`ReadError::TooLarge`] within [`AskError::Read`] if it has more than 256 MiB.
    pub async fn export(&self, id: ProcedureId) -> Result<FamilyExport, AskError> {
        self.ask(Export(id)).await
    }

    /// Lists the families that were discharged, by number.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the store cannot be read.
    pub async fn archive(&self) -> Result<Vec<ArchivedFamily>, AskError> {
        self.ask(Archived).await
    }

    /// Sends a signal. Await the result: it is the signal's number, once the signal is durable. A sender that got no
    /// answer repeats it with the same [`key`](OutgoingSignal::key).
    #[must_use = "a signal is not sent until it is awaited"]
    pub fn signal<T: Serialize>(&self, id: ProcedureId, name: &str, payload: &T) -> OutgoingSignal {
        OutgoingSignal::new(self.clone(), SendSignal::new(id, name, payload))
    }

    /// Sends signals in one commit: all of them or none. Returns their numbers once they are durable.
    ///
    /// # Errors
    ///
    /// [`AskError`] if one of them is refused, or if they are more than 10,000; none of them is sent then.
    pub async fn signal_all(&self, signals: Vec<SendSignal>) -> Result<Vec<u32>, AskError> {
        self.engine.admit_signals(&signals).await?;
        self.ask(SendSignals(signals)).await
    }

    /// Returns which signals a live procedure has yet to consume, and which events it takes no further signals of.
    ///
    /// # Errors
    ///
    /// [`AskError::Finished`] if the procedure has ended, [`AskError::Unknown`] if it is not known.
    pub async fn mailbox(&self, id: ProcedureId) -> Result<Mailbox, AskError> {
        self.ask(messages::ReadMailbox(id)).await
    }

    /// Wakes all who wait for this event now; gives how many. It is not kept.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the payload cannot be encoded, or the engine has stopped.
    pub async fn broadcast<T: Serialize>(&self, name: &str, payload: &T) -> Result<u32, AskError> {
        self.ask(Broadcast::new(name, payload)?).await
    }

    /// Returns a page of the failures that nobody has acknowledged, newest first, 1,000 at most: the roots that failed
    /// or were rolled back, but for those that somebody aborted or bypassed. The next page goes on from
    /// [`next`](crate::status::FailurePage::next).
    ///
    /// # Errors
    ///
    /// [`AskError`] if the store cannot be read, or the engine has stopped.
    pub async fn failures(&self, after: Option<FailureCursor>, limit: usize) -> Result<FailurePage, AskError> {
        self.ask(Failures { after, limit }).await
    }

    /// Says that the result of a finished root was taken note of. A success may go sooner then; a failure is not listed
    /// any more, and stays as long as before.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if it has not ended, [`AskError::Unknown`] if it is not known.
    pub async fn acknowledge(&self, id: ProcedureId) -> Result<(), AskError> {
        self.ask(Acknowledge(id)).await
    }

    /// Returns the holders and the waiters of each lock.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the engine has stopped or its journal has failed.
    pub async fn locks(&self) -> Result<Vec<LockView>, AskError> {
        self.ask(Locks).await
    }

    /// Returns how many permits of each limit are in use, and how many requests wait.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the engine has stopped or its journal has failed.
    pub async fn limits(&self) -> Result<Vec<LimitUse>, AskError> {
        self.ask(Limits).await
    }

    /// Follows every committed change, in commit order.
    ///
    /// # Errors
    ///
    /// [`AskError::NotNow`] if there are as many subscribers as may be.
    pub async fn subscribe(&self, to: Recipient<ChangeFeed>) -> Result<(), AskError> {
        self.ask(Subscribe(to)).await
    }

    /// Follows the newest rows, as often as the follower asks for them; see [`SubscribeLatest`].
    ///
    /// # Errors
    ///
    /// [`AskError`] if the engine has stopped or its journal has failed, or if it has as many subscribers
    /// as may be.
    pub async fn subscribe_latest(&self, to: Recipient<LatestFeed>) -> Result<(), AskError> {
        self.ask(SubscribeLatest(to)).await
    }

    /// Explains why a procedure does not move: who waits for whom, why, and since when.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if it is not known, or its result has gone.
    pub async fn explain(&self, id: ProcedureId) -> Result<Explanation, AskError> {
        self.ask(Explain(id)).await
    }

    /// Looks for what is stuck, and tells it; also when the journal has failed.
    ///
    /// # Errors
    ///
    /// [`AskError::Stopped`] if the engine has stopped.
    pub async fn verdicts(&self) -> Result<Vec<Verdict>, AskError> {
        self.ask(Verdicts).await
    }

    /// Returns how the engine stands, also after its journal has failed.
    ///
    /// # Errors
    ///
    /// [`AskError::Stopped`] if it has stopped.
    pub async fn snapshot(&self) -> Result<Snapshot, AskError> {
        self.ask(TakeSnapshot).await
    }

    /// Returns about how many messages wait in the engine's mailboxes. It reads counts, so it costs the
    /// engine nothing, and is answered whatever the engine is busy with.
    #[must_use]
    pub fn mailboxes(&self) -> Mailboxes {
        self.engine.mailboxes()
    }

    /// Reads a procedure's value as the last stage or undo that committed left it, live or ended. A value of an older
    /// version is returned as its type upgrades it; nothing is stored. Returns `None` if the procedure is not known, or
    /// its result has gone.
    ///
    /// ```
    /// # use procession::{Executor, Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Copy { rows: u64 }
    /// # impl Procedure for Copy {
    /// #     const KIND: &'static str = "copy";
    /// #     type Stage = ();
    /// #     type Env = ();
    /// #     type Output = ();
    /// #     fn first(&self) {}
    /// #     async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #         self.rows += 100;
    /// #         Ok(Step::Done(()))
    /// #     }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("journal");
    /// # actix_rt::System::new().block_on(async {
    /// # let executor = Executor::builder(path).register::<Copy>(()).start().await?;
    /// let handle = executor.submit(Copy { rows: 0 }).await?;
    /// let id = handle.id();
    /// handle.await?;
    /// let copy = executor.value::<Copy>(id).await?.ok_or("it has gone")?;
    /// assert_eq!(copy.rows, 100);
    /// # Ok(())
    /// # })
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or the value is not of this type or kind.
    pub async fn value<P: Procedure>(&self, id: ProcedureId) -> Result<Option<P>, ReadError> {
        self.engine.committed().value(id).await
    }

    /// Reads a committed value of user data.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or the value is not of this type.
    pub async fn get<T: DeserializeOwned>(&self, space: &str, key: impl AsRef<[u8]>) -> Result<Option<T>, ReadError> {
        self.engine.committed().get(space, key).await
    }

    /// Puts a value of user data in a commit of its own, and returns once that is durable. Commits have one order: a
    /// stage that begins afterwards reads the value, and of several writes of a key the last commit counts. To change a
    /// value according to what it is, use a procedure with a lock: nothing keeps a stage from writing between
    /// [`get`](Self::get) and this.
    ///
    /// ```
    /// # #[actix_rt::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use procession::procedure::Noop;
    /// # use procession::Executor;
    /// # let directory = tempfile::tempdir()?;
    /// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
    /// executor.put("prices", "bread", &250_u32).await?;
    /// assert_eq!(executor.get::<u32>("prices", "bread").await?, Some(250));
    /// executor.delete("prices", "bread").await?;
    /// assert_eq!(executor.get::<u32>("prices", "bread").await?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the value cannot be encoded, or stored under this name (1 to 100 bytes) and key (1 to
    /// 65,535 bytes); [`AskError::TooLarge`] if it has more than 32 MiB, or what
    /// [`max_write_bytes`](Builder::max_write_bytes) says; [`AskError::NotNow`] if the engine drains, or has as many
    /// keyspaces as it may. Nothing is written then. After any other error the value may have been written or not:
    /// put it again.
    pub async fn put<T: Serialize>(&self, space: &str, key: impl AsRef<[u8]>, value: &T) -> Result<(), AskError> {
        self.write(WriteUserData::new().put(space, key, value)?).await
    }

    /// Deletes a value of user data in a commit of its own, and returns once that is durable. Otherwise like
    /// [`put`](Self::put).
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub async fn delete(&self, space: &str, key: impl AsRef<[u8]>) -> Result<(), AskError> {
        self.write(WriteUserData::new().delete(space, key)).await
    }

    /// Writes user data in one commit: all of it, or none. Otherwise like [`put`](Self::put).
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put), and [`AskError::BatchTooLarge`] for more than 10,000 writes, or what
    /// [`max_writes`](Builder::max_writes) says.
    pub async fn write(&self, write: WriteUserData) -> Result<(), AskError> {
        self.ask(write).await
    }

    /// Reads all committed user data whose key begins with `prefix`, in the order of the keys.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or a value is not of this type.
    pub async fn scan<T: DeserializeOwned>(
        &self,
        space: &str,
        prefix: impl AsRef<[u8]>,
    ) -> Result<Vec<(Vec<u8>, T)>, ReadError> {
        self.engine.reader().scan_user(space, prefix.as_ref()).await
    }

    /// Stops the engine in order: no new stages, running ones finish until the deadline, and everything that has not
    /// ended goes on at the next start with no attempt used up. The report counts stages that finished and that were cut
    /// off, and apart from these the families that have not ended: most of them wait and run no stage. When it returns, every thread of the
    /// engine has ended and the journal is free. It waits some seconds for that at most; then
    /// [`shutdown`](Self::shutdown) says what is left, user code that holds its thread for example.
    ///
    /// Call it while the actix system runs. The signal handling of actix-web stops
    /// the system, and the engine's threads with it: turn that off with
    /// `disable_signals`, and drain where you handle the signal.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the engine has stopped or its journal has failed, before or meanwhile. A failed
    /// engine stays up to say why; end it with [`shutdown`](Self::shutdown).
    pub async fn drain(&self, deadline: Duration) -> Result<DrainReport, AskError> {
        let report = self.ask(Drain { deadline }).await?;
        self.engine.drained().await;
        Ok(report)
    }

    /// Stops the engine at once, whatever state it is in: running, draining, failed, stopped already.
    /// Stages are cut off where they wait, as by the death of the process, and it counts as one: a stage
    /// that was out at three of these waits for an operator. What was acknowledged goes on at the next
    /// start. Whoever waits for an answer is told that the engine has stopped, or why it had
    /// failed before. When this returns, every thread of the engine has ended and the journal is free:
    /// another engine may be started on it in this process.
    ///
    /// It takes 8 seconds at most. User code that holds its thread for longer cannot be ended, nor can
    /// a disk that does not answer: the report names what is left, and the journal is freed all the
    /// same unless the report says why it is not. Called again, it tells how it stands then.
    ///
    /// [`drain`](Self::drain) stops in order. An engine whose journal has failed refuses that; then this
    /// is the way to start again without a new process:
    ///
    /// ```
    /// use procession::procedure::Noop;
    /// use procession::Executor;
    /// use std::time::Duration;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("journal");
    /// actix_rt::System::new().block_on(async {
    ///     let executor = Executor::builder(&path).register::<Noop>(()).start().await?;
    ///     if executor.drain(Duration::from_secs(30)).await.is_err() {
    ///         let left = executor.shutdown().await;
    ///         assert!(left.is_clean(), "{left:?}");
    ///     }
    ///     let again = Executor::builder(&path).register::<Noop>(()).start().await?;
    ///     again.submit(Noop).await?.await?;
    ///     assert!(again.shutdown().await.is_clean());
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub async fn shutdown(&self) -> ShutdownReport {
        self.engine.shutdown().await
    }
}
