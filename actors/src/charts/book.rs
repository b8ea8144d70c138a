//! All figures of an engine: those of all roots, those of each kind, and when the engine counted.

use std::collections::VecDeque;

use procession_kernel::{Kind, Timestamp};

use super::series::Series;
use super::{MINUTE, Sample};
use crate::view::{Chart, ChartBucket, ChartOf, ChartSpan};

/// Kinds with figures of their own. Those that come later share one series, so that kinds that users name, one for each
/// of their tenants perhaps, take bounded memory.
pub(super) const KINDS_MAX: usize = 64;

/// Runs of engines that are remembered. A service that starts again and again has a gap in its charts for each older one.
const RUNS_MAX: usize = 64;

/// Where the figures of all roots are.
const ROOTS: usize = 0;
/// Where those of the kinds without figures of their own are.
const OTHERS: usize = 1;
/// Where those of the first kind are.
const FIRST: usize = 2;

/// Minutes from which an engine counted to the last one in which it is known to have counted, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) to: u64,
}

/// All figures of an engine.
pub(super) struct Book {
    /// The registered kinds, and where the figures of each are, once there are some.
    places: Vec<(Kind, Option<usize>)>,
    /// Kinds with figures, from [`FIRST`] on.
    named: Vec<Kind>,
    /// The figures: of roots, of other kinds, and of each named kind.
    series: Vec<Series>,
    /// When engines counted before this run, oldest first.
    runs: VecDeque<Span>,
    /// The minute in which this run began to count.
    begun: u64,
    /// Something is not on disk yet.
    is_changed: bool,
}

