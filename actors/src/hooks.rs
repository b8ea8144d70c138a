//! Hooks of a kind: what user code sets, what it receives, and how the engine calls it.

use std::fmt;
use std::time::Duration;

use futures::future::LocalBoxFuture;
use procession_kernel::{Cause, Kind, ProcedureId, ProcedureState, Timestamp};

use crate::procedure::Procedure;
use crate::stage_error::StageError;

type OnSubmit<P> = dyn Fn(&<P as Procedure>::Env, &Submitted) + Send + Sync;
type OnFinish<P> = dyn Fn(&<P as Procedure>::Env, &Finished) + Send + Sync;

/// Code of a kind that the engine calls beside stages and undos: returned by [`Procedure::hooks`].
///
/// A hook is called if it is set here, and costs nothing otherwise: without a recovery hook a start reads no value of
/// the kind, and without a cleanup the end of a procedure is one commit.
///
/// | hook | called | where |
/// |---|---|---|
/// | [`on_submit`](Self::on_submit), [`on_finish`](Self::on_finish) | once a birth or an end is on disk, for metrics of the kind's own | on a worker, at most once |
/// | [`before_recover`](Self::before_recover), [`after_recover`](Self::after_recover) | for each unfinished procedure that a start finds | on a worker, before the first stage |
/// | [`completion_cleanup`](Self::completion_cleanup) | once a procedure has ended | on a worker, at least once |
///
/// ```
/// # use procession_actors::{Hooks, Procedure, StageContext, StageError, Step};
/// # use serde::{Deserialize, Serialize};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// # #[derive(Serialize, Deserialize)]
/// # struct Greet;
/// impl Procedure for Greet {
///     const KIND: &'static str = "greet";
///     type Env = Arc<AtomicU64>;
/// #   type Stage = ();
/// #   type Output = ();
/// #   fn first(&self) -> Self::Stage {}
/// #   async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
/// #       Ok(Step::Done(()))
/// #   }
///
///     fn hooks() -> Hooks<Self> {
///         Hooks::<Self>::new()
///             .on_submit(|running, _| {
///                 running.fetch_add(1, Ordering::Relaxed);
///             })
///             .on_finish(|running, finished| {
///                 println!("{} ended {} after {:?}", finished.id, finished.state, finished.elapsed);
///                 running.fetch_sub(1, Ordering::Relaxed);
///             })
///     }
/// }
/// ```
pub struct Hooks<P: Procedure> {
    on_submit: Option<Box<OnSubmit<P>>>,
    on_finish: Option<Box<OnFinish<P>>>,
    before_recover: Option<Box<dyn RecoveryHook<P>>>,
    after_recover: Option<Box<dyn RecoveryHook<P>>>,
    completion_cleanup: Option<Box<dyn CleanupHook<P>>>,
}

impl<P: Procedure> Default for Hooks<P> {
    fn default() -> Self {
        Self {
            on_submit: None,
            on_finish: None,
            before_recover: None,
            after_recover: None,
            completion_cleanup: None,
        }
    }
}

/// Shows which hooks are set.
impl<P: Procedure> fmt::Debug for Hooks<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("on_submit", &self.on_submit.is_some())
            .field("on_finish", &self.on_finish.is_some())
            .field("before_recover", &self.before_recover.is_some())
            .field("after_recover", &self.after_recover.is_some())
            .field("completion_cleanup", &self.completion_cleanup.is_some())
            .finish()
    }
}

impl<P: Procedure> Hooks<P> {
    /// Starts with no hook. Set each at most once: a second call replaces the first.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what is called when a procedure of this kind was born; for metrics of the kind's own.
    ///
    /// It runs on a worker once the birth is on disk, before `on_finish`. A panic is logged and changes nothing. A
    /// crash between the commit and the call loses the call, as it loses all metrics of the process. Calls are also
    /// dropped if the workers are blocked while 100,000 calls wait; `procession_hooks_dropped_total` counts these.
    #[must_use]
    pub fn on_submit(mut self, hook: impl Fn(&P::Env, &Submitted) + Send + Sync + 'static) -> Self {
        self.on_submit = Some(Box::new(hook));
        self
    }

    /// Sets what is called when a procedure of this kind has ended, once for each end. Otherwise like
    /// [`on_submit`](Self::on_submit).
    #[must_use]
    pub fn on_finish(mut self, hook: impl Fn(&P::Env, &Finished) + Send + Sync + 'static) -> Self {
        self.on_finish = Some(Box::new(hook));
        self
    }

    /// Sets what inspects an unfinished procedure that a start has found, before permits and timers are restored.
    ///
    /// It runs on a worker, once per start, for each procedure that has neither ended nor been quarantined, and for all
    /// of them before the first stage or undo. It may log and prepare what the host needs; it changes nothing durable.
    /// The engine opens when the last hook has ended, so a hook that waits delays the start.
    ///
    /// Either error, and a panic, quarantines the procedure's family for this start, with the reason. Other families
    /// run.
    ///
    /// ```
    /// # use procession_actors::{Hooks, Procedure, StageContext, StageError, Step};
    /// # use serde::{Deserialize, Serialize};
    /// # use std::path::PathBuf;
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Export { file: PathBuf }
    /// # impl Procedure for Export {
    /// #   const KIND: &'static str = "export";
    /// #   type Env = ();
    /// #   type Stage = ();
    /// #   type Output = ();
    /// #   fn first(&self) -> Self::Stage {}
    /// #   async fn execute(&mut self, _: (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
    /// #       Ok(Step::Done(()))
    /// #   }
    /// fn hooks() -> Hooks<Self> {
    ///     Hooks::<Self>::new().before_recover(async |export, _| {
    ///         if export.file.exists() {
    ///             return Ok(());
    ///         }
    ///         Err(StageError::fail("its file is gone"))
    ///     })
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn before_recover(
        mut self,
        hook: impl AsyncFn(&P, &P::Env) -> Result<(), StageError> + Send + Sync + 'static,
    ) -> Self {
        self.before_recover = Some(Box::new(hook));
        self
    }

