//! The figures as they are in the file: a line of text, a checksum, and an engine's value with named fields. Columns
//! of numbers, not rows, so that a name is written once for all buckets, and buckets by their age, which is one byte.
//!
//! `docs/reference/journal-format.md` describes it. Fields are only added.

use std::collections::BTreeMap;
use std::time::Duration;

use procession_kernel::Kind;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::book::{KINDS_MAX, Span};
use super::durations::Durations;
use super::series::{Open, Series};
use crate::error::CodecError;
use crate::journal::codec;
use crate::view::{ChartFigures, ChartOf, ChartTimes};

/// What the file begins with.
const HEAD: &[u8] = b"procession charts 1\n";

/// The largest file that is read. The largest that is written is a sixth of it.
pub(super) const BYTES_MAX: usize = 4 << 20;

/// Why a file is not read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// It is no file of charts, or one of a later release.
    Foreign,
    /// It is one of another journal.
    OfAnotherJournal,
    /// Its bytes are not those that were written.
    Damaged,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Foreign => "it is no file of charts that this release knows",
            Self::OfAnotherJournal => "it belongs to another journal",
            Self::Damaged => "it is damaged",
        })
    }
}

/// All that is in the file.
#[derive(Default, Serialize, Deserialize)]
pub(super) struct Saved {
    /// The number of the store that it belongs to.
    #[serde(rename = "s", default)]
    store: u64,
    /// The minute in which it was written.
    #[serde(rename = "m", default)]
    minute: u64,
    /// When engines counted: from, to, from, to.
    #[serde(rename = "r", default)]
    runs: Vec<u64>,
    #[serde(rename = "a", default)]
    roots: Option<SavedSeries>,
    #[serde(rename = "o", default)]
    others: Option<SavedSeries>,
    #[serde(rename = "k", default)]
    kinds: BTreeMap<String, SavedSeries>,
}

/// One series.
#[derive(Default, Serialize, Deserialize)]
struct SavedSeries {
    #[serde(rename = "m", default)]
    minutes: Columns,
    #[serde(rename = "q", default)]
    quarters: Columns,
    #[serde(rename = "om", default)]
    minute: Option<SavedOpen>,
    #[serde(rename = "oq", default)]
    quarter: Option<SavedOpen>,
}

/// Buckets that are over: a column for each figure.
#[derive(Default, Serialize, Deserialize)]
struct Columns {
    /// How many buckets before that of the file's minute it is.
    #[serde(rename = "b", default)]
    age: Vec<u64>,
    #[serde(rename = "e", default)]
    ended: Vec<u64>,
    #[serde(rename = "f", default)]
    failed: Vec<u64>,
    /// Count, median and 99th percentile in microseconds, of what ended.
    #[serde(rename = "t", default)]
    took: Vec<u64>,
    /// The same of the waits of stages.
    #[serde(rename = "q", default)]
    queued: Vec<u64>,
}

/// A bucket that was open.
#[derive(Default, Serialize, Deserialize)]
struct SavedOpen {
    #[serde(rename = "b", default)]
    bucket: u64,
    #[serde(rename = "e", default)]
    ended: u64,
    #[serde(rename = "f", default)]
    failed: u64,
    /// Microseconds and how often, one after the other.
    #[serde(rename = "t", default)]
    took: Vec<u64>,
    #[serde(rename = "q", default)]
    queued: Vec<u64>,
}

impl Saved {
    pub(super) fn new(store: u64, minute: u64, runs: &[Span]) -> Self {
        Self {
            store,
            minute,
            runs: runs.iter().flat_map(|run| [run.from, run.to]).collect(),
            ..Self::default()
        }
    }

    pub(super) fn put(&mut self, of: ChartOf, series: &Series) {
        let saved = SavedSeries::new(series, self.minute);
        match of {
            ChartOf::Roots => self.roots = Some(saved),
            ChartOf::OtherKinds => self.others = Some(saved),
            ChartOf::Kind(kind) => drop(self.kinds.insert(kind.as_str().to_owned(), saved)),
        }
    }

