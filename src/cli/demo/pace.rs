//! The demo's own time: how long a run took, and short waits between two looks.
//! Nothing that stands on disk comes from here; stages use the engine's clock.

use std::time::{Duration, Instant};

/// Measures how long something takes.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "a duration to print, outside the engine")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Waits before the next look at something that sends no notice.
#[expect(
    clippy::disallowed_methods,
    reason = "a client between two requests, outside the engine"
)]
pub async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
