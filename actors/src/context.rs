//! What a stage receives: its identity, what woke it, the host's environment, and writes that become part of its
//! commit.

mod pure;
mod stage;

use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use actix::Message;
use procession_kernel::{
    Birth, Blob, Brood, Epoch, HistoryEntry, Key, Kind, ProcedureId, ProcedureState, Seq, StageCall, StageEffects,
    StageEnded, StageTask, Timestamp, TraceParent, UserWrite,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::accepts::SignalRules;
use crate::clock::Clock;
use crate::error::{CodecError, ReadError};
use crate::journal::keys::OUTPUT;
use crate::journal::reader::HISTORY_PAGE;
use crate::journal::{Reader, Space, codec};
use crate::procedure::Procedure;
use crate::signal::SendSignal;
use crate::step::{ChildOutcome, Children, birth_of};
use crate::submission_key::submission_of;
use crate::submit::Submit;
use crate::time_limit::{Elapsed, within};
use crate::value;
use crate::view::Status;

pub use pure::PureContext;
pub use stage::StageContext;

/// Identifies one stage of one procedure in one store: equal for every run of that stage and of its undo, and different
/// for any other stage. Pass it to callees that deduplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Token {
    /// The store's own number, drawn when the store was created.
    pub store: u64,
    /// The procedure.
    pub procedure: ProcedureId,
    /// Number of the visit within the procedure, from 0.
    pub visit: u32,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}-{}", self.store, self.procedure, self.visit)
    }
}

/// Grows from run to run, across restarts too. Pass it to callees that refuse outdated requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Fence {
    /// The engine's epoch.
    pub epoch: Epoch,
    /// Number of the call within the epoch.
    pub call: u64,
}

/// A signal that a stage waited for.
#[derive(Clone, Debug)]
pub struct Signal {
    /// Name of the event.
    pub name: String,
    /// Number of the signal among all signals sent to this procedure.
    pub number: u32,
    /// `true` if its sender declared it the last of its name.
    pub last: bool,
    pub(crate) payload: Blob,
}

impl Signal {
    /// Returns the payload that the sender attached.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if it is not of this type.
    pub fn payload<T: DeserializeOwned>(&self) -> Result<T, CodecError> {
        codec::decode_user(self.payload.as_slice())
    }

    /// Returns the payload as it is stored: MessagePack with field names.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.payload.as_slice()
    }
}

/// What woke the stage, with all the data that it needs.
#[derive(Clone, Debug, Default)]
pub(crate) enum Woken {
    /// No particular event.
    #[default]
    Plainly,
    /// The children's end; for the rule of a gate, the siblings before it.
    Children(Vec<ChildOutcome>),
    /// A signal's arrival.
    Signal(Box<Signal>),
    /// The timeout of an event, or of a question.
    Timeout,
    /// A person's answer.
    Answer(Blob),
}

impl Woken {
    /// Returns the children's outcomes, if they woke the stage or a rule is asked about them.
    pub(crate) fn children(&self) -> &[ChildOutcome] {
        match self {
            Self::Children(outcomes) => outcomes,
            Self::Plainly | Self::Signal(_) | Self::Timeout | Self::Answer(_) => &[],
        }
    }
}

/// The fields of a span that come from the row of a call.
#[derive(Clone, Copy)]
pub(crate) struct OfRow {
    pub(crate) state: ProcedureState,
    pub(crate) revision: Seq,
}

/// How long a run goes on. Others wait for its worker meanwhile.
pub(crate) const RUN_TIME: Duration = Duration::from_millis(1);

/// How far a run has come when a stage of it begins.
#[derive(Clone, Copy, Default)]
pub(crate) struct RunProgress {
    /// When it began.
    pub(crate) since: Timestamp,
    /// How many of its stages have run.
    pub(crate) passed: usize,
}

impl RunProgress {
    pub(crate) fn has_time_left(self, now: Timestamp) -> bool {
        now < self.since.after(RUN_TIME)
    }

    pub(crate) const fn has_passed_any(self) -> bool {
        self.passed > 0
    }
}

/// A call on its way to a worker: the kernel's part, and what the supervisor adds.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Call {
    pub(crate) stage: Box<StageCall>,
    /// The store's own number.
    pub(crate) store: u64,
    pub(crate) fence: Fence,
    /// What was read for the call.
    pub(crate) woken: Woken,
    /// For the span alone; `None` if no span is wanted.
    pub(crate) row: Option<Box<OfRow>>,
    /// What the call rests on may not be on disk yet, so it must reach nothing but its report.
    pub(crate) is_speculative: bool,
    /// The run that its stage is part of, as its actor goes through it.
    pub(crate) run: RunProgress,
}

