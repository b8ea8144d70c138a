//! A clock that was ahead and is set right: nobody waits as long as it was wrong.

use std::time::Duration;

use procession::procedure::Timestamp;
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{Run, TestClock, Trouble, World};

use crate::lifecycle::kit::{at_rest, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, UndoAct, live_in, plan};

/// A day.
const AHEAD: Timestamp = Timestamp(86_400_000_000);

/// A world whose clock is a day ahead.
fn ahead() -> World {
    let world = World::new();
    world.clock.advance_to(AHEAD);
    world
}

fn retries() -> Plan {
    plan("r", [Act::Retry(1, Box::new(Act::Done(7)))])
}

fn undo_fails() -> Plan {
    let mut failing = plan("u", [Act::Fail("boom".to_owned())]);
    failing.undos.insert(1, UndoAct::Fail(1));
    failing
}

async fn backs_off(run: &Run, plan: Plan) -> Result<procession::ProcedureId, Trouble> {
    let key = plan.name.clone();
    let id = submit(run, Planned(plan), &key).await?.id();
    let status = at_rest(run, id).await?;
    assert!(matches!(status.wait, Some(WaitReason::Backoff(1, _))), "{status:?}");
    Ok(id)
}

/// It ends within a few minutes of the clock that is right.
async fn ends(run: &Run, id: procession::ProcedureId) -> Result<ProcedureState, Trouble> {
    run.pass(Duration::from_mins(6)).await;
    Ok(run.executor.status(id).await?.state)
}

const ENDS: [ProcedureState; 2] = [ProcedureState::Success, ProcedureState::RolledBack];

#[test]
fn a_backoff_that_runs_is_cut() -> Tested {
    for (plan, end) in [retries(), undo_fails()].into_iter().zip(ENDS) {
        let (world, lab) = (ahead(), Lab::default());
        live_in(&world, &lab, async |run| {
            let id = backs_off(run, plan).await?;
            run.world.clock.set_back_to(Timestamp(0));
            assert_eq!(ends(run, id).await?, end);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_backoff_that_a_start_meets_is_cut() -> Tested {
    for (plan, end) in [retries(), undo_fails()].into_iter().zip(ENDS) {
        let (world, lab) = (ahead(), Lab::default());
        let id = live_in(&world, &lab, async |run| backs_off(run, plan).await)?;
        let clock = TestClock::new();
        let right = World {
            disk: world.disk,
            clock,
        };
        live_in(&right, &lab, async |run| {
            assert_eq!(ends(run, id).await?, end);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn what_user_code_chose_waits() -> Tested {
    let (world, lab) = (ahead(), Lab::default());
    live_in(&world, &lab, async |run| {
        let id = submit(run, Planned(plan("s", [Act::Sleep(60_000), Act::Done(1)])), "s")
            .await?
            .id();
        run.settle().await;
        run.world.clock.set_back_to(Timestamp(0));
        run.pass(Duration::from_mins(6)).await;
        let status = run.executor.status(id).await?;
        assert_eq!(
            status.wait,
            Some(WaitReason::Timer(AHEAD.after(Duration::from_mins(1))))
        );
        Ok(())
    })
}
