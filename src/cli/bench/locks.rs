//! `locks`: procedures wait for exclusive locks that others hold. What it costs
//! to hand a lock on.

use std::path::Path;

use procession::limits::LockNeed;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::BenchError;
use super::common::{Common, queue};
use super::queued::{Gate, Queue, SUBMITTERS, measure, wait};
use super::report::{Telling, tell};
use super::rounds::Summary;
use super::taken::tenths;

/// Options of `locks`.
#[derive(Debug, clap::Args)]
pub(super) struct LocksArgs {
    /// How many procedures wait, for all locks together.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    procedures: u32,
    /// How many locks there are.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    locks: u32,
    /// How many of them each procedure needs, all at once.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    each: u32,
    #[command(flatten)]
    common: Common,
}

/// Needs some locks for its one stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Locked {
    holds: bool,
    locks: Vec<u32>,
}

impl Procedure for Locked {
    const KIND: &'static str = "bench_locked";
    type Stage = ();
    type Env = Gate;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    fn locks(&self, (): &()) -> Vec<LockNeed> {
        let paths = self.locks.iter().map(|lock| format!("bench/{}/{lock}", lock % 16));
        paths
            .map(procession::limits::LockPath::parse)
            .map(LockNeed::exclusive)
            .collect()
    }

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        wait(cx, self.holds).await
    }
}

impl Queue for LocksArgs {
    fn holders(&self) -> u32 {
        self.locks
    }

    fn waiting(&self) -> u32 {
        self.procedures
    }

    /// A holder has one lock. Waiters come in generations that need every lock once;
    /// each is shifted by one lock against the one before, so that it waits for two of them.
    async fn submit(&self, executor: &Executor, place: u32, holds: bool) -> Result<(), BenchError> {
        let (number, first) = if holds {
            (1, place)
        } else {
            let generation = place / (self.locks / self.each).max(1);
            (self.each, place.wrapping_mul(self.each).wrapping_add(generation))
        };
        let locks = (0..number).map(|next| first.wrapping_add(next) % self.locks).collect();
        executor.submit(Locked { holds, locks }).await?;
        Ok(())
    }
}

/// The closing line's own names.
#[derive(Debug, Serialize)]
struct Figures {
    procedures: u32,
    locks: u32,
    each: u32,
    grants_per_second: f64,
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: LocksArgs) -> Result<(), BenchError> {
    if args.each > args.locks {
        return Err(BenchError::Options(format!(
            "a procedure cannot need {} of {} locks: lower --each, or raise --locks",
            args.each, args.locks
        )));
    }
    let common = &args.common;
    let summary = common.within(async |directory| start(&args, directory).await).await?;
    let figures = Figures {
        procedures: args.procedures,
        locks: args.locks,
        each: args.each,
        grants_per_second: tenths(summary.taken.rate()),
    };
    let telling = Telling {
        workload: "locks",
        title: format!(
            "{} procedures wait, locks: {}, each needs: {}",
            args.procedures, args.locks, args.each
        ),
        unit: "grant",
        units: "grants",
        rows: Vec::new(),
    };
    tell(&summary, common, figures, &telling)
}

async fn start(args: &LocksArgs, directory: &Path) -> Result<Summary<()>, BenchError> {
    let gate = Gate::new();
    let executor = Executor::builder(directory.join("engine"))
        .register::<Locked>(gate.clone())
        .max_queued(queue(SUBMITTERS))
        .max_awake(usize::MAX)
        .start()
        .await?;
    measure(args, &gate, &executor, &args.common, directory).await
}
