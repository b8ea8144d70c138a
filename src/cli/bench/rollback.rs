//! `rollback`: sagas that fail at their last stage. What it costs to run them, and
//! to undo every stage, the failed one included, newest first.

use std::path::Path;

use futures::TryStreamExt;
use procession::errors::ProcedureError;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::common::{Common, at_once, builder, payload};
use super::report::{Telling, tell};
use super::rounds::{Rounds, Summary};
use super::taken::{Probe, Taken, tenths};
use super::{BenchError, STOP_TIME};

/// Options of `rollback`.
#[derive(Debug, clap::Args)]
pub(super) struct RollbackArgs {
    /// How many sagas a round runs.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    sagas: u32,
    /// How many sagas run at once.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    concurrency: u32,
    /// How many stages each saga has; it fails at the last.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    stages: u32,
    /// Bytes that each saga carries besides its counter.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    payload: u32,
    #[command(flatten)]
    common: Common,
}

/// Counts up to its last stage, fails there, and counts down again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Saga {
    ran: u32,
    stages: u32,
    payload: String,
}

impl Saga {
    /// Creates one of so many stages.
    pub(super) const fn new(stages: u32, payload: String) -> Self {
        Self {
            ran: 0,
            stages,
            payload,
        }
    }
}

impl Procedure for Saga {
    const KIND: &'static str = "bench_saga";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.ran += 1;
        if self.ran >= self.stages {
            Err(StageError::fail("the last stage fails"))
        } else {
            Ok(Step::Next(()))
        }
    }

    async fn rollback(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        self.ran = self.ran.saturating_sub(1);
        Ok(())
    }
}

/// The closing line's own names.
#[derive(Debug, Serialize)]
struct Figures {
    sagas: u32,
    concurrency: u32,
    stages: u32,
    sagas_per_second: f64,
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: RollbackArgs) -> Result<(), BenchError> {
    let common = &args.common;
    let summary = common.within(async |directory| measure(&args, directory).await).await?;
    let figures = Figures {
        sagas: args.sagas,
        concurrency: args.concurrency,
        stages: args.stages,
        sagas_per_second: tenths(summary.taken.rate()),
    };
    let telling = Telling {
        workload: "rollback",
        title: format!(
            "{} sagas that fail at stage {}, {} at once",
            args.sagas, args.stages, args.concurrency
        ),
        unit: "saga",
        units: "sagas rolled back",
        rows: Vec::new(),
    };
    tell(&summary, common, figures, &telling)
}

async fn measure(args: &RollbackArgs, directory: &Path) -> Result<Summary<()>, BenchError> {
    let executor = start(&directory.join("engine"), args.concurrency).await?;
    let saga = Saga::new(args.stages, payload(args.common.seed, args.payload));
    run_round(&executor, (args.sagas / 10).max(1), args.concurrency, &saga).await?;
    let mut rounds = Rounds::new(directory);
    for _ in 0..args.common.rounds {
        let taken = run_round(&executor, args.sagas, args.concurrency, &saga).await?;
        rounds.add(taken, ()).await?;
    }
    let summary = rounds.summarize().await?;
    executor.drain(STOP_TIME).await?;
    Ok(summary)
}

/// Starts an engine for so many sagas at once.
pub(super) async fn start(directory: &Path, concurrency: u32) -> Result<Executor, BenchError> {
    Ok(builder(directory, concurrency).register::<Saga>(()).start().await?)
}

/// Runs sagas, some of them at once. A unit is a saga.
pub(super) async fn run_round(
    executor: &Executor,
    sagas: u32,
    concurrency: u32,
    saga: &Saga,
) -> Result<Taken, BenchError> {
    let probe = Probe::begin(executor).await?;
    let mut ended = at_once(sagas, concurrency, |_| run_one(executor, saga.clone()));
    while ended.try_next().await?.is_some() {}
    probe.end(executor, f64::from(sagas)).await
}

async fn run_one(executor: &Executor, saga: Saga) -> Result<(), BenchError> {
    undone(executor.submit(saga).await?.await)
}

/// Checks that a saga has failed, and was undone.
pub(super) fn undone<T>(ended: Result<T, ProcedureError>) -> Result<(), BenchError> {
    match ended {
        Err(ProcedureError::RolledBack { not_undone, .. }) if not_undone.is_empty() => Ok(()),
        Ok(_) => Err(BenchError::NotFailed),
        Err(other) => Err(other.into()),
    }
}
