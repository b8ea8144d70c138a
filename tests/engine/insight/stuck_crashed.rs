//! Verdicts across crashes: at every rest of every life there is exactly the verdict that
//! what is on the disk and what this life has seen give, and none once the cause is gone.

use std::future::IntoFuture;
use std::time::Duration;

use procession::health::Rule;
use procession::operate::{BypassAs, BypassScope, OperatorRequest, PauseScope};
use procession::status::{Ending, Status, WaitReason};
use procession::testkit::{Ended, Fault, FaultPlan, Run, Trouble, World};
use procession::{Builder, Handle, Procedure, ProcedureId};

use super::kit::{Slow, at, set_up, the_verdict, told};
use super::stuck::{Deadly, Process};
use crate::support::{
    Act, Circling, Lab, Limited, Once, Patient, Plan, Planned, Tested, UndoAct, at_every_commit, chain, enumerate,
    enumerate_later, failing, live_through, plan,
};

async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<Handle<P>, Trouble> {
    Ok(run.executor.submit(procedure).key(key).into_future().await?)
}

fn by(key: &str) -> OperatorRequest {
    OperatorRequest::new("the test", "it is repaired").key(key)
}

/// There is this verdict of it, or none.
async fn exactly(run: &Run, rule: Option<Rule>, id: ProcedureId) -> Tested {
    let expected: Vec<_> = rule.into_iter().map(|rule| (rule, Some(id))).collect();
    let told = told(run).await?;
    if told == expected {
        return Ok(());
    }
    Err(format!("expected {expected:?}, told {told:?}").into())
}

/// Crashes it everywhere; gives the commits of the run without a crash.
fn everywhere(drive: impl AsyncFn(&Lab, &Run) -> Tested) -> Result<u64, Trouble> {
    let compare = |plain: &Lab, crashed: &Lab, crashes| plain.compare(crashed, crashes);
    Ok(enumerate(Lab::default, set_up, drive, &[], compare)?.commits)
}

/// Follows one from rest to rest, until it has ended: there is the verdict that its status and history tell of.
pub(super) async fn follow(run: &Run, id: ProcedureId, rule: impl Fn(&Status, usize) -> Option<Rule>) -> Tested {
    loop {
        run.settle().await;
        let status = run.executor.status(id).await?;
        if status.ended.is_some() {
            return exactly(run, None, id).await;
        }
        let history = run.executor.history(id).await?;
        let sleeps = history.iter().filter(|entry| entry.ending == Ending::Sleep).count();
        exactly(run, rule(&status, sleeps), id).await?;
        match status.wait {
            Some(WaitReason::Backoff(_, until) | WaitReason::Timer(until)) => run.pass(until.since(run.now())).await,
            other => return Err(format!("it waits for {other:?}").into()),
        }
    }
}

fn storm(status: &Status, _: usize) -> Option<Rule> {
    let often = matches!(status.wait, Some(WaitReason::Backoff(attempts, _)) if attempts >= 3);
    often.then_some(Rule::RetryStorm)
}

#[test]
fn e_115_a_retry_storm_goes_on_however_it_crashes() -> Tested {
    let stage = plan("p", [Act::Retry(4, Box::new(Act::Done(1)))]);
    let undo = failing("u", 1).undo(1, UndoAct::Fail(3));
    // Submit, five attempts, four backoffs; submit, the stage, four attempts of its undo, three backoffs.
    for (plan, commits) in [(stage, 10), (undo, 9)] {
        let drive = async |_: &Lab, run: &Run| {
            let id = submit(run, Patient(plan.clone()), "k").await?.id();
            follow(run, id, storm).await
        };
        let done = at_every_commit(false, |faults| {
            live_through(faults, |_| Lab::default(), set_up, drive, |_, _| Ok(()))
        })?;
        assert_eq!(done.commits, commits);
    }
    Ok(())
}

#[test]
fn e_115_a_storm_has_lasted_since_its_first_failure_after_a_restart_too() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let since = async |run: &Run, seconds| {
        run.pass(Duration::from_secs(seconds)).await;
        let verdict = the_verdict(run).await?;
        assert_eq!((verdict.rule, verdict.since), (Rule::RetryStorm, at(0)), "{verdict:?}");
        Ok(())
    };
    super::kit::live_in(&world, &lab, FaultPlan::none(), async |run| {
        let storm = plan("p", [Act::Retry(4, Box::new(Act::Done(1)))]);
        submit(run, Patient(storm), "k").await?;
        since(run, 3).await
    })?;
    super::kit::live_in(&world, &lab, FaultPlan::none(), async |run| since(run, 4).await)
}

