//! Measures the time from one stage of a procedure to its next, where they run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hdrhistogram::Histogram;

use crate::bench::taken::{now, times};

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
