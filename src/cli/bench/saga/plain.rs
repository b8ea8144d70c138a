//! What sagas are compared with: plain procedures that commit as often.

use std::path::Path;

use procession::Executor;

use super::{Shape, Sizes};
use crate::bench::fanout::{self, Parent};
use crate::bench::rollback;
use crate::bench::taken::Taken;
use crate::bench::{BenchError, chain};

/// An engine, and the procedures that it runs.
pub(super) enum Plain {
    /// As in `chain`.
    Chain(chain::Runner),
    /// As in `rollback`.
    Rollback(Executor),
    /// As in `fanout`, with parents of parents.
    Tree(Executor),
}

impl Plain {
    /// Starts the engine for the counterparts of a shape.
    pub(super) async fn start(directory: &Path, sizes: &Sizes) -> Result<Self, BenchError> {
        Ok(match sizes.shape {
            Shape::Compensate => Self::Rollback(rollback::start(directory, sizes.concurrency).await?),
            Shape::Fork | Shape::Nested | Shape::Loop => Self::Tree(fanout::start(directory, sizes.concurrency).await?),
            Shape::Chain | Shape::Choice | Shape::Rest | Shape::Recovery => {
                Self::Chain(chain::Runner::start(directory, &chain_of(sizes)).await?)
            }
        })
    }

    /// Runs a round of as many as there are sagas, as many of them at once. Its units are the states of the sagas.
    pub(super) async fn round(&self, sizes: &Sizes) -> Result<Taken, BenchError> {
        let (number, concurrency) = (sizes.sagas, sizes.concurrency);
        let mut taken = match self {
            Self::Chain(runner) => runner.round(&chain_of(sizes)).await?.0,
            Self::Rollback(executor) => {
                let saga = rollback::Saga::new(sizes.tasks, sizes.payload.clone());
                rollback::run_round(executor, number, concurrency, &saga).await?
            }
            Self::Tree(executor) => fanout::run_round(executor, number, concurrency, &tree_of(sizes)).await?,
        };
        taken.cost.units = sizes.all_states();
        Ok(taken)
    }

    /// Returns the engine.
    pub(super) const fn executor(&self) -> &Executor {
        match self {
            Self::Chain(runner) => &runner.executor,
            Self::Rollback(executor) | Self::Tree(executor) => executor,
        }
    }
}

fn chain_of(sizes: &Sizes) -> chain::Shape {
    chain::Shape {
        concurrency: sizes.concurrency,
        procedures: sizes.sagas,
        stages: sizes.tasks,
        payload: sizes.payload.clone(),
        is_pure: false,
    }
}

fn tree_of(sizes: &Sizes) -> Parent {
    let (children, width, levels, stages) = match sizes.shape {
        Shape::Loop => (sizes.tasks, sizes.width, 1, 1),
        Shape::Nested => (1, 0, sizes.levels, sizes.tasks),
        Shape::Fork | Shape::Chain | Shape::Choice | Shape::Compensate | Shape::Rest | Shape::Recovery => {
            (sizes.branches, 0, sizes.levels, sizes.tasks)
        }
    };
    Parent {
        children,
        width,
        fails: false,
        without_rollback: false,
        payload: sizes.payload.clone(),
        levels_below: levels.saturating_sub(1),
        more_stages: stages.saturating_sub(1),
        pure_children: false,
    }
}
