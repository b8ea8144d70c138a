//! `saga`: sagas whose services do nothing. What a state costs in machines of several shapes, what a saga costs that
//! rests, and how long a start takes with many. Beside them plain procedures that commit as often.
//!
//! A state is one call of a service, a compensator's included.

mod host;
mod machines;
mod plain;
mod rates;
mod recovery;
mod rest;
mod state;
mod turns;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

pub(super) use state::{StateArgs, build};
use turns::Measured;

use super::BenchError;
use super::common::{Common, SUBMITTERS, payload};
use super::figure::{self, Figure};
use super::report::{self, Ground, micros, row, thousands};
use super::taken::{count, quantile_us, significant, tenths, thousandths};

/// States of a definition at most.
const STATES_MAX: u32 = 2_000;
/// Elements of a Loop at most.
const ELEMENTS_MAX: u32 = 10_000;

/// What the machine looks like, and what of it is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Shape {
    /// Tasks one behind the other; beside them `chain` with as many stages.
    Chain,
    /// The same with a Choice between any two tasks; beside them the machine without Choices, too.
    Choice,
    /// Tasks, then as many compensators; beside them `rollback` with as many stages.
    Compensate,
    /// A Fork, whose branches are Forks, and so on; beside it parents of parents, as in `fanout`.
    Fork,
    /// A machine within a machine, and so on; beside it parents of one child, which is a parent of one child.
    Nested,
    /// A task for each element of a list; beside it `fanout` with as many children.
    Loop,
    /// Sagas that failed, and rest: the memory of each, and the start of an engine with them. Beside them procedures that ask.
    Rest,
    /// An engine is killed with sagas that are half done: the time until all have ended. Beside them those of `recovery`.
    Recovery,
}

impl Shape {
    /// Whether states of a saga follow each other, so that the time between them means something.
    const fn is_timed(self) -> bool {
        matches!(self, Self::Chain | Self::Choice | Self::Compensate)
    }
}

/// Options of `saga`.
#[derive(Debug, clap::Args)]
pub(super) struct SagaArgs {
    /// What the machine looks like, and what of it is measured.
    #[arg(long, value_enum, default_value_t = Shape::Chain)]
    shape: Shape,
    /// How many sagas run at once [default: 1 to 1,024, by the shape].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    concurrency: Option<u32>,
    /// How many sagas a round runs [default: 1 to 100,000, by the shape, and 20 for each that runs at once].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    sagas: Option<u32>,
    /// How many tasks each saga has, or each branch of a Fork, or how many elements a Loop has [default: 1 to 10,000, by
    /// the shape].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=ELEMENTS_MAX as i64))]
    tasks: Option<u32>,
    /// With the shape compensate: how many more tasks only look, and have no compensator [default: 0].
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    read_only: Option<u32>,
    /// With the shape fork: how many branches each Fork has [default: 4].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    branches: Option<u32>,
    /// With the shapes fork and nested: how many Forks or machines lie within each other [default: 3].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=16))]
    levels: Option<u32>,
    /// With the shape loop: how many elements run at once; 0 is no limit [default: 64].
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    width: Option<u32>,
    /// Bytes of the ten values that each saga begins with.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    payload: u32,
    #[command(flatten)]
    common: Common,
}

/// How much of it there is.
#[derive(Debug, Clone)]
struct Sizes {
    shape: Shape,
    concurrency: u32,
    sagas: u32,
    tasks: u32,
    read_only: u32,
    branches: u32,
    levels: u32,
    width: u32,
    payload: String,
}

impl Sizes {
    /// Sizes unless said otherwise.
    fn usual(shape: Shape, payload: String) -> Self {
        let (concurrency, sagas, tasks) = match shape {
            Shape::Chain | Shape::Choice => (1_024, 500, 10),
            Shape::Compensate => (1_024, 10_000, 5),
            Shape::Fork => (64, 500, 1),
            Shape::Nested => (1_024, 500, 4),
            Shape::Loop => (1, 1, ELEMENTS_MAX),
            Shape::Rest => (SUBMITTERS, 100_000, 1),
            Shape::Recovery => (SUBMITTERS, 100_000, 2),
        };
        Self {
            shape,
            concurrency,
            sagas,
            tasks,
            read_only: 0,
            branches: 4,
            levels: 3,
            width: 64,
            payload,
        }
    }

