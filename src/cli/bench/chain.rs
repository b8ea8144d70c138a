//! `chain`: procedures of some stages each, one after another. What a stage costs.
//!
//! The stages do nothing, so that all the time there is belongs to the engine.

mod beside;
mod other;
mod searched;
mod watched;

use std::path::Path;
use std::time::Duration;

use procession::procedure::PureContext;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use beside::Bystander;
use other::Other;
use searched::Searches;

use super::common::{Common, builder, payload};
use super::meter::{Load, Meter, Times};
use super::report::{self, Ground, micros, row};
use super::rounds::{Rounds, Summary};
use super::taken::{Taken, count, median, now, quantile_us, significant, tenths, thousandths};
use super::{BenchError, STOP_TIME};

/// Options of `chain`.
#[derive(Debug, clap::Args)]
pub(super) struct ChainArgs {
    /// How many procedures run at once.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    concurrency: u32,
    /// How many procedures a round runs [default: 20 for each that runs at once, at least 500].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    procedures: Option<u32>,
    /// How many stages each procedure has.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    stages: u32,
    /// Bytes that each procedure carries besides its counter.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    payload: u32,
    /// How many more procedures live beside them and wait: a second engine has
    /// them, rounds of both take turns, and their rates are compared.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    live: u32,
    /// How many look at a dashboard meanwhile, each with a stream: a second engine has it, rounds of both
    /// take turns, and their rates are compared.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64), conflicts_with = "live")]
    viewers: u32,
    /// How many ask a dashboard without pause meanwhile, each the next question as soon as the last is answered
    /// or refused: most are lists that look at every row and show none. A second engine has the dashboard, rounds
    /// of both take turns, and their rates are compared.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64), conflicts_with_all = ["live", "viewers"])]
    searchers: u32,
    /// Compares it with procedures whose stages are pure, so that they run ahead of the disk: a second engine has
    /// those, rounds of both take turns, and their rates are compared.
    #[arg(long, conflicts_with_all = ["live", "viewers", "searchers"])]
    speculate: bool,
    #[command(flatten)]
    common: Common,
}

/// A chain of stages: a counter that goes up by one in each.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Chain {
    /// Which of the round's procedures it is.
    slot: u32,
    /// Stages that have run.
    ran: u32,
    /// Stages in all.
    stages: u32,
    /// What it carries.
    payload: String,
    /// Its stages are pure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_pure: bool,
}

impl Procedure for Chain {
    const KIND: &'static str = "bench_chain";
    type Stage = ();
    type Env = Meter;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    fn is_pure(&self, (): &()) -> bool {
        self.is_pure
    }

    fn compute(&mut self, (): (), cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(self.count(cx.env()))
    }

    async fn execute(&mut self, (): (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(self.count(cx.env()))
    }
}

impl Chain {
    fn count(&mut self, meter: &Meter) -> Step<Self> {
        meter.stage_ran(self.slot, self.ran == 0);
        self.ran += 1;
        if self.ran >= self.stages {
            Step::Done(())
        } else {
            Step::Next(())
        }
    }
}

/// What a round runs.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) concurrency: u32,
    pub(super) procedures: u32,
    pub(super) stages: u32,
    pub(super) payload: String,
    /// The stages are pure.
    pub(super) is_pure: bool,
}

impl Shape {
    /// A tenth of it, so that files, caches and threads are there.
    pub(super) fn warm_up(&self) -> Self {
        Self {
            procedures: (self.procedures / 10).max(1),
            ..self.clone()
        }
    }

    fn chain(&self, slot: u32) -> Chain {
        Chain {
            slot,
            ran: 0,
            stages: self.stages,
            payload: self.payload.clone(),
            is_pure: self.is_pure,
        }
    }
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: ChainArgs) -> Result<(), BenchError> {
    let procedures = args
        .procedures
        .unwrap_or_else(|| args.concurrency.saturating_mul(20).max(500));
    let shape = Shape {
        concurrency: args.concurrency,
        procedures,
        stages: args.stages,
        payload: payload(args.common.seed, args.payload),
        is_pure: false,
    };
    let measured = args
        .common
        .within(async |directory| measure(&args, &shape, directory).await)
        .await?;
    tell(&measured, &shape, &args)
}

