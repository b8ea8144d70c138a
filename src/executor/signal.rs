//! `OutgoingSignal`: what is said of a signal before it is sent.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;

use procession_actors::messages::SendSignal;
use procession_actors::{AskError, CodecError};

use super::Executor;

/// A signal that is not sent yet; await it for the signal's number. Its future is `Send`.
///
/// ```
/// # use procession::procedure::Noop;
/// # use procession::{Executor, ProcedureId};
/// # #[actix_rt::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let executor = Executor::builder(directory.path().join("j")).register::<Noop>(()).start().await?;
/// # let order = ProcedureId::root(7);
/// let sent = executor.signal(order, "paid", &250_u32).key("payment-17").await;
/// assert!(sent.is_err(), "no such order");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`AskError::Finished`] if the procedure has ended, [`AskError::Unknown`] if it is not known;
/// [`AskError::NotAccepted`] if its kind does not [accept](crate::Procedure::accepts) the signal;
/// [`AskError::SignalConflict`] if the key stands for another signal; [`AskError::NotNow`] if its mailbox is full.
#[must_use = "a signal is not sent until it is awaited"]
pub struct OutgoingSignal {
    executor: Executor,
    message: Result<SendSignal, CodecError>,
}

impl OutgoingSignal {
    pub(super) const fn new(executor: Executor, message: Result<SendSignal, CodecError>) -> Self {
        Self { executor, message }
    }

    /// Sets the key by which a repeated signal is recognised: it is kept once, and the repeat gets the same number.
    pub fn key(self, key: impl Into<String>) -> Self {
        Self {
            message: self.message.map(|message| message.key(key)),
            ..self
        }
    }

    /// Declares the signal the last of its name: later ones to this procedure are refused with [`AskError::Closed`].
    pub fn last(self) -> Self {
        Self {
            message: self.message.map(SendSignal::last),
            ..self
        }
    }
}

impl IntoFuture for OutgoingSignal {
    type Output = Result<u32, AskError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let message = self.message?;
            let engine = &self.executor.engine;
            engine.admit_signals(std::slice::from_ref(&message)).await?;
            self.executor.ask(message).await
        })
    }
}

/// Shows nothing of the payload, which is user data.
impl fmt::Debug for OutgoingSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingSignal")
            .field("is_encoded", &self.message.is_ok())
            .finish_non_exhaustive()
    }
}
