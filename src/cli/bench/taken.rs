//! What a round took: time, and what the engine wrote in it.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use procession::Executor;
use procession::status::Snapshot;

use super::BenchError;
use super::machine;

/// Longest time that a histogram tells apart: a minute. Longer ones count as that.
const LONGEST_NS: u64 = 60_000_000_000;
/// Three digits hold.
const DIGITS: u8 = 3;

/// A round that has begun.
pub(super) struct Probe {
    before: Snapshot,
    processor: Option<Duration>,
    begun: Instant,
}

impl Probe {
    /// Begins a round.
    pub(super) async fn begin(executor: &Executor) -> Result<Self, BenchError> {
        Ok(Self {
            before: executor.snapshot().await?,
            processor: machine::processor_time(),
            begun: now(),
        })
    }

    /// Ends it now, with so many units of work done.
    pub(super) async fn end(self, executor: &Executor, units: f64) -> Result<Taken, BenchError> {
        let elapsed = self.begun.elapsed();
        let processor = machine::processor_time()
            .zip(self.processor)
            .map(|(after, before)| after.saturating_sub(before));
        let after = executor.snapshot().await?;
        let grown = |read: fn(&Snapshot) -> u64| read(&after).saturating_sub(read(&self.before));
        Ok(Taken {
            cost: Cost {
                units,
                elapsed,
                processor,
            },
            commits: grown(|snapshot| snapshot.commits),
            batches: grown(|snapshot| snapshot.batches),
            writes: grown(|snapshot| snapshot.appended_writes),
            bytes: grown(|snapshot| snapshot.appended_bytes),
            longest_turn: after.longest_turn,
            peak: machine::peak_bytes(),
        })
    }
}

impl Taken {
    /// What an engine has done since it was started, and how long ago somebody began to start it.
    pub(super) fn since_start(
        snapshot: &Snapshot,
        begun: Instant,
        processor_before: Option<Duration>,
        units: f64,
    ) -> Self {
        Self {
            cost: Cost {
                units,
                elapsed: begun.elapsed(),
                processor: machine::processor_time()
                    .zip(processor_before)
                    .map(|(after, before)| after.saturating_sub(before)),
            },
            commits: snapshot.commits,
            batches: snapshot.batches,
            writes: snapshot.appended_writes,
            bytes: snapshot.appended_bytes,
            longest_turn: snapshot.longest_turn,
            peak: machine::peak_bytes(),
        }
    }
}

/// What a round took.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) cost: Cost,
    pub(super) commits: u64,
    pub(super) batches: u64,
    pub(super) writes: u64,
    pub(super) bytes: u64,
    /// The longest that the supervisor did one thing, since the engine was started.
    pub(super) longest_turn: Duration,
    /// The most memory of this process since it began; none where the system does not tell.
    pub(super) peak: Option<u64>,
}

impl Taken {
    /// Units in a second.
    pub(super) fn rate(&self) -> f64 {
        self.cost.rate()
    }

    /// So many of something for each unit.
    pub(super) fn per_unit(&self, number: u64) -> f64 {
        count(number) / self.cost.units.max(f64::EPSILON)
    }

    /// Writes of a batch, on average.
    pub(super) fn mean_batch(&self) -> usize {
        rounded(self.writes, self.batches)
    }

    /// Bytes of a write, on average.
    pub(super) fn bytes_per_write(&self) -> usize {
        rounded(self.bytes, self.writes)
    }

    /// Processor time of each unit, in microseconds.
    pub(super) fn processor_us_per_unit(&self) -> Option<f64> {
        self.cost.processor_us_per_unit()
    }
}

/// Units of work, and the time that they took: of one round, or of several together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    /// Stages, children, sagas, whatever the workload counts.
    pub(super) units: f64,
    pub(super) elapsed: Duration,
    /// Processor time of the whole process; none where the system does not tell.
    pub(super) processor: Option<Duration>,
}

