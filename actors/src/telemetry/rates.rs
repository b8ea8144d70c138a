//! How many procedures of a kind began and ended in the last minute.

use std::collections::BTreeMap;

use procession_kernel::{ProcedureState, Timestamp};

/// The length of one count, in microseconds.
const STEP: u64 = 1_000_000;
/// Counts that make the window: a minute, whose last second is not over.
const STEPS: u64 = 60;

/// How many procedures of a kind began and ended in the last minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct KindRate {
    /// Born.
    pub started: u32,
    /// Ended, in whatever state.
    pub ended: u32,
    /// Ended, and not as successes.
    pub failed: u32,
}

impl KindRate {
    /// How long the counts go back, in milliseconds.
    pub const WINDOW_MS: u64 = STEPS * STEP / 1_000;
}

/// Counts by second, of those seconds in which something was counted.
#[derive(Default)]
pub(super) struct Rates(BTreeMap<u64, KindRate>);

impl Rates {
    pub(super) fn started(&mut self, now: Timestamp) {
        self.count(now, |rate| rate.started += 1);
    }

    pub(super) fn ended(&mut self, state: ProcedureState, now: Timestamp) {
        let failed = u32::from(state != ProcedureState::Success);
        self.count(now, |rate| {
            rate.ended += 1;
            rate.failed += failed;
        });
    }

    fn count(&mut self, now: Timestamp, count: impl Fn(&mut KindRate)) {
        let step = now.0 / STEP;
        let newest = self.0.last_key_value().map_or(step, |(newest, _)| *newest);
        // The clock was set back.
        if step + STEPS <= newest {
            self.0.clear();
        }
        count(self.0.entry(step).or_default());
        while self
            .0
            .first_key_value()
            .is_some_and(|(oldest, _)| oldest + STEPS <= step)
        {
            self.0.pop_first();
        }
    }

    /// Returns what there was in the last minute.
    pub(super) fn of(&self, now: Timestamp) -> KindRate {
        let step = now.0 / STEP;
        let recent = self.0.iter().filter(|(at, _)| **at <= step && step < **at + STEPS);
        recent.fold(KindRate::default(), |sum, (_, rate)| KindRate {
            started: sum.started + rate.started,
            ended: sum.ended + rate.ended,
            failed: sum.failed + rate.failed,
        })
    }
}

#[cfg(test)]
mod tests;
