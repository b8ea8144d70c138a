//! What operators and code do to a schedule while it lives.

use std::time::Duration;

use procession::ProcedureId;
use procession::errors::{AskError, SubmitError};
use procession::operate::PauseScope;
use procession::procedure::{Noop, Timestamp};
use procession::schedule::{CatchUp, Jobs, Overlap, Schedule, ScheduleError};
use procession::status::ProcedureState;
use procession::testkit::{FaultPlan, Run, Trouble, World};

use crate::work::{MINUTE, NAME, Tested, by, each_minute, jobs_named, runs, seconds, taking, ticks};

#[test]
fn the_next_tick_is_shown_where_people_ask_why_it_does_not_move() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            let id = run.executor.schedule(each_minute()?).await?.id();
            run.pass(Duration::from_secs(70)).await;
            let next = "stage Tick runs once request arrives, at the latest at 1970-01-01T00:02:00Z";
            assert_eq!(run.executor.status(id).await?.next, next);
            assert_eq!(run.executor.explain(id).await?.next, next);
            let value = run.executor.value::<Schedule>(id).await?.ok_or("it lives")?;
            assert_eq!(
                value.next().map(|next| next.to_string()).as_deref(),
                Some("1970-01-01T00:02:00Z")
            );
            Ok(())
        })?
        .done()
}

#[test]
fn a_run_that_is_asked_for_begins_now_and_the_timetable_goes_on() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            let id = run.executor.schedule(each_minute()?).await?.id();
            run.pass(Duration::from_secs(30)).await;
            run.executor.run_now(id, by()).await?;
            // As a client without rights of an operator sends it, and as the dashboard does.
            run.pass(Duration::from_secs(1)).await;
            run.executor.signal(id, Schedule::EVENT, &()).await?;
            run.pass(Duration::from_secs(40)).await;
            assert_eq!(ticks(&run.executor).await?, ["000030 asked", "000031 asked", "000060"]);
            let first = run.executor.list(Default::default(), None, 10).await?;
            let names: Vec<_> = first.items.iter().filter_map(|status| status.name.as_deref()).collect();
            assert_eq!(names[..2], ["work", "work 1970-01-01T00:00:30Z asked"]);
            assert_eq!(names[3], "work 1970-01-01T00:01:00Z");
            Ok(())
        })?
        .done()
}

#[test]
fn a_run_that_is_asked_for_waits_for_the_one_that_goes_on() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::from_secs(40)), async |run| {
            let id = run.executor.schedule(each_minute()?).await?.id();
            run.pass(Duration::from_secs(70)).await;
            for _ in 0..3 {
                run.executor.run_now(id, by()).await?;
            }
            run.pass(Duration::from_secs(45)).await;
            let runs = runs(&run.executor).await?;
            assert_eq!(runs, [("000060".to_owned(), 60), ("000070 asked".to_owned(), 100)]);
            Ok(())
        })?
        .done()
}

#[test]
fn a_paused_schedule_runs_nothing_and_catches_up_when_it_is_resumed() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            let id = run
                .executor
                .schedule(each_minute()?.overlap(Overlap::Queue(5)))
                .await?
                .id();
            run.pass(Duration::from_secs(70)).await;
            run.executor.pause(PauseScope::One(id), by()).await?;
            run.pass(Duration::from_secs(300)).await;
            run.executor.run_now(id, by()).await?;
            run.settle().await;
            assert_eq!(ticks(&run.executor).await?, seconds([60]));
            run.executor.resume(PauseScope::One(id), by()).await?;
            run.settle().await;
            assert_eq!(ticks(&run.executor).await?, ["000060", "000360", "000370 asked"]);
            Ok(())
        })?
        .done()
}

#[test]
fn a_changed_schedule_goes_by_the_new_timetable_from_now_on() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            let executor = &run.executor;
            let id = executor.schedule(Schedule::every(NAME, 60 * MINUTE)?).await?.id();
            run.pass(Duration::from_secs(90)).await;
            assert_eq!(executor.schedule(each_minute()?).await?.id(), id);
            run.pass(Duration::from_secs(100)).await;
            assert_eq!(ticks(executor).await?, seconds([120, 180]));
            // The same again changes nothing, and is no commit.
            let before = run.store.commits();
            executor.schedule(each_minute()?).await?;
            run.settle().await;
            assert_eq!(run.store.commits(), before);
            Ok(())
        })?
        .done()
}