#[test]
fn e_115_the_same_stage_again_is_counted_however_it_crashes() -> Tested {
    let mut visits = vec![Act::SleepAgain(1_000); 6];
    visits.push(Act::Done(1));
    let root = plan("c", [Act::Visits(visits)]);
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        super::kit::live_in(&world, &lab, FaultPlan::none(), async |run| {
            submit(run, Planned(root.clone()), "k").await?;
            run.pass(Duration::from_secs(3)).await;
            assert_eq!(told(run).await?, [], "it has slept four times");
            Ok(())
        })?;
        Ok((world, lab))
    };
    let drive = async |_: &Lab, run: &Run, _: usize| {
        let circles = |_: &Status, sleeps: usize| (sleeps >= 5).then_some(Rule::NoProgress);
        follow(run, ProcedureId::root(1), circles).await
    };
    // The start's own; three ends of a sleep, two more sleeps, the end.
    assert_eq!(enumerate_later(prepare, set_up, drive, |_, _| Ok(()))?, 7);
    Ok(())
}

#[test]
fn e_115_one_that_was_parked_for_going_in_circles_stays_so_however_it_crashes() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let root = plan("c", [Act::Goto(1)]).one_way(1);
        let id = submit(run, Circling(root), "k").await?.id();
        run.settle().await;
        if run.executor.status(id).await?.wait == Some(WaitReason::RepeatLimit) {
            exactly(run, Some(Rule::NoProgress), id).await?;
            let bypass = run.executor.bypass(id, BypassScope::Alone, BypassAs::Success, by("b"));
            bypass.await?;
        }
        run.wait(run.executor.outcome(id)).await??;
        exactly(run, None, id).await
    };
    assert_eq!(everywhere(drive)?, 7);
    Ok(())
}

#[test]
fn e_115_an_overrun_is_measured_in_each_life() -> Tested {
    let drive = async |lab: &Lab, run: &Run| {
        let slow = submit(run, Slow("slow".to_owned()), "k").await?;
        if !lab.is_open("slow") {
            run.pass(Duration::from_mins(1)).await;
            exactly(run, None, slow.id()).await?;
            run.pass(Duration::from_secs(1)).await;
            exactly(run, Some(Rule::Overrun), slow.id()).await?;
            lab.open("slow");
        }
        run.wait(slow.outcome()).await??;
        exactly(run, None, slow.id()).await
    };
    assert_eq!(everywhere(drive)?, 2);
    Ok(())
}

#[test]
fn e_115_a_rollback_that_failed_stays_so_however_it_crashes() -> Tested {
    let root = failing("f", 1).undo(1, UndoAct::FailUntil("repaired".to_owned()));
    let drive = async |lab: &Lab, run: &Run| {
        let id = submit(run, Once(root.clone()), "k").await?.id();
        loop {
            run.settle().await;
            let status = run.executor.status(id).await?;
            if status.wait != Some(WaitReason::RollbackFailed) {
                break;
            }
            exactly(run, Some(Rule::RollbackFailed), id).await?;
            lab.open("repaired");
            run.executor.retry_undo(id, by("r")).await?;
        }
        run.wait(run.executor.outcome(id)).await??;
        exactly(run, None, id).await
    };
    // Submit, the stage, the attempt of its undo, the operator, the undo.
    assert_eq!(everywhere(drive)?, 5);
    Ok(())
}

fn held(name: &str) -> Plan {
    plan(name, [Act::Held(name.to_owned(), Box::new(Act::Done(1)))])
}

/// How often one was passed is not on the disk, and a start queues up by priority: one is starved again
/// when as many who came in this life went before it.
#[test]
fn e_115_starved_is_who_was_passed_in_this_life() -> Tested {
    let live = |world: &World, lab: &Lab, plan: FaultPlan| {
        world.run(
            plan,
            |builder| set_up(lab, builder),
            async |run| {
                submit(run, Limited(held("h0")), "h0").await?;
                let low = submit(run, Limited(held("low").priority(-1)), "low").await?;
                let mut passed = 0;
                for number in 1..=3 {
                    let (name, before) = (format!("h{number}"), run.store.commits());
                    let high = submit(run, Limited(held(&name).priority(5)), &name).await?;
                    let is_born = run.store.commits() > before;
                    run.settle().await;
                    let status = run.executor.status(high.id()).await?;
                    passed += usize::from(is_born && matches!(status.wait, Some(WaitReason::Permit(_))));
                    lab.open(&format!("h{}", number - 1));
                    run.settle().await;
                    exactly(run, (passed >= 3).then_some(Rule::Starved), low.id()).await?;
                }
                lab.open("h3");
                lab.open("low");
                run.wait(low.outcome()).await??;
                exactly(run, None, low.id()).await?;
                Ok(run.store.commits())
            },
        )
    };
    let commits = live(&World::new(), &Lab::default(), FaultPlan::none())?.done()?;
    for commit in 1..commits {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let (world, lab) = (World::new(), Lab::default());
            let lives = || {
                let ended = live(&world, &lab, FaultPlan::at(commit, fault))?;
                assert!(matches!(ended, Ended::Crashed), "commit {commit}, {fault:?}");
                live(&world, &lab, FaultPlan::none())?.done()
            };
            lives().map_err(|why| format!("commit {commit}, {fault:?}: {why}"))?;
        }
    }
    // Five submissions, five ends, and four grants after waiting.
    assert_eq!(commits, 1 + 14);
    Ok(())
}

