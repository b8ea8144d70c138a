//! Waits that time ends: each once, in the order of their deadlines, also after a stop.

use std::future::IntoFuture;
use std::time::Duration;

use procession::testkit::{FaultPlan, Run, Trouble, World, enumerate};
use procession::{
    Builder, CauseKind, Executor, Handle, Procedure, ProcedureError, ProcedureState, StageContext, StageError, Step, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::support::{Act, Lab, Planned, Tested, kinds, live_in, plan};

/// Counts the time-outs of its one stage in its value, and fails at the sixth.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Counting {
    timeouts: u32,
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
        if self.timeouts == 6 {
            return Err(StageError::fail("six time-outs"));
        }
        Ok(Step::Wait { event: "never".to_owned(), timeout: Some(Duration::from_millis(500)), then: () })
    }

    async fn rollback(&mut self, _: (), cx: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        cx.env().note(format!("undo {}", self.timeouts));
        Ok(())
    }
}

fn counting(lab: &Lab, builder: Builder) -> Builder {
    builder.register::<Counting>(lab.clone())
}

async fn begin(executor: &Executor) -> Result<Handle<Counting>, Trouble> {
    Ok(executor.submit(Counting { timeouts: 0 }).key("c").into_future().await?)
}

/// Waits for the failure, and checks when and how it came.
async fn count(run: &Run) -> Tested {
    let handle = run.wait(begin(&run.executor)).await??;
    match run.wait(handle.outcome()).await? {
        Err(ProcedureError::RolledBack { cause, not_undone }) => {
            assert_eq!((cause.kind, cause.text.as_str()), (CauseKind::Failed, "six time-outs"));
            assert!(not_undone.is_empty());
        }
        other => return Err(format!("it ended with {other:?}").into()),
    }
    let status = handle.status().await?;
    assert_eq!(status.state, ProcedureState::RolledBack);
    assert_eq!(status.ended, Some(Timestamp(3_000_000)));
    Ok(())
}

/// Each run of the stage in order, then the undo of all seven.
fn counted() -> Vec<String> {
    (0..=6).map(|timeouts| format!("run {timeouts}")).chain(vec!["undo 6".to_owned(); 7]).collect()
}

#[test]
fn e_077_six_timeouts() -> Tested {
    let check = |plain: &Lab, crashed: &Lab, _: usize| {
        // The stage that failed left no trace in the value.
        let expected: Vec<String> = counted().into_iter().map(|note| note.replace("undo 6", "undo 5")).collect();
        assert_eq!(plain.noted(), expected);
        let mut first = plain.noted();
        let mut notes = crashed.noted();
        first.dedup();
        notes.dedup();
        assert_eq!(notes, first);
        Ok(())
    };
    let done = enumerate(Lab::default, counting, async |_: &Lab, run: &Run| count(run).await, &[], check)?;
    assert_eq!(done.commits, 21);
    Ok(())
}

#[test]
fn e_077_six_timeouts_with_a_crash_in_every_wait() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let mut commits = 0;
    for wait in 1..=6 {
        let life = async |run: &Run| {
            run.wait(begin(&run.executor)).await??;
            run.until("the next time-out is counted", || lab.noted().len() >= wait || !run.world.clock.jump()).await?;
            run.settle().await;
            Ok(run.executor.snapshot().await?.commits)
        };
        commits += world.run(FaultPlan::none(), |builder| counting(&lab, builder), life)?.done()?;
    }
    let last = async |run: &Run| {
        count(run).await?;
        Ok(run.executor.snapshot().await?.commits)
    };
    commits += world.run(FaultPlan::none(), |builder| counting(&lab, builder), last)?.done()?;
    assert_eq!(commits, 21);
    Ok(())
}

/// Due at these many seconds.
fn sleeper(name: &str, due: u64) -> Planned {
    Planned(plan(name, [Act::SleepUntil(due * 1_000), Act::Done(1)]))
}

/// Submits three that are due one after the other, latest first, and as many as said due together.
async fn sleepers(run: &Run, together: usize) -> Tested {
    let mut handles = Vec::new();
    for number in 0..together {
        let name = format!("s{number:04}");
        handles.push(run.wait(run.executor.submit(sleeper(&name, 40)).key(&name).into_future()).await??);
    }
    for due in [30, 20, 10] {
        let name = format!("due{due}");
        handles.push(run.wait(run.executor.submit(sleeper(&name, due)).key(&name).into_future()).await??);
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

fn by_deadline(together: usize) -> Vec<String> {
    let single = ["due10", "due20", "due30"].map(str::to_owned);
    single.into_iter().chain((0..together).map(|number| format!("s{number:04}"))).collect()
}

#[test]
fn e_085_overdue_at_the_start_in_the_order_of_deadlines() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        sleepers(run, 1_000).await?;
        run.pass(Duration::from_secs(5)).await;
        Ok(())
    })?;
    assert_eq!(woken(&lab), Vec::<String>::new());
    world.clock.advance_to(Timestamp(60_000_000));
    live_in(&world, &lab, async |run| {
        sleepers(run, 1_000).await?;
        // The wake and the end of each, and nothing else.
        assert_eq!(run.executor.snapshot().await?.commits, 2 * 1_003);
        Ok(())
    })?;
    assert_eq!(woken(&lab), by_deadline(1_000));
    assert_eq!(lab.calls().len(), 2 * 1_003, "each runs once");
    Ok(())
}

#[test]
fn e_085_overdue_at_the_start_through_crashes() -> Tested {
    let set_up = |lab: &Lab, builder: Builder| kinds(lab, builder);
    let drive = async |_: &Lab, run: &Run| {
        if run.now() < Timestamp(60_000_000) {
            sleepers(run, 4).await?;
            // Time passes for the engine as it does while it is down: in one step.
            run.world.clock.advance_to(Timestamp(60_000_000));
        }
        sleepers(run, 4).await
    };
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!(woken(plain), by_deadline(4));
        assert_eq!(woken(crashed).len(), 7);
        plain.compare(crashed, crashes)
    };
    let done = enumerate(Lab::default, set_up, drive, &[], check)?;
    assert_eq!(done.commits, 4 * 7);
    Ok(())
}
