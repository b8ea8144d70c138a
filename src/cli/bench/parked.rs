//! `parked`: procedures that wait for a timer, an event or a person, then are woken
//! all at once. What a waiting one costs in memory, and how fast all of them go on.
//!
//! Memory is what the whole process has in the machine's, before and after: the
//! store's own buffers grow with what is journalled, and the allocator rounds up.
//! So many should be parked that this is small beside it. Only the first round
//! tells: later ones reuse what it freed.

mod clock;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use procession::operate::OperatorRequest;
use procession::procedure::Timestamp;
use procession::provider::Clock;
use procession::status::ListFilter;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use clock::ForwardClock;

use super::common::{Common, SUBMITTERS, payload, queue, submit_all, until};
use super::report::{Telling, tell, thousands};
use super::rounds::{Rounds, Summary};
use super::taken::{Probe, Taken, count, seconds, tenths};
use super::{BenchError, STOP_TIME, machine};

/// Questions that are read, and answered at once.
const PAGE: usize = 1_000;
/// How far away the timers are: farther than parking takes.
const AWAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Results are kept longer than that, so that no eviction falls into a round.
const KEEP: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// Name of the event.
const EVENT: &str = "go";
/// What each asks.
const QUESTION: &str = "May it go on?";

/// What they wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum On {
    /// A timer; the engine's clock is set forward to wake them.
    Timers,
    /// An event; one broadcast wakes them.
    Events,
    /// The answer to a question; each is answered by itself.
    Questions,
}

/// Options of `parked`.
#[derive(Debug, clap::Args)]
pub(super) struct ParkedArgs {
    /// How many procedures are parked.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    procedures: u32,
    /// What they wait for.
    #[arg(long, value_enum, default_value_t = On::Events)]
    on: On,
    /// Bytes that each procedure carries.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    payload: u32,
    #[command(flatten)]
    common: Common,
}

/// Waits once, and ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sleeper {
    wait: Wait,
    payload: String,
}

impl Sleeper {
    /// Creates a procedure that asks, and ends once it is answered.
    pub(super) fn asking(payload: String) -> Self {
        let wait = Wait::Question;
        Self { wait, payload }
    }
}

/// What a procedure waits for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Wait {
    Timer(Timestamp),
    Event,
    Question,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Stage {
    Park,
    End,
}

impl Procedure for Sleeper {
    const KIND: &'static str = "bench_sleeper";
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Park
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(match (stage, self.wait) {
            (Stage::Park, Wait::Timer(until)) => Step::Sleep {
                until,
                then: Stage::End,
            },
            (Stage::Park, Wait::Event) => Step::Wait {
                event: EVENT.to_owned(),
                timeout: None,
                then: Stage::End,
            },
            (Stage::Park, Wait::Question) => Step::Ask {
                question: QUESTION.to_owned(),
                timeout: None,
                then: Stage::End,
            },
            (Stage::End, _) => Step::Done(()),
        })
    }
}

/// The closing line's own names.
#[derive(Debug, Serialize)]
struct Figures {
    procedures: u32,
    on: On,
    /// None where the system does not tell.
    bytes_per_procedure: Option<f64>,
    /// What was journalled for each until it was parked: the store keeps some of it in memory.
    journalled_per_procedure: f64,
    wake_seconds: f64,
    wakes_per_second: f64,
}

/// What parking took, for each procedure.
#[derive(Debug, Clone, Copy)]
struct Parked {
    /// None where the system does not tell.
    resident: Option<f64>,
    journalled: f64,
}

/// Measures it, and prints what was found.
pub(super) async fn run(args: ParkedArgs) -> Result<(), BenchError> {
    let common = &args.common;
    let (summary, first) = common.within(async |directory| measure(&args, directory).await).await?;
    let figures = Figures {
        procedures: args.procedures,
        on: args.on,
        bytes_per_procedure: first.resident.map(tenths),
        journalled_per_procedure: tenths(first.journalled),
        wake_seconds: seconds(summary.taken.cost.elapsed),
        wakes_per_second: tenths(summary.taken.rate()),
    };
    let memory = figures
        .bytes_per_procedure
        .map_or_else(|| "unknown".to_owned(), |bytes| format!("{} B", thousands(bytes)));
    let remark = if figures.bytes_per_procedure.is_some() {
        format!(
            "resident memory, first round; {} B of each were journalled, and the store keeps some of that",
            thousands(first.journalled)
        )
    } else {
        "this system has no /proc to read it from".to_owned()
    };
    let on = match args.on {
        On::Timers => "a timer each",
        On::Events => "one event",
        On::Questions => "an answer each",
    };
    let telling = Telling {
        workload: "parked",
        title: format!("{} procedures wait for {on}, then all are woken", args.procedures),
        unit: "wake",
        units: "wakes",
        rows: vec![
            ("memory of each that is parked", memory, remark),
            (
                "until all have ended",
                format!("{:.2} s", figures.wake_seconds),
                "from the wake".to_owned(),
            ),
        ],
    };
    tell(&summary, common, figures, &telling)
}

