//! The procedure that is measured: a counter that goes up by one in each stage.
//!
//! Its stages do nothing, so that all the time there is belongs to the engine.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hdrhistogram::Histogram;
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::load::{now, times};

/// A chain of stages.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Chain {
    /// Which of the round's procedures it is.
    pub(super) slot: u32,
    /// Stages that have run.
    pub(super) ran: u32,
    /// Stages in all.
    pub(super) stages: u32,
    /// What it carries.
    pub(super) payload: String,
}

impl Procedure for Chain {
    const KIND: &'static str = "bench_chain";
    type Stage = ();
    type Env = Meter;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().stage_ran(self.slot, self.ran == 0);
        self.ran += 1;
        if self.ran >= self.stages {
            Ok(Step::Done(()))
        } else {
            Ok(Step::Next(()))
        }
    }
}

/// Makes text of this length from a seed.
pub(super) fn payload(seed: u64, length: u32) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letter = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + u8::try_from(state % 26).unwrap_or_default())
    };
    std::iter::repeat_with(letter)
        .take(usize::try_from(length).unwrap_or_default())
        .collect()
}

/// Measures the time from one stage of a procedure to its next, where they run.
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

    fn stage_ran(&self, slot: u32, first: bool) {
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

    /// Gives what was measured since the last time, and begins anew.
    pub(super) fn take(&self) -> Histogram<u64> {
        std::mem::replace(&mut *self.between(), times())
    }
}
