//! How long the newest of something took.

use std::collections::VecDeque;
use std::time::Duration;

/// The newest times, a bounded number of them.
#[derive(Default)]
pub(crate) struct Times(VecDeque<Duration>);

impl Times {
    /// Times that are remembered.
    const KEPT: usize = 1_000;

    pub(crate) fn note(&mut self, time: Duration) {
        if self.0.len() == Self::KEPT {
            self.0.pop_front();
        }
        self.0.push_back(time);
    }

    /// Gives how many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Gives the time within which 99 of 100 were done; none if there are none.
    pub(crate) fn p99(&self) -> Option<Duration> {
        let mut times: Vec<Duration> = self.0.iter().copied().collect();
        let place = (times.len() * 99).div_ceil(100).checked_sub(1)?;
        let (_, time, _) = times.select_nth_unstable(place);
        Some(*time)
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
        for _ in 0..Times::KEPT {
            times.note(Duration::from_secs(3));
        }
        assert_eq!((times.len(), times.p99()), (Times::KEPT, Some(Duration::from_secs(3))));
    }
}
