//! What `submit` returns: a watcher of one procedure. Dropping it cancels nothing.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::{Pin, pin};
use std::time::Duration;

use futures::future::{Either, select};
use procession_actors::view::{Outcome, Status};
use procession_actors::{AskError, CodecError, Procedure};
use procession_kernel::{Cause, Mark, NotUndone, ProcedureId, ProcedureState};

use crate::executor::Executor;

/// Watches one procedure. Await it for the output. Its futures are `Send`.
///
/// The output is kept for 15 minutes after the end, and can be asked for any number of times until then. The builder's
/// [`retention`](crate::Builder::retention) and [`Procedure::keep_after_end`] say otherwise.
pub struct Handle<P: Procedure> {
    pub(crate) executor: Executor,
    pub(crate) id: ProcedureId,
    pub(crate) procedure: PhantomData<fn() -> P>,
}

impl<P: Procedure> Clone for Handle<P> {
    fn clone(&self) -> Self {
        Self {
            executor: self.executor.clone(),
            id: self.id,
            procedure: PhantomData,
        }
    }
}

impl<P: Procedure> fmt::Debug for Handle<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("id", &format_args!("{}", self.id))
            .field("kind", &P::KIND)
            .finish_non_exhaustive()
    }
}

/// Why there is no output.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ProcedureError {
    /// It failed, and what could be undone was undone.
    #[error("the procedure was rolled back: {}", .cause.text)]
    RolledBack {
        /// Why it failed.
        cause: Cause,
        /// Executed stages that could not be undone.
        not_undone: Vec<NotUndone>,
    },
    /// It failed, and its kind has no rollback, or an operator ended it so.
    #[error("the procedure failed, and was not rolled back: {}", .cause.text)]
    Failed {
        /// Why.
        cause: Cause,
    },
    /// An operator ended it as a success without an output.
    #[error("an operator bypassed the procedure; it has no output")]
    Bypassed,
    /// It succeeded without an output of this type being kept.
    #[error("the procedure has no output")]
    NoOutput,
    /// The engine did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The output is not of this type.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

impl<P: Procedure> Handle<P> {
    /// Returns the procedure's id.
    #[must_use]
    pub fn id(&self) -> ProcedureId {
        self.id
    }

    /// Returns how it stands.
    ///
    /// # Errors
    ///
    /// [`AskError::Unknown`] if its result has gone.
    pub async fn status(&self) -> Result<Status, AskError> {
        self.executor.status(self.id).await
    }

    /// Waits for its end.
    ///
    /// # Errors
    ///
    /// [`ProcedureError`] says why there is no output.
    pub async fn outcome(&self) -> Result<P::Output, ProcedureError> {
        output::<P>(self.executor.outcome(self.id).await?)
    }

    /// Waits for its end, at most this long by the engine's clock. It may be called again.
    ///
    /// # Errors
    ///
    /// [`AskError::NotYet`] within [`ProcedureError::Ask`] if it has not ended.
    pub async fn wait_for(&self, longest: Duration) -> Result<P::Output, ProcedureError> {
        match select(pin!(self.outcome()), pin!(self.executor.sleep(longest))).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Err(AskError::NotYet.into()),
        }
    }
}

fn output<P: Procedure>(outcome: Outcome) -> Result<P::Output, ProcedureError> {
    match (outcome.state, outcome.cause.clone()) {
        (ProcedureState::RolledBack, Some(cause)) => Err(ProcedureError::RolledBack {
            cause,
            not_undone: outcome.not_undone,
        }),
        (ProcedureState::Failed, Some(cause)) => Err(ProcedureError::Failed { cause }),
        (
            ProcedureState::Success
            | ProcedureState::RolledBack
            | ProcedureState::Failed
            | ProcedureState::Initializing
            | ProcedureState::Runnable
            | ProcedureState::Waiting
            | ProcedureState::WaitingTimeout,
            _,
        ) => {
            let none = match outcome.mark {
                Some(Mark::Bypassed) => ProcedureError::Bypassed,
                Some(Mark::Overridden) | None => ProcedureError::NoOutput,
                Some(_) => ProcedureError::NoOutput,
            };
            outcome.output::<P::Output>()?.ok_or(none)
        }
    }
}

impl<P: Procedure> IntoFuture for Handle<P> {
    type Output = Result<P::Output, ProcedureError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.outcome().await })
    }
}
