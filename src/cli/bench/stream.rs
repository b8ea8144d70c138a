//! `stream`: queues of nodes that do nothing. What a node of a backlog costs, what an append costs, how much memory a queue
//! and an idle stream take, and how long it takes to start an engine with many.

mod append;
mod backlog;
mod idle;
mod recovery;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::TryStreamExt;
use procession::flow::{Node, Stream};
use procession::operate::OperatorRequest;
use procession::{Executor, ProcedureId};
use serde::Serialize;

pub(super) use recovery::{StateArgs, build};

use super::common::{Common, at_once, payload, queue, until};
use super::figure::{self, Figure};
use super::node::{Gate, Site, Work};
use super::report::{Telling, tell, thousands};
use super::rounds::{Rounds, Summary};
use super::taken::{Taken, tenths};
use super::{BenchError, STOP_TIME};

/// Results are kept longer than any run takes.
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);
/// The scene of all streams.
const SCENE: &str = "bench";
/// Streams that are opened, or ended, at once.
const AT_ONCE: u32 = 1_024;

/// What is measured of the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    /// Nodes that wait in their streams run, all streams at once.
    Backlog,
    /// Producers append one node after the other.
    Append,
    /// Producers append batches of 100 nodes: also the memory of what waits.
    Batch,
    /// Streams whose nodes have ended: the memory of each.
    Idle,
    /// An engine is killed with streams of nodes that wait: the time until the first node runs again.
    Recovery,
}

impl Shape {
    /// Streams, nodes in all of them, and producers, unless said otherwise.
    const fn usual(self) -> (u32, u32, u32) {
        match self {
            Self::Backlog => (1_024, 102_400, 8),
            Self::Append => (1, 50_000, 64),
            Self::Batch => (1, 99_900, 8),
            Self::Idle => (10_000, 10_000, 64),
            Self::Recovery => (1_000, 100_000, 8),
        }
    }
}

/// Options of `stream`.
#[derive(Debug, clap::Args)]
pub(super) struct StreamArgs {
    /// What is measured of the streams.
    #[arg(long, value_enum, default_value_t = Shape::Backlog)]
    shape: Shape,
    /// How many streams there are [default: 1 to 10,000, by the shape].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    streams: Option<u32>,
    /// How many nodes a round appends to all of them, at most 99,999 to each [default: 10,000 to 102,400, by the shape].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    nodes: Option<u32>,
    /// How many append at once; each waits for its answer before its next append [default: 8 or 64, by the shape].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    producers: Option<u32>,
    /// Names each node.
    #[arg(long)]
    named: bool,
    /// Bytes that each node carries.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    payload: u32,
    #[command(flatten)]
    common: Common,
}

/// How much of it there is.
#[derive(Debug, Clone)]
struct Sizes {
    streams: u32,
    nodes: u32,
    producers: u32,
    named: bool,
    payload: String,
}

impl Sizes {
    /// A tenth of it, so that files, caches and threads are there.
    fn warm_up(&self) -> Self {
        let streams = (self.streams / 10).max(1);
        Self {
            streams,
            nodes: (self.nodes / 10).max(streams),
            ..self.clone()
        }
    }

    fn node(&self, number: u32, work: Work) -> Node {
        match self.named {
            true => Node::new(format!("node {number}"), work),
            false => Node::of(work),
        }
    }
}

/// The closing line's own names.
#[derive(Debug, Serialize)]
struct Figures {
    shape: Shape,
    streams: u32,
    nodes: u32,
    producers: u32,
    named: bool,
    nodes_per_second: f64,
    #[serde(flatten)]
    of_shape: BTreeMap<&'static str, Option<f64>>,
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: StreamArgs) -> Result<(), BenchError> {
    let (streams, nodes, producers) = args.shape.usual();
    let sizes = Sizes {
        streams: args.streams.unwrap_or(streams),
        nodes: args.nodes.unwrap_or(nodes),
        producers: args.producers.unwrap_or(producers),
        named: args.named,
        payload: payload(args.common.seed, args.payload),
    };
    if sizes.nodes < sizes.streams {
        return Err(BenchError::Options(format!(
            "--nodes {} leaves some of --streams {} without a node; raise it, or lower the other",
            sizes.nodes, sizes.streams
        )));
    }
    let common = &args.common;
    let measured = common.within(async |directory| measure(&args, &sizes, directory).await);
    let summary = measured.await?;
    let figures = Figures {
        shape: args.shape,
        streams: sizes.streams,
        nodes: sizes.nodes,
        producers: sizes.producers,
        named: sizes.named,
        nodes_per_second: tenths(summary.taken.rate()),
        of_shape: figure::named(&summary.more),
    };
    let (streams, nodes) = (thousands(f64::from(sizes.streams)), thousands(f64::from(sizes.nodes)));
    let telling = Telling {
        workload: "stream",
        title: format!("streams: {streams}, nodes in all: {nodes}"),
        unit: "node",
        units: "nodes",
        rows: figure::rows(&summary.more),
    };
    tell(&summary, common, figures, &telling)
}

