//! Nodes that wait for one that is held, and beside them children that wait for their places: what each takes in memory.
//!
//! Timed for the rate: from the opening of the gate until all nodes have ended. The children are aborted before.

use procession::operate::OperatorRequest;

use super::held_children::HeldParent;
use super::{Bench, Round, Sizes, graph};
use crate::bench::common::until;
use crate::bench::figure::Figure;
use crate::bench::machine;
use crate::bench::node::Gate;
use crate::bench::taken::{Probe, count, now};

/// Runs a round.
pub(super) async fn round(bench: &Bench, sizes: &Sizes) -> Round {
    bench.site.set(Gate::Closed);
    let set = graph::held(sizes.nodes, &sizes.payload)?;
    let memory = machine::resident_bytes();
    let begun = now();
    bench.executor.start_set(set).width(sizes.width).await?;
    let started = begun.elapsed();
    until(&bench.executor, |snapshot| snapshot.going == 1).await?;
    let with_nodes = machine::resident_bytes();

    let parent = HeldParent {
        children: sizes.nodes,
        payload: sizes.payload.clone(),
    };
    let begins = bench.executor.snapshot().await?.commits;
    let children = bench.executor.submit(parent).await?.id();
    // Its birth, its stage, and the stage of the child that has a place.
    until(&bench.executor, |snapshot| snapshot.commits >= begins + 3).await?;
    let with_children = machine::resident_bytes();
    let by = OperatorRequest::new("bench", "it was measured");
    bench.executor.abort(children, by).await?;
    until(&bench.executor, |snapshot| snapshot.live_families == 1).await?;

    let probe = Probe::begin(&bench.executor).await?;
    bench.site.set(Gate::Open);
    until(&bench.executor, |snapshot| snapshot.live_families == 0).await?;
    let taken = probe.end(&bench.executor, f64::from(sizes.nodes)).await?;
    let each = |after: Option<u64>, before: Option<u64>| {
        let grown = after.zip(before).map(|(after, before)| after.saturating_sub(before));
        grown.map(|grown| count(grown) / f64::from(sizes.nodes))
    };
    let figures = vec![
        Figure::time("start_ms", started, "until the set is durable", "all nodes with it"),
        Figure::bytes(
            "bytes_per_node",
            each(with_nodes, memory),
            "memory of a node that waits",
            "resident memory, first round",
        ),
        Figure::bytes(
            "bytes_per_held_child",
            each(with_children, with_nodes),
            "of a child held by a width",
            "the same, for children of a stage beside it",
        ),
    ];
    Ok((taken, figures))
}
