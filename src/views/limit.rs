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
    /// Requests that came while there was no permit for them, and had to wait, since the engine
    /// started; none where none runs. No limit refuses.
    #[serde(default)]
    pub had_to_wait: Option<u64>,
}

impl LimitView {
    /// Shows a limit of a journal that is closed: what happened since a start is not in it.
    #[must_use]
    pub fn at_rest(limit: &LimitUse) -> Self {
        Self {
            had_to_wait: None,
            ..Self::from(limit)
        }
    }
}

impl From<&LimitUse> for LimitView {
    fn from(limit: &LimitUse) -> Self {
        Self {
            key: limit.key.to_string(),
            limit: limit.limit,
            used: limit.used,
            waiting: limit.waiting,
            had_to_wait: Some(limit.had_to_wait),
        }
    }
}
