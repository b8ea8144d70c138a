//! Time limits of user code, on the engine's clock.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};

use crate::clock::Clock;

/// The error of a future that did not end in its time. It reads `timed out after 3 s`.
///
/// Passed up with `?` it becomes [`StageError::TimedOut`](crate::StageError::TimedOut), and the stage is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("timed out after {} s", .after.as_secs_f64())]
#[non_exhaustive]
pub struct Elapsed {
    /// The time that the future had.
    pub after: Duration,
}

/// Awaits a future for at most this long, and drops it when the time is up. A result that is there at that moment
/// counts. The time begins when the returned future is first polled.
///
/// The future is boxed, because an async block would keep a second place for it.
#[doc(hidden)]
pub fn within<F: Future>(
    clock: Arc<dyn Clock>,
    time: Duration,
    future: F,
) -> impl Future<Output = Result<F::Output, Elapsed>> + use<F> {
    let mut future = Box::pin(future);
    async move {
        let mut until = clock.now().after(time);
        loop {
            future = match select(future, clock.sleep_until(until)).await {
                Either::Left((value, _)) => return Ok(value),
                Either::Right(((), unfinished)) => unfinished,
            };
            let now = clock.now();
            if until <= now {
                return Err(Elapsed { after: time });
            }
            // The wall clock was set back. From here on, nothing waits longer than the whole time.
            until = until.min(now.after(time));
        }
    }
}

#[cfg(test)]
mod tests;