/// The signals that the schedule has yet to take.
async fn kept(run: &Run, id: ProcedureId) -> Result<u32, Trouble> {
    let kept = run.executor.mailbox(id).await?.kept;
    Ok(kept.values().sum())
}

#[test]
fn any_number_of_starts_leaves_one_change_with_a_paused_schedule() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            let executor = &run.executor;
            let id = executor.schedule(each_minute()?).await?.id();
            run.settle().await;
            executor.pause(PauseScope::One(id), by()).await?;
            executor.run_now(id, by()).await?;
            for _ in 0..101 {
                executor.schedule(each_minute()?).await?;
            }
            assert_eq!(kept(run, id).await?, 1, "it goes by that already");
            let half = || Schedule::every(NAME, MINUTE / 2);
            for _ in 0..101 {
                executor.schedule(half()?).await?;
            }
            assert_eq!(kept(run, id).await?, 2);
            // The newest call counts, also if it takes an earlier one back.
            executor.schedule(each_minute()?).await?;
            executor.schedule(half()?).await?;
            executor.schedule(each_minute()?).await?;
            assert_eq!(kept(run, id).await?, 5);
            executor.resume(PauseScope::One(id), by()).await?;
            run.settle().await;
            assert_eq!(kept(run, id).await?, 0);
            let value = executor.value::<Schedule>(id).await?.ok_or("it lives")?;
            assert_eq!(value.timetable(), "every 60s");
            Ok(())
        })?
        .done()
}

#[test]
fn any_number_of_starts_leaves_one_change_with_a_schedule_whose_job_fails() -> Tested {
    let set_up = |builder: procession::Builder| {
        let jobs = Jobs::new().job(NAME, |_| Err::<Noop, _>(procession::StageError::fail("not today")));
        builder.register::<Noop>(()).register::<Schedule>(jobs)
    };
    World::new()
        .run(FaultPlan::none(), set_up, async |run| {
            let executor = &run.executor;
            let id = executor.schedule(each_minute()?).await?.id();
            run.pass(MINUTE).await;
            for _ in 0..101 {
                executor.schedule(Schedule::every(NAME, 2 * MINUTE)?).await?;
            }
            assert_eq!(kept(run, id).await?, 1);
            Ok(())
        })?
        .done()
}

#[test]
fn a_schedule_that_was_aborted_is_made_anew() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            let executor = &run.executor;
            let first = executor.schedule(each_minute()?).await?.id();
            run.pass(Duration::from_secs(70)).await;
            executor
                .abort(first, procession::operate::OperatorRequest::new("ann", "a test"))
                .await?;
            run.pass(Duration::from_secs(120)).await;
            assert_eq!(executor.status(first).await?.state, ProcedureState::Failed);
            let second = run.wait(executor.schedule(each_minute()?)).await??.id();
            assert_ne!(first, second);
            let before = ticks(executor).await?.len();
            run.pass(MINUTE).await;
            assert_eq!(ticks(executor).await?.len(), before + 1);
            Ok(())
        })?
        .done()
}

#[test]
fn what_a_schedule_cannot_use_is_refused_with_what_there_is() -> Tested {
    let set_up = |builder| taking(Duration::ZERO)(builder).register::<Noop>(());
    World::new()
        .run(FaultPlan::none(), set_up, async |run| {
            let executor = &run.executor;
            let id = executor.schedule(each_minute()?).await?.id();
            let unknown = each_minute()?.job("wrok");
            let text = "no job is registered with the name \"wrok\"; registered are \"work\"";
            match executor.submit(unknown.clone()).await.map(drop) {
                Err(SubmitError::Unsupported { why }) => assert_eq!(why, text),
                other => return Err(format!("{other:?}").into()),
            }
            match executor.schedule(unknown).await.map(drop) {
                Err(ScheduleError::Submit(SubmitError::Unsupported { why })) => assert_eq!(why, text),
                Err(ScheduleError::Ask(AskError::NotAccepted { why, .. })) => assert_eq!(why, text),
                other => return Err(format!("{other:?}").into()),
            }
            match executor.signal(id, Schedule::EVENT, &7).await {
                Err(AskError::NotAccepted { why, .. }) => assert!(why.contains("no payload"), "{why}"),
                other => return Err(format!("{other:?}").into()),
            }
            let refused = executor.signal(id, "other", &()).await;
            assert!(matches!(refused, Err(AskError::NotAccepted { .. })), "{refused:?}");
            let noop = run.wait(executor.submit(Noop).into_future()).await??.id();
            let refused = executor.run_now(noop, by()).await;
            assert!(matches!(refused, Err(AskError::NotAccepted { .. })), "{refused:?}");
            Ok(())
        })?
        .done()
}