    fn of(args: &SagaArgs) -> Result<Self, BenchError> {
        args.check()?;
        let usual = Self::usual(args.shape, payload(args.common.seed, args.payload));
        let concurrency = args.concurrency.unwrap_or(usual.concurrency);
        let many = match args.shape {
            Shape::Loop => concurrency,
            Shape::Chain
            | Shape::Choice
            | Shape::Compensate
            | Shape::Fork
            | Shape::Nested
            | Shape::Rest
            | Shape::Recovery => concurrency.saturating_mul(20),
        };
        let sizes = Self {
            concurrency,
            sagas: args.sagas.unwrap_or(usual.sagas.max(many)),
            tasks: args.tasks.unwrap_or(usual.tasks),
            read_only: args.read_only.unwrap_or(usual.read_only),
            branches: args.branches.unwrap_or(usual.branches),
            levels: args.levels.unwrap_or(usual.levels),
            width: args.width.unwrap_or(usual.width),
            ..usual
        };
        let tasks = sizes.tasks_of_saga();
        if sizes.shape != Shape::Loop && tasks > STATES_MAX {
            return Err(BenchError::Options(format!(
                "a saga would have {tasks} tasks, and a definition has {STATES_MAX} states at most; lower --tasks, \
                 or --branches or --levels"
            )));
        }
        Ok(sizes)
    }

    /// A tenth of it, so that files, caches and threads are there.
    fn warm_up(&self) -> Self {
        let tenth = |number: u32| (number / 10).max(1);
        let mut sizes = self.clone();
        if self.shape == Shape::Loop {
            sizes.tasks = tenth(self.tasks);
        } else {
            sizes.sagas = tenth(self.sagas);
        }
        sizes
    }

    fn tasks_of_saga(&self) -> u32 {
        match self.shape {
            Shape::Fork => self.branches.saturating_pow(self.levels).saturating_mul(self.tasks),
            Shape::Compensate => self.tasks.saturating_add(self.read_only),
            Shape::Chain | Shape::Choice | Shape::Nested | Shape::Loop | Shape::Rest | Shape::Recovery => self.tasks,
        }
    }

    /// Calls of services in a round.
    fn all_states(&self) -> f64 {
        let compensators = if self.shape == Shape::Compensate { self.tasks } else { 0 };
        f64::from(self.sagas) * (f64::from(self.tasks_of_saga()) + f64::from(compensators))
    }
}

impl SagaArgs {
    /// Refuses options that the shape has no use for.
    fn check(&self) -> Result<(), BenchError> {
        use Shape::{Chain, Choice, Compensate, Fork, Loop, Nested};
        let running: &[Shape] = &[Chain, Choice, Compensate, Fork, Nested, Loop];
        let options: [(&str, bool, &[Shape]); 6] = [
            ("--concurrency", self.concurrency.is_some(), running),
            ("--tasks", self.tasks.is_some(), running),
            ("--read-only", self.read_only.is_some(), &[Compensate]),
            ("--branches", self.branches.is_some(), &[Fork]),
            ("--levels", self.levels.is_some(), &[Fork, Nested]),
            ("--width", self.width.is_some(), &[Loop]),
        ];
        let misfit = options
            .iter()
            .find(|(_, is_given, shapes)| *is_given && !shapes.contains(&self.shape));
        match misfit {
            Some((name, _, _)) => Err(BenchError::Options(format!(
                "{name} is not for this --shape; leave it out, or name another shape"
            ))),
            None => Ok(()),
        }
    }
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: SagaArgs) -> Result<(), BenchError> {
    let sizes = Sizes::of(&args)?;
    let common = &args.common;
    let measured = common.within(async |directory| measure(common, &sizes, directory).await);
    tell(&measured.await?, &sizes, common)
}

async fn measure(common: &Common, sizes: &Sizes, directory: &Path) -> Result<Measured, BenchError> {
    match sizes.shape {
        Shape::Rest => rest::measure(common.rounds, common.seed, sizes, directory).await,
        Shape::Recovery => recovery::measure(common.rounds, common.seed, sizes, directory).await,
        Shape::Chain | Shape::Choice | Shape::Compensate | Shape::Fork | Shape::Nested | Shape::Loop => {
            rates::measure(common.rounds, sizes, directory).await
        }
    }
}

/// What a restart takes with sagas, against one with plain procedures.
fn restart_ratio(sagas: Duration, plain: Duration) -> Figure {
    let ratio = sagas.as_secs_f64() / plain.as_secs_f64().max(f64::EPSILON);
    let row = "time, to plain procedures";
    Figure::new("restart_ratio", significant(ratio), row, format!("{ratio:.2}"), "")
}

