//! Undos that fail: tried again for the same stage, then parked for an operator.

use std::time::Duration;

use procession::Handle;
use procession::errors::AskError;
use procession::operate::{BypassAs, BypassScope, OperatorRequest};
use procession::status::{Ending, WaitReason};
use procession::testkit::{Fault, FaultPlan, Run, Trouble, World};

use super::helper::{at_rest, commits, enumerate_client, is_parked, lives, rolled_back, submit};
use crate::support::{
    Act, Holding, Lab, Patient, Plan, Planned, Tested, UndoAct, chain, enumerate_plan, failing, kinds, live, live_in,
    plan,
};

fn seconds(run: &Run) -> u64 {
    run.now().0 / 1_000_000
}

#[test]
fn e_034_a_failing_undo_is_tried_again_for_the_same_stage() -> Tested {
    let root = failing("a", 3).undo(3, UndoAct::Fail(3));
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Patient(root.clone()), "k").await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(seconds(run), 1 + 2 + 4, "the backoffs, however often it crashed");
        Ok(())
    })?;
    assert_eq!(
        (done.commits, lab.line().as_str()),
        (13, "a1 a2 a3 a3' a3' a3' a3' a2' a1'")
    );
    let attempts: Vec<u32> = lab
        .calls()
        .iter()
        .filter(|call| call.undo)
        .map(|call| call.attempt)
        .collect();
    assert_eq!(attempts, [1, 2, 3, 4, 1, 1]);
    Ok(())
}

#[test]
fn e_034_a_crash_in_every_backoff_adds_no_attempt() -> Tested {
    let root = failing("a", 3).undo(3, UndoAct::Fail(3));
    // Behind each failed undo: commit 5 of the first life, 2 of those after it.
    let lab = Lab::default();
    let faults = [(5, Fault::CrashAfter), (2, Fault::CrashAfter), (2, Fault::CrashAfter)];
    let (crashes, time) = lives(&faults, &lab, async |run| {
        let handle = submit(run, Patient(root.clone()), "k").await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        Ok(seconds(run))
    })?;
    assert_eq!(
        (crashes, time, lab.line().as_str()),
        (3, 7, "a1 a2 a3 a3' a3' a3' a3' a2' a1'")
    );
    Ok(())
}

/// Fails in its third stage; the second's undo fails, once by error and twice by panic, until the gate `repaired` is open.
fn stuck() -> Plan {
    failing("a", 3).undo(2, UndoAct::FailThenPanicUntil("repaired".to_owned()))
}

/// Submits it and waits until it is parked.
async fn parked(run: &Run, plan: &Plan) -> Result<Handle<Planned>, Trouble> {
    let handle = submit(run, Planned(plan.clone()), "k").await?;
    run.pass(Duration::from_secs(60)).await;
    Ok(handle)
}

/// Whether each entry stands, oldest first: as a whole history says it, and as pages of each size do.
async fn standing(run: &Run, handle: &Handle<Planned>) -> Result<Vec<bool>, Trouble> {
    let whole = run.executor.history(handle.id()).await?;
    let whole: Vec<bool> = whole.iter().map(|entry| entry.stands).collect();
    for limit in 1..=whole.len() {
        let (mut paged, mut before) = (Vec::new(), None);
        loop {
            let page = run.executor.history_page(handle.id(), before, limit).await?;
            paged.extend(page.entries.iter().map(|entry| entry.stands));
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        paged.reverse();
        assert_eq!(paged, whole, "in pages of {limit}");
    }
    Ok(whole)
}

/// The entry of a stage stays as it is when the stage is undone: only the entry of the undo says so.
#[test]
fn what_stands_is_told_alike_by_a_whole_history_and_by_its_pages() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let handle = parked(run, &stuck()).await?;
        // Three stages, the undo of the third, three attempts at that of the second.
        let expected = [true, true, false, false, false, false, false];
        assert_eq!(standing(run, &handle).await?, expected);
        Ok(())
    })?;
    live_in(&world, &lab, async |run| {
        let handle = parked(run, &stuck()).await?;
        lab.open("repaired");
        run.wait(
            run.executor
                .skip_undo(handle.id(), OperatorRequest::new("ann", "done by hand")),
        )
        .await??;
        rolled_back(run.wait(handle.outcome()).await?)?;
        assert!(!standing(run, &handle).await?.contains(&true));
        Ok(())
    })?;
    Ok(())
}

