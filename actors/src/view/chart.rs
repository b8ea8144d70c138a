//! A chart: what ended in each stretch of the last hour or day, and how long it took.

use std::time::Duration;

use procession_kernel::{Kind, Timestamp};

/// How far back a chart goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartSpan {
    /// The last 60 minutes, minute by minute.
    Hour,
    /// The last 24 hours, a quarter of an hour at a time.
    Day,
}

impl ChartSpan {
    /// Returns how many buckets a chart has, the open one not counted.
    #[must_use]
    pub const fn buckets(self) -> u64 {
        match self {
            Self::Hour => 60,
            Self::Day => 96,
        }
    }

    /// Returns how long one bucket is, in minutes.
    #[must_use]
    pub const fn step_minutes(self) -> u64 {
        match self {
            Self::Hour => 1,
            Self::Day => 15,
        }
    }
}

/// The procedures that a chart counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChartOf {
    /// The roots of all kinds.
    Roots,
    /// All procedures of one kind, roots and children.
    Kind(Kind),
    /// All procedures of the kinds that have no figures of their own, because there are too many kinds.
    OtherKinds,
}

/// What ended in each stretch of time, and how long it took.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chart {
    /// The procedures that it counts.
    pub of: ChartOf,
    /// Its buckets, oldest first: complete stretches of time without gaps, and last the one that is still open.
    pub buckets: Vec<ChartBucket>,
}

/// One stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChartBucket {
    /// When it began.
    pub from: Timestamp,
    /// What was counted. `None` if no engine counted then, or the figures are lost.
    pub figures: Option<ChartFigures>,
}

/// What was counted in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChartFigures {
    /// Procedures that ended, however.
    pub ended: u64,
    /// Those of them that failed or were rolled back.
    pub failed: u64,
    /// How long the ended procedures took, from submission or spawn to end. `None` if none ended.
    pub took: Option<ChartTimes>,
    /// How long stages waited for a worker, permits and locks, from when they were ready to when their code began.
    /// Each attempt counts, undos do not. `None` if no stage ran.
    pub queued: Option<ChartTimes>,
}

/// How durations are distributed. Percentiles are within 4 % of the exact ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChartTimes {
    /// How many there are.
    pub count: u64,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
}