/// All that was found.
struct Measured {
    summary: Summary<Times>,
    /// The rate of the other engine against that of the plain one, in the median of the pairs of rounds; none if there
    /// is no other.
    ratio: Option<f64>,
    /// The same of the processor time that a stage takes; none as well where the system does not tell it.
    processor_ratio: Option<f64>,
    /// Batches that the other engine synced, for each procedure.
    other_batches: Option<f64>,
    /// What searchers were told, in all rounds.
    searches: Searches,
}

/// An engine, and what its stages are timed with.
pub(super) struct Runner {
    pub(super) executor: Executor,
    meter: Meter,
}

impl Runner {
    pub(super) async fn start(directory: &Path, shape: &Shape) -> Result<Self, BenchError> {
        let meter = Meter::new(shape.procedures);
        let executor = builder(directory, shape.concurrency)
            .register::<Chain>(meter.clone())
            .register::<Bystander>(())
            .start()
            .await?;
        Ok(Self { executor, meter })
    }

    pub(super) async fn round(&self, shape: &Shape) -> Result<(Taken, Times), BenchError> {
        let load = Load {
            procedures: shape.procedures,
            concurrency: shape.concurrency,
            units: f64::from(shape.procedures) * f64::from(shape.stages),
        };
        let run_one = |slot| run_one(&self.executor, shape.chain(slot));
        self.meter.round(&self.executor, load, run_one).await
    }
}

async fn measure(args: &ChainArgs, shape: &Shape, directory: &Path) -> Result<Measured, BenchError> {
    let plain = Runner::start(&directory.join("engine"), shape).await?;
    plain.round(&shape.warm_up()).await?;
    let mut other = Other::start(args, shape, directory).await?;
    let mut rounds = Rounds::new(directory).side_by_side(shape.concurrency);
    let (mut ratios, mut processor_ratios, mut batches) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..args.common.rounds {
        // Each goes first in every second pair, because the disk still works on what the round before has left.
        let is_first = number % 2 == 1;
        let before = if is_first { other.round(shape).await? } else { None };
        let (taken, times) = plain.round(shape).await?;
        let after = if is_first { None } else { other.round(shape).await? };
        if let Some(compared) = before.or(after) {
            ratios.push(compared.rate() / taken.rate().max(f64::EPSILON));
            batches.push(count(compared.batches) / f64::from(shape.procedures));
            let processor = [&compared, &taken].map(Taken::processor_us_per_unit);
            if let [Some(compared), Some(plain)] = processor {
                processor_ratios.push(compared / plain.max(f64::EPSILON));
            }
        }
        rounds.add(taken, times).await?;
    }
    let summary = rounds.summarize().await?;
    plain.executor.drain(STOP_TIME).await?;
    Ok(Measured {
        summary,
        ratio: median(ratios),
        processor_ratio: median(processor_ratios),
        other_batches: median(batches),
        searches: other.close().await?,
    })
}

async fn run_one(executor: &Executor, chain: Chain) -> Result<Duration, BenchError> {
    let begun = now();
    executor.submit(chain).await?.await?;
    Ok(begun.elapsed())
}

/// The closing line. Its names are a promise to scripts.
#[derive(Debug, Serialize)]
struct Closing {
    workload: &'static str,
    concurrency: u32,
    stages_per_second: f64,
    raw_stages_per_second: f64,
    ratio: f64,
    stage_us_p50: f64,
    stage_us_p99: f64,
    raw_commit_us_p50: f64,
    procedure_us_p50: f64,
    procedure_us_p99: f64,
    commits: u64,
    bytes_per_stage: f64,
    /// None where the system does not tell processor time.
    cpu_us_per_stage: Option<f64>,
    live: u32,
    /// None where none live beside.
    live_ratio: Option<f64>,
    viewers: u32,
    /// None where none look.
    viewers_ratio: Option<f64>,
    searchers: u32,
    /// None where none search.
    searchers_ratio: Option<f64>,
    /// The rate of pure stages; none where they are not compared.
    speculation_ratio: Option<f64>,
    /// Batches that were synced for each procedure of pure stages.
    speculation_syncs_per_procedure: Option<f64>,
    /// Processor time of a stage there, against one of the plain engine; what viewers and searchers cost themselves is in
    /// it. None where there is no other engine, or the system does not tell processor time.
    processor_ratio: Option<f64>,
    /// Searches that were answered, and that were refused for a while.
    searches: u64,
    searches_refused: u64,
    #[serde(flatten)]
    ground: Ground,
}

