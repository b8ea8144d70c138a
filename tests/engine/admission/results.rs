//! Results: how long they are there, who may ask for them, and what is said when they are gone.

use std::time::Duration;

use procession::errors::{AskError, ProcedureError};
use procession::procedure::Timestamp;
use procession::testkit::{FaultPlan, Run, World};
use procession::{Builder, ProcedureId};

use super::limits::submit;
use crate::support::{Act, Lab, Planned, Tested, chain, enumerate, kinds, live_in, plan};

const MINUTE: Duration = Duration::from_mins(1);
const BEFORE: Duration = Duration::from_micros(1);

fn minutes(minutes: u64) -> Timestamp {
    Timestamp(minutes * 60_000_000)
}

/// Lets time pass to this instant, if it has not come yet.
async fn until(run: &Run, at: Timestamp) {
    run.pass(at.since(run.now())).await;
}

async fn is_there(run: &Run, id: ProcedureId) -> Tested {
    assert_eq!(run.executor.handle::<Planned>(id).outcome().await?, 7);
    assert!(run.executor.status(id).await?.ended.is_some());
    Ok(())
}

/// Handle and query say the same, and at once.
async fn is_gone(run: &Run, id: ProcedureId) -> Tested {
    let outcome = run.executor.handle::<Planned>(id).outcome().await;
    assert!(
        matches!(&outcome, Err(ProcedureError::Ask(AskError::Unknown(gone))) if *gone == id),
        "{outcome:?}"
    );
    let status = run.executor.status(id).await.map(|status| status.state);
    assert!(
        matches!(&status, Err(AskError::Unknown(gone)) if *gone == id),
        "{status:?}"
    );
    assert_eq!(
        outcome.err().map(|why| why.to_string()),
        status.err().map(|why| why.to_string())
    );
    Ok(())
}

#[test]
fn e_089_how_long_results_live() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let (never, early) = live_in(&world, &lab, async |run| {
        let never = submit(run, Planned(chain("never", 1)), "never").await?;
        let early = submit(run, Planned(chain("early", 1)), "early").await?;
        run.wait(never.outcome()).await??;
        run.wait(early.outcome()).await??;
        until(run, minutes(1)).await;
        run.executor.acknowledge(early.id()).await?;
        Ok((never.id(), early.id()))
    })?;
    live_in(&world, &lab, async |run| {
        run.pass(MINUTE * 5 - BEFORE).await;
        is_there(run, early).await?;
        run.pass(BEFORE).await;
        is_gone(run, early).await?;
        is_there(run, never).await
    })?;
    live_in(&world, &lab, async |run| {
        is_gone(run, early).await?;
        until(run, minutes(15)).await;
        is_gone(run, never).await
    })?;
    live_in(&world, &lab, async |run| {
        is_gone(run, never).await?;
        assert_eq!(run.executor.snapshot().await?.commits, 0);
        Ok(())
    })
}

#[test]
fn e_089_results_live_as_long_as_the_builder_says() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder: Builder| kinds(&lab, builder).retention(MINUTE * 60, MINUTE * 5);
    let id = world.run(FaultPlan::none(), set_up, async |run: &Run| {
        let handle = submit(run, Planned(chain("a", 1)), "a").await?;
        run.wait(handle.outcome()).await??;
        Ok(handle.id())
    })?;
    let id = id.done()?;
    let later = world.run(FaultPlan::none(), set_up, async |run: &Run| {
        run.pass(MINUTE * 60 - BEFORE).await;
        is_there(run, id).await?;
        run.pass(BEFORE).await;
        is_gone(run, id).await
    })?;
    later.done()
}

#[test]
fn e_089_how_long_results_live_through_crashes() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        if run.now() < minutes(1) {
            for name in ["never", "early"] {
                let handle = submit(run, Planned(chain(name, 1)), name).await?;
                run.wait(handle.outcome()).await??;
            }
            until(run, minutes(1)).await;
        }
        let (never, early) = (lab.id("never").ok_or("it ran")?, lab.id("early").ok_or("it ran")?);
        if run.now() < minutes(6) {
            run.executor.acknowledge(early).await?;
            is_there(run, early).await?;
        }
        until(run, minutes(6)).await;
        is_gone(run, early).await?;
        if run.now() < minutes(15) {
            is_there(run, never).await?;
        }
        until(run, minutes(15)).await;
        is_gone(run, never).await
    };
    let done = enumerate(Lab::default, kinds, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(done.commits, 4 + 1 + 2);
    Ok(())
}

/// Sleeps until 10 s.
fn slow(name: &str) -> Planned {
    Planned(plan(name, [Act::SleepUntil(10_000), Act::Done(7)]))
}

#[test]
fn e_091_handles_are_only_watchers() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let (dropped, watched) = live_in(&world, &lab, async |run| {
        let dropped = submit(run, slow("dropped"), "dropped").await?.id();
        let handle = submit(run, slow("watched"), "watched").await?;
        for _ in 0..2 {
            let early = run.wait(handle.wait_for(Duration::from_secs(1))).await?;
            assert!(matches!(early, Err(ProcedureError::Ask(AskError::NotYet))), "{early:?}");
        }
        run.pass(Duration::from_secs(10)).await;
        assert_eq!(handle.wait_for(MINUTE).await?, 7);
        assert_eq!(run.executor.handle::<Planned>(dropped).outcome().await?, 7);
        Ok((dropped, handle.id()))
    })?;
    live_in(&world, &lab, async |run| {
        for id in [dropped, watched] {
            assert_eq!(run.executor.outcome(id).await?.output::<i64>()?, Some(7));
        }
        Ok(())
    })
}

#[test]
fn e_091_handles_are_only_watchers_through_crashes() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let id = submit(run, slow("dropped"), "dropped").await?.id();
        assert_eq!(run.wait(run.executor.outcome(id)).await??.output::<i64>()?, Some(7));
        Ok(())
    };
    let done = enumerate(Lab::default, kinds, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(done.commits, 4);
    Ok(())
}
