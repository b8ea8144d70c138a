//! Stopping in order: nothing new begins, what runs may finish, the rest goes
//! on at the next start, and nobody pays for it with an attempt.

use std::future::IntoFuture;
use std::time::Duration;

use procession::errors::{AskError, SubmitError};
use procession::status::{DrainReport, ProcedureState};
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, ProcedureId};

use crate::support::{Act, Lab, Once, Plan, Tested, chain, enumerate_later, kinds, plan};

fn set_up(lab: &Lab, builder: Builder) -> Builder {
    // Ten run, and twenty are queued for a permit.
    kinds(lab, builder).limit("once", 10)
}

fn plan_of(number: usize) -> Plan {
    let gate = if number == 9 { "late" } else { "in time" };
    plan(
        &format!("p{number}-"),
        [Act::Held(gate.to_owned(), Box::new(Act::Next)), Act::Done(3)],
    )
}

#[test]
fn e_059_drain() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let ids = world
        .run(
            FaultPlan::none(),
            |builder| set_up(&lab, builder),
            async |run| {
                let mut ids = Vec::new();
                for number in 0..30 {
                    ids.push(
                        run.wait(run.executor.submit(Once(plan_of(number))).into_future())
                            .await??
                            .id(),
                    );
                }
                run.until("ten stages run", || lab.calls().len() == 10).await?;

                let executor = run.executor.clone();
                let drain = actix_rt::spawn(async move { executor.drain(Duration::from_secs(30)).await });
                run.settle().await;
                let refused = run.executor.submit(Once(chain("new", 1))).await.err();
                assert!(matches!(refused, Some(SubmitError::Draining)), "{refused:?}");
                assert!(run.executor.snapshot().await?.draining);
                lab.open("in time");
                run.settle().await;
                assert!(!drain.is_finished(), "one of ten is still out");
                let mut entries = 0;
                for id in &ids {
                    entries += run.executor.history(*id).await?.len();
                }
                assert_eq!(entries, 9, "nine results are committed");

                let report = run.wait(drain).await???;
                assert_eq!((report.finished_calls, report.cut_off_calls), (9, 1));
                assert_eq!(report.quarantined_families, 0);
                assert_eq!(run.now().0, 30_000_000, "at the deadline");
                let stopped = run.executor.status(*ids.first().ok_or("nobody was submitted")?).await;
                assert!(matches!(stopped, Err(AskError::Stopped)), "{stopped:?}");
                Ok(ids)
            },
        )?
        .done()?;
    assert_eq!(lab.calls().len(), 10, "no new stage began: {}", lab.line());

    lab.open("late");
    world
        .run(
            FaultPlan::none(),
            |builder| set_up(&lab, builder),
            async |run| {
                for id in &ids {
                    let outcome = run.wait(run.executor.outcome(*id)).await??;
                    assert_eq!(outcome.state, ProcedureState::Success, "{id}: {:?}", outcome.cause);
                }
                Ok(())
            },
        )?
        .done()?;
    assert!(
        lab.calls().iter().all(|call| call.attempt == 1),
        "nobody lost an attempt"
    );
    // Thirty chains of two, and the stage that was cut short once more.
    assert_eq!(lab.calls().len(), 61);
    Ok(())
}

fn two_run(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder).limit("once", 2)
}

/// Two run and two are queued; one is in time. The start after it is crashed at each of its commits.
#[test]
fn e_059_nothing_is_lost_however_the_next_start_crashes() -> Tested {
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        let drains = async |run: &Run| {
            let mut ids = Vec::new();
            // Number 9 is late.
            for number in 8..12 {
                let submit = run.executor.submit(Once(plan_of(number)));
                ids.push(run.wait(submit.into_future()).await??.id());
            }
            run.until("two stages run", || lab.calls().len() == 2).await?;
            lab.open("in time");
            let report = run.wait(run.executor.drain(Duration::from_secs(30))).await??;
            assert_eq!((report.finished_calls, report.cut_off_calls), (1, 1));
            Ok(ids)
        };
        let ids = world
            .run(FaultPlan::none(), |builder| two_run(&lab, builder), drains)?
            .done()?;
        lab.open("late");
        Ok((world, (lab, ids)))
    };
    let set_up = |(lab, _): &(Lab, _), builder| two_run(lab, builder);
    let drive = async |(_, ids): &(Lab, Vec<ProcedureId>), run: &Run, _: usize| {
        for id in ids {
            let outcome = run.wait(run.executor.outcome(*id)).await??;
            assert_eq!(outcome.state, ProcedureState::Success, "{id}: {:?}", outcome.cause);
        }
        Ok(())
    };
    let check = |(lab, _): &(Lab, _), _: usize| {
        assert!(
            lab.calls().iter().all(|call| call.attempt == 1),
            "nobody lost an attempt"
        );
        Ok(())
    };
    // The start's own, seven stages, the grants of two.
    assert_eq!(enumerate_later(prepare, set_up, drive, check)?, 1 + 7 + 2);
    Ok(())
}

/// Results that fall due one after another while the engine drains.
const RESULTS: usize = 20;
const RETENTION: Duration = Duration::from_millis(20);

/// Drains an idle engine while its results fall due; gives what the drain answered, and the number of commits.
fn drain_while_results_fall_due(plan: FaultPlan) -> Result<(Result<DrainReport, AskError>, u64), Trouble> {
    let (world, lab) = (World::new(), Lab::default());
    let ended = world.run(
        plan,
        |builder| kinds(&lab, builder).retention(RETENTION, RETENTION),
        async |run| {
            for number in 0..RESULTS {
                let root = run.executor.submit(Once(chain(&format!("p{number}-"), 1))).await?;
                run.wait(root.outcome()).await??;
                run.world.clock.advance(Duration::from_millis(1));
            }
            run.settle().await;
            let executor = run.executor.clone();
            let drain = actix_rt::spawn(async move { executor.drain(Duration::from_secs(30)).await });
            while !drain.is_finished() {
                run.world.clock.advance(Duration::from_millis(1));
                for _ in 0..4 {
                    tokio::task::yield_now().await;
                }
                if run.store.is_withholding() && run.now().0 > 1_000_000 {
                    run.store.release_receipts();
                }
            }
            Ok((drain.await?, run.store.commits()))
        },
    )?;
    match ended {
        Ended::Done(told) => Ok(told),
        Ended::Crashed => Err("no crash is planned".into()),
    }
}

/// The store is given back as soon as the end of the drain is on disk. An eviction decided after it found the journal
/// closed, and the drain was told that the journal had failed.
#[test]
fn e_059_nothing_is_decided_after_the_end_of_a_drain() -> Tested {
    for seed in 0..300 {
        let (told, commits) = drain_while_results_fall_due(FaultPlan::none().late(seed, 6))?;
        told.map_err(|why| format!("seed {seed}: {why}"))?;
        if seed % 10 == 0 {
            let withheld = FaultPlan::at(commits - 1, Fault::Withhold);
            let (told, _) = drain_while_results_fall_due(withheld)?;
            told.map_err(|why| format!("withheld at commit {}: {why}", commits - 1))?;
        }
    }
    Ok(())
}