impl Call {
    pub(crate) const fn token(&self) -> Token {
        Token {
            store: self.store,
            procedure: self.stage.id,
            visit: self.stage.visit,
        }
    }
}

/// What the worker lends to each call.
pub(crate) struct Host {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) reader: Reader,
    /// The engine's bound of values and outputs, in bytes.
    pub(crate) max_payload: usize,
    /// The engine's bound of levels of a family.
    pub(crate) max_depth: usize,
    /// The engine's bound of children of one stage.
    pub(crate) max_children: usize,
    pub(crate) signal_rules: SignalRules,
    /// The kinds that are registered.
    pub(crate) kinds: BTreeSet<Kind>,
    #[cfg(feature = "testkit")]
    pub(crate) interceptor: Option<Arc<dyn crate::fault_injection::seen::StageInterceptor>>,
}

/// What any call of a stage or an undo may use while it runs, whatever the procedure's type: identity, time, what woke
/// it, user data, and what becomes part of its commit. [`StageContext`] dereferences to it.
///
/// Helpers that several kinds share take a `CallContext`, and need no type parameter for the procedure:
///
/// ```
/// # use procession_actors::{CallContext, Procedure, StageContext, StageError, Step};
/// # use serde::{Deserialize, Serialize};
/// /// Counts a call in the call's own commit.
/// async fn count(cx: &mut CallContext<'_>, name: &str) -> Result<u32, StageError> {
///     let count = cx.get::<u32>("counts", name).await?.unwrap_or_default() + 1;
///     cx.put("counts", name, &count)?;
///     Ok(count)
/// }
///
/// # #[derive(Serialize, Deserialize)]
/// # struct Import;
/// # impl Procedure for Import {
/// #     const KIND: &'static str = "import";
/// #     type Stage = ();
/// #     type Env = ();
/// #     type Output = u32;
/// #     fn first(&self) {}
/// async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
///     Ok(Step::Done(count(cx, "imports").await?))
/// }
/// # }
/// ```
pub struct CallContext<'a> {
    pub(crate) call: &'a Call,
    pub(crate) host: &'a Host,
    /// What it has written, submitted, sent and added. Most calls do nothing of this.
    effects: Option<Box<StageEffects>>,
    pub(crate) note: Option<Blob>,
    pub(crate) nothing_to_undo: bool,
    pub(crate) lifts_timeout: bool,
}

impl<'a> CallContext<'a> {
    fn new(call: &'a Call, host: &'a Host) -> Self {
        Self {
            call,
            host,
            effects: None,
            note: None,
            nothing_to_undo: false,
            lifts_timeout: false,
        }
    }

    /// Returns a context of the same call that has written, submitted, sent and added nothing yet.
    ///
    /// What is done through a branch counts only once it is [merged](Self::merge). A branch that is dropped leaves
    /// nothing behind. So a stage can go on in another way after a part of it has failed, and keep nothing of that part:
    ///
    /// ```
    /// # use procession_actors::{CallContext, Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Import;
    /// # impl Import {
    /// #     async fn take_over(&self, cx: &mut CallContext<'_>) -> Result<(), StageError> {
    /// #         Ok(cx.put("customers", "4711", &true)?)
    /// #     }
    /// # }
    /// # impl Procedure for Import {
    /// #     const KIND: &'static str = "import";
    /// #     type Stage = ();
    /// #     type Env = ();
    /// #     type Output = ();
    /// #     fn first(&self) {}
    /// async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///     let mut branch = cx.branch();
    ///     match self.take_over(&mut branch).await {
    ///         Ok(()) => cx.merge(branch),
    ///         // The rows that it wrote before it failed are not stored.
    ///         Err(error) => {
    ///             let question = format!("{}: skip this customer?", error.text());
    ///             return Ok(Step::Ask { question, timeout: None, then: () });
    ///         }
    ///     }
    ///     Ok(Step::Done(()))
    /// }
    /// # }
    /// ```
    #[must_use = "a branch counts only once it is merged"]
    pub fn branch(&self) -> Self {
        Self::new(self.call, self.host)
    }

