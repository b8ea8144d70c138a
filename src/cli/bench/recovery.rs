//! `recovery`: an engine is killed while procedures are in their stages, and
//! another is started on what it left.
//!
//! A process of its own builds the state and is killed with SIGKILL. Each round
//! starts the engine on a copy, whose tables are links. Timed, all from before the start: until the first
//! stage runs again; until all are queued, which is when the start is done (every
//! live procedure is admitted, in a queue, or parked again); until the last stage
//! has begun; and until all have ended. Not timed: the copy.

mod state;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use procession::Executor;
use serde::Serialize;

use state::Begun;
pub(super) use state::{Life, Sizes, StateArgs, build, start};

use super::common::{Common, remove, until};
use super::killed::{self, HeldBytes, copy, held_bytes};
use super::report::{Telling, tell, thousands};
use super::rounds::{Rounds, Summary};
use super::taken::{Taken, count, now, seconds};
use super::{BenchError, STOP_TIME, machine};

/// Options of `recovery`.
#[derive(Debug, clap::Args)]
pub(super) struct RecoveryArgs {
    #[command(flatten)]
    sizes: Sizes,
    #[command(flatten)]
    common: Common,
}

/// The closing line's own names.
#[derive(Debug, Serialize)]
struct Figures {
    live: u32,
    parked: u32,
    finished: u32,
    failed: u32,
    /// What the killed engine had in the store's tables.
    table_bytes: u64,
    /// What the killed engine had in the store's log: the start replays it, whatever is live.
    log_bytes: u64,
    /// Of the start: reading what is live, the store being open.
    read_seconds: f64,
    first_stage_seconds: f64,
    queued_seconds: f64,
    running_seconds: f64,
    done_seconds: f64,
}

/// When what was reached, from before the start.
pub(super) struct Times {
    read: Duration,
    pub(super) first: Duration,
    queued: Duration,
    running: Duration,
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: RecoveryArgs) -> Result<(), BenchError> {
    let common = &args.common;
    let (summary, held) = common.within(async |directory| measure(&args, directory).await).await?;
    let (sizes, times) = (args.sizes, &summary.more);
    let figures = Figures {
        live: sizes.live,
        parked: sizes.parked,
        finished: sizes.finished,
        failed: sizes.failed,
        table_bytes: held.tables,
        log_bytes: held.log,
        read_seconds: seconds(times.read),
        first_stage_seconds: seconds(times.first),
        queued_seconds: seconds(times.queued),
        running_seconds: seconds(times.running),
        done_seconds: seconds(summary.taken.cost.elapsed),
    };
    let row = |name, seconds: f64, remark: &str| (name, format!("{:.1} ms", seconds * 1e3), remark.to_owned());
    let telling = Telling {
        workload: "recovery",
        title: format!(
            "{} in a stage, {} parked, {} finished, {} failed, then kill -9",
            thousands(f64::from(sizes.live)),
            thousands(f64::from(sizes.parked)),
            thousands(f64::from(sizes.finished)),
            thousands(f64::from(sizes.failed))
        ),
        unit: "procedure",
        units: "procedures taken up and ended",
        rows: vec![
            row(
                "until the first stage runs",
                figures.first_stage_seconds,
                "from before the start",
            ),
            row("until all are queued", figures.queued_seconds, "the start is done"),
            row(
                "of that, reading what is live",
                figures.read_seconds,
                "the rest is mostly the store, which reads its log",
            ),
            (
                "the log that it reads",
                format!("{:.1} MB", count(figures.log_bytes) / 1e6),
                "up to 128 MB, by when it was killed".to_owned(),
            ),
            (
                "the tables beside it",
                format!("{:.1} MB", count(figures.table_bytes) / 1e6),
                "what has ended is not read from them".to_owned(),
            ),
            row("until all run or have run", figures.running_seconds, ""),
            row("until all have ended", figures.done_seconds, ""),
        ],
    };
    tell(&summary, common, figures, &telling)
}

async fn measure(args: &RecoveryArgs, directory: &Path) -> Result<(Summary<Times>, HeldBytes), BenchError> {
    let killed = directory.join("killed");
    build_and_kill(args.sizes, args.common.seed, &killed).await?;
    let held = held_bytes(&killed)?;
    let mut rounds = Rounds::new(directory);
    for _ in 0..args.common.rounds {
        let engine = directory.join("engine");
        copy(&killed, &engine)?;
        let starting = async |life| start(engine.clone(), life).await;
        let (taken, times) = run_round(args.sizes, starting).await?;
        remove(&engine)?;
        rounds.add(taken, times).await?;
    }
    Ok((rounds.summarize().await?, held))
}

/// Has a process build what is to be found, and kills it.
pub(super) async fn build_and_kill(sizes: Sizes, seed: u64, engine: &Path) -> Result<(), BenchError> {
    let numbers = [
        ("--live", u64::from(sizes.live)),
        ("--parked", u64::from(sizes.parked)),
        ("--finished", u64::from(sizes.finished)),
        ("--failed", u64::from(sizes.failed)),
        ("--payload", u64::from(sizes.payload)),
        ("--seed", seed),
    ];
    killed::build("recovery-state", engine, &numbers).await.map(drop)
}

/// Starts an engine on what another one has left, and comes back when all that were in a stage have ended.
pub(super) async fn run_round(
    sizes: Sizes,
    start: impl AsyncFnOnce(Life) -> Result<Executor, BenchError>,
) -> Result<(Taken, Times), BenchError> {
    let processor = machine::processor_time();
    let from = now();
    let begun = Arc::new(Begun::new(from));
    let executor = start(Life::After(Arc::clone(&begun))).await?;
    let queued = from.elapsed();
    let parked = usize::try_from(sizes.parked).unwrap_or(usize::MAX);
    until(&executor, |snapshot| snapshot.live_families <= parked).await?;
    let snapshot = executor.snapshot().await?;
    let taken = Taken::since_start(&snapshot, from, processor, f64::from(sizes.live));
    executor.drain(STOP_TIME).await?;
    let expected = sizes.live.saturating_add(sizes.parked);
    let found = snapshot.recovered.procedures;
    if u32::try_from(found) != Ok(expected) || begun.stages() < sizes.live {
        return Err(BenchError::Lost { expected, found });
    }
    let (first, running) = begun.times();
    let read = snapshot.recovered.took;
    let times = Times {
        read,
        first,
        queued,
        running,
    };
    Ok((taken, times))
}
