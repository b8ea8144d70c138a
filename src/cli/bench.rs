//! `procession bench`: how fast the engine is on this machine, and how that
//! compares with its store alone.
//!
//! Measured from outside, through what users see. Each round runs the engine,
//! then the raw store with batches of the same mean size and count of writes;
//! of all rounds the one with the median rate is shown. Not timed: the start,
//! a short warm-up, and the end.

mod chain;
mod load;
mod machine;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use procession::{AskError, Executor, ProbeError, ProcedureError, RawLoad, StartError, SubmitError, raw_store_rate};

use chain::{Chain, Meter};
use load::{Shape, run_round};
use report::{Report, Table};

/// Longest raw measurement of one round. Long enough for a few thousand syncs.
const RAW_TIME: Duration = Duration::from_millis(1_500);
/// Most batches of one raw measurement: as many as 4 GiB of a large batch would fill.
const RAW_BATCHES: u32 = 10_000;
/// Single-put commits measured for their median.
const SINGLE_COMMITS: u32 = 2_000;
/// How long the engine may take to stop.
const STOP_TIME: Duration = Duration::from_secs(30);

/// Measures the engine and its store on this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Debug, clap::Subcommand)]
enum Workload {
    /// Procedures of some stages each, one after another: what a stage costs.
    Chain(ChainArgs),
}

#[derive(Debug, clap::Args)]
struct ChainArgs {
    /// How many procedures run at once.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    concurrency: u32,
    /// How many procedures a round runs [default: 20 for each that runs at once, at least 500].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    procedures: Option<u32>,
    /// How many stages each procedure has.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    stages: u32,
    /// Bytes that each procedure carries besides its counter.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    payload: u32,
    /// How many rounds; the median one is shown.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Where to write; a directory of its own is made there, and removed at the end.
    #[arg(long, default_value = "data")]
    data: PathBuf,
    /// Seed of the payloads' bytes.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Prints one line of JSON and nothing else.
    #[arg(long)]
    json: bool,
}

/// A benchmark that did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// The directory cannot be made or removed.
    #[error("{place} cannot be used: {why}; name another directory with --data")]
    Directory {
        /// Which directory.
        place: PathBuf,
        /// What the system said.
        why: std::io::Error,
    },
    /// The engine did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A submission was refused.
    #[error(transparent)]
    Submit(#[from] SubmitError),
    /// A procedure did not succeed.
    #[error(transparent)]
    Procedure(#[from] ProcedureError),
    /// A question was not answered.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The raw store cannot be measured.
    #[error(transparent)]
    Raw(#[from] ProbeError),
    /// The report cannot be written as JSON.
    #[error("the report cannot be written: {0}")]
    Report(#[from] serde_json::Error),
}

/// Runs the benchmark and prints what it found.
pub(crate) async fn run(args: BenchArgs) -> Result<(), BenchError> {
    match args.workload {
        Workload::Chain(args) => run_chain(args).await,
    }
}

async fn run_chain(args: ChainArgs) -> Result<(), BenchError> {
    let directory = args.data.join(format!("bench-{}", std::process::id()));
    make(&directory)?;
    let measured = measure_chain(&args, &directory).await;
    // What went wrong first is what the user must hear of.
    let removed = std::fs::remove_dir_all(&directory);
    let (report, table) = measured?;
    removed.map_err(|why| BenchError::Directory { place: directory, why })?;
    if args.json {
        report.print_json()
    } else {
        report.print(&table)
    }
}

fn make(directory: &std::path::Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(directory).map_err(|why| BenchError::Directory {
        place: directory.to_path_buf(),
        why,
    })
}

async fn measure_chain(args: &ChainArgs, directory: &std::path::Path) -> Result<(Report, Table), BenchError> {
    let procedures = args
        .procedures
        .unwrap_or_else(|| args.concurrency.saturating_mul(20).max(500));
    let shape = Shape {
        concurrency: args.concurrency,
        procedures,
        stages: args.stages,
        payload: chain::payload(args.seed, args.payload),
    };
    let meter = Meter::new(procedures);
    let executor = Executor::builder(directory.join("engine"))
        .register::<Chain>(meter.clone())
        .max_queued(shape.queue())
        .start()
        .await?;

    run_round(&executor, &meter, &shape.warm_up()).await?;
    let mut rounds = Vec::new();
    let mut raw = Vec::new();
    for number in 0..args.rounds {
        let round = run_round(&executor, &meter, &shape).await?;
        let place = directory.join(format!("raw-{number}"));
        raw.push(measure_raw(place, round.mean_batch(), round.bytes_per_write()).await?);
        rounds.push(round);
    }
    let bytes_per_write = rounds.first().map_or(1, load::Round::bytes_per_write);
    let single = RawLoad {
        batches: SINGLE_COMMITS,
        ..raw_load(1, bytes_per_write)
    };
    let single = raw_store_rate(directory.join("single"), single).await?;
    executor.drain(STOP_TIME).await?;
    Ok(report::summarize(rounds, raw, single, &shape, args.seed))
}

async fn measure_raw(place: PathBuf, writes: usize, bytes: usize) -> Result<procession::RawRate, BenchError> {
    let rate = raw_store_rate(&place, raw_load(writes, bytes)).await?;
    std::fs::remove_dir_all(&place).map_err(|why| BenchError::Directory { place, why })?;
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
