//! The wall clock is set forward: results and keys that only look due stay, and go when the machine's time says so.

use std::future::IntoFuture;
use std::time::Duration;

use procession::ProcedureId;
use procession::errors::AskError;
use procession::health::{Rule, Verdict};
use procession::operate::OperatorRequest;
use procession::procedure::Timestamp;
use procession::provider::Clock;
use procession::testkit::{Run, TestClock, Trouble, World};

use crate::support::{Act, Lab, Planned, Tested, chain, enumerate, kinds, live_in, plan};

const DAYS: Duration = Duration::from_hours(72);
const DAY: Duration = Duration::from_hours(24);
/// How long the results of these tests are kept: the default.
const KEPT: Duration = Duration::from_mins(15);
const MINUTE: Duration = Duration::from_mins(1);

/// How long the machine has run.
fn ran(clock: &TestClock) -> Duration {
    clock.machine_time().map_or(Duration::ZERO, |time| time.since)
}

/// Sets the clock back by as much as it was ahead.
fn set_right(clock: &TestClock) {
    let right = Duration::from_micros(clock.now().0) - DAYS;
    clock.set_back_to(Timestamp(0).after(right));
}

/// Passes until the machine has run so long.
async fn until(run: &Run, since: Duration) {
    run.pass(since.saturating_sub(ran(&run.world.clock))).await;
}

/// Submits with this key, or finds whom it stands for, and waits for the end. The key `long` is kept for a day.
async fn ends(run: &Run, key: &str) -> Result<ProcedureId, Trouble> {
    let submission = run.executor.submit(Planned(chain(key, 1)));
    let submission = match key {
        "long" => submission.key_for(key, DAY),
        _ => submission.key(key),
    };
    let handle = run.wait(submission.into_future()).await??;
    assert_eq!(run.wait(handle.outcome()).await??, 7);
    Ok(handle.id())
}

async fn is_there(run: &Run, id: ProcedureId) -> Result<bool, Trouble> {
    match run.executor.outcome(id).await {
        Ok(_) => Ok(true),
        Err(AskError::Unknown(unknown)) if unknown == id => Ok(false),
        Err(other) => Err(other.into()),
    }
}

#[test]
fn results_and_keys_stay_when_the_clock_is_set_forward_and_right_again() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let id = ends(run, "k").await?;
        run.world.clock.step_wall(DAYS);
        run.pass(Duration::from_secs(6)).await;
        assert!(is_there(run, id).await?, "six seconds later");
        assert_eq!(ends(run, "k").await?, id);
        set_right(&run.world.clock);
        until(run, KEPT - MINUTE).await;
        assert_eq!(ends(run, "k").await?, id);
        until(run, KEPT).await;
        assert!(!is_there(run, id).await?, "its time is up");
        Ok(())
    })?;
    assert_eq!(lab.line(), "k1");
    Ok(())
}

#[test]
fn lives_with_a_clock_that_is_ahead_throw_nothing_away() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = live_in(&world, &lab, async |run| ends(run, "k").await)?;
    world.clock.step_wall(DAYS);
    for _ in 0..3 {
        live_in(&world, &lab, async |run| {
            run.pass(Duration::from_secs(6)).await;
            assert!(is_there(run, id).await?);
            Ok(())
        })?;
    }
    set_right(&world.clock);
    live_in(&world, &lab, async |run| {
        assert_eq!(ends(run, "k").await?, id);
        until(run, KEPT).await;
        assert!(!is_there(run, id).await?, "its time is up");
        Ok(())
    })?;
    assert_eq!(lab.line(), "k1");
    Ok(())
}

