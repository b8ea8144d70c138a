//! The cleanup after the end: at least once, after the end is durable, and before
//! the result can go.

use std::time::Duration;

use procession::errors::AskError;
use procession::status::ProcedureState as State;
use procession::testkit::{Ended, Fault, FaultPlan, Run, World};

use crate::rollback::helper::{commits, enumerate_client, rolled_back, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, Tidy, chain, failing, kinds, live, live_in, plan};

fn late(mut plan: Plan) -> Plan {
    plan.tidies_late = true;
    plan
}

#[test]
fn it_runs_after_the_end_through_crashes() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Tidy(chain("a", 2)), "a").await?;
        run.wait(handle.outcome()).await??;
        Ok(())
    })?;
    // Submit, two stages, and the cleanup's own.
    assert_eq!((done.commits, lab.line().as_str()), (4, "a1 a2 a~0"));
    Ok(())
}

#[test]
fn it_runs_after_a_rollback_too() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Tidy(failing("a", 2)), "a").await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (6, "a1 a2 a2' a1' a~0"));
    Ok(())
}

#[test]
fn a_crash_between_the_end_and_the_cleanup_loses_no_cleanup() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let fault = FaultPlan::at(2, Fault::CrashAfter);
    let ended = world.run(
        fault,
        |builder| kinds(&lab, builder),
        async |run| {
            let handle = submit(run, Tidy(chain("a", 1)), "a").await?;
            run.wait(handle.outcome()).await??;
            Ok(())
        },
    )?;
    assert!(matches!(ended, Ended::Crashed));
    assert_eq!(lab.line(), "a1", "the end is on disk, the cleanup has not begun");
    live_in(&world, &lab, async |run| {
        run.settle().await;
        assert_eq!(lab.line(), "a1 a~0");
        assert_eq!(run.executor.snapshot().await?.live_families, 0);
        Ok(())
    })?;
    live_in(&world, &lab, async |run| {
        run.settle().await;
        assert_eq!(lab.line(), "a1 a~0", "done is done");
        Ok(())
    })
}

#[test]
fn the_outcome_is_told_before_the_cleanup_and_the_result_goes_only_after_it() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Tidy(late(chain("a", 1))), "a").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        run.settle().await;
        assert!(lab.has("a~0"));
        assert_eq!(handle.status().await?.state, State::Success);
        assert_eq!(run.executor.snapshot().await?.live_families, 1);
        run.pass(Duration::from_secs(24 * 3600)).await;
        assert_eq!(
            handle.status().await?.state,
            State::Success,
            "it is kept while it cleans up"
        );
        lab.open("a~");
        run.settle().await;
        run.pass(Duration::from_secs(14 * 60)).await;
        assert_eq!(handle.outcome().await?, 7);
        run.pass(Duration::from_secs(2 * 60)).await;
        assert!(matches!(handle.status().await, Err(AskError::Unknown(_))));
        Ok(())
    })
}

/// An abort, a bypass or an acknowledgement that comes while it cleans up.
#[test]
fn one_that_cleans_up_has_ended() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Tidy(late(chain("a", 1))), "a").await?;
        run.wait(handle.outcome()).await??;
        let before = commits(run).await?;
        let by = || procession::operate::OperatorRequest::new("ann", "no need");
        let abort = run.executor.abort(handle.id(), by()).await;
        assert!(matches!(abort, Err(AskError::Finished { .. })), "{abort:?}");
        let pause = run
            .executor
            .pause(procession::operate::PauseScope::One(handle.id()), by())
            .await;
        assert!(matches!(pause, Err(AskError::Finished { .. })), "{pause:?}");
        assert_eq!(commits(run).await?, before);
        lab.open("a~");
        run.settle().await;
        Ok(())
    })
}

#[test]
fn a_parent_goes_on_while_its_child_cleans_up() -> Tested {
    let lab = Lab::default();
    let mut child = late(chain("c", 1));
    child.tidies = true;
    let root = plan("r", [Act::AddChild(Box::new(child), Box::new(Act::Next)), Act::Done(3)]);
    live(&lab, async |run| {
        let handle = submit(run, Planned(root), "r").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        assert_eq!(run.executor.snapshot().await?.live_families, 1);
        lab.open("c~");
        run.settle().await;
        assert_eq!(run.executor.snapshot().await?.live_families, 0);
        Ok(())
    })
}

/// Its undo is called while its cleanup still runs: neither is lost.
#[test]
fn a_child_that_is_compensated_while_it_cleans_up() -> Tested {
    let lab = Lab::default();
    let mut child = late(chain("c", 1));
    child.tidies = true;
    let root = plan(
        "r",
        [
            Act::AddChild(Box::new(child), Box::new(Act::Next)),
            Act::Fail("boom".to_owned()),
        ],
    );
    live(&lab, async |run: &Run| {
        let handle = submit(run, Planned(root), "r").await?;
        run.settle().await;
        assert!(lab.has("c~0") && lab.has("r2'"));
        lab.open("c~");
        rolled_back(run.wait(handle.outcome()).await?)?;
        run.settle().await;
        assert_eq!(run.executor.snapshot().await?.live_families, 0);
        Ok(())
    })?;
    assert_eq!(lab.line(), "r1 c1 c~0 r2 r2' c1' r1'");
    Ok(())
}

/// Its cleanup panics.
#[derive(serde::Serialize, serde::Deserialize)]
struct Clumsy;

impl procession::Procedure for Clumsy {
    const KIND: &'static str = "clumsy";
    type Stage = ();
    type Env = std::sync::Arc<std::sync::atomic::AtomicU32>;
    type Output = ();

    fn first(&self) -> Self::Stage {}

    async fn execute(
        &mut self,
        (): (),
        _: &mut procession::StageContext<'_, Self>,
    ) -> Result<procession::Step<Self>, procession::StageError> {
        Ok(procession::Step::Done(()))
    }

    async fn rollback(
        &mut self,
        (): (),
        _: &mut procession::StageContext<'_, Self>,
    ) -> Result<(), procession::StageError> {
        Ok(())
    }

    fn hooks() -> procession::procedure::Hooks<Self> {
        procession::procedure::Hooks::<Self>::new().completion_cleanup(async |_, calls| {
            calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            panic!("clumsy");
        })
    }
}

/// It cannot say that it failed, and what panics once panics again: it counts as run, and is logged.
#[test]
fn one_that_panics_has_run() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let calls = std::sync::Arc::<std::sync::atomic::AtomicU32>::default();
    for _ in 0..2 {
        let ended = world.run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder).register::<Clumsy>(calls.clone()),
            async |run| {
                let handle = submit(run, Clumsy, "c").await?;
                run.wait(handle.outcome()).await??;
                run.settle().await;
                assert_eq!(
                    run.executor.snapshot().await?.live_families,
                    0,
                    "nothing is left to be done"
                );
                Ok(())
            },
        )?;
        ended.done()?;
        assert_eq!(calls.load(std::sync::atomic::Ordering::SeqCst), 1);
    }
    Ok(())
}
