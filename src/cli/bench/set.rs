//! `set`: graphs of nodes that do nothing. What a node costs in graphs of several shapes, what one costs that waits, how
//! long it takes to check a graph, to start one, to ask a person and to go on, and to start an engine with many.

mod graph;
mod held_children;
mod pend;
mod rate;
mod recovery;
mod waiting;

use std::path::{Path, PathBuf};
use std::time::Duration;

use procession::Executor;
use serde::Serialize;

use held_children::{HeldChild, HeldParent};
pub(super) use recovery::{StateArgs, build};

use super::common::{Common, payload, queue};
use super::figure::{self, Figure};
use super::node::{Gate, Site, Work};
use super::report::{Telling, tell, thousands};
use super::rounds::{Rounds, Summary};
use super::taken::{Taken, tenths};
use super::{BenchError, STOP_TIME};

/// Results are kept longer than any run takes.
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);
/// Most nodes of a set here.
const NODES_MAX: usize = 1_000_000;

/// What the sets look like, and what of them is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    /// One node behind the other: the time from node to node.
    Chain,
    /// One node, many behind it, and one behind all of these.
    Wide,
    /// Many sets of diamonds in a row, all at once.
    Lattice,
    /// Many small sets, all at once.
    Sets,
    /// Nodes that wait for one that is held: the memory of each, beside that of children that wait for their places.
    Waiting,
    /// Each node behind three others: the time to check the graph.
    Validate,
    /// A node that fails, with all others behind it: the time to ask a person, and to retry.
    Pend,
    /// An engine is killed with sets of nodes that wait: the time until the first node runs again.
    Recovery,
}

impl Shape {
    /// Sets, and nodes of each, unless said otherwise.
    const fn usual(self) -> (u32, u32) {
        match self {
            Self::Chain => (1, 1_000),
            Self::Wide => (1, 10_002),
            Self::Lattice => (1_000, 91),
            Self::Sets => (1_000, 10),
            Self::Waiting | Self::Validate | Self::Pend => (1, 100_000),
            Self::Recovery => (100, 10_000),
        }
    }
}

/// Options of `set`.
#[derive(Debug, clap::Args)]
pub(super) struct SetArgs {
    /// What the sets look like, and what of them is measured.
    #[arg(long, value_enum, default_value_t = Shape::Wide)]
    shape: Shape,
    /// How many nodes each set has [default: 1,000 to 100,000, by the shape].
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..=NODES_MAX as i64))]
    nodes: Option<u32>,
    /// How many sets a round starts, all at once [default: 1 to 1,000, by the shape].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    sets: Option<u32>,
    /// How many nodes of a set are set going at once.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    width: u32,
    /// With the shape recovery: how many streams there are beside the sets, each with 100 waiting nodes.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    streams: u32,
    /// Bytes that each node carries.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    payload: u32,
    #[command(flatten)]
    common: Common,
}

/// How much of it there is.
#[derive(Debug, Clone)]
struct Sizes {
    sets: u32,
    nodes: u32,
    width: u32,
    streams: u32,
    payload: String,
}

impl Sizes {
    /// A tenth of it, so that files, caches and threads are there.
    fn warm_up(&self) -> Self {
        let (sets, nodes) = match self.sets {
            1 => (1, (self.nodes / 10).max(3)),
            sets => ((sets / 10).max(1), self.nodes),
        };
        Self {
            sets,
            nodes,
            ..self.clone()
        }
    }

    fn all_nodes(&self) -> f64 {
        f64::from(self.sets) * f64::from(self.nodes)
    }
}

/// The closing line's own names.
#[derive(Debug, Serialize)]
struct Figures {
    shape: Shape,
    sets: u32,
    nodes: u32,
    width: u32,
    streams: u32,
    nodes_per_second: f64,
    #[serde(flatten)]
    of_shape: std::collections::BTreeMap<&'static str, Option<f64>>,
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: SetArgs) -> Result<(), BenchError> {
    let (sets, nodes) = args.shape.usual();
    let sizes = Sizes {
        sets: args.sets.unwrap_or(sets),
        nodes: args.nodes.unwrap_or(nodes),
        width: args.width,
        streams: args.streams,
        payload: payload(args.common.seed, args.payload),
    };
    if sizes.streams > 0 && args.shape != Shape::Recovery {
        return Err(BenchError::Options("--streams is only for --shape recovery".to_owned()));
    }
    let common = &args.common;
    let measured = common.within(async |directory| measure(&args, &sizes, directory).await);
    let summary = measured.await?;
    let figures = Figures {
        shape: args.shape,
        sets: sizes.sets,
        nodes: sizes.nodes,
        width: sizes.width,
        streams: sizes.streams,
        nodes_per_second: tenths(summary.taken.rate()),
        of_shape: figure::named(&summary.more),
    };
    let (sets, nodes) = (thousands(f64::from(sizes.sets)), thousands(f64::from(sizes.nodes)));
    let telling = Telling {
        workload: "set",
        title: format!("sets: {sets}, of {nodes} nodes each, {} at once", sizes.width),
        unit: "node",
        units: "nodes",
        rows: figure::rows(&summary.more),
    };
    tell(&summary, common, figures, &telling)
}

/// What a round found: what it took, and what only this shape has.
type Round = Result<(Taken, Vec<Figure>), BenchError>;

async fn measure(args: &SetArgs, sizes: &Sizes, directory: &Path) -> Result<Summary<Vec<Figure>>, BenchError> {
    if args.shape == Shape::Recovery {
        return recovery::measure(&args.common, sizes, directory).await;
    }
    let bench = Bench::start(directory.join("engine"), Gate::Open).await?;
    bench.round(args.shape, &sizes.warm_up()).await?;
    let mut rounds = Rounds::new(directory);
    let mut first = None;
    for _ in 0..args.common.rounds {
        let (taken, figures) = bench.round(args.shape, sizes).await?;
        let first = first.get_or_insert_with(|| figures.clone());
        // Later rounds use memory that earlier ones have freed.
        let figures = if args.shape == Shape::Waiting {
            first.clone()
        } else {
            figures
        };
        rounds.add(taken, figures).await?;
    }
    let summary = rounds.summarize().await?;
    bench.executor.drain(STOP_TIME).await?;
    Ok(summary)
}

/// An engine, and what its nodes share.
struct Bench {
    executor: Executor,
    site: Site,
}

impl Bench {
    async fn start(directory: PathBuf, gate: Gate) -> Result<Self, BenchError> {
        let site = Site::new(gate);
        let executor = Executor::builder(directory)
            .processor::<Work>(site.clone())
            .streams()
            .register::<HeldParent>(())
            .register::<HeldChild>(())
            .max_queued(queue(1))
            .max_awake(usize::MAX)
            .max_children(NODES_MAX)
            .retention(KEEP, KEEP)
            .start()
            .await?;
        Ok(Self { executor, site })
    }

    async fn round(&self, shape: Shape, sizes: &Sizes) -> Round {
        match shape {
            Shape::Chain => rate::round(self, sizes, graph::chain).await,
            Shape::Wide | Shape::Sets => rate::round(self, sizes, graph::wide).await,
            Shape::Lattice => rate::round(self, sizes, graph::lattice).await,
            Shape::Validate => rate::validated(self, sizes).await,
            Shape::Waiting => waiting::round(self, sizes).await,
            Shape::Pend => pend::round(self, sizes).await,
            Shape::Recovery => Err(BenchError::NoRound),
        }
    }
}