#[test]
fn the_clock_stays_ahead_and_each_goes_at_its_time() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        if lab.noted().is_empty() {
            let early = ends(run, "k").await?;
            lab.note(early.to_string());
            run.world.clock.step_wall(DAYS);
        }
        let early: ProcedureId = lab.noted().first().ok_or("it was noted")?.parse()?;
        until(run, MINUTE * 10).await;
        if lab.noted().len() == 1 {
            assert_eq!(ends(run, "k").await?, early);
            let late = ends(run, "late").await?;
            lab.note(late.to_string());
        }
        let late: ProcedureId = lab.noted().get(1).ok_or("it was noted")?.parse()?;
        if ran(&run.world.clock) < KEPT {
            until(run, KEPT - MINUTE).await;
            assert!(is_there(run, early).await?, "before its time");
        }
        until(run, KEPT).await;
        assert!(!is_there(run, early).await?, "its time is up");
        if ran(&run.world.clock) < MINUTE * 25 {
            until(run, MINUTE * 24).await;
            assert!(is_there(run, late).await?, "the later one's is not");
        }
        until(run, MINUTE * 25).await;
        assert!(!is_there(run, late).await?);
        Ok(())
    };
    enumerate(Lab::default, kinds, drive, &[], |plain, _, _| {
        assert_eq!(plain.line(), "k1 late1");
        Ok(())
    })?;
    Ok(())
}

#[test]
fn a_key_that_is_kept_longer_than_its_result_is_kept_for_its_own_time() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let id = ends(run, "long").await?;
        run.world.clock.step_wall(DAYS);
        until(run, MINUTE * 16).await;
        assert!(!is_there(run, id).await?);
        let again = |run: &Run| {
            run.executor
                .submit(Planned(chain("long", 1)))
                .key_for("long", DAY)
                .into_future()
        };
        assert_eq!(run.wait(again(run)).await??.id(), id);
        until(run, DAY - MINUTE).await;
        assert_eq!(run.wait(again(run)).await??.id(), id);
        until(run, DAY).await;
        assert_ne!(run.wait(again(run)).await??.id(), id);
        Ok(())
    })
}

#[test]
fn a_stop_during_which_the_machine_ran_counts() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = live_in(&world, &lab, async |run| ends(run, "k").await)?;
    world.clock.advance(DAYS);
    live_in(&world, &lab, async |run| {
        run.settle().await;
        assert!(!is_there(run, id).await?);
        Ok(())
    })
}

#[test]
fn a_stop_during_which_nobody_counted_keeps_results_for_their_time_again() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = live_in(&world, &lab, async |run| ends(run, "k").await)?;
    world.clock.step_wall(DAYS);
    world.clock.reboot();
    live_in(&world, &lab, async |run| {
        until(run, KEPT - MINUTE).await;
        assert!(is_there(run, id).await?);
        until(run, KEPT).await;
        assert!(!is_there(run, id).await?);
        Ok(())
    })
}

#[test]
fn it_is_told_for_as_long_as_it_counts() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let told = async || -> Result<Option<Verdict>, Trouble> {
            let verdicts = run.wait(run.executor.verdicts()).await??;
            Ok(verdicts.into_iter().find(|verdict| verdict.rule == Rule::ClockAhead))
        };
        assert_eq!(told().await?, None);
        run.world.clock.step_wall(DAYS);
        let at = run.now();
        let verdict = told().await?.ok_or("it is told")?;
        assert_eq!((verdict.since, verdict.procedure), (at, None));
        assert_eq!(verdict.fact("ahead"), Some("259200s"));
        assert_eq!(verdict.fact("until"), Some(at.after(KEPT).0.to_string().as_str()));
        run.pass(KEPT - MINUTE).await;
        assert_eq!(told().await?.ok_or("it is still told")?.since, at);
        run.pass(MINUTE).await;
        assert_eq!(told().await?, None);
        Ok(())
    })
}

/// A root that runs again has a key for as long as its failure is kept, which is far longer than any success is.
#[test]
fn one_that_runs_again_keeps_no_result_longer() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = live_in(&world, &lab, async |run| {
        let fails = Planned(plan("f", [Act::Fail("boom".to_owned())]));
        let failed = run.wait(run.executor.submit(fails).into_future()).await??.id();
        run.settle().await;
        let by = OperatorRequest::new("ann", "once more");
        run.wait(run.executor.run_again(failed, by)).await??;
        ends(run, "k").await
    })?;
    world.clock.step_wall(DAYS);
    live_in(&world, &lab, async |run| {
        run.pass(Duration::from_secs(6)).await;
        assert!(is_there(run, id).await?);
        until(run, KEPT).await;
        assert!(!is_there(run, id).await?, "its time is up");
        Ok(())
    })
}