fn tell(measured: &Measured, shape: &Shape, args: &ChainArgs) -> Result<(), BenchError> {
    let (summary, common) = (&measured.summary, &args.common);
    let ground = Ground::of(summary, common);
    let (taken, times) = (&summary.taken, &summary.more);
    let ratio_of = |beside: u32| measured.ratio.filter(|_| beside > 0).map(thousandths);
    let closing = Closing {
        workload: "chain",
        concurrency: shape.concurrency,
        stages_per_second: tenths(taken.rate()),
        raw_stages_per_second: tenths(summary.raw_rate()),
        ratio: significant(summary.ratio()),
        stage_us_p50: quantile_us(&times.stages, 0.5),
        stage_us_p99: quantile_us(&times.stages, 0.99),
        raw_commit_us_p50: tenths(summary.single.commit_us_p50),
        procedure_us_p50: quantile_us(&times.procedures, 0.5),
        procedure_us_p99: quantile_us(&times.procedures, 0.99),
        commits: taken.commits,
        bytes_per_stage: tenths(taken.per_unit(taken.bytes)),
        cpu_us_per_stage: taken.processor_us_per_unit().map(thousandths),
        live: args.live,
        live_ratio: ratio_of(args.live),
        viewers: args.viewers,
        viewers_ratio: ratio_of(args.viewers),
        searchers: args.searchers,
        searchers_ratio: ratio_of(args.searchers),
        speculation_ratio: ratio_of(u32::from(args.speculate)),
        speculation_syncs_per_procedure: measured.other_batches.filter(|_| args.speculate).map(thousandths),
        processor_ratio: measured.processor_ratio.map(thousandths),
        searches: measured.searches.answered,
        searches_refused: measured.searches.refused,
        ground,
    };
    if common.json {
        return report::print_json(&closing);
    }
    closing.ground.print(&format!(
        "chain: {} procedures of {} stages, {} at once",
        shape.procedures, shape.stages, shape.concurrency
    ));
    report::print_rate(summary, "durable stages per second");
    row(
        "from stage to stage",
        &micros(closing.stage_us_p50),
        &report::tail(closing.stage_us_p99),
    );
    row(
        "from submission to outcome",
        &micros(closing.procedure_us_p50),
        &report::tail(closing.procedure_us_p99),
    );
    report::print_cost(summary, "stage");
    if let Some(ratio) = closing.live_ratio {
        let number = report::thousands(f64::from(args.live));
        row(
            "rate with more live",
            &format!("{ratio}"),
            &format!("of the rate without the {number} that wait beside"),
        );
    }
    if let Some(ratio) = closing.viewers_ratio {
        row(
            "rate with viewers",
            &format!("{ratio}"),
            &format!("of the rate without the {} who look", args.viewers),
        );
    }
    if let Some(ratio) = closing.searchers_ratio {
        let (answered, refused) = (closing.searches, closing.searches_refused);
        row(
            "rate with searchers",
            &format!("{ratio}"),
            &format!(
                "of the rate without the {} who ask: {answered} answers, {refused} refusals",
                args.searchers
            ),
        );
    }
    if let Some(ratio) = closing.speculation_ratio {
        row(
            "rate of pure stages",
            &format!("{ratio}"),
            "of the rate of stages that wait for the disk",
        );
        let syncs = closing.speculation_syncs_per_procedure.unwrap_or_default();
        row("syncs of pure stages", &format!("{syncs}"), "for each procedure");
    }
    if let Some(ratio) = closing.processor_ratio {
        let (what, plain) = if args.speculate {
            (
                "processor time of pure stages",
                "of that of stages that wait for the disk",
            )
        } else {
            ("processor time with them", "of that without them, their own included")
        };
        row(what, &format!("{ratio}"), plain);
    }
    Ok(())
}
