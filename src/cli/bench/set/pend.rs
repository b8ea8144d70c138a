//! A node that fails, and all others behind it: how long until it has asked a person, and until a retry is durable.
//!
//! Both write as much with many behind as with few. The rate is that of all of it, from before the start to the last end.

use std::time::Duration;

use procession::flow::SetHandle;
use procession::operate::OperatorRequest;

use super::{Bench, Round, Sizes, graph};
use crate::bench::BenchError;
use crate::bench::common::until;
use crate::bench::figure::Figure;
use crate::bench::node::Gate;
use crate::bench::taken::{Probe, now};

/// Nodes of the set that writes are compared with.
const FEW: u32 = 11;

/// Runs a round.
pub(super) async fn round(bench: &Bench, sizes: &Sizes) -> Round {
    let few = Sizes {
        nodes: FEW,
        ..sizes.clone()
    };
    let with_few = Decided::measure(bench, &few).await?;
    bench.site.set(Gate::Open);
    until(&bench.executor, |snapshot| snapshot.live_families == 0).await?;
    let probe = Probe::begin(&bench.executor).await?;
    let decided = Decided::measure(bench, sizes).await?;
    bench.site.set(Gate::Open);
    until(&bench.executor, |snapshot| snapshot.live_families == 0).await?;
    let taken = probe.end(&bench.executor, f64::from(sizes.nodes)).await?;
    let figures = vec![
        Figure::time(
            "start_ms",
            decided.start,
            "until the set is durable",
            "all nodes with it",
        ),
        Figure::time(
            "ask_ms",
            decided.ask,
            "until a node has asked",
            "from its failure, all others behind it",
        ),
        Figure::time(
            "retry_ms",
            decided.retry,
            "until a retry is durable",
            "the reading of the node included",
        ),
        Figure::number("ask_writes", decided.ask_writes, "writes of the question", ""),
        Figure::number("ask_writes_few", with_few.ask_writes, "the same with 10 behind", ""),
        Figure::number("retry_writes", decided.retry_writes, "writes of the retry", ""),
        Figure::number("retry_writes_few", with_few.retry_writes, "the same with 10 behind", ""),
    ];
    Ok((taken, figures))
}

/// What a failure and its retry took.
struct Decided {
    start: Duration,
    ask: Duration,
    ask_writes: u64,
    retry: Duration,
    retry_writes: u64,
}

impl Decided {
    /// Starts a set whose first node fails, and retries it. The node is at the gate again then.
    async fn measure(bench: &Bench, sizes: &Sizes) -> Result<Self, BenchError> {
        bench.site.set(Gate::Closed);
        let set = graph::held(sizes.nodes, &sizes.payload)?;
        let begun = now();
        let set = bench.executor.start_set(set).width(sizes.width).await?;
        let start = begun.elapsed();
        until(&bench.executor, |snapshot| snapshot.going == 1).await?;

        let before = bench.executor.snapshot().await?;
        let begun = now();
        bench.site.set(Gate::Failing);
        let asked = before.commits + 1;
        until(&bench.executor, |snapshot| {
            snapshot.commits >= asked && snapshot.going == 0
        })
        .await?;
        let ask = begun.elapsed();
        let ask_writes = bench.executor.snapshot().await?.appended_writes - before.appended_writes;

        bench.site.set(Gate::Closed);
        let (retry, retry_writes) = retried(bench, &set).await?;
        Ok(Self {
            start,
            ask,
            ask_writes,
            retry,
            retry_writes,
        })
    }
}

/// Retries the node that asks; returns how long that took, and what it wrote.
async fn retried(bench: &Bench, set: &SetHandle) -> Result<(Duration, u64), BenchError> {
    let before = bench.executor.snapshot().await?.appended_writes;
    let begun = now();
    let by = OperatorRequest::new("bench", "the gate opens");
    set.retry(graph::FIRST, by).await?;
    let took = begun.elapsed();
    Ok((took, bench.executor.snapshot().await?.appended_writes - before))
}
