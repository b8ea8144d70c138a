//! What begins and ends now: of each kind, how many within the last minute. It goes by the times that
//! are in the rows, so it is the same whenever they are told of.

use std::collections::BTreeMap;

use procession_actors::view::Status;
use procession_kernel::{Kind, ProcedureState, Timestamp};

/// How long one count is, in microseconds.
const STEP: u64 = 1_000_000;
/// Counts that make the window: a minute, of which the last second is not over.
const STEPS: u64 = 60;

/// How many of one kind there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Born.
    pub(crate) started: u32,
    /// Ended, however.
    pub(crate) ended: u32,
    /// Ended, and not as successes.
    pub(crate) failed: u32,
}

/// Counts by second, of those seconds in which something was.
#[derive(Default)]
pub(crate) struct Rates(BTreeMap<Kind, BTreeMap<u64, Rate>>);

impl Rates {
    /// Milliseconds of the window.
    pub(crate) const WINDOW_MS: u64 = STEPS * STEP / 1_000;

    /// Takes a row, and the one that stood before it, if that is known.
    pub(super) fn take(&mut self, row: &Status, before: Option<&Status>) {
        if before.is_none() {
            self.count(&row.kind, row.submitted, |rate| rate.started += 1);
        }
        let Some(ended) = row.ended.filter(|_| before.is_none_or(|before| before.ended.is_none())) else {
            return;
        };
        let failed = u32::from(row.state != ProcedureState::Success);
        self.count(&row.kind, ended, |rate| {
            rate.ended += 1;
            rate.failed += failed;
        });
    }

    fn count(&mut self, kind: &Kind, at: Timestamp, count: impl Fn(&mut Rate)) {
        let step = at.0 / STEP;
        if !self.0.contains_key(kind) {
            self.0.insert(kind.clone(), BTreeMap::new());
        }
        let Some(counts) = self.0.get_mut(kind) else { return };
        let newest = counts.last_key_value().map_or(step, |(newest, _)| *newest);
        if step + STEPS <= newest {
            return;
        }
        count(counts.entry(step).or_default());
        while counts
            .first_key_value()
            .is_some_and(|(oldest, _)| oldest + STEPS <= step)
        {
            counts.pop_first();
        }
    }

    /// Keeps what was counted before the rows were read anew: the store no longer has all of it.
    pub(super) fn keep(&mut self, before: Self) {
        for (kind, counts) in before.0 {
            let mine = self.0.entry(kind).or_default();
            for (step, old) in counts {
                let rate = mine.entry(step).or_default();
                rate.started = rate.started.max(old.started);
                rate.ended = rate.ended.max(old.ended);
                rate.failed = rate.failed.max(old.failed);
            }
        }
    }

    /// Returns what there was of a kind in the last minute.
    pub(crate) fn of(&self, kind: &Kind, now: Timestamp) -> Rate {
        let step = now.0 / STEP;
        let counts = self.0.get(kind).into_iter().flat_map(BTreeMap::iter);
        let recent = counts.filter(|(at, _)| **at <= step && step < **at + STEPS);
        recent.fold(Rate::default(), |sum, (_, rate)| Rate {
            started: sum.started + rate.started,
            ended: sum.ended + rate.ended,
            failed: sum.failed + rate.failed,
        })
    }
}

#[cfg(test)]
mod tests;
