//! How durations are distributed, in bounded space.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::view::ChartTimes;

/// The longest duration that is told apart, in microseconds: 60 days. Longer ones count as that.
pub(super) const LONGEST: u64 = 60 * 24 * 60 * 60 * 1_000_000;

/// Buckets are a sixteenth of their value wide, so that the middle of one is within 4 % of all in it. The counts of one
/// histogram take 2.5 KB.
const DIGITS: u8 = 1;

/// A histogram of durations, in microseconds. It takes no memory while it is empty.
#[derive(Clone, Default)]
pub(super) struct Durations(Option<Box<Histogram<u32>>>);

impl Durations {
    pub(super) fn note(&mut self, time: Duration) {
        self.note_many(u64::try_from(time.as_micros()).unwrap_or(LONGEST), 1);
    }

    /// Notes a duration that occurred this often.
    fn note_many(&mut self, micros: u64, count: u32) {
        if self.0.is_none() {
            // The bounds are constants within what the crate accepts; without a histogram nothing would be counted.
            self.0 = Histogram::new_with_bounds(1, LONGEST, DIGITS).ok().map(Box::new);
        }
        if let Some(histogram) = &mut self.0 {
            histogram.saturating_record_n(micros, count);
        }
    }

    /// Adds all durations of another histogram.
    pub(super) fn add(&mut self, other: &Self) {
        let Some(added) = &other.0 else { return };
        match &mut self.0 {
            // Both have the same bounds, so nothing is out of range.
            Some(histogram) => drop(histogram.add(&**added)),
            none => *none = Some(added.clone()),
        }
    }

    /// Returns the percentiles; `None` if there are no durations.
    pub(super) fn times(&self) -> Option<ChartTimes> {
        let histogram = self.0.as_ref().filter(|histogram| !histogram.is_empty())?;
        let within = |quantile: f64| {
            let value = histogram.value_at_quantile(quantile);
            Duration::from_micros(histogram.median_equivalent(value))
        };
        Some(ChartTimes {
            count: histogram.len(),
            p50: within(0.5),
            p99: within(0.99),
        })
    }

    /// Returns every duration that occurred and how often, one after the other.
    pub(super) fn saved(&self) -> Vec<u64> {
        let recorded = self.0.iter().flat_map(|histogram| histogram.iter_recorded());
        recorded
            .flat_map(|step| [step.value_iterated_to(), u64::from(step.count_at_value())])
            .collect()
    }

    /// Reads what [`saved`](Self::saved) returned.
    pub(super) fn of_saved(saved: &[u64]) -> Self {
        let mut read = Self::default();
        for pair in saved.chunks_exact(2) {
            if let [micros, count] = *pair {
                read.note_many(micros, u32::try_from(count).unwrap_or(u32::MAX));
            }
        }
        read
    }
}
