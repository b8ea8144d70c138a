//! What becomes of ticks that are missed, and of ticks that are due while a run goes on.

use std::time::Duration;

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use procession::operate::OperatorRequest;
use procession::schedule::{CatchUp, Overlap, Schedule};
use procession::testkit::{FaultPlan, Trouble, World};

use crate::work::{MINUTE, Tested, UNDONE, each_minute, runs, seconds, taking, ticks};

/// Runs for ten minutes and a half.
const TIME: Duration = Duration::from_secs(630);

#[test]
fn a_tick_while_a_run_goes_on_is_skipped_and_counted() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::from_secs(90)), async |run| {
            let schedule = run.executor.schedule(each_minute()?).await?;
            run.pass(TIME).await;
            assert_eq!(ticks(&run.executor).await?, seconds([60, 180, 300, 420, 540]));
            let value = run.executor.value::<Schedule>(schedule.id()).await?;
            let value = value.ok_or("it lives")?;
            assert_eq!((value.runs(), value.skipped()), (5, 5));
            Ok(())
        })?
        .done()
}

#[test]
fn skipped_ticks_are_counted_once_by_the_policy_that_they_met() -> Tested {
    let counted = |world: &World, overlap: Overlap, is_aborted: bool| -> Result<Vec<u64>, Trouble> {
        let recorder = DebuggingRecorder::new();
        let snapshotter = recorder.snapshotter();
        metrics::with_local_recorder(&recorder, || {
            world
                .run(FaultPlan::none(), taking(Duration::from_secs(90)), async |run| {
                    let schedule = run.executor.schedule(each_minute()?.overlap(overlap)).await?;
                    run.pass(Duration::from_secs(600)).await;
                    // The turn behind the last one counts what that one has committed, or the end does.
                    if is_aborted {
                        let by = OperatorRequest::new("ann", "of no use");
                        run.executor.abort(schedule.id(), by).await?;
                        run.settle().await;
                    } else {
                        run.pass(Duration::from_secs(85)).await;
                    }
                    Ok(())
                })?
                .done()
        })?;
        let all = snapshotter.snapshot().into_vec();
        let of = |policy: &str| {
            let is_it = |key: &metrics::Key| {
                key.name() == "procession_schedule_skipped_total" && key.labels().any(|label| label.value() == policy)
            };
            all.iter().find_map(|(key, _, _, value)| match value {
                DebugValue::Counter(count) if is_it(key.key()) => Some(*count),
                DebugValue::Counter(_) | DebugValue::Gauge(_) | DebugValue::Histogram(_) => None,
            })
        };
        Ok(["skip", "queue", "cancel"]
            .map(|policy| of(policy).unwrap_or(99))
            .to_vec())
    };
    let world = World::new();
    assert_eq!(counted(&world, Overlap::Skip, false)?, [5, 0, 0]);
    // What was skipped before the process began is not counted again, and its plan has changed.
    let again = counted(&world, Overlap::Queue(1), false)?;
    assert!(again[0] == 0 && again[1] > 0 && again[2] == 0, "{again:?}");
    assert_eq!(counted(&World::new(), Overlap::Skip, true)?, [5, 0, 0]);
    Ok(())
}

#[test]
fn a_tick_that_waits_begins_when_the_run_before_it_ends() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::from_secs(100)), async |run| {
            let schedule = each_minute()?.overlap(Overlap::Queue(1));
            run.executor.schedule(schedule).await?;
            run.pass(TIME).await;
            let runs = runs(&run.executor).await?;
            let began: Vec<u64> = runs.iter().map(|(_, began)| *began).collect();
            // Nobody polls: the end of one is the beginning of the next.
            assert_eq!(began, [60, 160, 260, 360, 460, 560]);
            let ticks: Vec<String> = runs.into_iter().map(|(tick, _)| tick).collect();
            assert_eq!(ticks[..3], seconds([60, 120, 180]));
            Ok(())
        })?
        .done()
}

#[test]
fn a_run_is_cancelled_for_the_next_which_begins_when_it_is_undone() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::from_secs(1_000)), async |run| {
            let schedule = each_minute()?.overlap(Overlap::Cancel);
            run.executor.schedule(schedule).await?;
            run.pass(Duration::from_secs(330)).await;
            assert_eq!(ticks(&run.executor).await?, seconds([60, 120, 180, 240, 300]));
            let undone = run.executor.scan::<bool>(UNDONE, "").await?;
            assert_eq!(undone.len(), 4, "the newest goes on");
            let audit = run.executor.audit(None, 1).await?;
            let entry = audit.first().ok_or("the abort has an entry")?;
            assert_eq!(
                (entry.who.as_str(), entry.why.as_str()),
                ("schedule work", "the next run is due")
            );
            Ok(())
        })?
        .done()
}

#[test]
fn runs_that_may_overlap_do() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::from_secs(1_000)), async |run| {
            let schedule = each_minute()?.overlap(Overlap::Allow);
            run.executor.schedule(schedule).await?;
            run.pass(Duration::from_secs(330)).await;
            assert_eq!(ticks(&run.executor).await?, seconds([60, 120, 180, 240, 300]));
            assert_eq!(run.executor.snapshot().await?.live_families, 6);
            Ok(())
        })?
        .done()
}

/// The ticks that run when the engine is down from 2:30 to 12:45, each without taking time.
fn after_a_stop(catch_up: CatchUp) -> Result<Vec<String>, procession::testkit::Trouble> {
    let world = World::new();
    let schedule = each_minute()?.catch_up(catch_up).overlap(Overlap::Queue(100));
    let at_start = schedule.clone();
    world
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            run.executor.schedule(at_start).await?;
            run.pass(Duration::from_secs(150)).await;
            Ok(())
        })?
        .done()?;
    world.clock.advance(Duration::from_secs(615));
    world
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            run.executor.schedule(schedule).await?;
            run.settle().await;
            let mut ticks = ticks(&run.executor).await?;
            Ok(ticks.split_off(2))
        })?
        .done()
}

#[test]
fn missed_ticks_are_caught_up_at_the_start() -> Tested {
    assert_eq!(after_a_stop(CatchUp::Last)?, seconds([720]));
    assert_eq!(after_a_stop(CatchUp::All(3))?, seconds([600, 660, 720]));
    assert_eq!(after_a_stop(CatchUp::All(100))?, seconds((180..=720).step_by(60)));
    assert_eq!(
        after_a_stop(CatchUp::Skip)?,
        seconds([720]),
        "the newest is late by 45 seconds"
    );
    Ok(())
}

#[test]
fn a_tick_that_was_missed_by_a_minute_can_be_skipped() -> Tested {
    let world = World::new();
    let hourly = || -> Result<Schedule, procession::testkit::Trouble> {
        let hourly = Schedule::every(crate::work::NAME, 60 * MINUTE)?;
        Ok(hourly.catch_up(CatchUp::Skip))
    };
    let at_start = hourly()?;
    world
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            run.executor.schedule(at_start).await?;
            run.settle().await;
            Ok(())
        })?
        .done()?;
    world.clock.advance(61 * MINUTE);
    let again = hourly()?;
    world
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            run.executor.schedule(again).await?;
            run.settle().await;
            assert!(ticks(&run.executor).await?.is_empty());
            run.pass(60 * MINUTE).await;
            assert_eq!(ticks(&run.executor).await?, seconds([7_200]));
            Ok(())
        })?
        .done()
}
