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
    /// By how many thousandths a delay is lengthened at most, drawn anew for each,
    /// so that those who failed together do not come back together. Default 0.
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

    /// Never waits longer than this.
    #[must_use]
    pub const fn max(mut self, max: Duration) -> Self {
        self.max = max;
        self
    }

    /// Lengthens each delay by up to this many thousandths of it.
    #[must_use]
    pub const fn jitter(mut self, thousandths: u16) -> Self {
        self.jitter = thousandths;
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

    /// Gives that delay with its jitter, which is drawn from this number alone.
    #[must_use]
    pub fn jittered(&self, failed: u32, drawn: u64) -> Duration {
        self.lengthened(self.delay(failed), drawn)
    }

    /// Gives the longest delay with its jitter.
    #[must_use]
    pub fn longest(&self, drawn: u64) -> Duration {
        self.lengthened(self.max, drawn)
    }

    /// Gives the longest that the delay after so many failed attempts can be, whatever is drawn.
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