#[test]
fn e_115_without_code_is_found_by_each_start() -> Tested {
    let id = ProcedureId::root(1);
    let submitted = || {
        let (world, lab) = (World::new(), Lab::default());
        super::kit::live_in(&world, &lab, FaultPlan::none(), async |run| {
            let root = plan("w", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
            submit(run, Limited(root), "k").await?;
            run.settle().await;
            Ok(())
        })?;
        Ok((world, lab))
    };
    let without = |lab: &Lab, builder: Builder| builder.register::<Planned>(lab.clone());
    let drive = async |_: &Lab, run: &Run, _: usize| exactly(run, Some(Rule::Quarantined), id).await;
    // The start's own.
    assert_eq!(enumerate_later(submitted, without, drive, |_, _| Ok(()))?, 1);

    let set_aside = || {
        let (world, lab) = submitted()?;
        let quarantined = async |run: &Run| exactly(run, Some(Rule::Quarantined), id).await;
        world.run(FaultPlan::none(), |builder| without(&lab, builder), quarantined)?;
        Ok((world, lab))
    };
    let drive = async |_: &Lab, run: &Run, _: usize| {
        exactly(run, None, id).await?;
        // It may have ended, or been told, in an earlier life.
        run.executor.signal(id, "go", &1_i64).key("go").await.ok();
        run.wait(run.executor.outcome(id)).await??;
        exactly(run, None, id).await
    };
    // The start's own, the signal, the end.
    assert_eq!(enumerate_later(set_aside, set_up, drive, |_, _| Ok(()))?, 3);
    Ok(())
}

#[test]
fn e_115_poison_stays_so_until_it_is_resumed() -> Tested {
    let id = ProcedureId::root(1);
    let with = |process: &Process, builder| set_up(&process.lab, builder).register::<Deadly>(process.clone());
    let prepare = || {
        let (world, process) = (World::new(), Process::default());
        for _ in 0..3 {
            let ended = world.run(
                FaultPlan::none(),
                |builder| with(&process, builder),
                async |run| {
                    submit(run, Deadly, "k").await?;
                    process.arm(run);
                    run.until("it dies", || false).await
                },
            )?;
            assert!(matches!(ended, Ended::Crashed));
        }
        Ok((world, process))
    };
    let drive = async |process: &Process, run: &Run, crashes: usize| {
        run.settle().await;
        let poisoned = run.executor.status(id).await?.wait == Some(WaitReason::Poison);
        // The start that finds it poison is crashed, or the resumption, or what it let go on.
        assert!(poisoned || crashes > 0);
        exactly(run, poisoned.then_some(Rule::Poison), id).await?;
        process.lab.open("cured");
        if poisoned {
            let key = format!("resume {crashes}");
            run.executor.resume(PauseScope::One(id), by(&key)).await?;
        }
        run.wait(run.executor.outcome(id)).await??;
        exactly(run, None, id).await
    };
    // The start's own, the resumption, the stage.
    assert_eq!(enumerate_later(prepare, with, drive, |_, _| Ok(()))?, 3);
    Ok(())
}

/// Whatever commit the store does not answer, or has no room for: it is told in that life, and in the next no more.
#[test]
fn e_115_a_store_that_was_slow_or_full_is_so_no_more_after_a_restart() -> Tested {
    for commit in 1..=3 {
        for (fault, rule) in [
            (Fault::Withhold, Rule::StoreSlow),
            (Fault::FailNoSpace, Rule::StoreFailed),
        ] {
            let (world, lab) = (World::new(), Lab::default());
            let ended = world.run(
                FaultPlan::at(commit, fault),
                |builder| set_up(&lab, builder),
                async |run| {
                    let executor = run.executor.clone();
                    let submitting = async move { executor.submit(Planned(chain("a", 2))).key("k").await };
                    actix_rt::spawn(async move { submitting.await.ok() });
                    run.pass(Duration::from_secs(5)).await;
                    assert_eq!(told(run).await?, [(rule, None)], "commit {commit}");
                    run.store.crash();
                    std::future::pending::<Tested>().await
                },
            )?;
            assert!(matches!(ended, Ended::Crashed));
            super::kit::live_in(&world, &lab, FaultPlan::none(), async |run| {
                assert_eq!(told(run).await?, [], "commit {commit}");
                let handle = submit(run, Planned(chain("a", 2)), "k").await?;
                assert_eq!(run.wait(handle.outcome()).await??, 7);
                exactly(run, None, handle.id()).await
            })?;
        }
    }
    Ok(())
}
