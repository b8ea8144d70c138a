//! Runs: pure stages that a worker goes through in one call. A run leaves what its stages would leave one by one, whatever
//! comes between them.

use std::future::IntoFuture;
use std::time::Duration;

use procession::errors::UpgradeError;
use procession::procedure::{JoinPolicy, Old, PureContext, Timestamp};
use procession::status::HistoryEntry;
use procession::testkit::{Fault, FaultPlan, Run, TestClock, Trouble, World};
use procession::{Builder, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use super::kit::submit;
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate, kinds, plan, purely};

/// How a plan ends whose stages are pure, in runs of this length at most.
fn ended(plan: &Plan, length: u32) -> Result<Left, Trouble> {
    let lab = Lab::default();
    let set_up = |builder: Builder| kinds(&lab, builder).merge(8).run_length(length);
    let drive = async |run: &Run| {
        let handle = submit(run, Planned(plan.clone()), "k").await?;
        let outcome = run.wait(handle.outcome()).await?.map_err(|error| error.to_string());
        let history = run.executor.history(handle.id()).await?;
        let history = history.iter().map(entry).collect();
        let undos = lab.calls().into_iter().filter(|call| call.undo);
        Ok(Left {
            outcome,
            history,
            undos: undos.map(|undo| (undo.short(), undo.value)).collect(),
            commits: run.executor.snapshot().await?.commits,
        })
    };
    purely(|| World::new().run(FaultPlan::none(), set_up, drive)?.done())
}

#[derive(Debug)]
struct Left {
    outcome: Result<i64, String>,
    history: Vec<String>,
    /// The undos, and the values that they saw.
    undos: Vec<(String, Vec<u32>)>,
    commits: u64,
}

/// Returns what an entry says, but for its times.
fn entry(entry: &HistoryEntry) -> String {
    let HistoryEntry {
        number,
        visit,
        attempt,
        ending,
        error,
        stands,
        ..
    } = entry;
    let (stage, note) = (entry.stage.as_slice(), entry.note.as_ref().map(|note| note.len()));
    format!("{number}: {stage:?} visit {visit} attempt {attempt} {ending:?} {error:?} {stands} {note:?}")
}

#[test]
fn a_run_is_one_commit_with_an_entry_for_each_of_its_stages() -> Tested {
    let (alone, run) = (ended(&chain("a", 10), 1)?, ended(&chain("a", 10), 64)?);
    assert_eq!(run.outcome, Ok(7));
    assert_eq!(run.history.len(), 10);
    assert_eq!(run.history, alone.history);
    // That of the submission, and that of the run.
    assert_eq!((run.commits, alone.commits), (2, 11));
    Ok(())
}

#[test]
fn what_comes_between_leaves_the_same_at_each_place_of_a_run() -> Tested {
    let next = || Box::new(Act::Next);
    let between = [
        Act::Retry(2, next()),
        Act::Retry(9, next()),
        Act::Panic(1, next()),
        Act::Panic(9, next()),
        Act::Yield(1, next()),
        Act::Fail("boom".to_owned()),
        Act::GiveUp("enough".to_owned()),
        Act::Done(1),
        Act::Sleep(5),
        Act::Wait("never".to_owned(), Some(5)),
        Act::Ask("which?".to_owned(), Some(5)),
        Act::Note("seen".to_owned(), next()),
        // More than a note may have, so it is refused.
        Act::Note("x".repeat(70_000), next()),
        Act::NothingToUndo(next()),
        Act::NothingToUndo(Box::new(Act::Fail("boom".to_owned()))),
        // These read the store, so they are not pure.
        Act::Add("row".to_owned(), 1, next()),
        Act::Told(next()),
        Act::Submit(Box::new(chain("other", 3)), next()),
        Act::AddChild(Box::new(chain("child", 3)), next()),
        Act::Signal(0, "go".to_owned(), next()),
        Act::Spawn(vec![chain("c", 3), chain("d", 2)], JoinPolicy::AllSucceeded, 1),
        Act::Visits(vec![Act::Goto(1), Act::Next]),
    ];
    for act in between {
        for place in 0..5 {
            let mut acts = vec![Act::Next; 5];
            acts[place] = act.clone();
            acts.push(Act::Done(7));
            let plan = plan("a", acts);
            let (alone, run) = (ended(&plan, 1)?, ended(&plan, 64)?);
            let what = format!("{} at {place}", format!("{act:?}").chars().take(40).collect::<String>());
            assert_eq!(run.outcome, alone.outcome, "{what}");
            assert_eq!(run.history, alone.history, "{what}");
            assert_eq!(run.undos, alone.undos, "{what}");
            // One more where a run is given up.
            assert!(
                run.commits <= alone.commits + 1,
                "{what}: {} of {}",
                run.commits,
                alone.commits
            );
        }
    }
    Ok(())
}

