//! A retry policy as a node stores it. The kernel's own is a setting of a kind, and is never stored.

use std::time::Duration;

use procession_kernel::RetryPolicy;
use serde::{Deserialize, Serialize};

/// A [`RetryPolicy`] on disk.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct StoredRetry {
    #[serde(rename = "a")]
    attempts: u32,
    #[serde(rename = "b")]
    base: Duration,
    #[serde(rename = "f")]
    factor: u32,
    #[serde(rename = "m")]
    max: Duration,
    #[serde(rename = "j", default)]
    jitter: u16,
}

impl From<RetryPolicy> for StoredRetry {
    fn from(policy: RetryPolicy) -> Self {
        Self {
            attempts: policy.attempts,
            base: policy.base,
            factor: policy.factor,
            max: policy.max,
            jitter: policy.jitter,
        }
    }
}

impl From<StoredRetry> for RetryPolicy {
    fn from(stored: StoredRetry) -> Self {
        Self::default()
            .attempts(stored.attempts)
            .base(stored.base)
            .factor(stored.factor)
            .max(stored.max)
            .jitter(stored.jitter)
    }
}
