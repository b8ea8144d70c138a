//! The state of `bench stream --shape recovery`: the first node of each stream runs, and all others wait.

use std::path::{Path, PathBuf};

use super::{Bench, Sizes};
use crate::bench::BenchError;
use crate::bench::common::{Common, payload};
use crate::bench::figure::Figure;
use crate::bench::killed::wait_to_be_killed;
use crate::bench::node::{Gate, Work};
use crate::bench::restart::Restart;
use crate::bench::rounds::Summary;

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
    let numbers = [
        ("--streams", u64::from(sizes.streams)),
        ("--nodes", u64::from(sizes.nodes)),
        ("--payload", u64::try_from(sizes.payload.len()).unwrap_or(u64::MAX)),
        ("--seed", common.seed),
    ];
    let restart = Restart {
        states: &[("stream-state", &numbers)],
        firsts: sizes.streams,
        live: sizes.streams,
    };
    let start = async |engine| {
        let bench = Bench::start(engine, Gate::Parking, 1).await?;
        Ok((bench.executor, bench.site))
    };
    restart.measure(common, directory, start).await
}
