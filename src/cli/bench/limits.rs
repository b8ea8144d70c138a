//! `limits`: procedures of some kinds wait for permits of their kinds' limits,
//! which are full. What it costs to hand a permit on.

use std::path::Path;

use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::BenchError;
use super::common::{Common, queue};
use super::queued::{Gate, Queue, SUBMITTERS, measure, wait};
use super::report::{Telling, tell};
use super::rounds::Summary;
use super::taken::tenths;

/// Kinds that there are.
const KINDS: u32 = 8;

/// Options of `limits`.
#[derive(Debug, clap::Args)]
pub(super) struct LimitsArgs {
    /// How many procedures wait, of all kinds together.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    procedures: u32,
    /// How many kinds there are.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=i64::from(KINDS)))]
    kinds: u32,
    /// How many procedures of a kind may run at once.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    common: Common,
}

/// A procedure of kind number `K`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Limited<const K: u32> {
    holds: bool,
}

const fn name(kind: u32) -> &'static str {
    match kind {
        0 => "bench_limited_0",
        1 => "bench_limited_1",
        2 => "bench_limited_2",
        3 => "bench_limited_3",
        4 => "bench_limited_4",
        5 => "bench_limited_5",
        6 => "bench_limited_6",
        _ => "bench_limited_7",
    }
}

impl<const K: u32> Procedure for Limited<K> {
    const KIND: &'static str = name(K);
    type Stage = ();
    type Env = Gate;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        wait(cx, self.holds).await
    }
}

impl Queue for LimitsArgs {
    fn holders(&self) -> u32 {
        self.kinds * self.limit
    }

    fn waiting(&self) -> u32 {
        self.procedures
    }

    async fn submit(&self, executor: &Executor, place: u32, holds: bool) -> Result<(), BenchError> {
        match place % self.kinds {
            0 => send::<0>(executor, holds).await,
            1 => send::<1>(executor, holds).await,
            2 => send::<2>(executor, holds).await,
            3 => send::<3>(executor, holds).await,
            4 => send::<4>(executor, holds).await,
            5 => send::<5>(executor, holds).await,
            6 => send::<6>(executor, holds).await,
            _ => send::<7>(executor, holds).await,
        }
    }
}

async fn send<const K: u32>(executor: &Executor, holds: bool) -> Result<(), BenchError> {
    executor.submit(Limited::<K> { holds }).await?;
    Ok(())
}

/// The closing line's own names.
#[derive(Debug, Serialize)]
struct Figures {
    procedures: u32,
    kinds: u32,
    limit: u32,
    grants_per_second: f64,
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: LimitsArgs) -> Result<(), BenchError> {
    let common = &args.common;
    let summary = common.within(async |directory| start(&args, directory).await).await?;
    let figures = Figures {
        procedures: args.procedures,
        kinds: args.kinds,
        limit: args.limit,
        grants_per_second: tenths(summary.taken.rate()),
    };
    let telling = Telling {
        workload: "limits",
        title: format!(
            "{} procedures wait, kinds: {}, of each run at once: {}",
            args.procedures, args.kinds, args.limit
        ),
        unit: "grant",
        units: "grants",
        rows: Vec::new(),
    };
    tell(&summary, common, figures, &telling)
}

async fn start(args: &LimitsArgs, directory: &Path) -> Result<Summary<()>, BenchError> {
    let gate = Gate::new();
    let mut builder = Executor::builder(directory.join("engine"))
        .register::<Limited<0>>(gate.clone())
        .register::<Limited<1>>(gate.clone())
        .register::<Limited<2>>(gate.clone())
        .register::<Limited<3>>(gate.clone())
        .register::<Limited<4>>(gate.clone())
        .register::<Limited<5>>(gate.clone())
        .register::<Limited<6>>(gate.clone())
        .register::<Limited<7>>(gate.clone())
        .max_queued(queue(SUBMITTERS))
        .max_awake(usize::MAX);
    for kind in 0..args.kinds {
        builder = builder.limit(name(kind), args.limit);
    }
    let executor = builder.start().await?;
    measure(args, &gate, &executor, &args.common, directory).await
}
