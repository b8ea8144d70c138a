//! One limit: how many permits are out, of how many.

use procession_kernel::LimitUse;
use serde::{Deserialize, Serialize};

/// One limit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LimitView {
    /// Its name: that of a kind, one of its own, or `*` for all.
    pub key: String,
    /// Permits in all; none if that is unlimited, or not known here.
    pub limit: Option<u32>,
    /// Permits that are out.
    pub used: u32,
    /// Procedures that wait for one.
    pub waiting: usize,
}

impl From<&LimitUse> for LimitView {
    fn from(limit: &LimitUse) -> Self {
        Self {
            key: limit.key.to_string(),
            limit: limit.limit,
            used: limit.used,
            waiting: limit.waiting,
        }
    }
}
