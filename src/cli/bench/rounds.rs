//! The rounds of a run: engine and raw store take turns, and the median round is shown, beside what all took together.

use std::path::{Path, PathBuf};
use std::time::Duration;

use procession::store::{RawLoad, RawRate, raw_store_rate};

use super::BenchError;
use super::common::remove;
use super::taken::{Cost, Taken};

/// Longest raw measurement of one round. Long enough for a few thousand syncs.
const RAW_TIME: Duration = Duration::from_millis(1_500);
/// Most batches of one raw measurement: as many as 4 GiB of a large batch would fill.
const RAW_BATCHES: u32 = 10_000;
/// Single-put commits measured for their median.
const SINGLE_COMMITS: u32 = 2_000;
/// Batches and commits measured of the store alone for each that a round made: more tell nothing about a short round.
const FOR_EACH: u64 = 16;
/// Fewest batches of one raw measurement.
const FEWEST: u32 = 256;

/// Rounds that were run, each with the rate of the store right behind it.
pub(super) struct Rounds<T> {
    directory: PathBuf,
    side_by_side: u64,
    rounds: Vec<(Taken, T)>,
    raw: Vec<RawRate>,
}

impl<T> Rounds<T> {
    /// Begins a run that writes below this directory.
    pub(super) fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_path_buf(),
            side_by_side: 1,
            rounds: Vec::new(),
            raw: Vec::new(),
        }
    }

    /// Has the store write the keys of so many procedures that advance side by side, as the engine does.
    pub(super) fn side_by_side(mut self, procedures: u32) -> Self {
        self.side_by_side = u64::from(procedures);
        self
    }

    /// Adds a round, and measures the store with batches of the same mean size.
    pub(super) async fn add(&mut self, taken: Taken, more: T) -> Result<(), BenchError> {
        let place = self.directory.join("raw");
        let load = RawLoad {
            side_by_side: self.side_by_side,
            batches: at_most(RAW_BATCHES, taken.batches),
            ..raw_load(taken.mean_batch(), taken.bytes_per_write())
        };
        self.raw.push(raw_store_rate(&place, load).await?);
        self.rounds.push((taken, more));
        remove(&place)
    }

    /// Picks the round with the median rate, and of the raw measurements the median one.
    pub(super) async fn summarize(mut self) -> Result<Summary<T>, BenchError> {
        let order = f64::total_cmp;
        self.rounds
            .sort_by(|left, right| order(&left.0.rate(), &right.0.rate()));
        self.raw
            .sort_by(|left, right| order(&left.writes_per_second, &right.writes_per_second));
        let rate = |round: Option<&(Taken, T)>| round.map_or(0.0, |(taken, _)| taken.rate());
        let (slowest, fastest) = (rate(self.rounds.first()), rate(self.rounds.last()));
        let raw = self.raw.get(self.raw.len() / 2).ok_or(BenchError::NoRound)?;
        let raw_writes_per_second = raw.writes_per_second;
        let number = self.rounds.len();
        let costs = self.rounds.iter().map(|(taken, _)| taken.cost);
        let overall = Cost::sum(costs).ok_or(BenchError::NoRound)?;
        let (taken, more) = self.rounds.swap_remove(number / 2);
        let single = single_commits(&self.directory, &taken).await?;
        Ok(Summary {
            taken,
            more,
            overall,
            raw_writes_per_second,
            single,
            slowest,
            fastest,
            rounds: number,
        })
    }
}

/// Returns the number of batches to measure beside a round that made this many.
fn at_most(most: u32, batches: u64) -> u32 {
    let enough = u32::try_from(batches.saturating_mul(FOR_EACH)).unwrap_or(most);
    enough.clamp(FEWEST, most)
}

/// Measures the store with one write in each commit, of the size of this round's, one commit after another.
pub(super) async fn single_commits(directory: &Path, taken: &Taken) -> Result<RawRate, BenchError> {
    let place = directory.join("single");
    let load = RawLoad {
        batches: at_most(SINGLE_COMMITS, taken.batches),
        ..raw_load(1, taken.bytes_per_write())
    };
    let rate = raw_store_rate(&place, load).await?;
    remove(&place)?;
    Ok(rate)
}

fn raw_load(writes_per_batch: usize, bytes_per_write: usize) -> RawLoad {
    RawLoad {
        writes_per_batch,
        bytes_per_write,
        longest: RAW_TIME,
        batches: RAW_BATCHES,
        ..RawLoad::default()
    }
}

/// The round that is shown, and what it is compared with.
pub(super) struct Summary<T> {
    pub(super) taken: Taken,
    /// What else the workload measured in that round.
    pub(super) more: T,
    /// All rounds together. What the store does once in several rounds, such as merging its tables, is in it, and in the
    /// median round it may not be.
    pub(super) overall: Cost,
    raw_writes_per_second: f64,
    pub(super) single: RawRate,
    pub(super) slowest: f64,
    pub(super) fastest: f64,
    pub(super) rounds: usize,
}

impl<T> Summary<T> {
    /// Units in a second if the store did nothing but the same writes.
    pub(super) fn raw_rate(&self) -> f64 {
        self.raw_writes_per_second / self.taken.per_unit(self.taken.writes).max(f64::EPSILON)
    }

    /// The engine's rate against the store's.
    pub(super) fn ratio(&self) -> f64 {
        self.taken.rate() / self.raw_rate().max(f64::EPSILON)
    }
}
