//! Attempts: what one that failed leaves behind, and how many there are.

use std::time::Duration;

use procession::errors::ProcedureError;
use procession::procedure::Timestamp;
use procession::status::CauseKind;
use procession::testkit::{FaultPlan, World};

use super::kit::{crash, enumerate_client, submit};
use crate::support::{Act, Lab, Patient, Plan, Planned, Tested, end, enumerate_plan, kinds, live_in, plan};

fn restless() -> Plan {
    plan("p", [Act::Retry(99, Box::new(Act::Next))])
}

fn twice_each() -> Plan {
    plan(
        "q",
        [
            Act::Retry(2, Box::new(Act::Next)),
            Act::Retry(2, Box::new(Act::Done(7))),
        ],
    )
}

#[test]
fn e_010_the_retry_budget_survives_restarts() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    world.run(
        FaultPlan::none(),
        |builder| kinds(&lab, builder),
        async |run| {
            submit(run, Patient(restless()), "p").await?;
            submit(run, Planned(twice_each()), "q").await?;
            run.pass(Duration::from_secs(2)).await;
            crash::<Tested>(run).await
        },
    )?;
    live_in(&world, &lab, async |run| {
        let second = submit(run, Planned(twice_each()), "q").await?;
        assert_eq!(run.wait(second.outcome()).await??, 7);
        let first = submit(run, Patient(restless()), "p").await?;
        match run.wait(first.outcome()).await? {
            Err(ProcedureError::RolledBack { cause, .. }) => {
                assert_eq!(
                    (cause.kind, cause.text.as_str()),
                    (CauseKind::AttemptsExhausted, "attempt 5")
                );
            }
            other => return Err(format!("{other:?}").into()),
        }
        let history = run.executor.history(first.id()).await?;
        let begun: Vec<u64> = history.iter().map(|entry| entry.begun.0 / 1_000_000).collect();
        // Five attempts, then the undo of the one stage, at once.
        assert_eq!(begun, [0, 1, 3, 7, 15, 15]);
        assert_eq!(run.now(), Timestamp(15_000_000));
        Ok(())
    })?;
    assert_eq!((lab.count("p1"), lab.count("p1'")), (5, 1));
    assert_eq!((lab.count("q1"), lab.count("q2")), (3, 3));
    Ok(())
}

#[test]
fn e_010_each_attempt_and_each_backoff_is_a_commit() -> Tested {
    let (done, lab) = enumerate_plan(&twice_each())?;
    assert_eq!((done.commits, lab.line().as_str()), (11, "q1 q1 q1 q2 q2 q2"));
    let (done, lab) = enumerate_client(async |_, run| {
        // How it ends is compared by the final world.
        end(run, Patient(restless()), "p")
            .await?
            .err()
            .ok_or("it did not fail")?;
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (11, "p1 p1 p1 p1 p1 p1'"));
    Ok(())
}
