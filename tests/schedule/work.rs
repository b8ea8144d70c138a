//! A procedure that takes a while, submitted by a schedule, and what it has left.

use std::time::Duration;

use procession::operate::OperatorRequest;
use procession::schedule::{Jobs, Schedule, Tick};
use procession::testkit::{Run, Trouble};
use procession::{Builder, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

pub(crate) type Tested = Result<(), Trouble>;

/// Keyspace of the runs: their instants in seconds, with how often they began and when they did last.
pub(crate) const RUNS: &str = "runs";
/// Keyspace of the runs that were taken back.
pub(crate) const UNDONE: &str = "undone";

/// Name of the schedule and of its job.
pub(crate) const NAME: &str = "work";

pub(crate) const MINUTE: Duration = Duration::from_secs(60);

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Work {
    tick: String,
    takes: Duration,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Stage {
    Begin,
    End,
}

impl Procedure for Work {
    const KIND: &'static str = "work";
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Begin
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Begin => {
                let before = cx.get::<(u32, u64)>(RUNS, &self.tick).await?;
                let times = before.map_or(0, |(times, _)| times) + 1;
                cx.put(RUNS, &self.tick, &(times, cx.now().0 / 1_000_000))?;
                if self.takes.is_zero() {
                    return Ok(Step::Done(()));
                }
                let until = cx.now().after(self.takes);
                Ok(Step::Sleep {
                    until,
                    then: Stage::End,
                })
            }
            Stage::End => Ok(Step::Done(())),
        }
    }

    async fn rollback(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        if let Stage::Begin = stage {
            cx.put(UNDONE, &self.tick, &true)?;
        }
        Ok(())
    }
}

/// Registers all kinds; each run takes this long.
pub(crate) fn taking(takes: Duration) -> impl Fn(Builder) -> Builder + Clone {
    move |builder| {
        let jobs = Jobs::new().job(NAME, move |tick| work(tick, takes));
        builder.register::<Work>(()).register::<Schedule>(jobs)
    }
}

/// The job of all schedules.
pub(crate) fn work(tick: &Tick<'_>, takes: Duration) -> Result<Work, StageError> {
    let asked = if tick.asked() { " asked" } else { "" };
    let tick = format!("{:06}{asked}", tick.at().0 / 1_000_000);
    Ok(Work { tick, takes })
}

/// Registers all kinds, and the job under these names alone.
pub(crate) fn jobs_named(names: &'static [&'static str]) -> impl Fn(Builder) -> Builder + Clone {
    move |builder| {
        let jobs = names.iter().fold(Jobs::new(), |jobs, name| {
            jobs.job(name, |tick| work(tick, Duration::ZERO))
        });
        builder.register::<Work>(()).register::<Schedule>(jobs)
    }
}

pub(crate) fn each_minute() -> Result<Schedule, Trouble> {
    Ok(Schedule::every(NAME, MINUTE)?)
}

/// The runs that have begun: the second of the tick, and when they began, in seconds. Each has begun once.
pub(crate) async fn runs(executor: &Executor) -> Result<Vec<(String, u64)>, Trouble> {
    let mut runs = Vec::new();
    for (tick, (times, began)) in executor.scan::<(u32, u64)>(RUNS, "").await? {
        let tick = String::from_utf8(tick)?;
        if times != 1 {
            return Err(format!("the tick {tick} ran {times} times").into());
        }
        runs.push((tick, began));
    }
    Ok(runs)
}

/// The instants of the runs that have begun, in seconds.
pub(crate) async fn ticks(executor: &Executor) -> Result<Vec<String>, Trouble> {
    Ok(runs(executor).await?.into_iter().map(|(tick, _)| tick).collect())
}

pub(crate) fn seconds(all: impl IntoIterator<Item = u64>) -> Vec<String> {
    all.into_iter().map(|second| format!("{second:06}")).collect()
}

pub(crate) fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "a test")
}

/// Lets time pass until nothing lives any more.
pub(crate) async fn until_all_ended(run: &Run) -> Tested {
    for _ in 0..100 {
        if run.executor.snapshot().await?.live_families == 0 {
            return Ok(());
        }
        run.pass(MINUTE).await;
    }
    Err("something lives on".into())
}