    /// Returns the bytes of the file.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        let mut body = Vec::new();
        codec::encode_into(&mut body, self)?;
        let sum = xxh3_64(&body).to_le_bytes();
        Ok([HEAD, &sum, &body].concat())
    }

    /// Reads the bytes of a file.
    pub(super) fn of_bytes(bytes: &[u8], store: u64) -> Result<Self, Unreadable> {
        let rest = bytes.strip_prefix(HEAD).ok_or(Unreadable::Foreign)?;
        let (sum, body) = rest.split_first_chunk::<8>().ok_or(Unreadable::Damaged)?;
        if u64::from_le_bytes(*sum) != xxh3_64(body) {
            return Err(Unreadable::Damaged);
        }
        let read: Self = codec::decode(body).map_err(|_| Unreadable::Foreign)?;
        match read.store == store {
            true => Ok(read),
            false => Err(Unreadable::OfAnotherJournal),
        }
    }

    /// Returns when engines counted.
    pub(super) fn runs(&self) -> Vec<Span> {
        let pairs = self.runs.chunks_exact(2);
        let run = |pair: &[u64]| match *pair {
            [from, to] => Some(Span { from, to }),
            _ => None,
        };
        pairs.filter_map(run).collect()
    }

    /// Returns each series that was read.
    pub(super) fn series(self) -> impl Iterator<Item = (ChartOf, Series)> {
        let written = self.minute;
        let named = self.kinds.into_iter().take(KINDS_MAX);
        let kinds = named.map(|(kind, series)| (ChartOf::Kind(Kind::from(kind)), series));
        let shared = [(ChartOf::Roots, self.roots), (ChartOf::OtherKinds, self.others)];
        let shared = shared.into_iter().filter_map(|(of, series)| Some((of, series?)));
        shared
            .chain(kinds)
            .map(move |(of, series)| (of, series.series(written)))
    }
}

impl SavedSeries {
    fn new(series: &Series, minute: u64) -> Self {
        Self {
            minutes: Columns::new(&series.minutes, minute),
            quarters: Columns::new(&series.quarters, minute / QUARTER),
            minute: series.minute.as_ref().map(SavedOpen::new),
            quarter: series.quarter.as_ref().map(SavedOpen::new),
        }
    }

    fn series(&self, minute: u64) -> Series {
        Series {
            minutes: self.minutes.figures(minute),
            quarters: self.quarters.figures(minute / QUARTER),
            minute: self.minute.as_ref().map(SavedOpen::open),
            quarter: self.quarter.as_ref().map(SavedOpen::open),
        }
    }
}

const QUARTER: u64 = crate::view::ChartSpan::Day.step_minutes();

impl Columns {
    fn new(closed: &BTreeMap<u64, ChartFigures>, now: u64) -> Self {
        let mut columns = Self::default();
        for (bucket, figures) in closed {
            columns.age.push(now.saturating_sub(*bucket));
            columns.ended.push(figures.ended);
            columns.failed.push(figures.failed);
            columns.took.extend(saved_times(figures.took));
            columns.queued.extend(saved_times(figures.queued));
        }
        columns
    }

    fn figures(&self, now: u64) -> BTreeMap<u64, ChartFigures> {
        let column = |numbers: &[u64], at: usize| numbers.get(at).copied().unwrap_or_default();
        let figures = |(at, age): (usize, &u64)| {
            let figures = ChartFigures {
                ended: column(&self.ended, at),
                failed: column(&self.failed, at),
                took: read_times(&self.took, at),
                queued: read_times(&self.queued, at),
            };
            (now.saturating_sub(*age), figures)
        };
        self.age.iter().enumerate().map(figures).collect()
    }
}

fn saved_times(times: Option<ChartTimes>) -> [u64; 3] {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    times.map_or([0; 3], |times| [times.count, micros(times.p50), micros(times.p99)])
}

fn read_times(numbers: &[u64], at: usize) -> Option<ChartTimes> {
    let [count, p50, p99] = *numbers.get(at * 3..)?.first_chunk::<3>()?;
    (count > 0).then(|| ChartTimes {
        count,
        p50: Duration::from_micros(p50),
        p99: Duration::from_micros(p99),
    })
}

impl SavedOpen {
    fn new(open: &Open) -> Self {
        Self {
            bucket: open.bucket,
            ended: open.ended,
            failed: open.failed,
            took: open.took.saved(),
            queued: open.queued.saved(),
        }
    }

    fn open(&self) -> Open {
        Open {
            bucket: self.bucket,
            ended: self.ended,
            failed: self.failed,
            took: Durations::of_saved(&self.took),
            queued: Durations::of_saved(&self.queued),
        }
    }
}