#[test]
fn a_schedule_takes_the_requests_that_are_kept_before_it_ends() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            let executor = &run.executor;
            let until = Timestamp(0).after(2 * MINUTE);
            let id = executor.schedule(each_minute()?.until(until)).await?.id();
            run.pass(Duration::from_secs(70)).await;
            executor.pause(PauseScope::One(id), by()).await?;
            run.pass(Duration::from_secs(300)).await;
            executor.run_now(id, by()).await?;
            executor.resume(PauseScope::One(id), by()).await?;
            run.settle().await;
            run.pass(MINUTE).await;
            assert_eq!(ticks(executor).await?, ["000060", "000120", "000370 asked"]);
            assert_eq!(executor.snapshot().await?.live_families, 0);
            Ok(())
        })?
        .done()
}

/// A discharged family sends no signal at its end.
#[test]
fn what_waits_for_a_run_that_is_discharged_runs() -> Tested {
    let world = World::new();
    let two_minutes = each_minute()?.until(Timestamp(0).after(2 * MINUTE));
    let queued = two_minutes.overlap(Overlap::Queue(5));
    let id = world
        .run(FaultPlan::none(), taking(Duration::from_secs(1_000)), async |run| {
            let id = run.executor.schedule(queued).await?.id();
            run.pass(Duration::from_secs(130)).await;
            let value = run.executor.value::<Schedule>(id).await?.ok_or("it lives")?;
            assert_eq!((value.next(), value.waiting().count()), (None, 1));
            let next = run.executor.status(id).await?.next;
            assert_eq!(
                next,
                "stage EndOfRun runs once request arrives, at the latest at 1970-01-01T00:03:00Z"
            );
            Ok(id)
        })?
        .done()?;
    // The next release does not know the kind of the run, which is quarantined.
    let set_up = |builder: procession::Builder| {
        let jobs = Jobs::new().job(NAME, |_| Ok(Noop));
        builder.register::<Noop>(()).register::<Schedule>(jobs)
    };
    world
        .run(FaultPlan::none(), set_up, async |run| {
            let executor = &run.executor;
            run.pass(2 * MINUTE).await;
            assert_eq!(executor.value::<Schedule>(id).await?.ok_or("it lives")?.runs(), 1);
            let first = executor.find("work 1970-01-01T00:01:00Z").await?.ok_or("it goes on")?;
            executor.discharge(first.id().family, by()).await?;
            run.pass(2 * MINUTE).await;
            let second = executor.find("work 1970-01-01T00:02:00Z").await?;
            assert!(second.is_some(), "what waited has run");
            assert_eq!(executor.snapshot().await?.live_families, 0);
            Ok(())
        })?
        .done()
}

#[test]
fn a_release_that_renames_a_job_loses_no_tick_and_no_request() -> Tested {
    let world = World::new();
    let queued = || -> Result<Schedule, Trouble> { Ok(each_minute()?.overlap(Overlap::Queue(5))) };
    let before = queued()?;
    let id = world
        .run(FaultPlan::none(), jobs_named(&["work"]), async |run| {
            let id = run.executor.schedule(before).await?.id();
            run.pass(Duration::from_secs(70)).await;
            Ok(id)
        })?
        .done()?;
    // A tick is missed while the release is rolled out.
    world.clock.advance(Duration::from_secs(80));
    let after = queued()?.job("renamed");
    world
        .run(FaultPlan::none(), jobs_named(&["renamed"]), async |run| {
            run.settle().await;
            let status = run.executor.status(id).await?;
            assert_eq!(
                status.next,
                "stage UnknownJob runs once request arrives, at the latest at 1970-01-01T00:03:30Z"
            );
            run.executor.run_now(id, by()).await?;
            run.pass(Duration::from_secs(100)).await;
            assert_eq!(ticks(&run.executor).await?, seconds([60]));
            assert_eq!(run.executor.schedule(after).await?.id(), id);
            run.settle().await;
            assert_eq!(ticks(&run.executor).await?, ["000060", "000150 asked", "000240"]);
            run.pass(MINUTE).await;
            assert_eq!(ticks(&run.executor).await?.last().map(String::as_str), Some("000300"));
            let value = run.executor.value::<Schedule>(id).await?.ok_or("it lives")?;
            assert_eq!((value.runs(), value.skipped()), (4, 0));
            Ok(())
        })?
        .done()
}

