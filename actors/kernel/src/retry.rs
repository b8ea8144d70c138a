//! Retry policies: number of attempts, and exponential backoff in between.

use std::time::Duration;

/// The longest delay that code may choose for its next attempt: 24 hours. A longer one counts as this. The delay often
/// comes from another system's answer, which may be absurd.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// Number of attempts, and the delays between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Total number of attempts; at least 1. Default 3.
    pub attempts: u32,
    /// Delay after the first failed attempt. Default 1 s.
    pub base: Duration,
    /// Factor between one delay and the next. Default 2.
    pub factor: u32,
    /// Longest delay. Default 5 minutes.
    pub max: Duration,
    /// Largest random extension of a delay, in thousandths of it, drawn for each delay, so that procedures which
    /// failed together do not retry together. Default 0.
    pub jitter: u16,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 3,
            base: Duration::from_secs(1),
            factor: 2,
            max: Duration::from_mins(5),
            jitter: 0,
        }
    }
}

impl RetryPolicy {
    /// Allows this many attempts in total.
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

    /// Multiplies the delay by this after each failed attempt.
    #[must_use]
    pub const fn factor(mut self, factor: u32) -> Self {
        self.factor = factor;
        self
    }

    /// Never waits longer than this.
    #[must_use]
    pub const fn max(mut self, max: Duration) -> Self {
        self.max = max;
        self
    }

    /// Extends each delay by up to this many thousandths of it.
    #[must_use]
    pub const fn jitter(mut self, thousandths: u16) -> Self {
        self.jitter = thousandths;
        self
    }

    /// Returns `true` if another attempt may follow after `failed` failed attempts.
    #[must_use]
    pub const fn allows_another(&self, failed: u32) -> bool {
        failed < self.attempts
    }

    /// Returns the delay before the next attempt after `failed` failed attempts.
    #[must_use]
    pub fn delay(&self, failed: u32) -> Duration {
        let doublings = failed.saturating_sub(1).min(63);
        let factor = self.factor.max(1).saturating_pow(doublings);
        self.base.saturating_mul(factor).min(self.max)
    }

    /// Returns that delay with its jitter, which depends on `drawn` alone.
    #[must_use]
    pub fn jittered(&self, failed: u32, drawn: u64) -> Duration {
        self.lengthened(self.delay(failed), drawn)
    }

    /// Returns the longest delay with its jitter.
    #[must_use]
    pub fn longest(&self, drawn: u64) -> Duration {
        self.lengthened(self.max, drawn)
    }

    /// Returns an upper bound of the delay after `failed` failed attempts, whatever jitter is drawn.
    #[must_use]
    pub fn longest_after(&self, failed: u32) -> Duration {
        let delay = if self.allows_another(failed) {
            self.delay(failed)
        } else {
            self.max
        };
        let more = delay.as_micros().saturating_mul(u128::from(self.jitter)) / 1000;
        delay.saturating_add(Duration::from_micros(u64::try_from(more).unwrap_or(u64::MAX)))
    }

    fn lengthened(&self, delay: Duration, drawn: u64) -> Duration {
        if self.jitter == 0 {
            return delay;
        }
        let thousandths = scrambled(drawn) % (u64::from(self.jitter) + 1);
        let more = delay.as_micros().saturating_mul(u128::from(thousandths)) / 1000;
        delay.saturating_add(Duration::from_micros(u64::try_from(more).unwrap_or(u64::MAX)))
    }
}

/// Spreads a number over all 64 bits (the finish of SplitMix64, Steele and others, 2014).
fn scrambled(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests;