/// The closing line. Its names are a promise to scripts.
#[derive(Debug, Serialize)]
struct Closing {
    workload: &'static str,
    shape: Shape,
    concurrency: u32,
    sagas: u32,
    tasks: u32,
    states_per_second: f64,
    raw_states_per_second: f64,
    ratio: f64,
    /// Commits in a second against those of plain procedures that commit as often.
    chain_ratio: f64,
    /// None but with the shape choice.
    without_choices_ratio: Option<f64>,
    /// None but with the shape chain, one at a time.
    seata_ratio: Option<f64>,
    /// None where states run beside each other.
    state_us_p50: Option<f64>,
    state_us_p99: Option<f64>,
    saga_us_p50: Option<f64>,
    saga_us_p99: Option<f64>,
    raw_commit_us_p50: f64,
    commits: u64,
    commits_per_saga: f64,
    chain_commits_per_saga: f64,
    bytes_per_state: f64,
    chain_bytes_per_state: f64,
    /// None where the system does not tell processor time.
    cpu_us_per_state: Option<f64>,
    chain_cpu_us_per_state: Option<f64>,
    #[serde(flatten)]
    of_shape: BTreeMap<&'static str, Option<f64>>,
    #[serde(flatten)]
    ground: Ground,
}

impl Closing {
    fn of(measured: &Measured, sizes: &Sizes, common: &Common) -> Self {
        let summary = &measured.summary;
        let (taken, found) = (&summary.taken, &summary.more);
        let plain = &found.plain;
        let times = found.times.as_ref();
        let state = |quantile| times.map(|times| quantile_us(&times.stages, quantile));
        let saga = |quantile| times.map(|times| quantile_us(&times.procedures, quantile));
        let per_saga = |commits| thousandths(count(commits) / f64::from(sizes.sagas));
        Self {
            workload: "saga",
            shape: sizes.shape,
            concurrency: sizes.concurrency,
            sagas: sizes.sagas,
            tasks: sizes.tasks,
            states_per_second: tenths(taken.rate()),
            raw_states_per_second: tenths(summary.raw_rate()),
            ratio: significant(summary.ratio()),
            chain_ratio: significant(measured.chain_ratio),
            without_choices_ratio: measured.without_choices_ratio.map(thousandths),
            seata_ratio: measured.seata_ratio.map(thousandths),
            state_us_p50: state(0.5),
            state_us_p99: state(0.99),
            saga_us_p50: saga(0.5),
            saga_us_p99: saga(0.99),
            raw_commit_us_p50: tenths(summary.single.commit_us_p50),
            commits: taken.commits,
            commits_per_saga: per_saga(taken.commits),
            chain_commits_per_saga: per_saga(plain.commits),
            bytes_per_state: tenths(taken.per_unit(taken.bytes)),
            chain_bytes_per_state: tenths(plain.per_unit(plain.bytes)),
            cpu_us_per_state: taken.processor_us_per_unit().map(thousandths),
            chain_cpu_us_per_state: plain.processor_us_per_unit().map(thousandths),
            of_shape: figure::named(&found.figures),
            ground: Ground::of(summary, common),
        }
    }
}

fn tell(measured: &Measured, sizes: &Sizes, common: &Common) -> Result<(), BenchError> {
    let closing = Closing::of(measured, sizes, common);
    if common.json {
        return report::print_json(&closing);
    }
    let summary = &measured.summary;
    let name = clap::ValueEnum::to_possible_value(&sizes.shape);
    let name = name.as_ref().map_or("", |name| name.get_name());
    closing.ground.print(&format!(
        "saga: {} of the shape {name}, tasks: {}, {} at once",
        thousands(f64::from(sizes.sagas)),
        thousands(f64::from(sizes.tasks)),
        thousands(f64::from(sizes.concurrency)),
    ));
    report::print_rate(summary, "states per second");
    let ratios = [
        (
            "against plain procedures",
            Some(closing.chain_ratio),
            "commits per second of both",
        ),
        ("against it without Choices", closing.without_choices_ratio, ""),
        (
            "against a loop of 2 n + 2 commits",
            closing.seata_ratio,
            "which is Seata without Seata",
        ),
    ];
    for (name, ratio, remark) in ratios {
        if let Some(ratio) = ratio {
            row(name, &format!("{ratio:.2}"), remark);
        }
    }
    let times = [
        ("from state to state", closing.state_us_p50.zip(closing.state_us_p99)),
        (
            "from submission to outcome",
            closing.saga_us_p50.zip(closing.saga_us_p99),
        ),
    ];
    for (name, times) in times {
        if let Some((p50, p99)) = times {
            row(name, &micros(p50), &report::tail(p99));
        }
    }
    for (name, value, remark) in figure::rows(&summary.more.figures) {
        row(name, &value, &remark);
    }
    let plain = format!("plain procedures: {}", closing.chain_commits_per_saga);
    row("commits of a saga", &closing.commits_per_saga.to_string(), &plain);
    report::print_cost(summary, "state");
    row(
        "bytes of plain procedures",
        &thousands(closing.chain_bytes_per_state),
        "for as much as a state",
    );
    if let Some(micros) = closing.chain_cpu_us_per_state {
        row(
            "their processor time",
            &format!("{micros:.2} us"),
            "for as much as a state",
        );
    }
    Ok(())
}
