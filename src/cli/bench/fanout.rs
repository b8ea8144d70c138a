//! `fanout`: parents that wait for many children each. What a child costs: its
//! birth, its one stage, its end, and its parent's count. What it costs beside that if it fails.

use std::collections::BTreeMap;
use std::path::Path;

use futures::TryStreamExt;
use procession::errors::CodecError;
use procession::procedure::JoinPolicy;
use procession::procedure::PureContext;
use procession::{Children, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::common::{Common, at_once, builder, payload};
use super::figure::{self, Figure};
use super::report::{Telling, tell, thousands};
use super::rounds::{Rounds, Summary};
use super::taken::{Probe, Taken, count, tenths};
use super::{BenchError, STOP_TIME};

/// Options of `fanout`.
#[derive(Debug, clap::Args)]
pub(super) struct FanoutArgs {
    /// How many children each parent has.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    children: u32,
    /// How many children of a parent run at once; 0 is no limit.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    width: u32,
    /// How many parents a round runs, all at once.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    parents: u32,
    /// Lets each child fail, and compares the round with one of children that succeed.
    #[arg(long)]
    failing: bool,
    /// Takes children of a kind without rollback: a failure is one commit, as there is nothing to undo.
    #[arg(long, requires = "failing")]
    without_rollback: bool,
    /// Compares the round with one whose children have a pure stage, which runs ahead of the disk.
    #[arg(long, conflicts_with = "failing")]
    speculate: bool,
    /// Bytes that each child carries.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    payload: u32,
    #[command(flatten)]
    common: Common,
}

/// Gives birth to its children, and ends when all of them have.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Parent {
    pub(super) children: u32,
    pub(super) width: u32,
    pub(super) fails: bool,
    /// Its children are of a kind that has no rollback.
    pub(super) without_rollback: bool,
    pub(super) payload: String,
    /// Its children are parents of as many, and so on: so many levels of parents are below it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) levels_below: u32,
    /// Stages of each child after its first.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) more_stages: u32,
    /// The stages of its children are pure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) pure_children: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Parent {
    fn children(&mut self) -> Result<Children, CodecError> {
        let payload = std::mem::take(&mut self.payload);
        if let Some(levels_below) = self.levels_below.checked_sub(1) {
            return self.list(&Self {
                levels_below,
                payload,
                ..self.clone()
            });
        }
        let child = Child {
            fails: self.fails,
            payload,
            more_stages: self.more_stages,
            is_pure: self.pure_children,
        };
        match self.without_rollback {
            true => self.list(&FinalChild(child)),
            false => self.list(&child),
        }
    }

    fn list<P: Procedure>(&self, child: &P) -> Result<Children, CodecError> {
        (0..self.children).try_fold(Children::new(), |children, _| children.and(child))
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Stage {
    Split,
    Collect,
}

impl Procedure for Parent {
    const KIND: &'static str = "bench_parent";
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Split
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Split => {
                let children = self.children()?;
                let join = match self.fails {
                    true => JoinPolicy::AllFinished,
                    false => JoinPolicy::AllSucceeded,
                };
                Ok(Step::Spawn {
                    children: children.width(self.width).join(join),
                    then: Stage::Collect,
                })
            }
            Stage::Collect => Ok(Step::Done(())),
        }
    }
}

/// Has one stage, or some more.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Child {
    fails: bool,
    payload: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    more_stages: u32,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_pure: bool,
}

impl Procedure for Child {
    const KIND: &'static str = "bench_child";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) -> Self::Stage {}

    fn is_pure(&self, (): &()) -> bool {
        self.is_pure
    }

    fn compute(&mut self, (): (), _: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.ended()
    }

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.ended()
    }
}

impl Child {
    fn ended<P: Procedure<Stage = (), Output = ()>>(&mut self) -> Result<Step<P>, StageError> {
        match (self.fails, self.more_stages.checked_sub(1)) {
            (true, _) => Err(StageError::fail("it fails")),
            (false, None) => Ok(Step::Done(())),
            (false, Some(more)) => {
                self.more_stages = more;
                Ok(Step::Next(()))
            }
        }
    }
}

/// A child whose kind has no rollback.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
struct FinalChild(Child);

impl Procedure for FinalChild {
    const KIND: &'static str = "bench_final_child";
    const ROLLBACK: bool = false;
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.0.ended()
    }
}

