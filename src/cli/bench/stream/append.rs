//! Producers append to streams whose node in hand is held, so that nothing runs. Timed: from the first append until the
//! last one is durable.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use procession::flow::Stream;

use super::{Bench, Round, Sizes};
use crate::bench::BenchError;
use crate::bench::common::at_once;
use crate::bench::figure::Figure;
use crate::bench::machine;
use crate::bench::node::Work;
use crate::bench::taken::{Probe, count, now, quantile_us, record, significant, times};

/// Nodes that one append of a batch has.
pub(super) const BATCH: u32 = 100;

/// Runs a round of appends with so many nodes each.
pub(super) async fn round(bench: &Bench, sizes: &Sizes, batch: u32) -> Round {
    let streams = bench.open(sizes).await?;
    bench.hold(&streams, sizes).await?;
    let memory = machine::resident_bytes();
    let next = AtomicU32::new(0);
    let mut answers = times();
    let tenth = (sizes.nodes / 10).max(1);
    let (mut appended, mut first_tenth, mut begin_of_last) = (0, None, None);
    let probe = Probe::begin(&bench.executor).await?;
    let begun = now();
    let appends = sizes.nodes.div_ceil(batch);
    let mut answered = at_once(appends, sizes.producers, |_| append_one(&streams, sizes, &next, batch));
    while let Some((took, nodes)) = answered.try_next().await? {
        record(&mut answers, took);
        appended += nodes;
        if appended >= tenth {
            first_tenth.get_or_insert_with(|| begun.elapsed());
        }
        if appended >= sizes.nodes - tenth {
            begin_of_last.get_or_insert_with(|| begun.elapsed());
        }
    }
    drop(answered);
    let all = begun.elapsed();
    let taken = probe.end(&bench.executor, f64::from(sizes.nodes)).await?;
    let grown = machine::resident_bytes()
        .zip(memory)
        .map(|(after, before)| count(after.saturating_sub(before)));
    bench.abort(&streams).await?;
    let last_tenth = begin_of_last
        .zip(first_tenth)
        .filter(|_| tells_tenths(appends, sizes.producers))
        .map(|(begin, first)| ratio(all.saturating_sub(begin), first));
    let median = quantile_us(&answers, 0.5);
    let figures = vec![
        Figure::new(
            "append_us_p50",
            median,
            "until an append is durable",
            format!("{median:.0} us"),
            "median",
        ),
        Figure::bytes(
            "bytes_grown",
            grown,
            "memory of what waits",
            "resident memory, first round",
        ),
        Figure::ratio("last_tenth", last_tenth, "the last tenth", "of the time of the first"),
    ];
    Ok((taken, figures))
}

/// Whether the answers to a tenth of the appends take a time that tells something. All producers may be answered at
/// once, by the commit of one: of no more appends than producers, the last tenth may take no time at all.
fn tells_tenths(appends: u32, producers: u32) -> bool {
    appends / 10 > producers
}

fn ratio(last: Duration, first: Duration) -> f64 {
    significant(last.as_secs_f64() / first.as_secs_f64().max(f64::EPSILON))
}

/// Appends the next nodes to the next stream. Returns how long that took, and how many they were.
async fn append_one(
    streams: &[Stream],
    sizes: &Sizes,
    next: &AtomicU32,
    batch: u32,
) -> Result<(Duration, u32), BenchError> {
    let from = next.fetch_add(batch, Ordering::Relaxed);
    let to = from.saturating_add(batch).min(sizes.nodes);
    let nodes = (from..to).map(|number| sizes.node(number, Work::pass(&sizes.payload)));
    let stream = streams
        .get((from / batch) as usize % streams.len())
        .ok_or(BenchError::NoRound)?;
    let begun = now();
    stream.append_all(nodes).await?;
    Ok((begun.elapsed(), to - from))
}
