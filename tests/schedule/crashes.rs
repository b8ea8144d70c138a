//! No crash loses a tick or runs one twice.

use std::time::Duration;

use procession::schedule::{CatchUp, Overlap, Schedule};
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World, enumerate};

use crate::work::{
    MINUTE, RUNS, Tested, UNDONE, by, each_minute, jobs_named, runs, seconds, taking, ticks, until_all_ended,
};

/// A schedule of two minutes, in which a run is asked for, until all has come to its end.
async fn drive(run: &Run, schedule: &Schedule) -> Result<(), Trouble> {
    let handle = run.executor.submit(schedule.clone()).key("the schedule").await?;
    let id = handle.id();
    let asked = run.executor.run_now(id, by().key("once")).await;
    // It may have ended by now.
    drop(asked);
    until_all_ended(run).await
}

fn two_minutes() -> Result<Schedule, Trouble> {
    let two = procession::procedure::Timestamp(0).after(2 * MINUTE);
    Ok(each_minute()?.until(two).catch_up(CatchUp::All(10)))
}

#[test]
fn no_tick_is_lost_or_doubled_whatever_crashes() -> Tested {
    let schedule = two_minutes()?.overlap(Overlap::Queue(10));
    let done = enumerate(
        || (),
        |(), builder| taking(Duration::from_secs(90))(builder),
        async |(), run| {
            drive(run, &schedule).await?;
            let ticks = ticks(&run.executor).await?;
            assert_eq!(ticks, ["000000 asked", "000060", "000120"]);
            // No two at a time.
            let mut began: Vec<u64> = runs(&run.executor).await?.iter().map(|(_, began)| *began).collect();
            began.sort_unstable();
            assert!(began.is_sorted_by(|one, next| one + 90 <= *next), "{began:?}");
            Ok(())
        },
        &[RUNS, UNDONE],
        |(), (), _| Ok(()),
    )?;
    assert!(done.runs > 30, "{done:?}");
    Ok(())
}

/// The aborts are bulks, whose reports name the families; a crash skips some of their numbers, so final worlds are not
/// compared as a whole here.
#[test]
fn a_cancelled_run_is_cancelled_once_whatever_crashes() -> Tested {
    let schedule = two_minutes()?.overlap(Overlap::Cancel);
    let live = |world: &World, plan: FaultPlan| {
        world.run(plan, taking(Duration::from_secs(200)), async |run| {
            drive(run, &schedule).await?;
            assert_eq!(ticks(&run.executor).await?, ["000000 asked", "000060", "000120"]);
            let undone = run.executor.scan::<bool>(UNDONE, "").await?;
            assert_eq!(undone.len(), 2, "the last one goes on");
            let aborts = run.executor.audit(None, 100).await?;
            let aborts = aborts.iter().filter(|entry| entry.words.contains("abort"));
            assert_eq!(aborts.count(), 2);
            Ok(run.store.commits())
        })
    };
    let commits = live(&World::new(), FaultPlan::none())?.done()?;
    assert!(commits > 15, "{commits}");
    for commit in 1..commits {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let world = World::new();
            if let Ended::Crashed = live(&world, FaultPlan::at(commit, fault))? {
                live(&world, FaultPlan::none())?.done()?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_change_is_durable_whatever_crashes() -> Tested {
    enumerate(
        || (),
        |(), builder| taking(Duration::ZERO)(builder),
        async |(), run| {
            let executor = &run.executor;
            let until = procession::procedure::Timestamp(0).after(4 * MINUTE);
            let hourly = Schedule::every(crate::work::NAME, 60 * MINUTE)?;
            let id = executor.submit(hourly).key("schedule work").await?.id();
            if executor
                .value::<Schedule>(id)
                .await?
                .is_some_and(|value| value.timetable() == "every 3600s")
            {
                executor.schedule(each_minute()?.until(until)).await?;
            }
            until_all_ended(run).await?;
            assert_eq!(ticks(executor).await?, ["000060", "000120", "000180", "000240"]);
            Ok(())
        },
        &[RUNS],
        |(), (), _| Ok(()),
    )?;
    Ok(())
}

#[test]
fn a_release_that_renames_a_job_loses_no_tick_whatever_crashes() -> Tested {
    let until = procession::procedure::Timestamp(0).after(4 * MINUTE);
    let schedule = each_minute()?.until(until).catch_up(CatchUp::All(10));
    let schedule = schedule.overlap(Overlap::Queue(10));
    let before = World::new();
    let id = before
        .run(FaultPlan::none(), jobs_named(&["work"]), async |run| {
            let id = run.executor.schedule(schedule.clone()).await?.id();
            run.pass(Duration::from_secs(70)).await;
            Ok(id)
        })?
        .done()?;
    before.clock.advance(Duration::from_secs(80));
    let renamed = schedule.job("renamed");
    let live = |world: &World, plan: FaultPlan| {
        world.run(plan, jobs_named(&["renamed"]), async |run| {
            // The tick that was missed is looked at before the change is there.
            run.settle().await;
            // After a crash it may have ended, and would be made anew.
            if run.executor.status(id).await.is_ok_and(|status| status.ended.is_none()) {
                run.executor.schedule(renamed.clone()).await?;
            }
            until_all_ended(run).await?;
            assert_eq!(ticks(&run.executor).await?, seconds([60, 120, 180, 240]));
            Ok(run.store.commits())
        })
    };
    let commits = live(&before.fork(), FaultPlan::none())?.done()?;
    assert!(commits > 10, "{commits}");
    for commit in 1..commits {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let world = before.fork();
            if let Ended::Crashed = live(&world, FaultPlan::at(commit, fault))? {
                live(&world, FaultPlan::none())?.done()?;
            }
        }
    }
    Ok(())
}