async fn measure(args: &ParkedArgs, directory: &Path) -> Result<(Summary<Parked>, Parked), BenchError> {
    let clock = ForwardClock::new();
    let executor = Executor::builder(directory.join("engine"))
        .register::<Sleeper>(())
        .max_queued(queue(SUBMITTERS))
        .max_awake(usize::MAX)
        .retention(KEEP, KEEP)
        .clock(Arc::new(clock.clone()))
        .start()
        .await?;
    let bench = Bench {
        executor: &executor,
        clock: &clock,
        on: args.on,
        payload: payload(args.common.seed, args.payload),
    };
    // Small, so that what it frees is no memory for the first round.
    bench.park((args.procedures / 100).max(1)).await?;
    bench.wake((args.procedures / 100).max(1)).await?;
    let mut rounds = Rounds::new(directory);
    let mut first = None;
    for _ in 0..args.common.rounds {
        let parked = bench.park(args.procedures).await?;
        let taken = bench.wake(args.procedures).await?;
        first.get_or_insert(parked);
        rounds.add(taken, parked).await?;
    }
    let summary = rounds.summarize().await?;
    executor.drain(STOP_TIME).await?;
    Ok((summary, first.ok_or(BenchError::NoRound)?))
}

struct Bench<'a> {
    executor: &'a Executor,
    clock: &'a ForwardClock,
    on: On,
    payload: String,
}

impl Bench<'_> {
    /// Submits so many, and waits until each is parked and its actor gone.
    async fn park(&self, procedures: u32) -> Result<Parked, BenchError> {
        let sleeper = Sleeper {
            wait: match self.on {
                On::Timers => Wait::Timer(self.clock.now().after(AWAY)),
                On::Events => Wait::Event,
                On::Questions => Wait::Question,
            },
            payload: self.payload.clone(),
        };
        let resident = machine::resident_bytes();
        let probe = Probe::begin(self.executor).await?;
        submit_all(self.executor, procedures, &sleeper).await?;
        until(self.executor, |snapshot| snapshot.going == 0 && snapshot.actors == 0).await?;
        let taken = probe.end(self.executor, f64::from(procedures)).await?;
        let grown = machine::resident_bytes()
            .zip(resident)
            .map(|(after, before)| count(after.saturating_sub(before)) / f64::from(procedures));
        Ok(Parked {
            resident: grown,
            journalled: taken.per_unit(taken.bytes),
        })
    }

    /// Wakes all, and waits until all have ended.
    async fn wake(&self, procedures: u32) -> Result<Taken, BenchError> {
        let probe = Probe::begin(self.executor).await?;
        match self.on {
            On::Timers => self.clock.forward(AWAY),
            On::Events => {
                let woken = self.executor.broadcast(EVENT, &()).await?;
                if woken != procedures {
                    return Err(BenchError::Asleep { woken, procedures });
                }
            }
            On::Questions => answer_all(self.executor, &true).await?,
        }
        until(self.executor, |snapshot| snapshot.live_families == 0).await?;
        probe.end(self.executor, f64::from(procedures)).await
    }
}

/// Answers all that ask, page by page.
pub(super) async fn answer_all<A: Serialize>(executor: &Executor, answer: &A) -> Result<(), BenchError> {
    let filter = ListFilter {
        live_only: true,
        ..ListFilter::default()
    };
    let mut from = None;
    loop {
        let page = executor.list(filter.clone(), from, PAGE).await?;
        let answers = page.items.iter().map(|status| {
            let by = OperatorRequest::new("bench", "it was asked");
            executor.decide(status.id, answer, by)
        });
        let mut answered = stream::iter(answers).buffer_unordered(PAGE);
        while answered.try_next().await?.is_some() {}
        from = page.next;
        if from.is_none() {
            return Ok(());
        }
    }
}
