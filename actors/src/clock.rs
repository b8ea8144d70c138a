//! The engine's clock: the only reader of time, real or the test's.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use procession_kernel::Timestamp;

/// A source of time for one engine.
pub trait Clock: Send + Sync + 'static {
    /// Reads the wall clock.
    fn now(&self) -> Timestamp;

    /// Waits until this instant; at once if it has passed. It may end before that, if the wall clock
    /// was set back meanwhile: whoever waits looks at the clock again.
    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'static, ()>;
}

/// The system's wall clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

/// Longest single wait. A wall clock that was set is noticed after this.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// A wall clock that shows less than it did by this much was set back. Less than this is what keeps it
/// right while it runs, and delays nobody for long.
const SET_BACK: Duration = Duration::from_secs(1);

/// Tells whether the wall clock was set back since it showed the first of these.
pub(crate) fn is_set_back(before: Timestamp, now: Timestamp) -> bool {
    before.since(now) >= SET_BACK
}

#[expect(clippy::disallowed_methods, reason = "this is the one file that reads time")]
fn system_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

#[expect(clippy::disallowed_methods, reason = "this is the one file that waits for time")]
async fn system_sleep_until(until: Timestamp) {
    let mut before = system_now();
    loop {
        let now = system_now();
        let left = until.since(now);
        if left.is_zero() || is_set_back(before, now) {
            return;
        }
        before = now;
        tokio::time::sleep(left.min(LONGEST_WAIT)).await;
    }
}

/// Reads the machine's time, whatever the engine's clock: by it one tells how
/// long a thread has been occupied.
#[expect(clippy::disallowed_methods, reason = "this is the one file that reads time")]
pub(crate) fn machine_now() -> Instant {
    Instant::now()
}

/// Waits this long on the machine's time.
#[expect(clippy::disallowed_methods, reason = "this is the one file that waits for time")]
pub(crate) async fn machine_sleep(time: Duration) {
    tokio::time::sleep(time).await;
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        system_now()
    }

    fn sleep_until(&self, until: Timestamp) -> BoxFuture<'static, ()> {
        Box::pin(system_sleep_until(until))
    }
}