#[test]
fn a_crash_at_each_commit_takes_back_runs_as_a_whole() -> Tested {
    let next = || Box::new(Act::Next);
    let plans = [
        chain("a", 9),
        plan(
            "a",
            [
                Act::Next,
                Act::Next,
                Act::Retry(1, next()),
                Act::Next,
                Act::Fail("boom".to_owned()),
            ],
        ),
        plan(
            "a",
            [
                Act::Next,
                Act::Spawn(vec![chain("c", 3), chain("d", 3)], JoinPolicy::AllSucceeded, 1),
                Act::Next,
                Act::Panic(1, next()),
                Act::Done(7),
            ],
        ),
    ];
    for plan in plans {
        let found = purely(|| {
            enumerate(
                Lab::default,
                |lab: &Lab, builder| kinds(lab, builder).merge(8),
                async |_: &Lab, run: &Run| {
                    let handle = submit(run, Planned(plan.clone()), "k").await?;
                    run.wait(handle.outcome()).await?.ok();
                    Ok(())
                },
                &["rows"],
                |_, _, _| Ok(()),
            )
        })?;
        assert!(found.runs >= 10, "{found:?}");
    }
    Ok(())
}

/// Stages that take some time each.
#[derive(Serialize, Deserialize)]
struct Slow;

impl Procedure for Slow {
    const KIND: &'static str = "slow_runs";
    type Stage = u32;
    type Env = TestClock;
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    fn is_pure(&self, _: &u32) -> bool {
        true
    }

    fn compute(&mut self, stage: u32, cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        cx.env().advance(Duration::from_micros(400));
        Ok(if stage == 9 {
            Step::Done(())
        } else {
            Step::Next(stage + 1)
        })
    }

    async fn execute(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Err(StageError::fail("every stage is pure"))
    }
}

#[test]
fn a_run_lasts_a_millisecond_and_the_stage_that_it_is_in() -> Tested {
    let world = World::new();
    let set_up = |builder: Builder| builder.merge(8).register::<Slow>(world.clock.clone());
    world
        .run(FaultPlan::none(), set_up, async |run| {
            let slow = submit(run, Slow, "slow").await?;
            run.wait(slow.outcome()).await??;
            // The submission's, and three of three stages each.
            assert_eq!(run.executor.snapshot().await?.commits, 1 + 3);
            let history = run.executor.history(slow.id()).await?;
            let took = history.iter().map(|entry| entry.ended.since(entry.begun));
            assert_eq!(took.collect::<Vec<_>>(), [Duration::from_micros(400); 9]);
            Ok(())
        })?
        .done()
}

/// Grows by a kibibyte with each stage.
#[derive(Serialize, Deserialize)]
struct Growing(Vec<u8>);

impl Procedure for Growing {
    const KIND: &'static str = "growing";
    type Stage = u32;
    type Env = ();
    type Output = usize;

    fn first(&self) -> u32 {
        1
    }

    fn is_pure(&self, _: &u32) -> bool {
        true
    }

    fn compute(&mut self, stage: u32, _: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        self.0.extend([0; 1024]);
        Ok(if stage == 50 {
            Step::Done(self.0.len())
        } else {
            Step::Next(stage + 1)
        })
    }

    async fn execute(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Err(StageError::fail("every stage is pure"))
    }
}

