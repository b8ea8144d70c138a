//! One limit: how many permits are out, of how many.

use procession_kernel::{LimitUse, ProcedureId, RateUse, Timestamp};
use serde::{Deserialize, Serialize};

use super::{millis, time};

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
    /// How many may begin in a time, if it has a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateView>,
    /// Procedures that wait for one.
    pub waiting: usize,
    /// Requests that came while there was no permit for them, and had to wait, since the engine
    /// started; none where none runs. No limit refuses.
    #[serde(default)]
    pub had_to_wait: Option<u64>,
    /// Who has one of the permits that are out, 100 at most.
    #[serde(default)]
    pub holders: Vec<String>,
    /// Who waits for one, in the order of service; 100 at most.
    #[serde(default)]
    pub waiters: Vec<LimitWaiterView>,
}

/// The rate of a limit, and what of it is used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RateView {
    /// How many may begin in one period.
    pub begins: u32,
    /// The period, in milliseconds.
    pub per_ms: u64,
    /// How many began within the last period.
    pub begun: u32,
    /// When the next may begin, if all are used up.
    pub free_at: Option<String>,
}

/// Who waits for a permit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LimitWaiterView {
    /// Who.
    pub id: String,
    /// Since when it waits for all that it lacks, as far as that is known.
    pub since: Option<String>,
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

impl From<&RateUse> for RateView {
    fn from(usage: &RateUse) -> Self {
        Self {
            begins: usage.rate.begins,
            per_ms: millis(usage.rate.period),
            begun: usage.begun,
            free_at: usage.free_at.map(time),
        }
    }
}

impl From<&LimitUse> for LimitView {
    fn from(limit: &LimitUse) -> Self {
        let waiter = |(id, since): &(ProcedureId, Option<Timestamp>)| LimitWaiterView {
            id: id.to_string(),
            since: since.map(time),
        };
        Self {
            key: limit.key.to_string(),
            limit: limit.limit,
            used: limit.used,
            rate: limit.rate.as_ref().map(RateView::from),
            waiting: limit.waiting,
            had_to_wait: Some(limit.had_to_wait),
            holders: limit.holders.iter().map(ToString::to_string).collect(),
            waiters: limit.waiters.iter().map(waiter).collect(),
        }
    }
}
