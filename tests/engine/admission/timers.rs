//! Waits that time ends: each once, in the order of their deadlines, also after a stop.

use std::future::IntoFuture;
use std::time::Duration;

use procession::errors::ProcedureError;
use procession::procedure::Timestamp;
use procession::status::{CauseKind, ProcedureState};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Executor, Handle, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::support::{Act, Lab, Planned, Tested, enumerate, kinds, live_in, plan};

/// Counts the time-outs of its one stage in its value, and fails at the last.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Counting {
    timeouts: u32,
    last: u32,
}

impl Procedure for Counting {
    const KIND: &'static str = "counting";
    type Stage = ();
    type Env = Lab;
    type Output = i64;

    fn first(&self) {}

    async fn execute(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if cx.timed_out() {
            self.timeouts += 1;
        }
        cx.env().note(format!("run {}", self.timeouts));
        if self.timeouts == self.last {
            return Err(StageError::fail("so many time-outs"));
        }
        Ok(Step::Wait {
            event: "never".to_owned(),
            timeout: Some(Duration::from_millis(500)),
            then: (),
        })
    }

    async fn rollback(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        cx.env().note(format!("undo {}", self.timeouts));
        Ok(())
    }
}

fn counting(lab: &Lab, builder: Builder) -> Builder {
    builder.register::<Counting>(lab.clone())
}

async fn begin(executor: &Executor, last: u32) -> Result<Handle<Counting>, Trouble> {
    Ok(executor
        .submit(Counting { timeouts: 0, last })
        .key("c")
        .into_future()
        .await?)
}

/// Waits for the failure, and checks when and how it came.
async fn count(run: &Run, last: u32) -> Tested {
    let handle = run.wait(begin(&run.executor, last)).await??;
    match run.wait(handle.outcome()).await? {
        Err(ProcedureError::RolledBack { cause, not_undone }) => {
            assert_eq!(
                (cause.kind, cause.text.as_str()),
                (CauseKind::Failed, "so many time-outs")
            );
            assert!(not_undone.is_empty());
        }
        other => return Err(format!("it ended with {other:?}").into()),
    }
    let status = handle.status().await?;
    assert_eq!(status.state, ProcedureState::RolledBack);
    assert_eq!(status.ended, Some(Timestamp(u64::from(last) * 500_000)));
    Ok(())
}

/// Each run of the stage in order, then the undo of all. The run that failed left no trace in the value.
fn counted(last: u32) -> Vec<String> {
    let undo = format!("undo {}", last - 1);
    (0..=last)
        .map(|timeouts| format!("run {timeouts}"))
        .chain(vec![undo; last as usize + 1])
        .collect()
}

#[test]
fn e_077_six_timeouts() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let life = async |run: &Run| {
        count(run, 6).await?;
        Ok(run.executor.snapshot().await?.commits)
    };
    let commits = world
        .run(FaultPlan::none(), |builder| counting(&lab, builder), life)?
        .done()?;
    assert_eq!((commits, lab.noted()), (21, counted(6)));
    Ok(())
}

/// Two time-outs, since the crashes grow with the square of the commits.
#[test]
fn e_077_timeouts_through_crashes() -> Tested {
    let check = |plain: &Lab, crashed: &Lab, _: usize| {
        assert_eq!(plain.noted(), counted(2));
        let mut first = plain.noted();
        let mut notes = crashed.noted();
        first.dedup();
        notes.dedup();
        assert_eq!(notes, first);
        Ok(())
    };
    let done = enumerate(
        Lab::default,
        counting,
        async |_: &Lab, run: &Run| count(run, 2).await,
        &[],
        check,
    )?;
    assert_eq!(done.commits, 9);
    Ok(())
}

