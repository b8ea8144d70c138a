//! Sets that run from their start to their end: how fast nodes follow each other.

use std::time::Duration;

use futures::TryStreamExt;
use procession::flow::{BuildError, Set};
use procession::status::ProcedureState;

use super::{Bench, Round, Sizes, graph};
use crate::bench::BenchError;
use crate::bench::common::at_once;
use crate::bench::figure::Figure;
use crate::bench::taken::{Probe, now, quantile_us, record, times};

/// Nodes of the set whose diamonds are 30 in a row: 2^30 ways lead through it.
const DIAMONDS: u32 = 91;

/// Builds the sets, then runs all of them at once. Timed: from the first start until the last has ended.
pub(super) async fn round(bench: &Bench, sizes: &Sizes, graph: fn(u32, &str) -> Result<Set, BuildError>) -> Round {
    let begun = now();
    let mut sets = Vec::new();
    for _ in 0..sizes.sets {
        sets.push(graph(sizes.nodes, &sizes.payload)?);
    }
    let built = begun.elapsed();
    drop(bench.site.take_hops());
    let mut starts = times();
    let probe = Probe::begin(&bench.executor).await?;
    let mut ended = at_once(sizes.sets, sizes.sets, |_| {
        let set = sets.pop();
        async move { run_one(bench, set.ok_or(BenchError::NoRound)?, sizes.width).await }
    });
    while let Some(start) = ended.try_next().await? {
        record(&mut starts, start);
    }
    drop(ended);
    let taken = probe.end(&bench.executor, sizes.all_nodes()).await?;
    let started = Duration::from_nanos(starts.value_at_quantile(0.5));
    let mut figures = vec![
        Figure::time("build_ms", built, "to build the sets", "before they are started"),
        Figure::time(
            "start_ms",
            started,
            "until a set is durable",
            "median, all nodes with it",
        ),
    ];
    let hops = bench.site.take_hops();
    if !hops.is_empty() {
        let hop = |name, quantile, row| {
            let time = Duration::from_nanos(hops.value_at_quantile(quantile));
            Figure::new(name, quantile_us(&hops, quantile), row, format!("{time:.0?}"), "")
        };
        figures.push(hop("hop_us_p50", 0.5, "from node to node"));
        figures.push(hop("hop_us_p99", 0.99, "99 of 100 are below"));
    }
    Ok((taken, figures))
}

/// Returns how long it took until the set was durable.
async fn run_one(bench: &Bench, set: Set, width: u32) -> Result<Duration, BenchError> {
    let begun = now();
    let set = bench.executor.start_set(set).width(width).await?;
    let start = begun.elapsed();
    // The handle's own outcome reads all nodes once more, to count them.
    let outcome = bench.executor.outcome(set.id()).await?;
    if outcome.state != ProcedureState::Success {
        return Err(BenchError::SetFailed);
    }
    Ok(start)
}

/// A graph with three edges a node, and the diamonds that make a check of every way through them endless.
pub(super) async fn validated(bench: &Bench, sizes: &Sizes) -> Round {
    let begun = now();
    drop(graph::lattice(DIAMONDS, &sizes.payload)?);
    let diamonds = begun.elapsed();
    let (taken, mut figures) = round(bench, sizes, graph::dense).await?;
    figures.push(Figure::time(
        "diamonds_build_ms",
        diamonds,
        "to build 30 diamonds",
        "2^30 ways lead through them",
    ));
    Ok((taken, figures))
}
