//! The system's clock, that can be set forward: so that all timers fall due at once.

use std::time::Duration;

use futures::future::{BoxFuture, Either, select};
use procession::procedure::Timestamp;
use procession::provider::{Clock, SystemClock};
use tokio::sync::watch;

/// A clock that can be set forward.
#[derive(Clone)]
pub(super) struct ForwardClock(watch::Sender<Duration>);

impl ForwardClock {
    /// Makes a clock that shows the system's time.
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(Duration::ZERO))
    }

    /// Sets it forward by this much.
    pub(super) fn forward(&self, by: Duration) {
        self.0.send_modify(|ahead| *ahead += by);
    }
}

impl Clock for ForwardClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().after(*self.0.borrow())
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'static, ()> {
        let mut ahead = self.0.subscribe();
        Box::pin(async move {
            loop {
                let by = *ahead.borrow_and_update();
                let left = until.since(SystemClock.now().after(by));
                if left.is_zero() {
                    return;
                }
                let wait = SystemClock.sleep_until(SystemClock.now().after(left));
                let changed = Box::pin(ahead.changed());
                match select(wait, changed).await {
                    Either::Left(_) | Either::Right((Ok(()), _)) => {}
                    // Nobody is left who could set it forward.
                    Either::Right((Err(_), wait)) => return wait.await,
                }
            }
        })
    }
}