/// Of the attempts of a stage the newest stands, though a page may end between them.
#[test]
fn what_stands_is_told_alike_of_stages_that_were_tried_again() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let again = || Act::Retry(2, Box::new(Act::Next));
        let later = Act::RetryAfter(vec![Some(1_000), Some(3_600_000)], Box::new(Act::Next));
        let handle = parked(run, &plan("a", [again(), again(), later])).await?;
        let again = [false, false, true];
        assert_eq!(
            standing(run, &handle).await?,
            [&again[..], &again, &[false, true]].concat()
        );
        Ok(())
    })?;
    Ok(())
}

/// The row of one that an operator bypasses does not say that it has failed before.
#[test]
fn what_stands_is_told_alike_behind_a_bypass() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let handle = parked(run, &stuck()).await?;
        let by = OperatorRequest::new("ann", "it is well as it is");
        let bypass = run
            .executor
            .bypass(handle.id(), BypassScope::Alone, BypassAs::Success, by);
        run.wait(bypass).await??;
        let standing = standing(run, &handle).await?;
        assert_eq!(standing.get(..3), Some(&[true, true, false][..]));
        Ok(())
    })?;
    Ok(())
}

/// Parks, restarts twice, and is ended by an operator; gives the calls.
fn parked_and_ended(plan: &Plan, retry: bool) -> Result<Lab, Trouble> {
    let (world, lab) = (World::new(), Lab::default());
    for life in 0..2 {
        live_in(&world, &lab, async |run| {
            let handle = parked(run, plan).await?;
            assert!(is_parked(&at_rest(run, handle.id()).await?), "in life {life}");
            assert_eq!(commits(run).await?, if life == 0 { 10 } else { 0 });
            assert_eq!(
                (lab.count("a2'"), lab.count("a1'")),
                (3, 0),
                "no attempt after the restart"
            );
            Ok(())
        })?;
    }
    live_in(&world, &lab, async |run| {
        let handle = parked(run, plan).await?;
        lab.open("repaired");
        let id = handle.id();
        if retry {
            run.wait(
                run.executor
                    .retry_undo(id, OperatorRequest::new("ann", "it is repaired")),
            )
            .await??;
        } else {
            run.wait(run.executor.skip_undo(id, OperatorRequest::new("ann", "done by hand")))
                .await??;
        }
        let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(cause.text, "boom");
        let history = run.executor.history(id).await?;
        let skipped: Vec<_> = history
            .iter()
            .filter(|entry| entry.ending == Ending::UndoSkipped)
            .collect();
        let said: Vec<_> = skipped.iter().filter_map(|entry| entry.error.as_deref()).collect();
        assert_eq!(
            said,
            if retry {
                vec![]
            } else {
                vec!["skipped by ann: done by hand"]
            }
        );
        let again = run
            .wait(run.executor.retry_undo(id, OperatorRequest::new("ann", "once more")))
            .await?;
        assert!(matches!(again, Err(AskError::Finished { .. })), "{again:?}");
        Ok(())
    })?;
    Ok(lab)
}

#[test]
fn e_035_undo_attempts_used_up_are_parked_never_skipped() -> Tested {
    assert_eq!(
        parked_and_ended(&stuck(), true)?.line(),
        "a1 a2 a3 a3' a2' a2' a2' a2' a1'"
    );
    assert_eq!(
        parked_and_ended(&stuck(), false)?.line(),
        "a1 a2 a3 a3' a2' a2' a2' a1'"
    );
    Ok(())
}

#[test]
fn e_035_panics_of_an_undo_use_up_its_attempts() -> Tested {
    let plan = failing("a", 3).undo(2, UndoAct::Panic(3));
    let lab = parked_and_ended(&plan, false)?;
    assert_eq!(lab.line(), "a1 a2 a3 a3' a2' a2' a2' a1'");
    Ok(())
}

