//! Decides whether the answer to a submission may linger: whether its batch is held back for the first pure stages of what
//! was submitted, which run meanwhile. If they end in a fraction of the time that a sync takes, submission and outcome take one
//! sync in place of two. The submitter pays for it with that fraction.
//!
//! It learns from the last times: after a batch that waited too long, the next submissions go at once, and twice as many
//! after each further one.

use std::time::Duration;

use procession_kernel::{Seq, Timestamp};

/// Submissions that go at once after the first one that waited too long, before another is tried.
const REST: u32 = 8;
/// Submissions that go at once, at most, after many in a row that waited too long.
const REST_MAX: u32 = 512;

/// What the last times have shown.
#[derive(Debug, Default)]
pub(super) struct Linger {
    /// The submission that lingers, and since when.
    now: Option<(Seq, Timestamp)>,
    /// How long the newest sync took.
    sync: Duration,
    /// Submissions that are still to go at once.
    rest: u32,
    /// How many went at once after the last one that waited too long; 0 once one has not.
    rested: u32,
}

impl Linger {
    /// Begins to linger with a submission, the newest decision of its batch. Returns `false` if that would not pay.
    pub(super) const fn begin(&mut self, submission: Seq, now: Timestamp) -> bool {
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        self.now = Some((submission, now));
        true
    }

    /// Returns `true` if the batch lingers for this submission. Once another decision stands behind it, it is not the newest.
    pub(super) fn is_for(&self, submission: Seq) -> bool {
        self.now.is_some_and(|(lingers, _)| lingers == submission)
    }

    /// Notes that a batch goes to the journal: the one that lingers, if one does.
    pub(super) fn ended(&mut self, now: Timestamp) {
        let Some((_, since)) = self.now.take() else { return };
        if now.since(since) > self.sync / 2 {
            self.rested = (self.rested * 2).clamp(REST, REST_MAX);
            self.rest = self.rested;
        } else {
            self.rested = 0;
        }
    }

    /// Notes how long a sync took.
    pub(super) const fn synced(&mut self, time: Duration) {
        self.sync = time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lingers_while_that_takes_less_than_half_a_sync() {
        let mut linger = Linger::default();
        linger.synced(Duration::from_micros(100));
        assert!(linger.begin(Seq(1), Timestamp(0)));
        assert!(linger.is_for(Seq(1)) && !linger.is_for(Seq(2)));
        linger.ended(Timestamp(50));
        assert!(!linger.is_for(Seq(1)));
        for rest in [8, 16, 32, 64, 128, 256, 512, 512] {
            assert!(linger.begin(Seq(3), Timestamp(1_000)), "it tries once more");
            linger.ended(Timestamp(1_051));
            for submission in 0..rest {
                assert!(!linger.begin(Seq(submission), Timestamp(2_000)));
            }
        }
        assert!(linger.begin(Seq(4), Timestamp(3_000)));
        linger.ended(Timestamp(3_010));
        assert!(linger.begin(Seq(5), Timestamp(4_000)));
    }
}
