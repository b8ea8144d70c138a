//! Runs: pure stages that a worker goes through in one call. They leave what they leave one by one, wherever something else
//! than the next stage comes between.

use std::time::Duration;

use procession::procedure::{JoinPolicy, PureContext};
use procession::status::HistoryEntry;
use procession::testkit::{FaultPlan, Run, TestClock, Trouble, World};
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