impl Cost {
    /// Units in a second.
    pub(super) fn rate(&self) -> f64 {
        self.units / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    /// Processor time of each unit, in microseconds.
    pub(super) fn processor_us_per_unit(&self) -> Option<f64> {
        let time = self.processor?;
        Some(time.as_secs_f64() * 1e6 / self.units.max(f64::EPSILON))
    }

    /// Both together. Its processor time is none if that of either is.
    fn and(self, other: Self) -> Self {
        Self {
            units: self.units + other.units,
            elapsed: self.elapsed + other.elapsed,
            processor: self.processor.zip(other.processor).map(|(one, more)| one + more),
        }
    }

    /// All of them together; none of none.
    pub(super) fn sum(costs: impl IntoIterator<Item = Self>) -> Option<Self> {
        costs.into_iter().reduce(Self::and)
    }
}

/// A time in milliseconds, to the microsecond.
pub(super) fn millis(time: Duration) -> f64 {
    thousandths(time.as_secs_f64() * 1e3)
}

/// Numbers up to 2⁵³ are exact as `f64`, and no round has more.
pub(super) fn count(number: u64) -> f64 {
    number as f64
}

fn rounded(all: u64, parts: u64) -> usize {
    let parts = parts.max(1);
    usize::try_from((all + parts / 2) / parts).unwrap_or(usize::MAX).max(1)
}

/// An empty histogram of times in nanoseconds.
pub(super) fn times() -> Histogram<u64> {
    Histogram::new_with_max(LONGEST_NS, DIGITS).unwrap_or_else(|_| unreachable!())
}

/// Adds a time to a histogram.
pub(super) fn record(times: &mut Histogram<u64>, time: Duration) {
    times.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
}

/// Reads a quantile in microseconds.
pub(super) fn quantile_us(times: &Histogram<u64>, quantile: f64) -> f64 {
    tenths(count(times.value_at_quantile(quantile)) / 1e3)
}

/// Returns the median of ratios that were found in several rounds; none if there were no rounds.
pub(super) fn median(mut ratios: Vec<f64>) -> Option<f64> {
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

/// Rounds to one digit behind the point.
pub(super) fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// Rounds to three digits behind the point.
pub(super) fn thousandths(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// Rounds a ratio to three digits behind the point, and one below a tenth to three digits that count: on a busy machine
/// a few commits may have a thousandth of the store's rate, and that is not none.
pub(super) fn significant(number: f64) -> f64 {
    if number <= 0.0 || number >= 0.1 {
        return thousandths(number);
    }
    let scale = 10f64.powf(2.0 - number.log10().floor());
    (number * scale).round() / scale
}

/// Rounds to a microsecond, of seconds.
pub(super) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}

#[expect(
    clippy::disallowed_methods,
    reason = "measures durations, and decides nothing from them"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Cost, significant};

    fn cost(units: f64, elapsed: u64, processor: Option<u64>) -> Cost {
        Cost {
            units,
            elapsed: Duration::from_secs(elapsed),
            processor: processor.map(Duration::from_secs),
        }
    }

    #[test]
    fn rounds_together_have_all_their_units_in_all_their_time() {
        let slow = cost(300.0, 3, Some(2));
        let together = Cost::sum([cost(300.0, 1, Some(1)), slow, cost(300.0, 1, Some(1))]);
        assert_eq!(together, Some(cost(900.0, 5, Some(4))));
        assert_eq!(together.map(|all| all.rate()), Some(180.0), "the slow one counts");
        assert_eq!(
            Cost::sum([slow, cost(300.0, 1, None)]).map(|all| all.processor),
            Some(None)
        );
        assert_eq!(Cost::sum([]), None);
    }

    #[test]
    fn a_small_ratio_keeps_digits_that_count() {
        let shown = [1.23456, 0.123_456, 0.099_96, 0.000_329_9, 0.0].map(significant);
        assert_eq!(shown, [1.235, 0.123, 0.1, 0.000_33, 0.0]);
    }
}
