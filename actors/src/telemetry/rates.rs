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
pub(super) struct Rates {
    /// The second of the last count. Nearly every count is of that second, too.
    open: Option<(u64, KindRate)>,
    /// The others.
    seconds: BTreeMap<u64, KindRate>,
}

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
        match &mut self.open {
            Some((second, rate)) if *second == step => count(rate),
            Some(_) | None => count(self.turn(step)),
        }
    }

    /// Goes on to another second.
    #[cold]
    fn turn(&mut self, step: u64) -> &mut KindRate {
        self.seconds.extend(self.open.take());
        let newest = self.seconds.last_key_value().map_or(step, |(newest, _)| *newest);
        // The clock was set back.
        if step + STEPS <= newest {
            self.seconds.clear();
        }
        let is_old = |(oldest, _): (&u64, &KindRate)| oldest + STEPS <= step;
        while self.seconds.first_key_value().is_some_and(is_old) {
            self.seconds.pop_first();
        }
        let rate = self.seconds.remove(&step).unwrap_or_default();
        &mut self.open.insert((step, rate)).1
    }

    /// Returns what there was in the last minute.
    pub(super) fn of(&self, now: Timestamp) -> KindRate {
        let step = now.0 / STEP;
        let open = self.open.iter().map(|(at, rate)| (at, rate));
        let all = self.seconds.iter().chain(open);
        let recent = all.filter(|(at, _)| **at <= step && step < **at + STEPS);
        recent.fold(KindRate::default(), |sum, (_, rate)| KindRate {
            started: sum.started + rate.started,
            ended: sum.ended + rate.ended,
            failed: sum.failed + rate.failed,
        })
    }
}

#[cfg(test)]
mod tests;