    /// Sets what inspects the procedure again, after permits are restored to their holders and before timers fire.
    /// Otherwise like [`before_recover`](Self::before_recover).
    #[must_use]
    pub fn after_recover(
        mut self,
        hook: impl AsyncFn(&P, &P::Env) -> Result<(), StageError> + Send + Sync + 'static,
    ) -> Self {
        self.after_recover = Some(Box::new(hook));
        self
    }

    /// Sets what cleans up outside the engine after the procedure has ended, however it ended.
    ///
    /// It runs at least once, after the end is durable; the family is kept until it has run. It cannot fail: a panic is
    /// logged as an error, and counts as run. A kind without it saves a commit at each end.
    #[must_use]
    pub fn completion_cleanup(mut self, hook: impl AsyncFn(&mut P, &P::Env) + Send + Sync + 'static) -> Self {
        self.completion_cleanup = Some(Box::new(hook));
        self
    }

    pub(crate) const fn which(&self) -> HookSet {
        HookSet {
            on_submit: self.on_submit.is_some(),
            on_finish: self.on_finish.is_some(),
            before_recover: self.before_recover.is_some(),
            after_recover: self.after_recover.is_some(),
            completion_cleanup: self.completion_cleanup.is_some(),
        }
    }

    pub(crate) fn count(&self, env: &P::Env, call: &HookCall) {
        match call {
            HookCall::Submitted(submitted) => {
                if let Some(hook) = &self.on_submit {
                    hook(env, submitted);
                }
            }
            HookCall::Finished(finished) => {
                if let Some(hook) = &self.on_finish {
                    hook(env, finished);
                }
            }
        }
    }

    pub(crate) async fn recover(&self, point: HookPoint, value: &P, env: &P::Env) -> Result<(), StageError> {
        let hook = match point {
            HookPoint::Before => &self.before_recover,
            HookPoint::After => &self.after_recover,
        };
        match hook {
            Some(hook) => hook.inspect(value, env).await,
            None => Ok(()),
        }
    }

    /// Cleans up. A start may have no cleanup for a procedure whose end asked for one: then there is nothing to do.
    pub(crate) async fn clean_up(&self, value: &mut P, env: &P::Env) {
        if let Some(hook) = &self.completion_cleanup {
            hook.clean_up(value, env).await;
        }
    }
}

/// A recovery hook without the type of its future: an asynchronous closure cannot be a trait object as it is.
trait RecoveryHook<P: Procedure>: Send + Sync {
    fn inspect<'a>(&'a self, value: &'a P, env: &'a P::Env) -> LocalBoxFuture<'a, Result<(), StageError>>;
}

impl<P, F> RecoveryHook<P> for F
where
    P: Procedure,
    F: AsyncFn(&P, &P::Env) -> Result<(), StageError> + Send + Sync,
{
    fn inspect<'a>(&'a self, value: &'a P, env: &'a P::Env) -> LocalBoxFuture<'a, Result<(), StageError>> {
        Box::pin(self(value, env))
    }
}

/// A cleanup without the type of its future.
trait CleanupHook<P: Procedure>: Send + Sync {
    fn clean_up<'a>(&'a self, value: &'a mut P, env: &'a P::Env) -> LocalBoxFuture<'a, ()>;
}

impl<P, F> CleanupHook<P> for F
where
    P: Procedure,
    F: AsyncFn(&mut P, &P::Env) + Send + Sync,
{
    fn clean_up<'a>(&'a self, value: &'a mut P, env: &'a P::Env) -> LocalBoxFuture<'a, ()> {
        Box::pin(self(value, env))
    }
}

/// Which hooks a kind has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HookSet {
    pub(crate) on_submit: bool,
    pub(crate) on_finish: bool,
    pub(crate) before_recover: bool,
    pub(crate) after_recover: bool,
    pub(crate) completion_cleanup: bool,
}

impl HookSet {
    /// Returns `true` if the kind has a hook at this point of the start.
    pub(crate) const fn recovers(self, point: HookPoint) -> bool {
        match point {
            HookPoint::Before => self.before_recover,
            HookPoint::After => self.after_recover,
        }
    }
}

/// What [`Hooks::on_submit`] receives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Submitted {
    /// The procedure that was born.
    pub id: ProcedureId,
    /// Its kind, for types that are registered as several.
    pub kind: Kind,
    /// When it was born.
    pub at: Timestamp,
}

/// What [`Hooks::on_finish`] receives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// The procedure that has ended.
    pub id: ProcedureId,
    /// Its kind, for types that are registered as several.
    pub kind: Kind,
    /// How it ended: `Success`, `RolledBack` or `Failed`.
    pub state: ProcedureState,
    /// Why it failed; `None` after a success.
    pub cause: Option<Cause>,
    /// Time from birth to end, including restarts.
    pub elapsed: Duration,
}

/// One call of a kind's metric hooks.
pub(crate) enum HookCall {
    Submitted(Submitted),
    Finished(Finished),
}

impl HookCall {
    pub(crate) const fn kind(&self) -> &Kind {
        match self {
            Self::Submitted(submitted) => &submitted.kind,
            Self::Finished(finished) => &finished.kind,
        }
    }
}

/// The point of the start at which a recovery hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookPoint {
    Before,
    After,
}

impl HookPoint {
    pub(crate) const fn hook(self) -> &'static str {
        match self {
            Self::Before => "before_recover",
            Self::After => "after_recover",
        }
    }
}
