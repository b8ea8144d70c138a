//! The figures of one kind: the minutes of the last hour, the quarters of the last day, and what is still open.
//!
//! A bucket that is over keeps its counts and percentiles alone. The minute that is over is added to the open quarter,
//! so each sample is recorded once.

use std::collections::BTreeMap;
use std::time::Duration;

use super::durations::Durations;
use crate::view::{ChartFigures, ChartSpan};

/// Minutes of a quarter of an hour.
const QUARTER: u64 = ChartSpan::Day.step_minutes();

/// How far the clock may be set back before later buckets are forgotten, in minutes. Until it has caught up, the open
/// bucket counts.
const SET_BACK: u64 = 1;

/// What is counted of a bucket that is open.
#[derive(Clone, Default)]
pub(super) struct Open {
    /// The number of the bucket.
    pub(super) bucket: u64,
    pub(super) ended: u64,
    pub(super) failed: u64,
    pub(super) took: Durations,
    pub(super) queued: Durations,
}

impl Open {
    fn new(bucket: u64) -> Self {
        Self {
            bucket,
            ..Self::default()
        }
    }

    fn add(&mut self, other: &Self) {
        self.ended = self.ended.saturating_add(other.ended);
        self.failed = self.failed.saturating_add(other.failed);
        self.took.add(&other.took);
        self.queued.add(&other.queued);
    }

    fn figures(&self) -> ChartFigures {
        ChartFigures {
            ended: self.ended,
            failed: self.failed,
            took: self.took.times(),
            queued: self.queued.times(),
        }
    }
}

/// The figures of one kind.
#[derive(Clone, Default)]
pub(super) struct Series {
    /// Minutes that are over, by number; those without figures are not there.
    pub(super) minutes: BTreeMap<u64, ChartFigures>,
    /// Quarters that are over.
    pub(super) quarters: BTreeMap<u64, ChartFigures>,
    pub(super) minute: Option<Open>,
    /// The open quarter, without the open minute.
    pub(super) quarter: Option<Open>,
}

impl Series {
    pub(super) fn ended(&mut self, minute: u64, has_failed: bool, took: Duration) {
        let open = self.at(minute);
        open.ended += 1;
        open.failed += u64::from(has_failed);
        open.took.note(took);
    }

    pub(super) fn queued(&mut self, minute: u64, time: Duration) {
        self.at(minute).queued.note(time);
    }

    fn at(&mut self, minute: u64) -> &mut Open {
        self.turn(minute);
        self.minute.get_or_insert_with(|| Open::new(minute))
    }

    /// Closes what is over at this minute, and forgets what is too old, or later than a clock that was set back.
    pub(super) fn turn(&mut self, minute: u64) {
        let is_here = |open: &Open| open.bucket == minute;
        if self.minute.as_ref().is_some_and(is_here) {
            return;
        }
        let is_later = |open: &Open| open.bucket > minute + SET_BACK;
        let last = self.minutes.last_key_value().map(|(bucket, _)| *bucket);
        if self.minute.as_ref().is_some_and(is_later) || last.is_some_and(|last| last > minute + SET_BACK) {
            self.forget_from(minute);
        }
        if let Some(open) = self.minute.take_if(|open| open.bucket < minute) {
            self.close_minute(open);
        }
        if let Some(open) = self.quarter.take_if(|open| open.bucket < minute / QUARTER) {
            self.quarters.insert(open.bucket, open.figures());
        }
        // One more than a chart shows: a clock that was set back a little shows it again.
        let oldest = |at: u64, span: ChartSpan| at.saturating_sub(span.buckets() + SET_BACK);
        let (minutes, quarters) = (
            oldest(minute, ChartSpan::Hour),
            oldest(minute / QUARTER, ChartSpan::Day),
        );
        self.minutes = self.minutes.split_off(&minutes);
        self.quarters = self.quarters.split_off(&quarters);
    }

    fn close_minute(&mut self, open: Open) {
        let bucket = open.bucket / QUARTER;
        if let Some(before) = self.quarter.take_if(|before| before.bucket < bucket) {
            self.quarters.insert(before.bucket, before.figures());
        }
        self.quarter.get_or_insert_with(|| Open::new(bucket)).add(&open);
        self.minutes.insert(open.bucket, open.figures());
    }

    fn forget_from(&mut self, minute: u64) {
        self.minutes.retain(|bucket, _| *bucket < minute);
        self.quarters.retain(|bucket, _| *bucket < minute / QUARTER);
        self.minute.take_if(|open| open.bucket >= minute);
        self.quarter.take_if(|open| open.bucket > minute / QUARTER);
    }

    /// Returns the figures of a bucket of either length. Call [`turn`](Self::turn) before.
    pub(super) fn figures(&self, span: ChartSpan, bucket: u64) -> ChartFigures {
        let closed = match span {
            ChartSpan::Hour => self.minutes.get(&bucket),
            ChartSpan::Day => self.quarters.get(&bucket),
        };
        closed.copied().unwrap_or_default()
    }

    /// Returns the figures of the bucket that is open at this minute.
    pub(super) fn open_figures(&self, span: ChartSpan, minute: u64) -> ChartFigures {
        let open = self.minute.iter();
        match span {
            ChartSpan::Hour => open.map(Open::figures).next().unwrap_or_default(),
            ChartSpan::Day => {
                let quarter = self.quarter.iter().filter(|open| open.bucket == minute / QUARTER);
                let mut whole = Open::default();
                quarter.chain(open).for_each(|part| whole.add(part));
                whole.figures()
            }
        }
    }

    /// Returns how many failed in the quarters of the last day and in the open one.
    pub(super) fn failed_in_a_day(&mut self, minute: u64) -> u64 {
        self.turn(minute);
        let first = (minute / QUARTER).saturating_sub(ChartSpan::Day.buckets());
        let closed = self.quarters.range(first..).map(|(_, figures)| figures.failed);
        let open = [&self.quarter, &self.minute]
            .into_iter()
            .flatten()
            .map(|open| open.failed);
        closed.chain(open).sum()
    }

    /// Adds what was counted before a restart. What both have closed stands as it is here.
    pub(super) fn merge(&mut self, mut saved: Self, minute: u64) {
        saved.turn(minute);
        self.turn(minute);
        for (mine, theirs) in [(&mut self.minutes, saved.minutes), (&mut self.quarters, saved.quarters)] {
            for (bucket, figures) in theirs {
                mine.entry(bucket).or_insert(figures);
            }
        }
        for (mine, theirs) in [(&mut self.minute, saved.minute), (&mut self.quarter, saved.quarter)] {
            match (mine.as_mut(), theirs) {
                (Some(mine), Some(theirs)) if mine.bucket == theirs.bucket => mine.add(&theirs),
                (None, Some(theirs)) => *mine = Some(theirs),
                (_, _) => {}
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.minutes.is_empty() && self.quarters.is_empty() && self.minute.is_none() && self.quarter.is_none()
    }
}