#[test]
fn e_077_six_timeouts_with_a_crash_in_every_wait() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let mut commits = 0;
    for wait in 1..=6 {
        let life = async |run: &Run| {
            run.wait(begin(&run.executor, 6)).await??;
            if wait > 1 {
                run.pass(Duration::from_millis(500)).await;
            }
            run.settle().await;
            assert_eq!(lab.noted().len(), wait);
            Ok(run.executor.snapshot().await?.commits)
        };
        commits += world
            .run(FaultPlan::none(), |builder| counting(&lab, builder), life)?
            .done()?;
    }
    let last = async |run: &Run| {
        count(run, 6).await?;
        Ok(run.executor.snapshot().await?.commits)
    };
    commits += world
        .run(FaultPlan::none(), |builder| counting(&lab, builder), last)?
        .done()?;
    assert_eq!(commits, 21);
    Ok(())
}

/// Due at these many seconds.
fn sleeper(name: &str, due: u64) -> Planned {
    Planned(plan(name, [Act::SleepUntil(due * 1_000), Act::Done(1)]))
}

/// Submits some that are due one after the other, latest first, and as many as said due together.
async fn sleepers(run: &Run, single: &[u64], together: usize) -> Tested {
    let mut handles = Vec::new();
    for number in 0..together {
        let name = format!("s{number:04}");
        handles.push(
            run.wait(run.executor.submit(sleeper(&name, 40)).key(&name).into_future())
                .await??,
        );
    }
    for due in single.iter().rev().copied() {
        let name = format!("due{due}");
        handles.push(
            run.wait(run.executor.submit(sleeper(&name, due)).key(&name).into_future())
                .await??,
        );
    }
    run.settle().await;
    if run.now() < Timestamp(60_000_000) {
        return Ok(());
    }
    for handle in handles {
        assert_eq!(run.wait(handle.outcome()).await??, 1);
    }
    Ok(())
}

/// Names of those that woke, in order, without repeats by a crash.
fn woken(lab: &Lab) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for call in lab.calls().into_iter().filter(|call| call.stage == 2) {
        if !names.contains(&call.name) {
            names.push(call.name);
        }
    }
    names
}

fn by_deadline(single: &[u64], together: usize) -> Vec<String> {
    let single = single.iter().map(|due| format!("due{due}"));
    single
        .chain((0..together).map(|number| format!("s{number:04}")))
        .collect()
}

#[test]
fn e_085_overdue_at_the_start_in_the_order_of_deadlines() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        sleepers(run, &[10, 20, 30], 1_000).await?;
        run.pass(Duration::from_secs(5)).await;
        Ok(())
    })?;
    assert_eq!(woken(&lab), Vec::<String>::new());
    world.clock.advance_to(Timestamp(60_000_000));
    live_in(&world, &lab, async |run| {
        sleepers(run, &[10, 20, 30], 1_000).await?;
        // The wake and the end of each, and nothing else.
        assert_eq!(run.executor.snapshot().await?.commits, 2 * 1_003);
        Ok(())
    })?;
    assert_eq!(woken(&lab), by_deadline(&[10, 20, 30], 1_000));
    assert_eq!(lab.calls().len(), 2 * 1_003, "each runs once");
    Ok(())
}

#[test]
fn e_085_overdue_at_the_start_through_crashes() -> Tested {
    let set_up = |lab: &Lab, builder: Builder| kinds(lab, builder);
    let drive = async |_: &Lab, run: &Run| {
        if run.now() < Timestamp(60_000_000) {
            sleepers(run, &[10], 2).await?;
            // Time passes for the engine as it does while it is down: in one step.
            run.world.clock.advance_to(Timestamp(60_000_000));
        }
        sleepers(run, &[10], 2).await
    };
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!(woken(plain), by_deadline(&[10], 2));
        assert_eq!(woken(crashed).len(), 3);
        plain.compare(crashed, crashes)
    };
    let done = enumerate(Lab::default, set_up, drive, &[], check)?;
    assert_eq!(done.commits, 4 * 3);
    Ok(())
}
