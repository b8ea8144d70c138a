//! Durations of the newest events of one sort.

use std::collections::VecDeque;
use std::time::Duration;

/// A bounded number of the newest durations.
#[derive(Default)]
pub(crate) struct Times(VecDeque<Duration>);

impl Times {
    /// Number of durations that are remembered.
    const KEPT: usize = 1_000;

    pub(crate) fn note(&mut self, time: Duration) {
        if self.0.len() == Self::KEPT {
            self.0.pop_front();
        }
        self.0.push_back(time);
    }

    /// Returns how many durations are remembered.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the 99th percentile; `None` if there are no durations.
    pub(crate) fn p99(&self) -> Option<Duration> {
        self.within(99)
    }

    /// Returns this percentile; `None` if there are no durations.
    pub(crate) fn within(&self, of_100: usize) -> Option<Duration> {
        let mut times: Vec<Duration> = self.0.iter().copied().collect();
        let place = (times.len() * of_100).div_ceil(100).checked_sub(1)?;
        let (_, time, _) = times.select_nth_unstable(place);
        Some(*time)
    }
}

/// How long the newest syncs of a store took, 1,000 at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncTimes {
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}

impl SyncTimes {
    /// Returns `None` if there was no sync.
    pub(crate) fn of(times: &Times) -> Option<Self> {
        Some(Self {
            p50: times.within(50)?,
            p99: times.p99()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_takes_longer() {
        let mut times = Times::default();
        assert_eq!(times.p99(), None);
        for second in (1..=200).rev() {
            times.note(Duration::from_secs(second));
        }
        assert_eq!((times.len(), times.p99()), (200, Some(Duration::from_secs(198))));
        let sync = SyncTimes::of(&times).map(|times| (times.p50.as_secs(), times.p99.as_secs()));
        assert_eq!(sync, Some((100, 198)));
        assert_eq!(SyncTimes::of(&Times::default()), None);
        for _ in 0..Times::KEPT {
            times.note(Duration::from_secs(3));
        }
        assert_eq!((times.len(), times.p99()), (Times::KEPT, Some(Duration::from_secs(3))));
    }
}