#[test]
fn a_value_that_grows_too_large_within_a_run_fails_the_stage_that_makes_it_so() -> Tested {
    let mut ends = Vec::new();
    for length in [1, 64] {
        let set_up = |builder: Builder| {
            let builder = builder.merge(8).run_length(length).max_payload(20 << 10);
            builder.register::<Growing>(())
        };
        let ended = World::new().run(FaultPlan::none(), set_up, async |run| {
            let growing = submit(run, Growing(Vec::new()), "k").await?;
            let failed = run.wait(growing.outcome()).await?.map_err(|error| error.to_string());
            let history = run.executor.history(growing.id()).await?;
            let commits = run.executor.snapshot().await?.commits;
            Ok((failed, history.iter().map(entry).collect::<Vec<_>>(), commits))
        })?;
        ends.push(ended.done()?);
    }
    let [alone, run] = &ends[..] else {
        return Err("two were run".into());
    };
    assert!(alone.0.is_err());
    assert_eq!((&alone.0, &alone.1), (&run.0, &run.1));
    let undos = alone.1.iter().filter(|entry| entry.contains("Undone")).count();
    assert!(run.2 <= undos as u64 + 10, "{} commits", run.2);
    Ok(())
}

#[test]
fn a_procedure_is_64_stages_ahead_of_the_disk_at_most_however_long_its_runs_may_be() -> Tested {
    for length in [64, 1_000] {
        let lab = Lab::default();
        let set_up = |builder: Builder| kinds(&lab, builder).merge(1_000).run_length(length);
        purely(|| {
            let ended = World::new().run(FaultPlan::at(1, Fault::Withhold), set_up, async |run| {
                let executor = run.executor.clone();
                let plan = chain("a", 300);
                let outcome = actix_rt::spawn(async move {
                    let handle = executor.submit(Planned(plan)).key("k").into_future().await;
                    let outcome = handle.map_err(|error| error.to_string())?.outcome().await;
                    outcome.map_err(|error| error.to_string())
                });
                // One receipt at a time: what ran before it was on disk was not more than that.
                let mut ran = 0;
                while ran < 300 {
                    run.settle().await;
                    let now = lab.calls().len();
                    assert!(now <= ran + 64, "{now} stages after {ran}");
                    ran = now;
                    run.store.fault_next(Fault::Withhold);
                    run.store.release_receipts();
                }
                run.settle().await;
                run.store.release_receipts();
                assert_eq!(run.wait(outcome).await??, Ok(7));
                Ok(())
            })?;
            ended.done()
        })?;
    }
    Ok(())
}

/// A value of version 2 that was one number before. Its second stage fails once.
#[derive(Serialize, Deserialize)]
struct Upgraded(Vec<u32>);

impl Procedure for Upgraded {
    const KIND: &'static str = "upgraded_in_a_run";
    const VERSION: u16 = 2;
    const OLDEST: u16 = 1;
    type Stage = u32;
    type Env = ();
    type Output = Vec<u32>;

    fn first(&self) -> u32 {
        1
    }

    fn upgrade(_: u16, old: Old<'_>) -> Result<Self, UpgradeError> {
        Ok(Self(vec![old.decode::<Before>()?.0]))
    }

    fn is_pure(&self, _: &u32) -> bool {
        true
    }

    fn compute(&mut self, stage: u32, cx: &mut PureContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 3 && cx.attempt() == 1 {
            return Err(StageError::retry("once more"));
        }
        self.0.push(stage);
        Ok(if stage == 4 {
            Step::Done(self.0.clone())
        } else {
            Step::Next(stage + 1)
        })
    }

    async fn execute(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Err(StageError::fail("every stage is pure"))
    }
}

/// Version 1, which waits.
#[derive(Serialize, Deserialize)]
struct Before(u32);

impl Procedure for Before {
    const KIND: &'static str = "upgraded_in_a_run";
    type Stage = u32;
    type Env = ();
    type Output = Vec<u32>;

    fn first(&self) -> u32 {
        0
    }

    async fn execute(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Sleep {
            until: Timestamp(1_000_000),
            then: 1,
        })
    }
}

#[test]
fn a_value_of_an_older_version_goes_through_a_run_that_begins_again() -> Tested {
    let world = World::new();
    let id = world
        .run(
            FaultPlan::none(),
            |builder| builder.register::<Before>(()),
            async |run| {
                let before = submit(run, Before(7), "k").await?;
                run.settle().await;
                Ok(before.id())
            },
        )?
        .done()?;
    let set_up = |builder: Builder| builder.merge(8).register::<Upgraded>(());
    world
        .run(FaultPlan::none(), set_up, async |run| {
            run.pass(Duration::from_secs(60)).await;
            let outcome = run.wait(run.executor.handle::<Upgraded>(id).outcome()).await??;
            assert_eq!(outcome, [7, 1, 2, 3, 4]);
            Ok(())
        })?
        .done()
}
