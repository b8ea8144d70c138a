//! The one trait that users implement, and what a kind says about itself.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use procession_kernel::{LimitKey, RetryPolicy};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::StageContext;
use crate::step::{ChildOutcome, JoinVerdict, StageError, Step};

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
    /// Schema of the value; raise it when an older value can no longer be read.
    const VERSION: u16 = 1;
    /// False for a kind whose stages cannot be undone: it ends `Failed` at once.
    const ROLLBACK: bool = true;

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

    /// How often a stage of this kind is tried, and how long between.
    fn retry() -> RetryPolicy {
        RetryPolicy::default()
    }

    /// How often an undo of this kind is tried, and how long between.
    fn retry_undo() -> RetryPolicy {
        RetryPolicy::default()
    }
}
