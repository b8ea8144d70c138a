//! One round: so many procedures, so many of them at once, and what it took.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use hdrhistogram::Histogram;
use procession::{Executor, Snapshot};

use super::BenchError;
use super::chain::{Chain, Meter};
use super::machine;

/// Longest time that a histogram tells apart: a minute. Longer ones count as that.
const LONGEST_NS: u64 = 60_000_000_000;
/// Three digits hold.
const DIGITS: u8 = 3;

/// What a round runs.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) concurrency: u32,
    pub(super) procedures: u32,
    pub(super) stages: u32,
    pub(super) payload: String,
}

impl Shape {
    /// A tenth of it, so that files, caches and threads are there.
    pub(super) fn warm_up(&self) -> Self {
        Self {
            procedures: (self.procedures / 10).max(1),
            ..self.clone()
        }
    }

    /// Submissions that may wait: all that run at once, and some to spare.
    pub(super) fn queue(&self) -> usize {
        usize::try_from(self.concurrency)
            .unwrap_or(usize::MAX)
            .saturating_mul(2)
            .max(4_096)
    }

    fn chain(&self, slot: u32) -> Chain {
        Chain {
            slot,
            ran: 0,
            stages: self.stages,
            payload: self.payload.clone(),
        }
    }

    /// Stages of the whole round.
    pub(super) fn stages_in_all(&self) -> f64 {
        f64::from(self.procedures) * f64::from(self.stages)
    }
}

/// What a round took.
pub(super) struct Round {
    pub(super) stages: f64,
    pub(super) elapsed: Duration,
    /// Processor time of the whole process; none where the system does not tell.
    pub(super) processor: Option<Duration>,
    pub(super) commits: u64,
    pub(super) batches: u64,
    pub(super) writes: u64,
    pub(super) bytes: u64,
    /// Stage to stage, in nanoseconds.
    pub(super) stage_times: Histogram<u64>,
    /// Submission to outcome, in nanoseconds.
    pub(super) procedure_times: Histogram<u64>,
}

impl Round {
    pub(super) fn stages_per_second(&self) -> f64 {
        self.stages / self.elapsed.as_secs_f64().max(f64::EPSILON)
    }

    pub(super) fn writes_per_stage(&self) -> f64 {
        count(self.writes) / self.stages
    }

    pub(super) fn bytes_per_stage(&self) -> f64 {
        count(self.bytes) / self.stages
    }

    /// Writes of a batch, on average.
    pub(super) fn mean_batch(&self) -> usize {
        rounded(self.writes, self.batches)
    }

    /// Bytes of a write, on average.
    pub(super) fn bytes_per_write(&self) -> usize {
        rounded(self.bytes, self.writes)
    }
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

#[expect(
    clippy::disallowed_methods,
    reason = "measures durations, and decides nothing from them"
)]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Runs one round and measures it.
pub(super) async fn run_round(executor: &Executor, meter: &Meter, shape: &Shape) -> Result<Round, BenchError> {
    let mut procedure_times = times();
    drop(meter.take());
    let before = executor.snapshot().await?;
    let processor_before = machine::processor_time();
    let begun = now();
    let mut ended = stream::iter(0..shape.procedures)
        .map(|slot| run_one(executor, shape.chain(slot)))
        .buffer_unordered(usize::try_from(shape.concurrency).unwrap_or(usize::MAX));
    while let Some(took) = ended.try_next().await? {
        procedure_times.saturating_record(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }
    let elapsed = begun.elapsed();
    let processor = machine::processor_time()
        .zip(processor_before)
        .map(|(after, before)| after.saturating_sub(before));
    let after = executor.snapshot().await?;
    Ok(Round {
        stages: shape.stages_in_all(),
        elapsed,
        processor,
        commits: grown(&before, &after, |snapshot| snapshot.commits),
        batches: grown(&before, &after, |snapshot| snapshot.batches),
        writes: grown(&before, &after, |snapshot| snapshot.appended_writes),
        bytes: grown(&before, &after, |snapshot| snapshot.appended_bytes),
        stage_times: meter.take(),
        procedure_times,
    })
}

fn grown(before: &Snapshot, after: &Snapshot, read: impl Fn(&Snapshot) -> u64) -> u64 {
    read(after).saturating_sub(read(before))
}

async fn run_one(executor: &Executor, chain: Chain) -> Result<Duration, BenchError> {
    let begun = now();
    let handle = executor.submit(chain).await?;
    handle.await?;
    Ok(begun.elapsed())
}
