//! Handles of limits, owned by the limiter.

use std::collections::BTreeMap;

use metrics::{Counter, Gauge};
use procession_kernel::{LimitKey, LimitUse, RateUse};

use super::names::{
    LIMITER_HAD_TO_WAIT, LIMITER_LIMIT, LIMITER_RATE_LEFT, LIMITER_USED, LIMITER_WAITING, counter, gauge, shared,
};

struct LimitMetrics {
    used: Gauge,
    limit: Gauge,
    waiting: Gauge,
    had_to_wait: Counter,
    rate_left: Gauge,
}

/// Handles of limits, owned by the limiter.
#[derive(Default)]
pub(crate) struct LimiterMetrics(BTreeMap<LimitKey, LimitMetrics>);

impl LimiterMetrics {
    pub(crate) fn new(limits: &[LimitUse]) -> Self {
        let mut new = Self::default();
        for limit in limits {
            new.set(limit);
        }
        new
    }

    /// Sets the gauges of a limit; a new limit gets its handles here.
    pub(crate) fn set(&mut self, limit: &LimitUse) {
        let of = self.0.entry(limit.key.clone()).or_insert_with(|| {
            let name = shared(limit.key.as_str());
            let labels = || [name.clone()];
            LimitMetrics {
                used: gauge(&LIMITER_USED, labels()),
                limit: gauge(&LIMITER_LIMIT, labels()),
                waiting: gauge(&LIMITER_WAITING, labels()),
                had_to_wait: counter(&LIMITER_HAD_TO_WAIT, labels()),
                rate_left: gauge(&LIMITER_RATE_LEFT, labels()),
            }
        });
        of.used.set(limit.used);
        of.limit.set(limit.limit.map_or(f64::INFINITY, f64::from));
        of.waiting.set(limit.waiting as f64);
        of.had_to_wait.absolute(limit.had_to_wait);
        let left = |rate: RateUse| f64::from(rate.rate.begins.saturating_sub(rate.begun));
        of.rate_left.set(limit.rate.map_or(f64::INFINITY, left));
    }
}