#[test]
fn a_job_that_is_registered_again_goes_on_where_it_was() -> Tested {
    let world = World::new();
    let queued = each_minute()?.catch_up(CatchUp::All(10)).overlap(Overlap::Queue(10));
    let lives: [(&'static [&'static str], usize); 3] = [(&["work"], 1), (&[], 1), (&["work"], 5)];
    for (jobs, ran) in lives {
        let schedule = queued.clone();
        world
            .run(FaultPlan::none(), jobs_named(jobs), async |run| {
                if jobs.is_empty() {
                    run.settle().await;
                } else {
                    run.executor.schedule(schedule).await?;
                }
                run.pass(Duration::from_secs(100)).await;
                assert_eq!(ticks(&run.executor).await?.len(), ran);
                Ok(())
            })?
            .done()?;
    }
    Ok(())
}

#[test]
fn a_change_to_a_job_that_is_gone_gives_way_to_the_next() -> Tested {
    let world = World::new();
    let (first, other, third) = (each_minute()?, each_minute()?.job("other"), each_minute()?);
    let id = world
        .run(FaultPlan::none(), jobs_named(&["work", "other"]), async |run| {
            let id = run.executor.schedule(first).await?.id();
            run.pass(Duration::from_secs(10)).await;
            run.executor.pause(PauseScope::One(id), by()).await?;
            run.executor.schedule(other).await?;
            run.settle().await;
            Ok(id)
        })?
        .done()?;
    world
        .run(FaultPlan::none(), jobs_named(&["work"]), async |run| {
            run.executor.resume(PauseScope::One(id), by()).await?;
            run.settle().await;
            let status = run.executor.status(id).await?;
            assert!(status.next.starts_with("stage UnknownJob runs"), "{}", status.next);
            run.executor.schedule(third).await?;
            run.pass(MINUTE).await;
            assert_eq!(ticks(&run.executor).await?, seconds([60]));
            Ok(())
        })?
        .done()
}

/// A broadcast asks no kind whether it takes it.
#[test]
fn a_broadcast_that_it_cannot_read_does_not_stop_a_schedule() -> Tested {
    World::new()
        .run(FaultPlan::none(), taking(Duration::ZERO), async |run| {
            run.executor.schedule(each_minute()?).await?;
            run.settle().await;
            assert_eq!(run.executor.broadcast(Schedule::EVENT, &7).await?, 1);
            run.pass(Duration::from_secs(70)).await;
            assert_eq!(ticks(&run.executor).await?, seconds([60]));
            Ok(())
        })?
        .done()
}

#[test]
fn a_job_that_fails_loses_no_tick_and_ends_no_schedule() -> Tested {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let jobs = Jobs::new().job(NAME, move |tick| match counted.fetch_add(1, Ordering::Relaxed) {
        0 => Err(procession::StageError::fail("not yet")),
        1 => Err(procession::StageError::retry("not yet")),
        _ if tick.at().0 == 60_000_000 => Ok(Noop),
        _ => Err(procession::StageError::fail("it is another tick")),
    });
    // The kind of the second job is not registered.
    let jobs = jobs.job("stranger", |_| {
        Ok(procession::sequence::Sequence::new(["nothing"]).with_kind("a stranger"))
    });
    let set_up = |builder: procession::Builder| builder.register::<Noop>(()).register::<Schedule>(jobs);
    World::new()
        .run(FaultPlan::none(), set_up, async |run| {
            let executor = &run.executor;
            let id = executor.schedule(each_minute()?).await?.id();
            let stranger = Schedule::every("stranger", MINUTE)?;
            let stranger = executor.schedule(stranger).await?.id();
            run.pass(Duration::from_secs(70)).await;
            assert_eq!(calls.load(Ordering::Relaxed), 3);
            let value = executor.value::<Schedule>(id).await?.ok_or("it lives")?;
            assert_eq!(value.runs(), 1);
            let status = executor.status(stranger).await?;
            assert_eq!(status.state, ProcedureState::WaitingTimeout);
            let history = executor.history(stranger).await?;
            let error = history.last().and_then(|entry| entry.error.clone()).unwrap_or_default();
            assert!(
                error.contains("no procedure of kind \"a stranger\" is registered"),
                "{error}"
            );
            Ok(())
        })?
        .done()
}
