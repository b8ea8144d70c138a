//! The state of `bench set --shape recovery`: the first node of each set runs, and all others wait.

use std::path::{Path, PathBuf};

use super::{Bench, Sizes, graph};
use crate::bench::BenchError;
use crate::bench::common::{Common, payload, until};
use crate::bench::figure::Figure;
use crate::bench::killed::wait_to_be_killed;
use crate::bench::node::Gate;
use crate::bench::restart::{Restart, State};
use crate::bench::rounds::Summary;

/// Nodes that wait in each stream beside the sets.
const STREAM_NODES: u64 = 100;

/// Options of the process that is killed.
#[derive(Debug, clap::Args)]
pub(in crate::bench) struct StateArgs {
    #[arg(long)]
    sets: u32,
    #[arg(long)]
    nodes: u32,
    #[arg(long)]
    payload: u32,
    /// Streams whose first node runs as well.
    #[arg(long)]
    streams: u32,
    /// Directory of the engine.
    #[arg(long)]
    engine: PathBuf,
    /// Seed of the payloads' bytes.
    #[arg(long)]
    seed: u64,
}

/// Builds the state, says "ready", and waits to be killed.
pub(in crate::bench) async fn build(args: StateArgs) -> Result<(), BenchError> {
    let bench = Bench::start(args.engine, Gate::Closed).await?;
    let payload = payload(args.seed, args.payload);
    for _ in 0..args.sets {
        let set = graph::held(args.nodes, &payload)?;
        bench.executor.start_set(set).await?;
    }
    let going = usize::try_from(args.sets.saturating_add(args.streams)).unwrap_or(usize::MAX);
    until(&bench.executor, |snapshot| snapshot.going == going).await?;
    wait_to_be_killed().await;
    Ok(())
}

/// Builds the state, and starts engines on copies of it.
pub(super) async fn measure(
    common: &Common,
    sizes: &Sizes,
    directory: &Path,
) -> Result<Summary<Vec<Figure>>, BenchError> {
    let payload = ("--payload", u64::try_from(sizes.payload.len()).unwrap_or(u64::MAX));
    let (seed, streams) = (("--seed", common.seed), ("--streams", u64::from(sizes.streams)));
    let waiting = ("--nodes", u64::from(sizes.streams) * STREAM_NODES);
    let of_streams = [streams, waiting, payload, seed];
    let nodes = ("--nodes", u64::from(sizes.nodes));
    let of_sets = [("--sets", u64::from(sizes.sets)), nodes, streams, payload, seed];
    let states: [State<'_>; 2] = [("stream-state", &of_streams), ("set-state", &of_sets)];
    let restart = Restart {
        states: states.get(usize::from(sizes.streams == 0)..).unwrap_or_default(),
        firsts: sizes.sets.saturating_add(sizes.streams),
        // The roots, which have no stage, are live as well.
        live: sizes
            .sets
            .saturating_mul(sizes.nodes.saturating_add(1))
            .saturating_add(sizes.streams),
    };
    let start = async |engine| {
        let bench = Bench::start(engine, Gate::Parking).await?;
        Ok((bench.executor, bench.site))
    };
    restart.measure(common, directory, start).await
}
