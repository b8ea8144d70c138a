//! The trait that users implement, and the properties that a kind declares.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use procession_kernel::{HistoryDetail, Hold, Kind, LimitKey, LockNeed, OnTimeout, RetryPolicy};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::accepts::Accepts;
use crate::context::{PureContext, StageContext};
use crate::hooks::Hooks;
use crate::stage_error::StageError;
use crate::step::{ChildOutcome, JoinVerdict, Step};
use crate::thresholds::KindThresholds;
use crate::upgrade::{Old, UpgradeError};

/// A durable unit of work, divided into short stages.
///
/// The value is the procedure's state. It is stored after each successful stage, and a stage always starts from the
/// last committed value. A stage that fails, panics or yields leaves no trace in it.
///
/// **Stages run at least once.** A crash between a stage's last effect and its commit runs the stage again after the
/// restart, with the same value. A stage's effects outside the engine must therefore be repeatable;
/// [`CallContext::token`](crate::CallContext::token) and [`CallContext::fence`](crate::CallContext::fence) help callees
/// with that. What a stage writes through its context is part of its commit, and happens exactly once.
///
/// **Nothing has a time limit unless you give it one.** A call that never answers holds its stage for ever:
///
/// | what takes too long | limit | what happens then |
/// |---|---|---|
/// | a call within a stage | [`CallContext::within`](crate::CallContext::within) | an error that the stage may handle; with `?` it is tried again |
/// | a stage | [`stage_timeout`](Self::stage_timeout) | its future is dropped, and it is tried again |
/// | an undo | [`undo_timeout`](Self::undo_timeout) | its future is dropped, and it is tried again |
/// | a wait for an event or an answer | `timeout` of [`Step::Wait`] and [`Step::Ask`] | the next stage runs, and [`timed_out`](crate::CallContext::timed_out) is true |
/// | the whole procedure | [`timeout`](Self::timeout) | it fails, or is told: [`on_timeout`](Self::on_timeout) |
/// | nothing is cut off, but tell me | [`expected`](Self::expected) | a verdict, `overrun` |
///
/// Attempts are bounded by [`retry`](Self::retry) and [`retry_undo`](Self::retry_undo).
///
/// ```
/// use procession_actors::{Procedure, StageContext, StageError, Step};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Greet { name: String }
///
/// impl Procedure for Greet {
///     const KIND: &'static str = "greet";
///     type Stage = ();
///     type Env = ();
///     type Output = String;
///
///     fn first(&self) -> Self::Stage {}
///
///     async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
///         Ok(Step::Done(format!("hello, {}", self.name)))
///     }
/// }
/// ```
pub trait Procedure: Serialize + DeserializeOwned + Sized + 'static {
    /// Name of the type on disk. Never change it, and never reuse the name of another kind. Values may run as other
    /// kinds: see [`kind`](Self::kind).
    const KIND: &'static str;
    /// Schema version of the value. Raise it when older values can no longer be decoded unchanged.
    const VERSION: u16 = 1;
    /// Oldest version that [`upgrade`](Self::upgrade) reads. A live procedure of an earlier version is quarantined at
    /// the start, as if its code were missing.
    const OLDEST: u16 = Self::VERSION;
    /// `false` if stages of this kind cannot be undone: a failure then ends it `Failed` at once.
    const ROLLBACK: bool = true;

    /// How long a procedure holds its permits: for life (Tera), or only while it is not parked.
    const HOLD: Hold = Hold::ForLife;
    /// `true` to hold locks from the first grant to the end, across waits, restarts and rollback (HBase's
    /// `holdLock`). Otherwise they are held for one stage at a time.
    const HOLD_LOCKS: bool = false;
    /// How often one stage may run in a row before the procedure fails; `None` is unbounded (IoTDB's `circle`).
    const REPEAT_LIMIT: Option<u32> = None;
    /// How many signals may wait for one procedure; `None` uses the engine's bound of 10,000. Further signals are
    /// refused until it has consumed some, except one that it waits for at that moment.
    const SIGNALS: Option<usize> = None;
    /// How many keys of consumed signals are remembered for one procedure, the newest. A repeat of a forgotten one is
    /// taken as a new signal.
    const SIGNAL_KEYS: usize = procession_kernel::SIGNAL_KEYS;
    /// How much history is kept. A kind that runs without end has no [`ROLLBACK`](Self::ROLLBACK) and keeps the
    /// [`Newest`](HistoryDetail::Newest) entries; the two together do not compile otherwise.
    const HISTORY: HistoryDetail = HistoryDetail::Full;
    /// `true` to log each end of this kind at the level info. Failed attempts and failed ends are logged anyway, at warn
    /// and error.
    const LOGS_ENDS: bool = false;
    /// Up to how many bytes of each value that a stage or an undo leaves are kept in its history entry, in the commit of
    /// the stage: 0 keeps none, and more than [64 KiB](procession_kernel::LEFT_VALUE_MAX) counts as that. Of a larger value
    /// only the size is kept, and of a stage that did not change the value nothing. Operators then see the value behind
    /// each stage, and what has changed between two. Entries stay as long as the result; a rollback has those of its
    /// stack in memory.
    const KEEP_VALUES: usize = 0;

    /// The stages: usually an enum without data, so that `match` is exhaustive.
    type Stage: Clone + Debug + Serialize + DeserializeOwned + 'static;
    /// What stages need from the host. It is given at registration and cloned for each worker.
    type Env: Clone + Send + Sync + 'static;
    /// The result that the submitter receives.
    type Output: Serialize + DeserializeOwned + 'static;

    /// Returns the kind as which this value runs: [`KIND`](Self::KIND), unless the type is registered under several
    /// names. It is asked when the value is submitted or becomes a child, and stored with the procedure. A value must
    /// return the same kind all its life.
    ///
    /// Limits, pauses, metrics, filters, retention and retry policies go by the kind, so one type can have several of
    /// each. Each kind must be registered with `register_as`; a value of a kind that is not is refused. A family whose
    /// kind a later start does not register is quarantined.
    ///
    /// ```
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use procession_kernel::Kind;
    /// # use serde::{Deserialize, Serialize};
    /// #[derive(Serialize, Deserialize)]
    /// struct Export { tenant: String }
    ///
    /// impl Procedure for Export {
    ///     const KIND: &'static str = "export";
    /// #   type Stage = ();
    /// #   type Env = ();
    /// #   type Output = ();
    /// #   fn first(&self) {}
    /// #   async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #       Ok(Step::Done(()))
    /// #   }
    ///
    ///     fn kind(&self) -> Kind {
    ///         Kind::from(format!("export.{}", self.tenant))
    ///     }
    /// }
    /// ```
    fn kind(&self) -> Kind {
        Kind::from(Self::KIND)
    }

    /// Returns the stage that runs first.
    fn first(&self) -> Self::Stage;

    /// Runs one stage, and returns what comes next.
    ///
    /// It runs on a worker's arbiter, among the stages of other procedures. If that arbiter is stopped, stages
    /// running there fail as if they had panicked; the health check reports it as `actor_lost`.
    ///
    /// # Errors
    ///
    /// [`StageError::Retry`] runs the stage again after a backoff, and so does [`StageError::TimedOut`];
    /// [`StageError::RetryAfter`] runs it again after a delay of the code's choice;
    /// [`StageError::Fail`] fails the procedure and rolls it back.
    fn execute(
        &mut self,
        stage: Self::Stage,
        cx: &mut StageContext<'_, Self>,
    ) -> impl Future<Output = Result<Step<Self>, StageError>>;

    /// Returns `true` if a stage is pure: it reaches nothing but its report, so that [`compute`](Self::compute) runs it in
    /// place of [`execute`](Self::execute).
    ///
    /// A pure stage is *speculative*: the engine may run it before the stages before it are on disk. Nothing that leaves the
    /// engine overtakes the disk: neither answers nor outcomes, and no stage that is not pure. What changes is the speed, and
    /// what a crash takes back: several pure stages in a row may be lost together, and run again from the last one on disk,
    /// with another time and other random numbers.
    ///
    /// This is called at submission and at the end of each stage, for the next one, and again before the stage runs.
    /// Default: no stage is pure.
    fn is_pure(&self, stage: &Self::Stage) -> bool {
        let _ = stage;
        false
    }

    /// Runs one [pure](Self::is_pure) stage, and returns what comes next.
    ///
    /// It computes, routes, validates, changes the value, and writes, submits and adds children through its context. It
    /// must not reach anything else: no service, file or queue, and no memory in the environment that other procedures act
    /// on. It may not wait, so [`stage_timeout`](Self::stage_timeout) does not limit it: keep it under a millisecond.
    ///
    /// ```
    /// use procession_actors::{Procedure, PureContext, StageContext, StageError, Step};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
    /// enum Stage { Price, Discount, Charge }
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Quote { pieces: u32, cents: u32 }
    ///
    /// impl Procedure for Quote {
    ///     const KIND: &'static str = "quote";
    ///     type Stage = Stage;
    ///     type Env = ();
    ///     type Output = u32;
    ///
    ///     fn first(&self) -> Stage { Stage::Price }
    ///
    ///     fn is_pure(&self, stage: &Stage) -> bool {
    ///         matches!(stage, Stage::Price | Stage::Discount)
    ///     }
    ///
    ///     fn compute(&mut self, stage: Stage, _: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///         match stage {
    ///             Stage::Price => {
    ///                 self.cents = self.pieces * 250;
    ///                 Ok(Step::Next(Stage::Discount))
    ///             }
    ///             Stage::Discount if self.pieces >= 10 => {
    ///                 self.cents -= self.cents / 10;
    ///                 Ok(Step::Next(Stage::Charge))
    ///             }
    ///             Stage::Discount | Stage::Charge => Ok(Step::Next(Stage::Charge)),
    ///         }
    ///     }
    ///
    ///     async fn execute(&mut self, _: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///         // Calls the card service, so it runs once the price is on disk.
    ///         let _ = cx.token();
    ///         Ok(Step::Done(self.cents))
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As those of [`execute`](Self::execute).
    fn compute(&mut self, stage: Self::Stage, cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let _ = cx;
        Err(StageError::fail(format!(
            "`is_pure` says that stage {stage:?} is pure, and this kind has no `compute`; implement it, or let `is_pure` return false"
        )))
    }

    /// Undoes one executed stage. Undos run newest first, and include the stage that failed.
    ///
    /// A stage may have been interrupted before it had any effect, so an undo must tolerate having nothing to undo.
    /// The default undoes nothing and succeeds.
    ///
    /// # Errors
    ///
    /// Every error runs the undo again: [`StageError::RetryAfter`] after its own delay, the others after a backoff.
    /// When the attempts are used up, the family waits for an operator.
    fn rollback(
        &mut self,
        stage: Self::Stage,
        cx: &mut StageContext<'_, Self>,
    ) -> impl Future<Output = Result<(), StageError>> {
        let _ = (stage, cx);
        async { Ok(()) }
    }

    /// Decides whether a parent that spawned with a custom join policy may continue. Runs on a worker each time a
    /// child ends, with the outcomes of all children in order.
    fn join(&self, stage: &Self::Stage, outcomes: &[ChildOutcome]) -> JoinVerdict {
        let _ = stage;
        all_succeeded(outcomes)
    }

    /// Decides whether a child may begin whose gate is `Custom`: see [`Child::opens`](crate::Child::opens). Runs on a
    /// worker each time one of the siblings before it ends, and again at each start, with all of them in the order given
    /// to [`Child::after`](crate::Child::after). It must decide by them and by the child's own value alone.
    ///
    /// [`Pending`](JoinVerdict::Pending) once all have ended counts as [`Unmeetable`](JoinVerdict::Unmeetable). So does
    /// a panic. A child that is [`or_wait`](crate::Child::or_wait) is asked again after the next end, whatever it said
    /// before.
    fn gate(&self, before: &[ChildOutcome]) -> JoinVerdict {
        all_succeeded(before)
    }

    /// Returns the locks that a stage needs. They are taken together with its permits, all or none, before the stage
    /// runs. This is called at submission and at the end of each stage. The undo of a stage reacquires the same
    /// locks.
    ///
    /// Paths are hierarchical, such as `ns/table/region`. An exclusive lock excludes everything at and under its
    /// path, but descendants may enter paths that their ancestors hold. Make the path of names from outside with
    /// [`LockPath::of`](procession_kernel::LockPath::of):
    ///
    /// ```
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use procession_kernel::{LockNeed, LockPath};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Order { customer: String }
    /// # impl Procedure for Order {
    /// #     const KIND: &'static str = "order";
    /// #     type Stage = ();
    /// #     type Env = ();
    /// #     type Output = ();
    /// #     fn first(&self) {}
    /// #     async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #         Ok(Step::Done(()))
    /// #     }
    /// fn locks(&self, _: &()) -> Vec<LockNeed> {
    ///     vec![LockNeed::exclusive(LockPath::of(["customer", &self.customer]))]
    /// }
    /// # }
    /// ```
    ///
    /// A submission whose first stage asks for a path with an empty part is refused. A stage after which such a path is
    /// asked for fails permanently.
    fn locks(&self, stage: &Self::Stage) -> Vec<LockNeed> {
        let _ = stage;
        Vec::new()
    }

    /// Returns limits: a stage needs a permit of each while it is called. Use them for the services that a stage calls:
    /// *four card calls at once*. A limit of the whole procedure is its kind's own, or [`limit`](Self::limit).
    ///
    /// The permits are taken together with the stage's locks, all or none, before each attempt. They go back in the commit
    /// that ends the attempt, so a backoff, a sleep or a wait holds none. The undo of a stage needs the same permits. Two
    /// stages in a row with the same limit queue twice, so that others have their turn between them.
    ///
    /// A name whose limit is not set allows everything. It counts from the stages that are asked for after the limit was
    /// set. A child's stage takes its permits whatever [`Children::permits`](crate::Children::permits) says. A limit of
    /// which the procedure holds a permit of its own is not counted twice. This is called at submission and at the end of
    /// each stage. Default: none.
    ///
    /// ```
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use procession_kernel::LimitKey;
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Order;
    /// #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
    /// enum Stage { Reserve, Charge, Ship }
    ///
    /// impl Procedure for Order {
    /// #   const KIND: &'static str = "order";
    /// #   type Env = ();
    /// #   type Output = ();
    /// #   fn first(&self) -> Stage { Stage::Reserve }
    /// #   async fn execute(&mut self, _: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #       Ok(Step::Done(()))
    /// #   }
    ///     type Stage = Stage;
    ///
    ///     fn limits(&self, stage: &Stage) -> Vec<LimitKey> {
    ///         match stage {
    ///             Stage::Charge => vec![LimitKey::from("cards")],
    ///             Stage::Reserve | Stage::Ship => Vec::new(),
    ///         }
    ///     }
    /// }
    /// # use Stage::{Charge, Ship};
    /// # assert_eq!(Order.limits(&Charge), [LimitKey::from("cards")]);
    /// # assert!(Order.limits(&Ship).is_empty());
    /// ```
    fn limits(&self, stage: &Self::Stage) -> Vec<LimitKey> {
        let _ = stage;
        Vec::new()
    }

    /// Returns `false` to mark a point of no return. From this stage on, failures are retried for ever, and an abort
    /// comes too late (HBase's `isRollbackSupported`).
    fn rollback_supported(&self, stage: &Self::Stage) -> bool {
        let _ = stage;
        true
    }

    /// Returns how long a stage is expected to take; a longer run is reported as the verdict `overrun`, and goes on. To
    /// end it, see [`stage_timeout`](Self::stage_timeout).
    fn expected(&self, stage: &Self::Stage) -> Option<Duration> {
        let _ = stage;
        None
    }

    /// Returns how long one call of a stage may take; `None` is unbounded. It is asked before each call.
    ///
    /// When the time is up by the engine's clock, the engine drops the stage's future, and the attempt ends as a
    /// [`StageError::TimedOut`] with a cause that begins with `timed out after 3 s`, and is tried again. Code is stopped where it awaits: a body that holds
    /// its thread is not, and work on other threads goes on. [`CallContext::within`](crate::CallContext::within) limits
    /// a part of a stage, [`timeout`](Self::timeout) the whole procedure.
    ///
    /// ```
    /// # use procession_actors::{Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// use std::time::Duration;
    ///
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Resize;
    /// #[derive(Clone, Copy, Debug, Serialize, Deserialize)]
    /// enum Stage { Resize, Check }
    ///
    /// impl Procedure for Resize {
    /// #   const KIND: &'static str = "resize";
    /// #   type Env = ();
    /// #   type Output = ();
    /// #   fn first(&self) -> Stage { Stage::Resize }
    /// #   async fn execute(&mut self, _: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #       Ok(Step::Done(()))
    /// #   }
    ///     type Stage = Stage;
    ///
    ///     fn stage_timeout(&self, stage: &Stage) -> Option<Duration> {
    ///         match stage {
    ///             Stage::Resize => None,
    ///             Stage::Check => Some(Duration::from_secs(3)),
    ///         }
    ///     }
    /// }
    /// ```
    fn stage_timeout(&self, stage: &Self::Stage) -> Option<Duration> {
        let _ = stage;
        None
    }

    /// Returns how long one call of a stage's undo may take; `None` is unbounded. An undo whose time is up is tried
    /// again, otherwise like [`stage_timeout`](Self::stage_timeout).
    fn undo_timeout(&self, stage: &Self::Stage) -> Option<Duration> {
        let _ = stage;
        None
    }

    /// Returns what happens when the procedure's [`timeout`](Self::timeout) expires.
    fn on_timeout(&self) -> OnTimeout {
        OnTimeout::Fail
    }

    /// Returns how long results of this kind are kept after the end: outputs, causes, histories, and idempotency keys unless
    /// these were submitted with a time of their own. Then they are gone, and the procedure is unknown. `None` is the
    /// engine's default, which is 15 minutes (the builder's `retention`).
    fn keep_after_end() -> Option<Duration> {
        None
    }

    /// Returns how long results are kept after they were acknowledged, if that is sooner. `None` is the engine's default,
    /// which is 5 minutes.
    fn keep_after_acknowledgement() -> Option<Duration> {
        None
    }

    /// Returns how long the result of a root of this kind is kept after it failed or was rolled back. `None` is the
    /// engine's default, which is 14 days (the builder's `keep_failures`), or
    /// [`keep_after_end`](Self::keep_after_end) if that is longer.
    fn keep_after_failure() -> Option<Duration> {
        None
    }

    /// Converts a value that was stored as `version` to the current version. `version` is at least
    /// [`OLDEST`](Self::OLDEST) and below [`VERSION`](Self::VERSION).
    ///
    /// The engine calls it when such a value is revived, and stores the result with the procedure's next commit of a
    /// stage or an undo, whatever its outcome. Each row is therefore upgraded once, except after a crash and for join
    /// rules, which store nothing. So the result must depend on the old value alone.
    ///
    /// Stages are not upgraded, although their names are on disk, too. An enum of stages must keep the name of every
    /// stage at which procedures may still stand, or which may be undone.
    ///
    /// ```
    /// use procession_actors::{Old, Procedure, StageContext, StageError, Step, UpgradeError};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Greet { names: Vec<String> }
    ///
    /// /// The value as it was in version 1.
    /// #[derive(Deserialize)]
    /// struct Greet1 { name: String }
    ///
    /// impl Procedure for Greet {
    ///     const KIND: &'static str = "greet";
    ///     const VERSION: u16 = 2;
    ///     const OLDEST: u16 = 1;
    ///     type Stage = ();
    ///     type Env = ();
    ///     type Output = String;
    ///
    ///     fn first(&self) -> Self::Stage {}
    ///
    ///     async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    ///         Ok(Step::Done(format!("hello, {}", self.names.join(" and "))))
    ///     }
    ///
    ///     fn upgrade(version: u16, old: Old<'_>) -> Result<Self, UpgradeError> {
    ///         match version {
    ///             1 => Ok(Self { names: vec![old.decode::<Greet1>()?.name] }),
    ///             _ => Err(UpgradeError::new("only version 1 came before this one")),
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// An error, or a panic, quarantines the family with that reason. The family continues where it was once a start
    /// has code that can read it.
    fn upgrade(version: u16, old: Old<'_>) -> Result<Self, UpgradeError> {
        let _ = (version, old);
        Err(UpgradeError::new("its kind does not implement `upgrade`"))
    }

    /// Checks that this value can run in this process. It is called when a stored value is revived, and before a
    /// value is submitted through the executor. It is not called for a bare `Submit::new`, nor for children: these
    /// are quarantined when they are revived.
    ///
    /// Use it for things that a value names and a process may lack, such as a plug-in or a step of a sequence. It
    /// must not fail for conditions that pass by themselves.
    ///
    /// # Errors
    ///
    /// The submitter receives the text. A stored family is quarantined with it, without affecting others, and
    /// continues where it was after a start that can run it.
    fn check(&self, env: &Self::Env) -> Result<(), String> {
        let _ = env;
        Ok(())
    }

    /// Returns `true` if the last stage or undo has left this value as it was before. It is then not encoded to compare it
    /// with what is stored. A value that says so wrongly loses what the stage changed.
    #[doc(hidden)]
    fn is_as_before(&self) -> bool {
        false
    }

    /// Returns which signals procedures of this kind take. It is asked once, at the registration. Default: all.
    ///
    /// Its rules are asked of each signal before it is kept, whether it comes from the executor, a dashboard, the command
    /// line or a stage. A signal that is refused leaves no trace: its sender is answered with
    /// [`AskError::NotAccepted`](crate::AskError::NotAccepted), and a stage that sends it has failed its attempt. Without
    /// a rule, a payload of another type reaches the stage that waits for it, and fails each of its attempts.
    ///
    /// They run on the thread of the sender, and must decide at once. They are not asked of broadcasts, which are for
    /// waiters of any kind, nor of a bare [`SendSignal`](crate::messages::SendSignal) to the supervisor.
    ///
    /// ```
    /// # use procession_actors::{Accepts, Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Order;
    /// #[derive(Serialize, Deserialize)]
    /// struct Approval { by: String }
    ///
    /// impl Procedure for Order {
    /// #   const KIND: &'static str = "order";
    /// #   type Stage = ();
    /// #   type Env = ();
    /// #   type Output = ();
    /// #   fn first(&self) {}
    /// #   async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #       Ok(Step::Done(()))
    /// #   }
    ///     fn accepts(_: &()) -> Accepts {
    ///         Accepts::only().event::<Approval>("approved")
    ///     }
    /// }
    /// ```
    fn accepts(env: &Self::Env) -> Accepts {
        let _ = env;
        Accepts::anything()
    }

    /// Returns the limit from which this procedure takes one permit, in addition to its kind's own. A child takes it only
    /// with [`ChildPermits::Own`](procession_kernel::ChildPermits::Own). To limit a stage, see [`limits`](Self::limits).
    fn limit(&self) -> Option<LimitKey> {
        None
    }

    /// Returns the priority: a higher one is served first when waiting for a permit. Default 0.
    fn priority(&self) -> i16 {
        0
    }

    /// Returns the total time that the procedure may take from its submission, sleeps, waits and backoffs included; `None`
    /// is unbounded. [`on_timeout`](Self::on_timeout) says what happens then.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns the hooks of this kind: code that the engine calls at births, ends and starts. It is asked once, at the
    /// registration. Default: none, which costs nothing.
    fn hooks() -> Hooks<Self> {
        Hooks::new()
    }

    /// Returns how often a stage of this kind is tried, and the backoff between attempts.
    fn retry() -> RetryPolicy {
        RetryPolicy::default()
    }

    /// Returns how often an undo of this kind is tried, and the backoff between attempts.
    fn retry_undo() -> RetryPolicy {
        RetryPolicy::default()
    }

    /// Returns the thresholds of this kind's verdicts, where they differ from the engine's.
    /// [`expected`](Self::expected) says how long a stage may take.
    fn thresholds() -> KindThresholds {
        KindThresholds::default()
    }
}

/// The rule of those who have not written one: all must succeed.
fn all_succeeded(outcomes: &[ChildOutcome]) -> JoinVerdict {
    if outcomes.iter().any(ChildOutcome::failed) {
        JoinVerdict::Unmeetable
    } else if outcomes.iter().all(ChildOutcome::succeeded) {
        JoinVerdict::Met
    } else {
        JoinVerdict::Pending
    }
}
