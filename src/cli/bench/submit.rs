//! `submit`: how long until a submission is durable, as the submitter sees it.
//!
//! What is submitted has one stage that does nothing and runs at once, as it
//! would in use: its end is journalled beside the submissions that follow.

use std::path::Path;
use std::time::Duration;

use futures::TryStreamExt;
use hdrhistogram::Histogram;
use procession::submit::LABELS_MAX;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::common::{Common, at_once, payload, queue};
use super::report::{Telling, micros, tail, tell};
use super::rounds::{Rounds, Summary};
use super::taken::{Probe, Taken, now, quantile_us, record, tenths, times};
use super::{BenchError, STOP_TIME};

/// Options of `submit`.
#[derive(Debug, clap::Args)]
pub(super) struct SubmitArgs {
    /// How many submissions a round makes [default: 200 for each submitter, at least 2,000].
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    submissions: Option<u32>,
    /// How many submitters there are; each waits for its answer before its next submission.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency: u32,
    /// Bytes that each procedure carries.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    payload: u32,
    /// Labels of each submission.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=LABELS_MAX as i64))]
    labels: u32,
    #[command(flatten)]
    common: Common,
}

/// Ends with its first stage.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Once {
    payload: String,
}

impl Procedure for Once {
    const KIND: &'static str = "bench_once";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Done(()))
    }
}

/// What is submitted, and with how many labels.
struct Work {
    once: Once,
    labels: u32,
}

/// The closing line's own names.
#[derive(Debug, Serialize)]
struct Figures {
    submissions: u32,
    concurrency: u32,
    labels: u32,
    submissions_per_second: f64,
    submit_us_p50: f64,
    submit_us_p99: f64,
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: SubmitArgs) -> Result<(), BenchError> {
    let common = &args.common;
    let submissions = args
        .submissions
        .unwrap_or_else(|| args.concurrency.saturating_mul(200).max(2_000));
    let summary = common
        .within(async |directory| measure(&args, submissions, directory).await)
        .await?;
    let figures = Figures {
        submissions,
        concurrency: args.concurrency,
        labels: args.labels,
        submissions_per_second: tenths(summary.taken.rate()),
        submit_us_p50: quantile_us(&summary.more, 0.5),
        submit_us_p99: quantile_us(&summary.more, 0.99),
    };
    let telling = Telling {
        workload: "submit",
        title: format!("{submissions} submissions, submitters: {}", args.concurrency),
        unit: "submission",
        units: "submissions",
        rows: vec![(
            "until it is durable",
            micros(figures.submit_us_p50),
            tail(figures.submit_us_p99),
        )],
    };
    tell(&summary, common, figures, &telling)
}

async fn measure(args: &SubmitArgs, submissions: u32, directory: &Path) -> Result<Summary<Histogram<u64>>, BenchError> {
    let executor = Executor::builder(directory.join("engine"))
        .register::<Once>(())
        .max_queued(queue(args.concurrency))
        .max_awake(usize::MAX)
        .start()
        .await?;
    let once = Once {
        payload: payload(args.common.seed, args.payload),
    };
    let work = Work {
        once,
        labels: args.labels,
    };
    run_round(&executor, (submissions / 10).max(1), args.concurrency, &work).await?;
    let mut rounds = Rounds::new(directory);
    for _ in 0..args.common.rounds {
        let (taken, answers) = run_round(&executor, submissions, args.concurrency, &work).await?;
        rounds.add(taken, answers).await?;
    }
    let summary = rounds.summarize().await?;
    executor.drain(STOP_TIME).await?;
    Ok(summary)
}

async fn run_round(
    executor: &Executor,
    submissions: u32,
    concurrency: u32,
    work: &Work,
) -> Result<(Taken, Histogram<u64>), BenchError> {
    let mut answers = times();
    // Made before the round: the texts of labels are the submitter's, and no cost of the engine.
    let labels: Vec<Texts> = (0..submissions).map(|number| texts(work.labels, number)).collect();
    let mut labels = labels.into_iter();
    let probe = Probe::begin(executor).await?;
    let mut answered = at_once(submissions, concurrency, |_| {
        submit_one(executor, work, labels.next().unwrap_or_default())
    });
    while let Some(took) = answered.try_next().await? {
        record(&mut answers, took);
    }
    Ok((probe.end(executor, f64::from(submissions)).await?, answers))
}

/// Names and values of labels.
type Texts = Vec<(Box<str>, Box<str>)>;

/// Makes so many labels. Some are of many submissions, and some of one alone.
fn texts(labels: u32, number: u32) -> Texts {
    let text = |label: u32| {
        let value = number % 10_u32.saturating_pow(label + 1);
        (format!("label-{label}").into(), format!("{value:08}").into())
    };
    (0..labels).map(text).collect()
}

async fn submit_one(executor: &Executor, work: &Work, labels: Texts) -> Result<Duration, BenchError> {
    let once = work.once.clone();
    let begun = now();
    let labels = labels.into_iter();
    let submission = labels.fold(executor.submit(once), |submission, (name, value)| {
        submission.label(name, value)
    });
    submission.await?;
    Ok(begun.elapsed())
}
