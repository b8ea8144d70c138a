//! A pause meets what waits for something else: the wait ends as ever, and then it is held back.

use std::time::Duration;

use procession::errors::AskError;
use procession::operate::{OperatorRequest, PauseScope};
use procession::status::{ProcedureState as State, WaitReason};
use procession::testkit::{FaultPlan, Run, World};

use super::pause::{by, pause, paused, resume};
use crate::rollback::helper::{enumerate_client, rolled_back, submit};
use crate::support::{Act, Lab, Limited, Planned, Tested, chain, kinds, live, plan, spawn};

#[test]
fn a_signal_is_kept_and_seen_after_the_resume() -> Tested {
    let root = plan(
        "a",
        [
            Act::Wait("go".to_owned(), Some(10_000)),
            Act::Seen(Box::new(Act::Done(1))),
        ],
    );
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.settle().await;
        let one = PauseScope::One(handle.id());
        pause(run, &one).await?;
        match run
            .wait(run.executor.signal(handle.id(), "go", &5_i64).key("go"))
            .await?
        {
            Ok(_) | Err(AskError::Finished { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if !lab.is_open("resumed") {
            run.pass(Duration::from_secs(60)).await;
            assert!(paused(run, handle.id()).await?);
        }
        lab.open("resumed");
        resume(run, &one).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (6, "a1 a2"));
    assert_eq!(lab.noted(), ["a2 saw 5"]);
    Ok(())
}

#[test]
fn a_parent_whose_children_end_meanwhile_goes_on_at_the_resume() -> Tested {
    let child = plan("c", [Act::Sleep(1_000), Act::Done(1)]);
    let root = plan("r", [spawn([child]), Act::See(Box::new(Act::Done(1)))]);
    let kind = PauseScope::Kind(procession::procedure::Kind::from("patient"));
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, crate::support::Patient(root.clone()), "r").await?;
        run.settle().await;
        pause(run, &kind).await?;
        if !lab.is_open("resumed") {
            run.pass(Duration::from_secs(60)).await;
            assert!(paused(run, handle.id()).await?);
            assert_eq!(
                lab.line().matches("c2").count().min(1),
                1,
                "the child is of another kind"
            );
        }
        lab.open("resumed");
        resume(run, &kind).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })?;
    // Submit, r1, c1, pause, c's wake, c2, resume, r2.
    assert_eq!((done.commits, lab.line().as_str()), (8, "r1 c1 c2 r2"));
    Ok(())
}

#[test]
fn an_abort_of_what_is_paused_rolls_back_at_the_resume() -> Tested {
    let root = plan("a", [Act::Next, Act::Sleep(60_000), Act::Done(1)]);
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.settle().await;
        let one = PauseScope::One(handle.id());
        pause(run, &one).await?;
        run.wait(run.executor.abort(handle.id(), by("abort"))).await??;
        run.settle().await;
        if !lab.is_open("resumed") {
            let status = handle.status().await?;
            assert_eq!((status.state, status.wait), (State::Failed, Some(WaitReason::Paused)));
            assert_eq!(lab.count("a2'"), 0);
        }
        lab.open("resumed");
        resume(run, &one).await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        Ok(())
    })?;
    // Submit, two stages, pause, abort, its undo is held back, resume, two undos.
    assert_eq!((done.commits, lab.line().as_str()), (9, "a1 a2 a2' a1'"));
    Ok(())
}

/// It has its turn for a permit while it is paused, and keeps it (`Hold::ForLife`).
#[test]
fn one_that_waits_for_a_permit() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| kinds(&lab, builder).limit("limited", 1);
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let held = plan("h", [Act::Held("h".to_owned(), Box::new(Act::Done(1)))]);
            let holder = submit(run, Limited(held), "h").await?;
            let waiter = submit(run, Limited(chain("w", 1)), "w").await?;
            run.settle().await;
            let one = PauseScope::One(waiter.id());
            pause(run, &one).await?;
            lab.open("h");
            run.wait(holder.outcome()).await??;
            run.settle().await;
            assert!(paused(run, waiter.id()).await?);
            resume(run, &one).await?;
            assert_eq!(run.wait(waiter.outcome()).await??, 7);
            let used: u32 = run.executor.limits().await?.iter().map(|limit| limit.used).sum();
            assert_eq!(used, 0);
            Ok(())
        })?
        .done()
}

/// Those that share a limit start at the resume as many as the limit says, in order.
#[test]
fn at_the_resume_of_a_limited_kind_the_limit_still_holds() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| kinds(&lab, builder).limit("limited", 1);
    let kind = PauseScope::Kind(procession::procedure::Kind::from("limited"));
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            pause(run, &kind).await?;
            let mut handles = Vec::new();
            for name in ["a", "b", "c"] {
                handles.push(submit(run, Limited(chain(name, 2)), name).await?);
            }
            run.settle().await;
            assert_eq!(lab.line(), "");
            resume(run, &kind).await?;
            for handle in &handles {
                run.wait(handle.outcome()).await??;
            }
            Ok(())
        })?
        .done()?;
    assert_eq!(lab.line(), "a1 a2 b1 b2 c1 c2");
    Ok(())
}

/// A lock that is held for the stage alone goes back while it is paused.
#[test]
fn a_paused_one_keeps_no_lock_of_a_stage() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let acts = [Act::Held("a".to_owned(), Box::new(Act::Next)), Act::Done(1)];
        let a = submit(run, Planned(plan("a", acts).exclusive("t")), "a").await?;
        let b = submit(run, Planned(plan("b", [Act::Done(2)]).exclusive("t")), "b").await?;
        run.settle().await;
        let one = PauseScope::One(a.id());
        run.executor
            .pause(one.clone(), OperatorRequest::new("ann", "look first"))
            .await?;
        lab.open("a");
        assert_eq!(run.wait(b.outcome()).await??, 2);
        assert!(paused(run, a.id()).await?);
        run.executor.resume(one, OperatorRequest::new("ann", "seen")).await?;
        assert_eq!(run.wait(a.outcome()).await??, 1);
        assert_eq!(run.executor.locks().await?.len(), 0);
        Ok(())
    })?;
    assert_eq!(lab.line(), "a1 b1 a2");
    Ok(())
}
