//! What is alive when the engine is killed, and how it is built: in a process of its own.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use procession::{Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::bench::BenchError;
use crate::bench::common::{SUBMITTERS, payload, queue, submit_all, until};
use crate::bench::killed::wait_to_be_killed;

/// Results are kept longer than any run takes.
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);

/// How many there are of each.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(in crate::bench) struct Sizes {
    /// How many procedures are in a stage when the engine is killed.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) live: u32,
    /// How many more are parked then.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(super) parked: u32,
    /// How many have finished by then, and their results are kept.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(super) finished: u32,
    /// How many more have failed by then, and are kept for people to look at.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=10_000_000))]
    pub(super) failed: u32,
    /// Bytes that each procedure carries.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(super) payload: u32,
}

/// Options of the process that is killed.
#[derive(Debug, clap::Args)]
pub(in crate::bench) struct StateArgs {
    #[command(flatten)]
    sizes: Sizes,
    /// Directory of the engine.
    #[arg(long)]
    engine: PathBuf,
    /// Seed of the payloads' bytes.
    #[arg(long)]
    seed: u64,
}

/// How far one gets before the kill.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Fate {
    Finished,
    Failed,
    Parked,
    Live,
}

/// Has a first stage, and by its fate a second one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Mortal {
    fate: Fate,
    payload: String,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Stage {
    First,
    Second,
}

impl Procedure for Mortal {
    const KIND: &'static str = "bench_mortal";
    type Stage = Stage;
    type Env = Life;
    type Output = ();

    fn first(&self) -> Stage {
        Stage::First
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match (stage, self.fate) {
            (Stage::First, Fate::Live) => Ok(Step::Next(Stage::Second)),
            (Stage::First, Fate::Parked) => Ok(Step::Wait {
                event: "never".to_owned(),
                timeout: None,
                then: Stage::Second,
            }),
            (Stage::First, Fate::Finished) => Ok(Step::Done(())),
            (Stage::First, Fate::Failed) => Err(StageError::fail("the payment was refused")),
            (Stage::Second, _) => {
                cx.env().stage_begins().await;
                Ok(Step::Done(()))
            }
        }
    }
}

/// Before the kill a second stage never ends; after it, it says when it began.
#[derive(Clone)]
pub(in crate::bench) enum Life {
    Before,
    After(Arc<Begun>),
}

/// When second stages began, in nanoseconds from the start.
pub(in crate::bench) struct Begun {
    start: Instant,
    stages: AtomicU32,
    first: AtomicU64,
    last: AtomicU64,
}

impl Begun {
    /// Begins to count.
    pub(super) fn new(start: Instant) -> Self {
        Self {
            start,
            stages: AtomicU32::new(0),
            first: AtomicU64::new(u64::MAX),
            last: AtomicU64::new(0),
        }
    }

    /// Time until the first of them began, and until the last.
    pub(super) fn times(&self) -> (Duration, Duration) {
        let read = |time: &AtomicU64| Duration::from_nanos(time.load(Ordering::Relaxed));
        (read(&self.first), read(&self.last))
    }

    /// How many began.
    pub(super) fn stages(&self) -> u32 {
        self.stages.load(Ordering::Relaxed)
    }
}

impl Life {
    /// A second stage begins. Before the kill it goes no farther.
    pub(in crate::bench) async fn stage_begins(&self) {
        match self {
            Self::Before => std::future::pending().await,
            Self::After(begun) => {
                let at = u64::try_from(begun.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
                begun.stages.fetch_add(1, Ordering::Relaxed);
                begun.first.fetch_min(at, Ordering::Relaxed);
                begun.last.fetch_max(at, Ordering::Relaxed);
            }
        }
    }
}

/// Starts an engine in this directory.
pub(in crate::bench) async fn start(engine: PathBuf, life: Life) -> Result<Executor, BenchError> {
    Ok(Executor::builder(engine)
        .register::<Mortal>(life)
        .max_queued(queue(SUBMITTERS))
        .max_awake(usize::MAX)
        .retention(KEEP, KEEP)
        .start()
        .await?)
}

/// Builds the state, says "ready", and waits to be killed, or for the end of its input.
pub(in crate::bench) async fn build(args: StateArgs) -> Result<(), BenchError> {
    let executor = start(args.engine, Life::Before).await?;
    let sizes = args.sizes;
    let payload = payload(args.seed, sizes.payload);
    for (number, fate) in [
        (sizes.finished, Fate::Finished),
        (sizes.failed, Fate::Failed),
        (sizes.parked, Fate::Parked),
        (sizes.live, Fate::Live),
    ] {
        let mortal = Mortal {
            fate,
            payload: payload.clone(),
        };
        submit_all(&executor, number, &mortal).await?;
    }
    sizes.until_held(&executor, 0).await?;
    wait_to_be_killed().await;
    Ok(())
}

impl Sizes {
    /// So many that are in a stage when the engine is killed, and nothing beside them.
    pub(in crate::bench) const fn of_live(live: u32, payload: u32) -> Self {
        Self {
            live,
            parked: 0,
            finished: 0,
            failed: 0,
            payload,
        }
    }

    /// Waits until all that are live are in their second stage. `before` commits were there before the first of them.
    pub(in crate::bench) async fn until_held(self, executor: &Executor, before: u64) -> Result<(), BenchError> {
        let live = usize::try_from(self.live).unwrap_or(usize::MAX);
        let left = live.saturating_add(usize::try_from(self.parked).unwrap_or(usize::MAX));
        until(executor, |snapshot| {
            snapshot.live_families == left && snapshot.going == live && snapshot.actors == live
        })
        .await?;
        // A first stage may still be out where a second one is meant: commits tell.
        let ended = u64::from(self.finished) + u64::from(self.failed);
        let begun = ended + u64::from(self.parked) + u64::from(self.live);
        until(executor, |snapshot| snapshot.commits >= before + begun * 2).await
    }
}
