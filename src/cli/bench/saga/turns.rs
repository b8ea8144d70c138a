//! Rounds of sagas and of plain procedures, in turns.

use std::path::Path;

use super::Sizes;
use crate::bench::BenchError;
use crate::bench::figure::Figure;
use crate::bench::meter::Times;
use crate::bench::rounds::{Rounds, Summary};
use crate::bench::taken::{Taken, count, median};

/// What a round found, beside what it took.
pub(super) struct Found {
    /// None where states run beside each other.
    pub(super) times: Option<Times>,
    /// What the plain procedures took.
    pub(super) plain: Taken,
    pub(super) figures: Vec<Figure>,
}

/// The ratios of one round.
#[derive(Clone, Copy, Default)]
pub(super) struct Ratios {
    /// Against the same machine without Choices.
    pub(super) without_choices: Option<f64>,
    /// Against a loop of single commits of the store.
    pub(super) seata: Option<f64>,
}

/// Rounds that were run.
pub(super) struct Turns {
    rounds: Rounds<Found>,
    chain: Vec<f64>,
    without_choices: Vec<f64>,
    seata: Vec<f64>,
}

/// All that was found. Ratios are the medians of the rounds'.
pub(super) struct Measured {
    pub(super) summary: Summary<Found>,
    /// Commits in a second against those of the plain procedures.
    pub(super) chain_ratio: f64,
    pub(super) without_choices_ratio: Option<f64>,
    pub(super) seata_ratio: Option<f64>,
}

impl Turns {
    /// Begins a run that writes below this directory.
    pub(super) fn new(directory: &Path, sizes: &Sizes) -> Self {
        Self {
            rounds: Rounds::new(directory).side_by_side(sizes.concurrency.min(sizes.sagas)),
            chain: Vec::new(),
            without_choices: Vec::new(),
            seata: Vec::new(),
        }
    }

    /// Adds a round.
    pub(super) async fn add(&mut self, taken: Taken, found: Found, ratios: Ratios) -> Result<(), BenchError> {
        let commits = |taken: &Taken| count(taken.commits) / taken.cost.elapsed.as_secs_f64().max(f64::EPSILON);
        self.chain
            .push(commits(&taken) / commits(&found.plain).max(f64::EPSILON));
        self.without_choices.extend(ratios.without_choices);
        self.seata.extend(ratios.seata);
        self.rounds.add(taken, found).await
    }

    /// Adds a round that began with the start of an engine.
    pub(super) async fn add_restart(
        &mut self,
        taken: Taken,
        plain: Taken,
        figures: Vec<Figure>,
    ) -> Result<(), BenchError> {
        let found = Found {
            times: None,
            plain,
            figures,
        };
        self.add(taken, found, Ratios::default()).await
    }

    /// Picks the median round.
    pub(super) async fn summarize(self) -> Result<Measured, BenchError> {
        Ok(Measured {
            summary: self.rounds.summarize().await?,
            chain_ratio: median(self.chain).ok_or(BenchError::NoRound)?,
            without_choices_ratio: median(self.without_choices),
            seata_ratio: median(self.seata),
        })
    }
}