/// What a round found: what it took, and what only this shape has.
type Round = Result<(Taken, Vec<Figure>), BenchError>;

async fn measure(args: &StreamArgs, sizes: &Sizes, directory: &Path) -> Result<Summary<Vec<Figure>>, BenchError> {
    if args.shape == Shape::Recovery {
        return recovery::measure(&args.common, sizes, directory).await;
    }
    let bench = Bench::start(directory.join("engine"), Gate::Open, sizes.producers).await?;
    bench.round(args.shape, &sizes.warm_up()).await?;
    let mut rounds = Rounds::new(directory).side_by_side(sizes.streams);
    let mut first = None;
    for _ in 0..args.common.rounds {
        let (taken, figures) = bench.round(args.shape, sizes).await?;
        let first = first.get_or_insert_with(|| figures.clone());
        // Later rounds use memory that earlier ones have freed.
        let is_memory = matches!(args.shape, Shape::Idle | Shape::Batch);
        rounds
            .add(taken, if is_memory { first.clone() } else { figures })
            .await?;
    }
    let summary = rounds.summarize().await?;
    bench.executor.drain(STOP_TIME).await?;
    Ok(summary)
}

/// An engine, and what its nodes share.
struct Bench {
    executor: Executor,
    site: Site,
    /// Each round has streams of its own.
    rounds: AtomicU32,
}

impl Bench {
    async fn start(directory: PathBuf, gate: Gate, producers: u32) -> Result<Self, BenchError> {
        let site = Site::new(gate);
        let executor = Executor::builder(directory)
            .streams()
            .processor::<Work>(site.clone())
            .max_queued(queue(producers.max(AT_ONCE)))
            .max_awake(usize::MAX)
            .retention(KEEP, KEEP)
            .start()
            .await?;
        Ok(Self {
            executor,
            site,
            rounds: AtomicU32::new(0),
        })
    }

    async fn round(&self, shape: Shape, sizes: &Sizes) -> Round {
        match shape {
            Shape::Backlog => backlog::round(self, sizes).await,
            Shape::Append => append::round(self, sizes, 1).await,
            Shape::Batch => append::round(self, sizes, append::BATCH).await,
            Shape::Idle => idle::round(self, sizes).await,
            Shape::Recovery => Err(BenchError::NoRound),
        }
    }

    /// Opens the streams of a round, and waits until each waits for its first node.
    async fn open(&self, sizes: &Sizes) -> Result<Vec<Stream>, BenchError> {
        let round = self.rounds.fetch_add(1, Ordering::Relaxed);
        let stream = |number| self.executor.stream(SCENE, format!("{round}-{number}"));
        let streams = (0..sizes.streams).map(stream).collect::<Result<Vec<_>, _>>()?;
        each(&streams, async |_, stream| Ok(stream.open().await.map(drop)?)).await?;
        until(&self.executor, |snapshot| snapshot.going == 0).await?;
        Ok(streams)
    }

    /// Appends a node to each that waits at the gate, which is closed, and waits until it is there.
    async fn hold(&self, streams: &[Stream], sizes: &Sizes) -> Result<(), BenchError> {
        self.site.set(Gate::Closed);
        each(streams, async |_, stream| {
            let first = Node::of(Work::hold(&sizes.payload));
            Ok(stream.append(first).await.map(drop)?)
        })
        .await?;
        until(&self.executor, |snapshot| snapshot.going == streams.len()).await
    }

    /// Appends the nodes of a round, each stream its share.
    async fn fill(&self, streams: &[Stream], sizes: &Sizes, work: &Work) -> Result<(), BenchError> {
        each(streams, async |place, stream| {
            let more = u32::from(place < sizes.nodes % sizes.streams);
            let nodes = (0..sizes.nodes / sizes.streams + more).map(|number| sizes.node(number, work.clone()));
            Ok(stream.extend(nodes).await.map(drop)?)
        })
        .await
    }

    /// Ends the streams, and what waits in them does not run.
    async fn abort(&self, streams: &[Stream]) -> Result<(), BenchError> {
        each(streams, async |_, stream| {
            let id: ProcedureId = stream.open().await?;
            let by = OperatorRequest::new("bench", "the round is over");
            self.executor.abort(id, by).await?;
            Ok(())
        })
        .await?;
        self.site.set(Gate::Open);
        until(&self.executor, |snapshot| snapshot.live_families == 0).await
    }
}

/// Does one thing with each stream and its place, many at once.
async fn each(streams: &[Stream], one: impl AsyncFn(u32, &Stream) -> Result<(), BenchError>) -> Result<(), BenchError> {
    let number = u32::try_from(streams.len()).unwrap_or(u32::MAX);
    let one = &one;
    let mut done = at_once(number, AT_ONCE, |place| async move {
        match streams.get(place as usize) {
            Some(stream) => one(place, stream).await,
            None => Ok(()),
        }
    });
    while done.try_next().await?.is_some() {}
    Ok(())
}