impl Book {
    pub(super) fn new<'a>(kinds: impl IntoIterator<Item = &'a Kind>, minute: u64) -> Self {
        Self {
            places: kinds.into_iter().map(|kind| (kind.clone(), None)).collect(),
            named: Vec::new(),
            series: vec![Series::default(); FIRST],
            runs: VecDeque::new(),
            begun: minute,
            is_changed: false,
        }
    }

    pub(super) fn count(&mut self, sample: Sample, minute: u64) {
        let (Sample::Ended { place, .. } | Sample::Queued { place, .. }) = sample;
        let Some(at) = self.series_of(place) else { return };
        let roots_count = match sample {
            Sample::Ended { is_root, .. } => is_root,
            Sample::Queued { .. } => true,
        };
        for at in std::iter::once(at).chain(roots_count.then_some(ROOTS)) {
            let Some(series) = self.series.get_mut(at) else {
                continue;
            };
            match sample {
                Sample::Ended { has_failed, took, .. } => series.ended(minute, has_failed, took),
                Sample::Queued { time, .. } => series.queued(minute, time),
            }
        }
    }

    /// Returns where the figures of a registered kind are, and makes room for them the first time.
    fn series_of(&mut self, place: usize) -> Option<usize> {
        let (kind, known) = self.places.get(place)?;
        if known.is_some() {
            return *known;
        }
        let at = self.named.iter().position(|named| named == kind).map(|at| at + FIRST);
        let at = match at {
            Some(at) => at,
            None => self.name(&kind.clone()).unwrap_or(OTHERS),
        };
        if let Some((_, known)) = self.places.get_mut(place) {
            *known = Some(at);
        }
        Some(at)
    }

    /// Adds a series for a kind, if there is room.
    fn name(&mut self, kind: &Kind) -> Option<usize> {
        if self.named.len() == KINDS_MAX {
            return None;
        }
        self.named.push(kind.clone());
        self.series.push(Series::default());
        Some(self.series.len() - 1)
    }

    /// Notes that something has changed; returns `true` if that is new.
    pub(super) const fn note_change(&mut self) -> bool {
        !std::mem::replace(&mut self.is_changed, true)
    }

    /// Returns `true` if something has changed since this was called last.
    pub(super) const fn take_change(&mut self) -> bool {
        std::mem::replace(&mut self.is_changed, false)
    }

    /// Returns a chart of all roots, or of a kind.
    pub(super) fn chart(&mut self, kind: Option<&Kind>, span: ChartSpan, minute: u64) -> Option<Chart> {
        let (of, at) = match kind {
            None => (ChartOf::Roots, Some(ROOTS)),
            Some(kind) => self.find(kind)?,
        };
        // The clock was set back: what is later is not known.
        self.begun = self.begun.min(minute);
        let step = span.step_minutes();
        let open = minute / step;
        let mut none = Series::default();
        let series = at.and_then(|at| self.series.get_mut(at)).unwrap_or(&mut none);
        series.turn(minute);
        let closed: Vec<u64> = (open.saturating_sub(span.buckets())..open).collect();
        let figures: Vec<_> = closed.iter().map(|bucket| series.figures(span, *bucket)).collect();
        let last = series.open_figures(span, minute);
        let closed = closed.into_iter().zip(figures).map(|(bucket, figures)| ChartBucket {
            from: Timestamp(bucket * step * MINUTE),
            figures: self.has_counted(bucket * step, step).then_some(figures),
        });
        let mut buckets: Vec<ChartBucket> = closed.collect();
        buckets.push(ChartBucket {
            from: Timestamp(open * step * MINUTE),
            figures: Some(last),
        });
        Some(Chart { of, buckets })
    }

    /// Returns how many procedures of all kinds ended as failures in the quarters of the last day and in the open one.
    pub(super) fn failed_in_a_day(&mut self, minute: u64) -> u64 {
        let each = self.series.iter_mut().skip(OTHERS);
        each.map(|series| series.failed_in_a_day(minute)).sum()
    }

    /// Finds the figures of a kind; there may be none yet of a kind that is registered.
    fn find(&self, kind: &Kind) -> Option<(ChartOf, Option<usize>)> {
        let named = self.named.iter().position(|named| named == kind).map(|at| at + FIRST);
        let place = self.places.iter().find(|(registered, _)| registered == kind);
        match (named, place) {
            (Some(at), _) => Some((ChartOf::Kind(kind.clone()), Some(at))),
            (None, Some((_, Some(at)))) => Some((ChartOf::OtherKinds, Some(*at))),
            (None, Some((_, None))) => Some((ChartOf::Kind(kind.clone()), None)),
            (None, None) => None,
        }
    }

    /// Returns `true` if an engine counted in one of these minutes.
    fn has_counted(&self, from: u64, minutes: u64) -> bool {
        let overlaps = |run: &Span| run.from < from + minutes && from <= run.to;
        self.begun < from + minutes || self.runs.iter().any(overlaps)
    }

    /// Returns how many series there are.
    pub(super) const fn len(&self) -> usize {
        self.series.len()
    }

    /// Returns when engines counted, this one up to now.
    pub(super) fn runs(&self, minute: u64) -> Vec<Span> {
        let run = Span {
            from: self.begun.min(minute),
            to: minute,
        };
        self.runs.iter().copied().chain([run]).collect()
    }

    /// Returns a copy of one series and the kind that it is of, as of this minute; `None` if it holds nothing.
    pub(super) fn copy(&mut self, at: usize, minute: u64) -> Option<(ChartOf, Series)> {
        let of = match at.checked_sub(FIRST) {
            Some(at) => ChartOf::Kind(self.named.get(at)?.clone()),
            None if at == ROOTS => ChartOf::Roots,
            None => ChartOf::OtherKinds,
        };
        let series = self.series.get_mut(at)?;
        series.turn(minute);
        (!series.is_empty()).then(|| (of, series.clone()))
    }

    /// Adds when engines counted before. Runs without a gap between them are one.
    pub(super) fn merge_runs(&mut self, runs: &[Span], minute: u64) {
        let mut known: Vec<Span> = self.runs.iter().chain(runs).copied().collect();
        known.retain(|run| run.from <= run.to && run.to <= minute);
        known.sort_by_key(|run| run.from);
        self.runs.clear();
        for run in known {
            match self.runs.back_mut().filter(|last| run.from <= last.to + 1) {
                Some(last) => last.to = last.to.max(run.to),
                None => self.runs.push_back(run),
            }
        }
        while self.runs.len() > RUNS_MAX {
            self.runs.pop_front();
        }
    }

    /// Adds the figures of a series that were counted before. A kind for which there is no room is left out.
    pub(super) fn merge(&mut self, of: &ChartOf, saved: Series, minute: u64) {
        let at = match of {
            ChartOf::Roots => Some(ROOTS),
            ChartOf::OtherKinds => Some(OTHERS),
            ChartOf::Kind(kind) => {
                let named = self.named.iter().position(|named| named == kind);
                named.map(|at| at + FIRST).or_else(|| self.name(kind))
            }
        };
        if let Some(series) = at.and_then(|at| self.series.get_mut(at)) {
            series.merge(saved, minute);
        }
    }
}
