//! What is run, on what, and how it is counted: the same for every engine.

use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;

use crate::Failed;

/// Stages of a chain.
pub const STAGES: u32 = 10;
/// Stages of a saga; it fails at the last.
pub const SAGA_STAGES: u32 = 5;

/// Bytes that each stage leaves.
pub fn payload() -> String {
    "x".repeat(64)
}

/// What is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Workload {
    /// Ten stages one after another, each leaving 64 bytes. Counted: stages.
    Chain,
    /// One parent that waits for children of one stage each. Counted: children.
    FanOut,
    /// Five stages of which the last fails; what ran is undone. Counted: calls of
    /// stages and undos, so that a window cuts none; shown: sagas.
    Saga,
}

impl Workload {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chain => "chain",
            Self::FanOut => "fan-out",
            Self::Saga => "saga",
        }
    }

    /// What is counted.
    pub const fn units(self) -> &'static str {
        match self {
            Self::Chain => "stages",
            Self::FanOut => "children",
            Self::Saga => "sagas",
        }
    }

    pub fn named(name: &str) -> Result<Self, Failed> {
        let all = [Self::Chain, Self::FanOut, Self::Saga];
        let found = all.into_iter().find(|workload| workload.name() == name);
        found.ok_or_else(|| format!("{name} is no workload").into())
    }
}

/// A workload with its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Load {
    pub workload: Workload,
    /// How many chains or sagas run at once.
    pub concurrency: u32,
    /// Children of a fan-out.
    pub children: u32,
}

impl Load {
    /// Every load that is measured.
    pub fn all(children: u32) -> Vec<Self> {
        let load = |workload, concurrency| Self {
            workload,
            concurrency,
            children,
        };
        vec![
            load(Workload::Chain, 1),
            load(Workload::Chain, 64),
            load(Workload::Chain, 1_024),
            load(Workload::FanOut, 1),
            load(Workload::Saga, 1),
            load(Workload::Saga, 1_024),
        ]
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.workload {
            Workload::FanOut => write!(f, "fan-out to {}", self.children),
            Workload::Chain | Workload::Saga => write!(f, "{}, {} at once", self.workload.name(), self.concurrency),
        }
    }
}

/// On what it is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Engine {
    Ours,
    /// The same with pure stages, which run ahead of the disk.
    Pure,
    Steno,
    Memable,
}

impl Engine {
    pub const ALL: [Self; 4] = [Self::Ours, Self::Pure, Self::Steno, Self::Memable];
    /// Those of others.
    pub const PEERS: [Self; 2] = [Self::Steno, Self::Memable];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Ours => "procession",
            Self::Pure => "procession, pure",
            Self::Steno => "steno",
            Self::Memable => "memable",
        }
    }

    pub fn named(name: &str) -> Result<Self, Failed> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == name);
        found.ok_or_else(|| format!("{name} is no engine").into())
    }

    /// Why a workload cannot be run on it.
    pub const fn lacks(self, workload: Workload) -> Option<&'static str> {
        match (self, workload) {
            (Self::Memable, Workload::Saga) => Some("it has no undo: a workflow that fails stays as it is"),
            (Self::Ours | Self::Pure | Self::Steno | Self::Memable, _) => None,
        }
    }

    /// What is durable, and how.
    pub const fn durability(self) -> &'static str {
        match self {
            Self::Ours => {
                "one atomic commit a stage: value, row, history; one fdatasync for all commits that wait for it"
            }
            Self::Pure => {
                "the same; a stage may run before the one before it is on disk, and no answer or outcome leaves before"
            }
            Self::Steno => {
                "brings no store; the one here appends each log entry, two a node, to a file: one fdatasync for all that wait"
            }
            Self::Memable => "one redb transaction a step, with an fsync of its own; one writer at a time",
        }
    }

    /// What stands for the workload where the engine has no such thing.
    pub const fn remark(self) -> &'static str {
        match self {
            Self::Ours => "a child is a procedure with a row, a history and a rollback of its own",
            Self::Pure => "the same, with stages that `is_pure` names",
            Self::Steno => "a chain and a fan-out are nodes of one saga; a node's output stays in its log",
            Self::Memable => {
                "a chain is the steps of a workflow; it has no children: a fan-out is steps joined in one workflow"
            }
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How fast it went, and what it cost.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Units in a second.
    pub per_second: f64,
    /// Microseconds of a processor for each unit.
    pub processor_us: f64,
}

impl Rate {
    fn new(units: u64, time: Duration, processor: Duration) -> Self {
        Self {
            per_second: units as f64 / time.as_secs_f64().max(f64::EPSILON),
            processor_us: processor.as_secs_f64() * 1e6 / (units as f64).max(1.0),
        }
    }

    /// Returns the rate of units that are so many of what was counted.
    pub fn of(self, parts: u32) -> Self {
        Self {
            per_second: self.per_second / f64::from(parts),
            processor_us: self.processor_us * f64::from(parts),
        }
    }
}

/// As the process of one measurement tells it to the one that compares.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.per_second, self.processor_us)
    }
}

impl FromStr for Rate {
    type Err = Failed;

    fn from_str(text: &str) -> Result<Self, Failed> {
        let (per_second, processor_us) = text.trim().split_once(' ').ok_or("two numbers are due")?;
        Ok(Self {
            per_second: per_second.parse()?,
            processor_us: processor_us.parse()?,
        })
    }
}

/// Units that are done.
#[derive(Clone, Default)]
pub struct Counter(Arc<AtomicU64>);

impl Counter {
    pub fn add(&self, units: u32) {
        self.0.fetch_add(u64::from(units), Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Runs `one` again and again, so many at once.
///
/// A fan-out is counted whole, from its begin to its end: a window would cut it.
pub async fn rate<F: Future<Output = Result<(), Failed>>>(
    load: Load,
    window: Duration,
    counter: &Counter,
    one: impl Fn() -> F,
) -> Result<Rate, Failed> {
    if load.workload == Workload::FanOut {
        return rate_of_whole(window, counter, one).await;
    }
    let again = async || -> Result<(), Failed> {
        loop {
            one().await?;
        }
    };
    let mut workers = pin!(futures::future::try_join_all((0..load.concurrency).map(|_| again())));
    run_for(window / 4, workers.as_mut()).await?;
    let (begun, processor, before) = (Instant::now(), ProcessTime::now(), counter.read());
    run_for(window, workers).await?;
    Ok(Rate::new(counter.read() - before, begun.elapsed(), processor.elapsed()))
}

/// Runs what never ends but by an error, for so long.
async fn run_for<T>(time: Duration, workers: Pin<&mut impl Future<Output = Result<T, Failed>>>) -> Result<(), Failed> {
    match tokio::time::timeout(time, workers).await {
        Err(_) => Ok(()),
        Ok(ended) => Err(ended.err().unwrap_or_else(|| "the workers ended".into())),
    }
}

async fn rate_of_whole<F: Future<Output = Result<(), Failed>>>(
    window: Duration,
    counter: &Counter,
    one: impl Fn() -> F,
) -> Result<Rate, Failed> {
    one().await?;
    let (begun, processor, before) = (Instant::now(), ProcessTime::now(), counter.read());
    while begun.elapsed() < window {
        one().await?;
    }
    Ok(Rate::new(counter.read() - before, begun.elapsed(), processor.elapsed()))
}
