//! The one trait that users implement, and what a kind says about itself.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use procession_kernel::{HistoryDetail, Hold, LimitKey, LockNeed, OnTimeout, RetryPolicy};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::StageContext;
use crate::hooks::{Finished, Submitted};
use crate::step::{ChildOutcome, JoinVerdict, StageError, Step};
use crate::thresholds::KindThresholds;
use crate::upgrade::{Old, UpgradeError};

/// A durable unit of work, cut into short stages.
///
/// The value itself is the procedure's state: it is stored after each stage
/// that succeeds, and a stage always sees it as it was last committed. A stage
/// that fails, panics or yields leaves no trace in it.
///
/// **Stages run at least once.** A crash between a stage's last effect and its
/// commit runs the stage again after the restart, with the same value. So a
/// stage's effects outside the engine must bear repetition;
/// [`StageContext::token`] and [`StageContext::fence`] help callees with that.
/// What a stage writes through its context is part of its commit, and happens
/// exactly once.
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
    /// Name of the type on disk. Never change it, and never reuse another's.
    const KIND: &'static str;
    /// Schema of the value; raise it when an older value can no longer be read as it stands.
    const VERSION: u16 = 1;
    /// Oldest version that [`upgrade`](Self::upgrade) reads. A live procedure of a
    /// version before it is set aside at the start, as one whose code is gone.
    const OLDEST: u16 = Self::VERSION;
    /// False for a kind whose stages cannot be undone: it ends `Failed` at once.
    const ROLLBACK: bool = true;
    /// True for a kind that wants [`on_submit`](Self::on_submit) and
    /// [`on_finish`](Self::on_finish); without it they cost nothing, and are not called.
    const METRIC_HOOKS: bool = false;
    /// True for a kind that wants [`before_recover`](Self::before_recover) and
    /// [`after_recover`](Self::after_recover); without it a start reads no value
    /// of this kind, and does not call them.
    const RECOVERY_HOOKS: bool = false;

    /// How long it holds its permits: for life (Tera), or while it is not parked.
    const HOLD: Hold = Hold::ForLife;
    /// True for a kind that holds its locks from the first grant to its end, across
    /// waits, restarts and rollback (HBase's `holdLock`); else for the stage alone.
    const HOLD_LOCKS: bool = false;
    /// How often one stage may run in a row before the procedure fails; none is
    /// without bound (IoTDB's `circle`).
    const SAME_STAGE: Option<u32> = None;
    /// True for a kind with a [`completion_cleanup`](Self::completion_cleanup).
    const CLEANUP: bool = false;
    /// How much history it leaves.
    const HISTORY: HistoryDetail = HistoryDetail::Full;

    /// The stages; usually an enum without data, so that `match` is total.
    type Stage: Clone + Debug + Serialize + DeserializeOwned + 'static;
    /// What stages need of the host; given at registration, cloned to each worker.
    type Env: Clone + Send + Sync + 'static;
    /// What the submitter gets.
    type Output: Serialize + DeserializeOwned + 'static;

    /// Names the stage that runs first.
    fn first(&self) -> Self::Stage;

    /// Runs one stage, and says what comes next.
    ///
    /// It runs on a worker's arbiter, among the stages of others. Stop that arbiter, and what runs
    /// there has failed, as if it had panicked; an audit tells of it as `actor_lost`.
    ///
    /// # Errors
    ///
    /// [`StageError::Retry`] runs the stage again after a backoff;
    /// [`StageError::Fail`] fails the procedure and rolls it back.
    fn execute(
        &mut self,
        stage: Self::Stage,
        cx: &mut StageContext<'_, Self>,
    ) -> impl Future<Output = Result<Step<Self>, StageError>>;

    /// Undoes one executed stage; called newest first, also for the stage that failed.
    ///
    /// A stage may have been interrupted before it had any effect: an undo must
    /// bear that there is nothing to undo. The default undoes nothing and succeeds.
    ///
    /// # Errors
    ///
    /// Either error runs the undo again after a backoff; when the attempts are
    /// used up the family waits for an operator.
    fn rollback(
        &mut self,
        stage: Self::Stage,
        cx: &mut StageContext<'_, Self>,
    ) -> impl Future<Output = Result<(), StageError>> {
        let _ = (stage, cx);
        async { Ok(()) }
    }

    /// Decides whether a parent that spawned with a custom join policy may go on.
    /// Runs on a worker, on each end of a child, with all the children's outcomes in order.
    fn join(&self, stage: &Self::Stage, outcomes: &[ChildOutcome]) -> JoinVerdict {
        let _ = stage;
        if outcomes.iter().any(|child| child.failed()) {
            JoinVerdict::Unmeetable
        } else if outcomes.iter().all(|child| child.succeeded()) {
            JoinVerdict::Met
        } else {
            JoinVerdict::Pending
        }
    }

    /// Locks that a stage needs: all of them or none are taken, together with its
    /// permits, before it runs. Asked at submission and at the end of each stage. The
    /// undo of a stage runs under the same locks; they are taken again for it.
    ///
    /// Paths are hierarchical, as `ns/table/region`: an exclusive lock excludes
    /// everything at and under its path; a descendant enters what its ancestors hold.
    fn locks(&self, stage: &Self::Stage) -> Vec<LockNeed> {
        let _ = stage;
        Vec::new()
    }

    /// False marks a point of no return: from this stage on a failure is tried
    /// again, for ever, and an abort comes too late (HBase's `isRollbackSupported`).
    fn rollback_supported(&self, stage: &Self::Stage) -> bool {
        let _ = stage;
        true
    }

    /// How long a stage is expected to take; one that takes longer is reported.
    fn expected(&self, stage: &Self::Stage) -> Option<Duration> {
        let _ = stage;
        None
    }

    /// What happens when its whole time is up.
    fn on_timeout(&self) -> OnTimeout {
        OnTimeout::Fail
    }

    /// Cleans up outside the engine after the end, however it ended. Runs at least
    /// once, after the end is durable; only for a kind with [`CLEANUP`](Self::CLEANUP).
    fn completion_cleanup(&mut self, env: &Self::Env) -> impl Future<Output = ()> {
        let _ = env;
        async {}
    }

    /// How long results of this kind are kept after the end, if not as long as the engine's.
    fn keep_after_end() -> Option<Duration> {
        None
    }

    /// How long results are kept after they were acknowledged, if not as long as the engine's.
    fn keep_after_acknowledgement() -> Option<Duration> {
        None
    }

    /// Makes a value of this version of one that was stored as `version`, which is
    /// at least [`OLDEST`](Self::OLDEST) and below [`VERSION`](Self::VERSION).
    ///
    /// It is called when such a value is revived, and what it gives is stored with
    /// the next commit of a stage or an undo of that procedure, whatever that says:
    /// once for each row, but for crashes and for join rules, which store nothing.
    /// So it must depend on the old value alone.
    ///
    /// Stages are not upgraded: their names are on disk, too, so an enum of stages
    /// keeps the names of those in which procedures may still stand, or which may be undone.
    ///
    /// ```
    /// use procession_actors::{Old, Procedure, StageContext, StageError, Step, UpgradeError};
    /// use serde::{Deserialize, Serialize};
    ///
    /// #[derive(Serialize, Deserialize)]
    /// struct Greet { names: Vec<String> }
    ///
    /// /// As it was in version 1.
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
    /// An error, or a panic, sets the family aside with that reason: it goes on
    /// where it was when a start has code that can read it.
    fn upgrade(version: u16, old: Old<'_>) -> Result<Self, UpgradeError> {
        let _ = (version, old);
        Err(UpgradeError::new("its code has no upgrade"))
    }

    /// Checks that this value can run in this process. It is called when a stored value is revived, and before a
    /// value is submitted through the executor. It is not called for a bare `Submit::new`, nor for children: these
    /// are quarantined when they are revived.
    ///
    /// It is for what a value names and a process may lack, as a plug-in, or a step of a
    /// sequence. It must not fail for what passes by itself.
    ///
    /// # Errors
    ///
    /// The submitter gets the text. A stored family is set aside with it, alone, and
    /// goes on where it was after a start that can run it.
    fn check(&self, env: &Self::Env) -> Result<(), String> {
        let _ = env;
        Ok(())
    }

    /// The limit of which this procedure takes one permit, besides its kind's own.
    fn limit(&self) -> Option<LimitKey> {
        None
    }

    /// Higher goes first where it waits for a permit. Default 0.
    fn priority(&self) -> i16 {
        0
    }

    /// The whole time it may take, from its submission; none is no end.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Counts a procedure of this kind that was born; for metrics of the kind's own.
    ///
    /// Called on a worker once its birth is on disk, if
    /// [`METRIC_HOOKS`](Self::METRIC_HOOKS) is set, and before its `on_finish`.
    /// A panic is logged and changes nothing. A crash between the commit and the
    /// call loses the call, as it loses the metrics of the process; so does an
    /// engine whose workers are blocked while 100,000 calls wait, which counts
    /// them in `procession_hooks_dropped_total`.
    ///
    /// ```
    /// # use procession_actors::{Finished, Procedure, StageContext, StageError, Step, Submitted};
    /// # use serde::{Deserialize, Serialize};
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Greet;
    /// impl Procedure for Greet {
    ///     const KIND: &'static str = "greet";
    ///     const METRIC_HOOKS: bool = true;
    ///     type Env = Arc<AtomicU64>;
    /// #   type Stage = ();
    /// #   type Output = ();
    /// #   fn first(&self) -> Self::Stage {}
    /// #   async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #       Ok(Step::Done(()))
    /// #   }
    ///
    ///     fn on_submit(running: &Self::Env, _: &Submitted) {
    ///         running.fetch_add(1, Ordering::Relaxed);
    ///     }
    ///
    ///     fn on_finish(running: &Self::Env, finished: &Finished) {
    ///         println!("{} ended {} after {:?}", finished.id, finished.state, finished.elapsed);
    ///         running.fetch_sub(1, Ordering::Relaxed);
    ///     }
    /// }
    /// ```
    fn on_submit(env: &Self::Env, submitted: &Submitted) {
        let _ = (env, submitted);
    }

    /// Counts a procedure of this kind that has ended; called like
    /// [`on_submit`](Self::on_submit), once for each end.
    fn on_finish(env: &Self::Env, finished: &Finished) {
        let _ = (env, finished);
    }

    /// Looks at an unfinished procedure that a start has found, before permits
    /// and timers are restored.
    ///
    /// Called on a worker, once per start, if [`RECOVERY_HOOKS`](Self::RECOVERY_HOOKS)
    /// is set: for each procedure that has not ended and is not quarantined, and
    /// for all of them before the first stage or undo. It may write to the log
    /// and prepare what the host needs; it changes nothing durable. The engine
    /// opens when the last hook has ended, so a hook that waits makes the start wait.
    ///
    /// # Errors
    ///
    /// Either error, and a panic, quarantines the procedure's family for this
    /// start, with the reason. The others run.
    fn before_recover(&self, env: &Self::Env) -> impl Future<Output = Result<(), StageError>> {
        let _ = env;
        async { Ok(()) }
    }

    /// Looks at it again, when permits are with their holders and before timers
    /// fire; all else as [`before_recover`](Self::before_recover).
    ///
    /// # Errors
    ///
    /// As [`before_recover`](Self::before_recover).
    fn after_recover(&self, env: &Self::Env) -> impl Future<Output = Result<(), StageError>> {
        let _ = env;
        async { Ok(()) }
    }

    /// How often a stage of this kind is tried, and how long between.
    fn retry() -> RetryPolicy {
        RetryPolicy::default()
    }

    /// How often an undo of this kind is tried, and how long between.
    fn retry_undo() -> RetryPolicy {
        RetryPolicy::default()
    }

    /// From when on something of this kind is told as a verdict, where that is not as of the engine's
    /// others. How long a stage may take is [`expected`](Self::expected)'s to say.
    fn thresholds() -> KindThresholds {
        KindThresholds::default()
    }
}
