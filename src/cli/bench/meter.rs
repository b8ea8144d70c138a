//! Measures the time from one stage of a procedure to its next, where they run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::TryStreamExt;
use hdrhistogram::Histogram;
use procession::Executor;

use super::BenchError;
use super::common::at_once;
use super::taken::{Probe, Taken, now, record, times};

/// What the stages of a round report to.
#[derive(Clone)]
pub(super) struct Meter(Arc<Readings>);

struct Readings {
    begun: Instant,
    /// When each procedure's last stage ran, in nanoseconds from `begun`.
    last: Vec<AtomicU64>,
    between: Mutex<Histogram<u64>>,
}

impl Meter {
    /// Makes a meter for so many procedures in a round.
    pub(super) fn new(procedures: u32) -> Self {
        let last = (0..procedures).map(|_| AtomicU64::new(0)).collect();
        Self(Arc::new(Readings {
            begun: now(),
            last,
            between: Mutex::new(times()),
        }))
    }

    /// Says that a stage of this procedure runs now.
    pub(super) fn stage_ran(&self, slot: u32, first: bool) {
        let at = u64::try_from(self.0.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let Some(last) = usize::try_from(slot).ok().and_then(|slot| self.0.last.get(slot)) else {
            return;
        };
        let before = last.swap(at, Ordering::Relaxed);
        if !first {
            self.between().saturating_record(at.saturating_sub(before));
        }
    }

    fn between(&self) -> MutexGuard<'_, Histogram<u64>> {
        self.0.between.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what was measured since the last time, and begins anew.
    pub(super) fn take(&self) -> Histogram<u64> {
        std::mem::replace(&mut *self.between(), times())
    }
}

/// What a meter measures in a round, in nanoseconds.
pub(super) struct Times {
    /// Stage to stage.
    pub(super) stages: Histogram<u64>,
    /// Submission to outcome.
    pub(super) procedures: Histogram<u64>,
}

/// How many run in a round, and how many of them at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) procedures: u32,
    pub(super) concurrency: u32,
    /// Units of work that all of them are.
    pub(super) units: f64,
}

impl Meter {
    /// Runs a round. `run_one` runs the procedure with this number to its end, and returns how long that took.
    pub(super) async fn round<F>(
        &self,
        executor: &Executor,
        load: Load,
        run_one: impl FnMut(u32) -> F,
    ) -> Result<(Taken, Times), BenchError>
    where
        F: Future<Output = Result<Duration, BenchError>>,
    {
        let mut procedures = times();
        drop(self.take());
        let probe = Probe::begin(executor).await?;
        let mut ended = at_once(load.procedures, load.concurrency, run_one);
        while let Some(took) = ended.try_next().await? {
            record(&mut procedures, took);
        }
        let taken = probe.end(executor, load.units).await?;
        let stages = self.take();
        Ok((taken, Times { stages, procedures }))
    }
}
