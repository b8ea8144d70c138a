//! How often something is tried, and how long between: exponential backoff.

use std::time::Duration;

/// Attempts and the delays between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// How often in all; at least 1. Default 3.
    pub attempts: u32,
    /// Delay after the first failed attempt. Default 1 s.
    pub base: Duration,
    /// What each further delay is multiplied by. Default 2.
    pub factor: u32,
    /// Longest delay. Default 5 minutes.
    pub max: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_secs(1),
            factor: 2,
            max: Duration::from_mins(5),
        }
    }
}

impl RetryPolicy {
    /// Allows this many attempts in all.
    #[must_use]
    pub const fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts;
        self
    }

    /// Starts with this delay.
    #[must_use]
    pub const fn base(mut self, base: Duration) -> Self {
        self.base = base;
        self
    }

    /// Tells whether another attempt may follow when `failed` have failed.
    #[must_use]
    pub const fn allows_another(&self, failed: u32) -> bool {
        failed < self.attempts
    }

    /// Gives the delay before the next attempt when `failed` have failed.
    #[must_use]
    pub fn delay(&self, failed: u32) -> Duration {
        let doublings = failed.saturating_sub(1).min(63);
        let factor = self.factor.max(1).saturating_pow(doublings);
        self.base.saturating_mul(factor).min(self.max)
    }
}

#[cfg(test)]
mod tests;