    /// Adds what was done through a branch to this call, behind what it has done itself.
    pub fn merge(&mut self, branch: CallContext<'_>) {
        if let Some(effects) = branch.effects {
            self.effects_mut().append(*effects);
        }
        self.note = branch.note.or(self.note.take());
        self.nothing_to_undo |= branch.nothing_to_undo;
        self.lifts_timeout |= branch.lifts_timeout;
    }

    /// Takes over the note of a branch, and nothing else of it: a failure leaves its note.
    pub fn merge_note(&mut self, branch: CallContext<'_>) {
        self.note = branch.note.or(self.note.take());
    }

    /// Moves what a stage has done through the context to its report, except the note, which outlives a failure.
    pub(crate) fn leave_in(&mut self, report: &mut StageEnded) {
        report.effects = self.effects.take();
        report.nothing_to_undo = self.nothing_to_undo;
        report.lifts_timeout = self.lifts_timeout;
    }

    /// Returns what the call has done through the context so far, if it has done anything.
    pub(crate) fn effects(&self) -> Option<&StageEffects> {
        self.effects.as_deref()
    }

    /// Takes what the call has written.
    pub(crate) fn take_writes(&mut self) -> Vec<UserWrite> {
        self.effects.take().map(|effects| effects.writes).unwrap_or_default()
    }

    fn effects_mut(&mut self) -> &mut StageEffects {
        self.effects.get_or_insert_default()
    }

    /// Returns the procedure's id.
    #[must_use]
    pub fn id(&self) -> ProcedureId {
        self.call.stage.id
    }