/// The closing line's own names.
#[derive(Debug, Serialize)]
struct Figures {
    parents: u32,
    children: u32,
    width: u32,
    failing: bool,
    without_rollback: bool,
    children_per_second: f64,
    #[serde(flatten)]
    of_failing: BTreeMap<&'static str, Option<f64>>,
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: FanoutArgs) -> Result<(), BenchError> {
    if args.width > args.children {
        return Err(BenchError::Options(format!(
            "--width {} limits nothing: a parent has {} children; lower it, or leave it out",
            args.width, args.children
        )));
    }
    let common = &args.common;
    let summary = common.within(async |directory| measure(&args, directory).await).await?;
    let figures = Figures {
        parents: args.parents,
        children: args.children,
        width: args.width,
        failing: args.failing,
        without_rollback: args.without_rollback,
        children_per_second: tenths(summary.taken.rate()),
        of_failing: figure::named(&summary.more),
    };
    let width = match args.width {
        0 => "all at once".to_owned(),
        width => format!("{} at once", thousands(f64::from(width))),
    };
    let telling = Telling {
        workload: "fanout",
        title: format!("parents: {}, of {} children each, {width}", args.parents, args.children),
        unit: "child",
        units: "children",
        rows: figure::rows(&summary.more),
    };
    tell(&summary, common, figures, &telling)
}

async fn measure(args: &FanoutArgs, directory: &Path) -> Result<Summary<Vec<Figure>>, BenchError> {
    let executor = start(&directory.join("engine"), args.parents).await?;
    let parent = |children: u32, fails: bool, pure_children: bool| Parent {
        children,
        width: args.width,
        fails,
        without_rollback: args.without_rollback,
        payload: payload(args.common.seed, args.payload),
        levels_below: 0,
        more_stages: 0,
        pure_children,
    };
    executor
        .submit(parent((args.children / 10).max(1), args.failing, args.speculate))
        .await?
        .await?;
    let mut rounds = Rounds::new(directory);
    let round = async |parent: &Parent| run_round(&executor, args.parents, args.parents, parent).await;
    for number in 0..args.common.rounds {
        let mut figures = Vec::new();
        // The pure ones go first in every second pair, because the disk still works on what the round before has left.
        let is_first = args.speculate && number % 2 == 1;
        let pure = parent(args.children, false, true);
        let before = if is_first { Some(round(&pure).await?) } else { None };
        let mut taken = round(&parent(args.children, false, false)).await?;
        if args.speculate {
            let pure = match before {
                Some(taken) => taken,
                None => round(&pure).await?,
            };
            figures.extend(of_pure(&pure, &taken));
        }
        if args.failing {
            let succeeding = taken.rate();
            taken = round(&parent(args.children, true, false)).await?;
            let times = succeeding / taken.rate();
            let row = "time, to children that succeed";
            figures.push(Figure::new("times_succeeding", times, row, format!("{times:.2}"), ""));
        }
        rounds.add(taken, figures).await?;
    }
    let summary = rounds.summarize().await?;
    executor.drain(STOP_TIME).await?;
    Ok(summary)
}

/// Compares a round of pure children with one of children that wait for the disk.
fn of_pure(pure: &Taken, plain: &Taken) -> [Figure; 2] {
    let ratio = pure.rate() / plain.rate().max(f64::EPSILON);
    let syncs = count(pure.batches) / count(plain.batches).max(1.0);
    let than = "of those of children that wait for the disk";
    [
        Figure::new(
            "speculation_ratio",
            ratio,
            "rate of pure children",
            format!("{ratio:.2}"),
            than,
        ),
        Figure::new(
            "speculation_syncs_ratio",
            syncs,
            "their syncs",
            format!("{syncs:.2}"),
            than,
        ),
    ]
}

/// Starts an engine for so many parents at once.
pub(super) async fn start(directory: &Path, concurrency: u32) -> Result<Executor, BenchError> {
    let builder = builder(directory, concurrency).register::<Parent>(());
    Ok(builder.register::<Child>(()).register::<FinalChild>(()).start().await?)
}

/// Runs parents, some of them at once. A unit is a child of theirs.
pub(super) async fn run_round(
    executor: &Executor,
    parents: u32,
    concurrency: u32,
    parent: &Parent,
) -> Result<Taken, BenchError> {
    let probe = Probe::begin(executor).await?;
    let mut ended = at_once(parents, concurrency, |_| async {
        Ok::<_, BenchError>(executor.submit(parent.clone()).await?.await?)
    });
    while ended.try_next().await?.is_some() {}
    probe
        .end(executor, f64::from(parents) * f64::from(parent.children))
        .await
}
