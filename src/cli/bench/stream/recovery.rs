//! An engine is killed while the first node of each stream runs and all others wait: how long until first nodes run again.
//!
//! The first nodes park themselves then, so that the round is over once all of them have begun.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Bench, Sizes};
use crate::bench::BenchError;
use crate::bench::common::{Common, payload, remove, until};
use crate::bench::figure::Figure;
use crate::bench::killed::{self, copy, wait_to_be_killed};
use crate::bench::machine;
use crate::bench::node::{Gate, Work};
use crate::bench::rounds::{Rounds, Summary};
use crate::bench::taken::{Taken, now};

/// Options of the process that is killed.
#[derive(Debug, clap::Args)]
pub(in crate::bench) struct StateArgs {
    #[arg(long)]
    streams: u32,
    #[arg(long)]
    nodes: u32,
    #[arg(long)]
    payload: u32,
    /// Directory of the engine.
    #[arg(long)]
    engine: PathBuf,
    /// Seed of the payloads' bytes.
    #[arg(long)]
    seed: u64,
}

/// Builds the state, says "ready", and waits to be killed.
pub(in crate::bench) async fn build(args: StateArgs) -> Result<(), BenchError> {
    let sizes = Sizes {
        streams: args.streams,
        nodes: args.nodes,
        producers: 1,
        named: false,
        payload: payload(args.seed, args.payload),
    };
    let bench = Bench::start(args.engine, Gate::Closed, 1).await?;
    let streams = bench.open(&sizes).await?;
    bench.hold(&streams, &sizes).await?;
    bench.fill(&streams, &sizes, &Work::pass(&sizes.payload)).await?;
    wait_to_be_killed().await;
    Ok(())
}

/// Builds the state, and starts engines on copies of it.
pub(super) async fn measure(
    common: &Common,
    sizes: &Sizes,
    directory: &Path,
) -> Result<Summary<Vec<Figure>>, BenchError> {
    let killed = directory.join("killed");
    let numbers = [
        ("--streams", u64::from(sizes.streams)),
        ("--nodes", u64::from(sizes.nodes)),
        ("--payload", u64::try_from(sizes.payload.len()).unwrap_or(u64::MAX)),
        ("--seed", common.seed),
    ];
    killed::build("stream-state", &killed, &numbers).await?;
    let mut rounds = Rounds::new(directory);
    for _ in 0..common.rounds {
        let engine = directory.join("engine");
        copy(&killed, &engine)?;
        let (taken, figures) = run_round(sizes, &engine).await?;
        remove(&engine)?;
        rounds.add(taken, figures).await?;
    }
    rounds.summarize().await
}

async fn run_round(sizes: &Sizes, engine: &Path) -> Result<(Taken, Vec<Figure>), BenchError> {
    let processor = machine::processor_time();
    let start = now();
    let bench = Bench::start(engine.to_path_buf(), Gate::Parking, 1).await?;
    let queued = start.elapsed();
    let parked = u64::from(sizes.streams);
    until(&bench.executor, |snapshot| {
        snapshot.commits >= parked && snapshot.going == 0
    })
    .await?;
    let snapshot = bench.executor.snapshot().await?;
    let taken = Taken::since_start(&snapshot, start, processor, f64::from(sizes.streams));
    bench.executor.drain(Duration::ZERO).await?;
    let (expected, found) = (sizes.streams, snapshot.recovered.procedures);
    if u32::try_from(found) != Ok(expected) {
        return Err(BenchError::Lost { expected, found });
    }
    let first = bench.site.until_first(start).ok_or(BenchError::NoRound)?;
    let figures = vec![
        Figure::time(
            "first_node_ms",
            first,
            "until the first node runs",
            "from before the start",
        ),
        Figure::time("queued_ms", queued, "until the start is done", ""),
        Figure::time("read_ms", snapshot.recovered.took, "of that, reading what is live", ""),
    ];
    Ok((taken, figures))
}