    /// Returns the number of this attempt, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.call.stage.attempt
    }

    /// Returns how many processes ended, or drains gave up, while this very attempt was out. If it is not 0, an earlier
    /// run of the attempt was cut off and may have done its work in part or wholly: look before doing it again.
    ///
    /// It is 1 after one crash, and 2 or more after several; procedures that are kept for a turn alone after two keep
    /// their count. It is 0 again in the next attempt or stage, and after an operator let a poisoned procedure run.
    /// A count of 0 is no promise that the call is the first: a yield, or an attempt that failed, counts nothing. It is
    /// always 0 in an undo, whose start is not stored.
    ///
    /// ```
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # struct Bank;
    /// # impl Bank {
    /// #     async fn has_transfer(&self, _: &str) -> Result<bool, std::io::Error> { Ok(true) }
    /// #     async fn transfer(&self, _: &str) -> Result<(), std::io::Error> { Ok(()) }
    /// # }
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Pay { order: String }
    /// # impl Procedure for Pay {
    /// #     const KIND: &'static str = "pay";
    /// #     type Stage = ();
    /// #     type Env = std::sync::Arc<Bank>;
    /// #     type Output = ();
    /// #     fn first(&self) {}
    /// async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///     let bank = cx.env();
    ///     // The bank takes no token, and a question costs less than a second transfer.
    ///     let is_done = cx.repeated() > 0 && bank.has_transfer(&self.order).await?;
    ///     if !is_done {
    ///         bank.transfer(&self.order).await?;
    ///     }
    ///     Ok(Step::Done(()))
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn repeated(&self) -> u32 {
        match self.call.stage.task {
            StageTask::Execute { repeated, .. } => repeated,
            StageTask::Undo { .. } | StageTask::Join(_) | StageTask::Gate | StageTask::CleanUp => 0,
        }
    }

    /// Returns since when this attempt could have begun: when its stage was next, its wait was over, its children had
    /// ended or its place in a width was free. It is the same after a restart, so a stage whose attempt was
    /// [cut off](Self::repeated) can tell that nothing was done before that.
    #[must_use]
    pub fn ready_since(&self) -> Timestamp {
        self.call.stage.ready
    }

    /// Returns the most bytes that a value or an output may have when it is encoded: the builder's `max_payload`. A
    /// stage that leaves more fails for good.
    #[must_use]
    pub fn max_payload(&self) -> usize {
        self.host.max_payload
    }

    /// Returns the most levels that a family may have, the root included: the builder's `max_depth`. A stage that spawns
    /// children below the last of them fails for good.
    #[must_use]
    pub fn max_depth(&self) -> usize {
        self.host.max_depth
    }

    /// Returns the most children that one stage may spawn: the builder's `max_children`. A stage that spawns more fails
    /// for good.
    #[must_use]
    pub fn max_children(&self) -> usize {
        self.host.max_children
    }

    /// Awaits a future for at most this long by the engine's clock, which is the simulated one in tests. When the time
    /// is up the future is dropped. A result that is there at that moment counts.
    ///
    /// The time runs from the first poll. A wall clock that is set forward cuts it short; one that is set back
    /// lengthens it by at most `time`. Work that the future has handed to another thread, as by
    /// [`blocking`](Self::blocking), goes on without it.
    ///
    /// [`Procedure::stage_timeout`] limits a whole stage.
    ///
    /// # Errors
    ///
    /// [`Elapsed`] reads `timed out after 3 s`; with `?` the stage is tried again.
    ///
    /// ```
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # use std::time::Duration;
    /// # async fn ask(_: &str) -> Result<u32, std::io::Error> { Ok(7) }
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Count { host: String }
    /// # impl Procedure for Count {
    /// #     const KIND: &'static str = "count";
    /// #     type Stage = ();
    /// #     type Env = ();
    /// #     type Output = u32;
    /// #     fn first(&self) {}
    /// async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///     // Both failures are tried again: no answer in time, and an error for an answer.
    ///     let count = cx.within(Duration::from_secs(3), ask(&self.host)).await??;
    ///     Ok(Step::Done(count))
    /// }
    /// # }
    /// ```
    pub fn within<F: Future>(
        &self,
        time: Duration,
        future: F,
    ) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
        within(self.clock(), time, future)
    }

    /// Returns the engine's clock.
    #[doc(hidden)]
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.host.clock)
    }

    /// Returns the token of this stage. In an undo it is the token of the stage that is undone, so a callee to which the
    /// stage has passed it can find what that stage did:
    ///
    /// ```
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # struct Bank;
    /// # impl Bank {
    /// #     async fn charge(&self, _: String, _: u32) -> Result<(), std::io::Error> { Ok(()) }
    /// #     async fn refund(&self, _: String) -> Result<(), std::io::Error> { Ok(()) }
    /// # }
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Pay { amount: u32 }
    /// # impl Procedure for Pay {
    /// #     const KIND: &'static str = "pay";
    /// #     type Stage = ();
    /// #     type Env = std::sync::Arc<Bank>;
    /// #     type Output = ();
    /// #     fn first(&self) {}
    /// async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///     cx.env().charge(cx.token().to_string(), self.amount).await?;
    ///     Ok(Step::Done(()))
    /// }
    ///
    /// async fn rollback(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
    ///     cx.env().refund(cx.token().to_string()).await?;
    ///     Ok(())
    /// }
    /// # }
    /// ```
    ///
    /// An undo that itself calls something that deduplicates needs a name of its own for that call, such as the token
    /// with `undo` behind it.
    #[must_use]
    pub fn token(&self) -> Token {
        self.call.token()
    }

    /// Returns the fence of this call.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.call.fence
    }

    /// Returns the trace in which its family was submitted, for requests to other services. `None` if it was submitted
    /// without one.
    #[must_use]
    pub fn trace_parent(&self) -> Option<TraceParent> {
        self.call.stage.trace.as_deref().copied()
    }

    /// Returns the time of the engine's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.host.clock.now()
    }

    /// Returns the children's outcomes in the order in which they were listed, if their end started this stage.
    #[must_use]
    pub fn children(&self) -> &'a [ChildOutcome] {
        self.call.woken.children()
    }

    /// Returns the siblings that come before this child at its gate, in the order given to
    /// [`Child::after`](crate::Child::after). Empty for a procedure without a gate.
    ///
    /// [`outcome`](Self::outcome) reads how they ended, and what they left.
    #[must_use]
    pub fn before(&self) -> &'a [ProcedureId] {
        &self.call.stage.before
    }

    /// Reads how a procedure stands on disk, its output included: a sibling from [`before`](Self::before), another
    /// member of this family, or any procedure of this engine. Returns `None` if the journal does not know it, or its
    /// result has been evicted.
    ///
    /// A procedure that has not ended may move at any time, so an answer about one may be outdated.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read.
    ///
    /// ```
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Sum;
    /// # impl Procedure for Sum {
    /// #     const KIND: &'static str = "sum";
    /// #     type Stage = ();
    /// #     type Env = ();
    /// #     type Output = u64;
    /// #     fn first(&self) {}
    /// async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///     let mut sum = 0;
    ///     for id in cx.before() {
    ///         let Some(outcome) = cx.outcome(*id).await? else { continue };
    ///         sum += outcome.output::<u64>()?.unwrap_or(0);
    ///     }
    ///     Ok(Step::Done(sum))
    /// }
    /// # }
    /// ```
    pub async fn outcome(&self, id: ProcedureId) -> Result<Option<ChildOutcome>, ReadError> {
        let read = self.host.reader.row_with(id, OUTPUT).await?;
        Ok(read.map(|(row, output)| {
            // What was undone later has left its output behind.
            let output = output.filter(|_| row.state == ProcedureState::Success);
            ChildOutcome::of(&row, output.map(Blob::from))
        }))
    }

    /// Reads how a procedure stands on disk, without its output: as [`outcome`](Self::outcome), and cheaper. Returns
    /// `None` if the journal does not know it, or its result has been evicted.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read.
    pub async fn status(&self, id: ProcedureId) -> Result<Option<Status>, ReadError> {
        let row = self.host.reader.row(id).await?;
        Ok(row.as_ref().map(Status::of))
    }

    /// Returns the signal that started this stage after a `Wait`.
    #[must_use]
    pub fn signal(&self) -> Option<&'a Signal> {
        match &self.call.woken {
            Woken::Signal(signal) => Some(signal),
            Woken::Plainly | Woken::Children(_) | Woken::Timeout | Woken::Answer(_) => None,
        }
    }

    /// Returns the answer that started this stage after an [`Ask`](crate::Step::Ask). Returns `None` if the time was up,
    /// which [`timed_out`](Self::timed_out) tells, or if an operator let the procedure go on without an answer.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the answer is not of this type. Whoever answers through a dashboard or the command line types
    /// JSON: check what it may be before you ask, and ask again if it is something else.
    pub fn answer<T: DeserializeOwned>(&self) -> Result<Option<T>, CodecError> {
        match &self.call.woken {
            Woken::Answer(answer) => codec::decode_user(answer.as_slice()).map(Some),
            Woken::Plainly | Woken::Children(_) | Woken::Signal(_) | Woken::Timeout => Ok(None),
        }
    }

    /// Returns `true` if a `Wait` or an `Ask` ended because of its timeout.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        matches!(self.call.woken, Woken::Timeout)
    }

    /// Returns `true` if the procedure's own time is up, and it chose to be told.
    #[must_use]
    pub fn out_of_time(&self) -> bool {
        matches!(self.call.stage.task, StageTask::Execute { out_of_time: true, .. })
    }

    /// Adds a child for which the next stage waits (HBase's `addChildProcedure`). It is born in this stage's commit.
    /// With `Done` the procedure ends when all added children have succeeded.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn add_child<Q: Procedure>(&mut self, procedure: &Q) -> Result<(), CodecError> {
        let child = birth_of(procedure)?;
        self.effects_mut().children.push(child);
        Ok(())
    }

    /// Adds a child that is undone with the rest of the family, even if it succeeded.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn add_compensated_child<Q: Procedure>(&mut self, procedure: &Q) -> Result<(), CodecError> {
        let mut birth = birth_of(procedure)?;
        birth.on_failure = procession_kernel::OnFailure::Compensate;
        self.effects_mut().children.push(birth);
        Ok(())
    }

    /// Leaves a note in the history entry of this stage or undo: what it did or found, for its undo and for people. A
    /// second note replaces the first.
    ///
    /// The note is part of the commit, and goes when the family is evicted. It is at most 64 KiB when it is encoded; a
    /// larger one fails the stage for good, or the attempt of an undo, with a cause that names the bound. A stage that
    /// fails or is tried again leaves its note too. One that yields or panics leaves none.
    ///
    /// The undo of the stage reads the note with [`noted`](Self::noted), and other code with the `note` function of the
    /// `procession` package. A dashboard shows only its size unless the host says otherwise.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the note cannot be encoded. The earlier note, if any, is kept then.
    ///
    /// ```
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # struct Cloud;
    /// # impl Cloud {
    /// #     async fn create(&self) -> Result<u64, std::io::Error> { Ok(7) }
    /// #     async fn delete(&self, _: u64) -> Result<(), std::io::Error> { Ok(()) }
    /// # }
    /// # #[derive(Serialize, Deserialize)]
    /// # struct CreateDisk;
    /// # impl Procedure for CreateDisk {
    /// #     const KIND: &'static str = "create_disk";
    /// #     type Stage = ();
    /// #     type Env = std::sync::Arc<Cloud>;
    /// #     type Output = u64;
    /// #     fn first(&self) {}
    /// async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///     let disk = cx.env().create().await?;
    ///     cx.note(&disk)?;
    ///     Ok(Step::Done(disk))
    /// }
    ///
    /// async fn rollback(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
    ///     // A stage that failed before it created the disk has left no note.
    ///     if let Some(disk) = cx.noted::<u64>()? {
    ///         cx.env().delete(disk).await?;
    ///     }
    ///     Ok(())
    /// }
    /// # }
    /// ```
    pub fn note<T: Serialize>(&mut self, note: &T) -> Result<(), CodecError> {
        self.note = Some(codec::encode_user(note)?);
        Ok(())
    }

    /// In an undo, returns the note that the stage left: that of its newest attempt. Returns `None` if it left none,
    /// and always in a stage.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the note is not of this type.
    pub fn noted<T: DeserializeOwned>(&self) -> Result<Option<T>, CodecError> {
        match &self.call.stage.task {
            StageTask::Undo { note, .. } => note
                .as_ref()
                .map(|note| codec::decode_user(note.as_slice()))
                .transpose(),
            StageTask::Execute { .. } | StageTask::Join(_) | StageTask::Gate | StageTask::CleanUp => Ok(None),
        }
    }

    /// Declares that this stage leaves nothing that a rollback must undo: its undo is not called, and costs no commit.
    /// Plans do not list it.
    ///
    /// It counts if the stage succeeds or returns [`Step::Fail`](crate::Step::Fail). A stage that fails in another way
    /// may have left something, so it is undone. In an undo it has no effect.
    pub fn nothing_to_undo(&mut self) {
        self.nothing_to_undo = true;
    }

    /// Declares that the procedure's own [`timeout`](crate::Procedure::timeout) no longer holds: what it was for is done, and
    /// the procedure only waits, for instance so long that somebody may still abort it.
    ///
    /// It counts if the stage succeeds before the timeout passes, or if [`on_timeout`](crate::Procedure::on_timeout) is to be
    /// told: then [`out_of_time`](Self::out_of_time) is false from the next stage on. In an undo it has no effect.
    pub fn lift_timeout(&mut self) {
        self.lifts_timeout = true;
    }

    /// Puts a value of user data in this stage's commit. The write is dropped if the stage fails, retries, panics or
    /// yields.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded, if the keyspace's name is
    /// empty or over 100 bytes, or if the key is empty or over 65,535 bytes.
    pub fn put<T: Serialize>(&mut self, space: &str, key: impl AsRef<[u8]>, value: &T) -> Result<(), CodecError> {
        let key = key.as_ref();
        // The store would refuse this write, and with it the whole commit, which stops the engine.
        self.host.reader.bounds().check_user(space, key)?;
        let value = codec::encode_user(value)?;
        self.write(space, key, Some(value.as_slice().to_vec()));
        Ok(())
    }

    /// Deletes a value of user data in this stage's commit.
    pub fn delete(&mut self, space: &str, key: impl AsRef<[u8]>) {
        // A name or key that cannot exist has nothing to delete.
        if self.host.reader.bounds().check_user(space, key.as_ref()).is_ok() {
            self.write(space, key.as_ref(), None);
        }
    }

    fn write(&mut self, space: &str, key: &[u8], value: Option<Vec<u8>>) {
        self.effects_mut().writes.push(UserWrite {
            space: Key::from(space),
            key: key.to_vec(),
            value,
        });
    }

    /// Reads a value of user data: this stage's own write, or else the last committed value.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or the value is not of this type.
    pub async fn get<T: DeserializeOwned>(&self, space: &str, key: impl AsRef<[u8]>) -> Result<Option<T>, ReadError> {
        let key = key.as_ref();
        let writes = self.effects.as_ref().map_or(&[][..], |effects| &effects.writes);
        let own = writes
            .iter()
            .rev()
            .find(|write| write.space.as_str() == space && write.key == key);
        let bytes = match own {
            Some(write) => write.value.clone(),
            None => {
                self.host
                    .reader
                    .get(Space::User(Key::from(space)), key.to_vec())
                    .await?
            }
        };
        Ok(bytes.map(|bytes| codec::decode_user(&bytes)).transpose()?)
    }

    /// Reads all committed user data whose key begins with `prefix`, in key order. This stage's own writes are not
    /// included.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or a value is not of this type.
    pub async fn scan<T: DeserializeOwned>(
        &self,
        space: &str,
        prefix: impl AsRef<[u8]>,
    ) -> Result<Vec<(Vec<u8>, T)>, ReadError> {
        self.host.reader.scan_user(space, prefix.as_ref()).await
    }

    /// Reads the committed value of a member of this procedure's own family, live or ended: how far a failed child had
    /// come, for example. A value of an older version is returned as its type upgrades it. Returns `None` if the family
    /// has no such member, and for procedures of other families.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or the value is not of this type or kind.
    pub async fn value_of<Q: Procedure>(&self, id: ProcedureId) -> Result<Option<Q>, ReadError> {
        // Another family may be gone when the stage runs again, and a stage must not depend on that.
        if id.family != self.id().family {
            return Ok(None);
        }
        value::read(&self.host.reader, id).await
    }

    /// Reads this procedure's own committed stages and undos, newest first: at most `limit` entries, and 1,000. Pass
    /// the number of the last entry as `before` to read on; `None` begins with the newest.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or an entry is damaged.
    pub async fn history(&self, before: Option<u32>, limit: usize) -> Result<Vec<HistoryEntry>, ReadError> {
        self.history_of(self.id(), before, limit).await
    }

    /// Reads the history of a member of this procedure's own family, as [`history`](Self::history) reads its own. It is
    /// empty for a procedure of another family.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or an entry is damaged.
    pub async fn history_of(
        &self,
        id: ProcedureId,
        before: Option<u32>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, ReadError> {
        // Another family may be gone when the stage runs again, and a stage must not depend on that.
        if id.family != self.id().family {
            return Ok(Vec::new());
        }
        let limit = limit.min(HISTORY_PAGE);
        let mut entries = Vec::new();
        let mut before = before;
        // Siblings may have written most of the newest entries.
        let mut page = limit;
        while entries.len() < limit {
            let (read, next) = self.host.reader.history_before(id.family, before, page).await?;
            page = page.saturating_mul(2);
            let of_member = read.into_iter().filter(|entry| entry.member == id.member);
            entries.extend(of_member.take(limit - entries.len()));
            let Some(next) = next else { break };
            before = Some(next);
        }
        Ok(entries)
    }

    /// Submits a family of its own in this stage's commit: exactly once, however often the stage runs. Its number is
    /// assigned at the commit.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn submit<Q: Procedure>(&mut self, procedure: &Q) -> Result<(), CodecError> {
        let mut birth = birth_of(procedure)?;
        birth.detached = true;
        self.effects_mut().submitted.push(birth.into());
        Ok(())
    }

    /// Submits a family of its own in this stage's commit, as its message says: with an idempotency key, a name, a
    /// priority, children, or a signal at its end. A key that stands for the same procedure already submits nothing.
    ///
    /// The attempt fails if the key stands for another procedure. The stage fails for good if a key, a name or a list of
    /// children breaks a rule; the cause names it.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if no procedure of this kind is registered, or if its value is larger than
    /// [`max_payload`](Self::max_payload).
    ///
    /// ```
    /// # use procession_actors::messages::Submit;
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Report;
    /// # impl Procedure for Report {
    /// #     const KIND: &'static str = "report";
    /// #     type Stage = ();
    /// #     type Env = ();
    /// #     type Output = ();
    /// #     fn first(&self) {}
    /// #     async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #         Ok(Step::Done(()))
    /// #     }
    /// # }
    /// # #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
    /// # enum Stage { Close, Reported }
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Month { name: String }
    /// # impl Procedure for Month {
    /// #     const KIND: &'static str = "month";
    /// #     type Stage = Stage;
    /// #     type Env = ();
    /// #     type Output = ();
    /// #     fn first(&self) -> Stage { Stage::Close }
    /// async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///     match stage {
    ///         Stage::Close => {
    ///             let report = Submit::new(&Report)?.key(format!("report {}", self.name));
    ///             cx.submit_message(report.signal_at_end(cx.id(), "reported", &())?)?;
    ///             let event = "reported".to_owned();
    ///             Ok(Step::Wait { event, timeout: None, then: Stage::Reported })
    ///         }
    ///         Stage::Reported => Ok(Step::Done(())),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn submit_message(&mut self, submit: Submit) -> Result<(), CodecError> {
        let mut submission = submission_of(submit);
        let children = submission.birth.brood.iter().flat_map(|brood| &brood.children);
        let mut births = iter::once(&submission.birth).chain(children);
        births
            .try_for_each(|birth| self.can_submit(birth))
            .map_err(|why| CodecError {
                what: "the procedure cannot be submitted",
                why,
            })?;
        submission.birth.detached = true;
        self.effects_mut().submitted.push(submission);
        Ok(())
    }

    /// Says in the stage what the commit would refuse, so that its code can still do something else.
    fn can_submit(&self, birth: &Birth) -> Result<(), String> {
        if !self.host.kinds.contains(&birth.kind) {
            return Err(format!("no procedure of kind \"{}\" is registered", birth.kind));
        }
        let (size, limit) = (birth.payload.len(), self.max_payload());
        if size > limit {
            return Err(format!("a payload of {size} bytes is over the limit of {limit}"));
        }
        Ok(())
    }

    /// Returns the procedure that was submitted with this idempotency key, as the store knows it: committed, and not
    /// evicted.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read.
    pub async fn submitted(&self, key: impl Into<String>) -> Result<Option<ProcedureId>, ReadError> {
        let entry = self.host.reader.key_entry(key.into().as_bytes()).await?;
        Ok(entry.map(|entry| entry.id))
    }

    /// Submits a family of its own together with its children, as [`submit`](Self::submit) does. The first stage of its
    /// root runs when the children's join policy is met, and sees their outcomes.
    ///
    /// The stage fails for good if the list breaks a rule; the cause names it.
    ///
    /// # Errors
    ///
    /// [`CodecError`] if the value cannot be encoded.
    pub fn submit_with<Q: Procedure>(&mut self, procedure: &Q, children: Children) -> Result<(), CodecError> {
        self.submit_brood(procedure, children.into_brood())
    }

    /// Submits a family of its own together with its children, as [`submit_with`](Self::submit_with) does. Its root ends
    /// with this output when its children let it, without a call.
    ///
    /// The stage fails for good if the list breaks a rule; the cause names it.
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
        let output = Some(codec::encode_user(output)?);
        let brood = Brood {
            output,
            ..children.into_brood()
        };
        self.submit_brood(procedure, brood)
    }

    fn submit_brood<Q: Procedure>(&mut self, procedure: &Q, brood: Brood) -> Result<(), CodecError> {
        let mut birth = birth_of(procedure)?;
        birth.detached = true;
        birth.brood = Some(Box::new(brood));
        self.effects_mut().submitted.push(birth.into());
        Ok(())
    }

    /// Sends a signal to a procedure of this engine in this stage's commit: exactly once, however often the stage runs.
    /// That commit also wakes the receiver.
    ///
    /// The attempt fails if the receiver has ended, is unknown, takes no more signals of this name, or has as many as
    /// it may have, and if its kind does not [accept](Procedure::accepts) the signal. Nothing of the attempt is stored then. A rollback does not take signals back.
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
        self.send(SendSignal::new(id, name, payload)?);
        Ok(())
    }

    /// Sends a signal as [`send_signal`](Self::send_signal) does, with a key by which the receiver recognises a
    /// repeat. A repeat is not sent again.
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
        self.send(SendSignal::new(id, name, payload)?.key(key));
        Ok(())
    }

    /// Sends a signal as [`send_signal`](Self::send_signal) does: with a key, or as the last of its name.
    pub fn send(&mut self, signal: SendSignal) {
        self.effects_mut().signals.push(signal.0);
    }

    /// Runs blocking work on a thread of its own, so that other procedures on this worker continue. Under the
    /// `testkit` fault injection the work runs on the same thread as everything else.
    ///
    /// # Errors
    ///
    /// [`StageError::Retry`](crate::StageError::Retry) if the work panics.
    pub async fn blocking<T, F>(&self, work: F) -> Result<T, crate::StageError>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        #[cfg(feature = "testkit")]
        if self.host.interceptor.is_some() {
            // Other tasks that are ready run first, as they would while a thread works.
            tokio::task::yield_now().await;
            return crate::guard::guarded("blocking work", work).map_err(crate::StageError::Retry);
        }
        actix_rt::task::spawn_blocking(work)
            .await
            .map_err(|_| crate::StageError::retry("blocking work panicked"))
    }
}
