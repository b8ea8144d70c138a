//! Nodes that wait behind one that is held in each stream. Timed: from its release until all have run.

use std::time::Duration;

use super::{Bench, Round, Sizes};
use crate::bench::common::until;
use crate::bench::figure::Figure;
use crate::bench::node::{Gate, Work};
use crate::bench::taken::{Probe, quantile_us, tenths};

/// Runs a round.
pub(super) async fn round(bench: &Bench, sizes: &Sizes) -> Round {
    let streams = bench.open(sizes).await?;
    bench.hold(&streams, sizes).await?;
    let probe = Probe::begin(&bench.executor).await?;
    let is_alone = streams.len() == 1;
    let work = match is_alone {
        // From node to node is what one of many streams does not tell.
        true => Work::hop(&sizes.payload),
        false => Work::pass(&sizes.payload),
    };
    bench.fill(&streams, sizes, &work).await?;
    let appended = probe.end(&bench.executor, f64::from(sizes.nodes)).await?;

    drop(bench.site.take_hops());
    let probe = Probe::begin(&bench.executor).await?;
    let before = bench.executor.snapshot().await?.commits;
    let wanted = before + u64::from(sizes.nodes) + streams.len() as u64;
    bench.site.set(Gate::Open);
    until(&bench.executor, |snapshot| {
        snapshot.commits >= wanted && snapshot.going == 0
    })
    .await?;
    let taken = probe.end(&bench.executor, f64::from(sizes.nodes)).await?;
    let hops = bench.site.take_hops();
    bench.abort(&streams).await?;
    let mut figures = vec![Figure::bytes(
        "append_bytes_per_node",
        Some(tenths(appended.per_unit(appended.bytes))),
        "bytes journalled by its append",
        "100 nodes an append",
    )];
    if is_alone {
        let hop = |name, quantile, row| {
            let time = Duration::from_nanos(hops.value_at_quantile(quantile));
            Figure::new(name, quantile_us(&hops, quantile), row, format!("{time:.0?}"), "")
        };
        figures.push(hop("hop_us_p50", 0.5, "from node to node"));
        figures.push(hop("hop_us_p99", 0.99, "99 of 100 are below"));
    }
    Ok((taken, figures))
}