#[test]
fn e_035_a_parked_rollback_keeps_its_locks() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    for _ in 0..2 {
        live_in(&world, &lab, async |run| {
            let stuck = submit(run, Holding(stuck().exclusive("t")), "k").await?;
            let stranger = submit(run, Planned(chain("b", 1).exclusive("t")), "b").await?;
            run.pass(Duration::from_secs(60)).await;
            assert!(is_parked(&at_rest(run, stuck.id()).await?));
            let locks = run.executor.locks().await?;
            let holders: Vec<_> = locks.iter().flat_map(|lock| &lock.holders).map(|(id, _)| *id).collect();
            assert_eq!(holders, [stuck.id()]);
            let wait = stranger.status().await?.wait;
            assert!(matches!(wait, Some(WaitReason::Lock(_))), "{wait:?}");
            Ok(())
        })?;
    }
    live_in(&world, &lab, async |run| {
        let stuck = submit(run, Holding(stuck().exclusive("t")), "k").await?;
        let stranger = submit(run, Planned(chain("b", 1).exclusive("t")), "b").await?;
        let skipped = run
            .executor
            .skip_undo(stuck.id(), OperatorRequest::new("ann", "done by hand"));
        run.wait(skipped).await??;
        rolled_back(run.wait(stuck.outcome()).await?)?;
        assert_eq!(run.wait(stranger.outcome()).await??, 7);
        assert_eq!(run.executor.locks().await?, []);
        assert_eq!(lab.line(), "a1 a2 a3 a3' a2' a2' a2' a1' b1", "the stranger comes last");
        Ok(())
    })
}

#[test]
fn e_035_a_parked_rollback_keeps_its_permit() -> Tested {
    let lab = Lab::default();
    let set_up = |builder| kinds(&lab, builder).limit("limited", 1);
    let used = async |run: &Run| -> Result<u32, Trouble> {
        run.settle().await;
        Ok(run.executor.limits().await?.iter().map(|limit| limit.used).sum())
    };
    let world = World::new();
    for _ in 0..2 {
        let ended = world.run(FaultPlan::none(), set_up, async |run| {
            submit(run, crate::support::Limited(stuck()), "k").await?;
            run.pass(Duration::from_secs(60)).await;
            assert_eq!(used(run).await?, 1);
            Ok(())
        })?;
        ended.done()?;
    }
    let ended = world.run(FaultPlan::none(), set_up, async |run| {
        let handle = submit(run, crate::support::Limited(stuck()), "k").await?;
        run.settle().await;
        run.wait(
            run.executor
                .skip_undo(handle.id(), OperatorRequest::new("ann", "done by hand")),
        )
        .await??;
        rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(used(run).await?, 0);
        Ok(())
    })?;
    ended.done()
}

#[test]
fn e_035_crashes_around_the_operator() -> Tested {
    for retry in [true, false] {
        enumerate_client(async |lab, run| {
            let short = failing("a", 1).undo(1, UndoAct::FailUntil("repaired".to_owned()));
            let handle = parked(run, &short).await?;
            let status = at_rest(run, handle.id()).await?;
            if is_parked(&status) {
                lab.open("repaired");
                if retry {
                    run.wait(
                        run.executor
                            .retry_undo(handle.id(), OperatorRequest::new("ann", "repaired")),
                    )
                    .await??;
                } else {
                    run.wait(
                        run.executor
                            .skip_undo(handle.id(), OperatorRequest::new("ann", "by hand")),
                    )
                    .await??;
                }
            }
            rolled_back(run.wait(handle.outcome()).await?)?;
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn e_039_undo_per_stage_none_skipped() -> Tested {
    let root = failing("a", 3)
        .undo(1, UndoAct::Fail(1))
        .undo(2, UndoAct::Fail(1))
        .undo(3, UndoAct::Fail(1));
    let (done, lab) = enumerate_plan(&root)?;
    assert_eq!(
        (done.commits, lab.line().as_str()),
        (13, "a1 a2 a3 a3' a3' a2' a2' a1' a1'")
    );
    live(&Lab::default(), async |run| {
        let handle = submit(run, Planned(root), "k").await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(seconds(run), 3);
        Ok(())
    })
}
