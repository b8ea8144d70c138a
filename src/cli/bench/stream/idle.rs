//! Streams whose nodes have all ended: what each takes in memory. Timed: from the first append until all are idle.

use super::{Bench, Round, Sizes};
use crate::bench::common::until;
use crate::bench::figure::Figure;
use crate::bench::machine;
use crate::bench::node::{Gate, Work};
use crate::bench::taken::{Probe, count};

/// Runs a round.
pub(super) async fn round(bench: &Bench, sizes: &Sizes) -> Round {
    bench.site.set(Gate::Open);
    let memory = machine::resident_bytes();
    let streams = bench.open(sizes).await?;
    let probe = Probe::begin(&bench.executor).await?;
    let before = bench.executor.snapshot().await?.commits;
    bench.fill(&streams, sizes, &Work::pass(&sizes.payload)).await?;
    // Each node's end is a commit, and so is each append.
    let wanted = before + u64::from(sizes.nodes) + streams.len() as u64;
    until(&bench.executor, |snapshot| {
        snapshot.commits >= wanted && snapshot.going == 0 && snapshot.actors == 0
    })
    .await?;
    let taken = probe.end(&bench.executor, f64::from(sizes.nodes)).await?;
    let each_grown = machine::resident_bytes()
        .zip(memory)
        .map(|(after, before)| count(after.saturating_sub(before)) / f64::from(sizes.streams));
    bench.abort(&streams).await?;
    let figures = vec![Figure::bytes(
        "bytes_per_stream",
        each_grown,
        "memory of an idle stream",
        "resident memory, first round, the store's buffers and its handle included",
    )];
    Ok((taken, figures))
}
