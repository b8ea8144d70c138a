//! The locks of an undo: taken again where they were given back, and shared by
//! a part of a family that rolls back, of which one undo runs at a time.

use procession::limits::LockNeed;
use procession::procedure::JoinPolicy;
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Handle, Procedure};

use super::kit::{at_rest, held, is_after, is_first_life, nothing_is_left, owners, submit, waiters};
use crate::lifecycle::kit::{enumerate_client, enumerate_in};
use crate::rollback::helper::rolled_back;
use crate::support::{Act, Holding, Lab, Planned, Tested, UndoAct, chain, kinds, plan, spawn};

#[test]
fn compensation_takes_the_locks_of_the_child_again() -> Tested {
    let child = chain("c", 1)
        .exclusive("t")
        .compensated()
        .undo(1, UndoAct::Held("undo".to_owned()));
    let root = plan("r", [spawn([child]), held("r2", Act::Fail("boom".to_owned()))]);
    let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
        let family = submit(run, Planned(root.clone()), "r").await?;
        run.settle().await;
        // A stranger has the lock when the child has given it back.
        let stranger = submit(run, Planned(plan("s", [held("s", Act::Done(1))]).exclusive("t")), "s").await?;
        run.settle().await;
        lab.open("r2");
        run.settle().await;
        if !lab.is_open("s") {
            assert!(!lab.has("c1'"), "{}", lab.line());
        }
        lab.open("s");
        run.wait(stranger.outcome()).await??;
        run.settle().await;
        if at_rest(run, family.id()).await?.ended.is_none() {
            let child = lab.id("c").ok_or("c has an id")?;
            assert_eq!(owners(run, "t").await?, [child]);
            assert_eq!(at_rest(run, child).await?.locks, [LockNeed::exclusive("t")]);
        }
        lab.open("undo");
        rolled_back(run.wait(family.outcome()).await?)?;
        is_after(lab, "s1", "c1'");
        nothing_is_left(run).await
    })?;
    assert_eq!(lab.line(), "r1 c1 r2 s1 r2' c1' r1'");
    // Two submissions, four stages, three undos, and the grant to the compensation.
    assert_eq!(done.commits, 2 + 4 + 3 + 1);
    Ok(())
}

/// A family whose child has given its lock back, a stranger who holds it until `s` is open, and one who came for it after
/// the undo of the child.
async fn queued(lab: &Lab, run: &Run) -> Result<[Handle<Planned>; 3], Trouble> {
    let child = chain("c", 1).exclusive("t").compensated();
    let root = plan("r", [spawn([child]), held("r2", Act::Fail("boom".to_owned()))]);
    let family = submit(run, Planned(root), "r").await?;
    run.settle().await;
    let stranger = plan("s", [held("s", Act::Done(1))]).exclusive("t");
    let stranger = submit(run, Planned(stranger), "s").await?;
    run.settle().await;
    lab.open("r2");
    run.settle().await;
    let late = submit(run, Planned(chain("late", 1).exclusive("t")), "late").await?;
    run.settle().await;
    Ok([family, stranger, late])
}

/// Lets the stranger go on, and waits for the ends of all.
async fn ended(lab: &Lab, run: &Run, [family, stranger, late]: [Handle<Planned>; 3]) -> Tested {
    lab.open("s");
    run.wait(stranger.outcome()).await??;
    rolled_back(run.wait(family.outcome()).await?)?;
    run.wait(late.outcome()).await??;
    nothing_is_left(run).await
}

#[test]
fn an_undo_that_waits_keeps_its_place_over_a_restart() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder: Builder| kinds(&lab, builder);
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            queued(&lab, run).await?;
            assert!(!lab.has("c1'") && !lab.has("late1"), "{}", lab.line());
            Ok::<_, Trouble>(())
        })?
        .done()?;
    world
        .run(FaultPlan::none(), set_up, async |run: &Run| {
            let handles = queued(&lab, run).await?;
            ended(&lab, run, handles).await
        })?
        .done()?;
    is_after(&lab, "c1'", "late1");
    Ok(())
}

#[test]
fn an_undo_that_waits_keeps_its_place_through_crashes() -> Tested {
    let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
        // What is given back before the stack of the undo has been read may go to one behind it.
        let is_taken = !lab.is_open("s");
        let handles = queued(lab, run).await?;
        ended(lab, run, handles).await?;
        if is_taken {
            is_after(lab, "c1'", "late1");
        }
        Ok(())
    })?;
    assert!(lab.line().contains("s1 r2' c1'"), "{}", lab.line());
    // Three submissions, five stages, three undos, and the grants to the compensation and to the one behind it.
    assert_eq!(done.commits, 3 + 5 + 3 + 2);
    Ok(())
}

/// The child that succeeded is kept, and its own child lives on. What that one compensates ends with the family, although
/// it stands below a success that is kept.
#[test]
fn compensation_below_a_kept_success_gives_its_locks_back() -> Tested {
    let deep = chain("g", 1).exclusive("t").compensated();
    let live = plan("p", [spawn([deep]), Act::Sleep(3_600_000), Act::Done(1)]);
    let kept = plan(
        "c",
        [Act::Spawn(vec![live], JoinPolicy::Named(vec![]), 1), Act::Done(1)],
    );
    let root = plan(
        "r",
        [
            spawn([kept]),
            Act::Wait("go".to_owned(), None),
            Act::Fail("boom".to_owned()),
        ],
    );
    let (done, lab) = enumerate_client(async |_: &Lab, run: &Run| {
        let family = submit(run, Planned(root.clone()), "r").await?;
        if at_rest(run, family.id()).await?.ended.is_none() {
            run.wait(run.executor.signal(family.id(), "go", &1_i64).key("go"))
                .await??;
        }
        rolled_back(run.wait(family.outcome()).await?)?;
        nothing_is_left(run).await
    })?;
    assert_eq!(lab.line(), "r1 c1 c2 p1 r2 g1 p2 r3 r3' p2' g1' r2' p1' r1'");
    // The submission, the signal, eight stages, six undos, and the grant to the compensation.
    assert_eq!(done.commits, 1 + 1 + 8 + 6 + 1);
    Ok(())
}

#[test]
fn siblings_of_one_lock_are_undone_though_the_failed_one_holds_it() -> Tested {
    let sleeper = plan("a", [Act::Sleep(3_600_000), Act::Done(1)]).exclusive("t");
    let failing = plan("b", [held("b", Act::Fail("boom".to_owned()))]).exclusive("t");
    for for_life in [false, true] {
        let failing = if for_life {
            failing.clone().holding()
        } else {
            failing.clone()
        };
        let root = plan("r", [spawn([sleeper.clone(), failing])]);
        let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
            let family = submit(run, Planned(root.clone()), "r").await?;
            run.settle().await;
            lab.open("b");
            rolled_back(run.wait(family.outcome()).await?)?;
            nothing_is_left(run).await
        })?;
        assert_eq!(lab.line(), "r1 a1 b1 b1' a1' r1'");
        // The submission, three stages and three undos, and two grants after waiting: B's and A's for its undo.
        assert_eq!(done.commits, 1 + 3 + 3 + 2);
    }
    Ok(())
}

#[test]
fn each_undo_runs_under_the_locks_of_its_stage() -> Tested {
    let moving = plan("a", [Act::Next, held("a2", Act::Fail("boom".to_owned()))])
        .exclusive_in(1, "x")
        .exclusive_in(2, "y");
    let of_x = plan("s", [held("s", Act::Done(1))]).exclusive("x");
    let of_y = plan("w", [Act::Done(1)]).exclusive("y");
    let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
        let family = submit(run, Planned(moving.clone()), "a").await?;
        run.settle().await;
        let holder = submit(run, Planned(of_x.clone()), "s").await?;
        run.settle().await;
        let waiter = submit(run, Planned(of_y.clone()), "w").await?;
        run.settle().await;
        lab.open("a2");
        run.settle().await;
        // After a crash those that had a stage out run one after the other, and the holder may be the first.
        if is_first_life(run).await? {
            // What the undone stage had is free, and the older stage waits for its own.
            run.wait(waiter.outcome()).await??;
            assert!(!lab.has("a1'"), "{}", lab.line());
            assert_eq!(waiters(run, "x").await?, [family.id()]);
        }
        lab.open("s");
        run.wait(holder.outcome()).await??;
        rolled_back(run.wait(family.outcome()).await?)?;
        run.wait(waiter.outcome()).await??;
        is_after(lab, "a2'", "w1");
        is_after(lab, "s1", "a1'");
        nothing_is_left(run).await
    })?;
    assert_eq!(lab.line(), "a1 a2 s1 a2' w1 a1'");
    // Three submissions, four stages, two undos, and the grants to the waiter and to the undo.
    assert_eq!(done.commits, 3 + 4 + 2 + 2);
    Ok(())
}

/// Aborts a procedure that has run one stage under `x` and waits for `y`, which another has. It is undone before that gives
/// `y` back.
async fn undone_while_it_waits_for_y<P: Procedure>(lab: &Lab, run: &Run, moving: P) -> Tested {
    let of_y = plan("s", [held("s", Act::Done(1))]).exclusive("y");
    let holder = submit(run, Planned(of_y), "s").await?;
    run.settle().await;
    let family = submit(run, moving, "a").await?;
    run.settle().await;
    let hangs = procession::operate::OperatorRequest::new("ann", "it hangs");
    run.wait(run.executor.abort(family.id(), hangs)).await?.ok();
    if !is_first_life(run).await? {
        lab.open("s");
    }
    rolled_back(run.wait(family.outcome()).await?)?;
    assert!(waiters(run, "y").await?.is_empty());
    lab.open("s");
    run.wait(holder.outcome()).await??;
    nothing_is_left(run).await
}

#[test]
fn an_undo_waits_for_none_of_the_locks_of_the_stage_to_come() -> Tested {
    let moving = plan("a", [Act::Next, Act::Done(1)])
        .exclusive_in(1, "x")
        .exclusive_in(2, "y");
    let (_, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
        undone_while_it_waits_for_y(lab, run, Planned(moving.clone())).await
    })?;
    assert_eq!(lab.line(), "s1 a1 a1'");
    Ok(())
}

#[test]
fn a_compensation_takes_all_that_its_child_held_for_life() -> Tested {
    let child = plan("c", [Act::Next, Act::Done(1)])
        .exclusive_in(1, "x")
        .exclusive_in(2, "y")
        .holding()
        .compensated();
    let root = plan("r", [spawn([child]), held("r2", Act::Fail("boom".to_owned()))]);
    let of_x = plan("s", [held("s", Act::Done(1))]).exclusive("x");
    let (_, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
        let family = submit(run, Planned(root.clone()), "r").await?;
        run.settle().await;
        let holder = submit(run, Planned(of_x.clone()), "s").await?;
        run.settle().await;
        lab.open("r2");
        run.settle().await;
        if !lab.is_open("s") {
            assert!(!lab.has("c2'"), "{}", lab.line());
        }
        lab.open("s");
        run.wait(holder.outcome()).await??;
        rolled_back(run.wait(family.outcome()).await?)?;
        is_after(lab, "s1", "c2'");
        nothing_is_left(run).await
    })?;
    assert_eq!(lab.line(), "r1 c1 c2 r2 s1 r2' c2' c1' r1'");
    Ok(())
}

/// What its next stage waited for is no matter of its undo, not even beside a permit that the undo asks for.
#[test]
fn an_undo_of_one_that_holds_for_life_asks_for_its_permit_alone() -> Tested {
    let moving = plan("a", [Act::Next, Act::Done(1)])
        .limited_in(1, "cards")
        .exclusive_in(1, "x")
        .exclusive_in(2, "y")
        .holding();
    let one_card = |lab: &Lab, builder: Builder| kinds(lab, builder).limit("cards", 1);
    let (_, lab) = enumerate_in(Lab::default, one_card, async |lab: &Lab, run: &Run| {
        undone_while_it_waits_for_y(lab, run, Holding(moving.clone())).await
    })?;
    assert_eq!(lab.line(), "s1 a1 a1'");
    Ok(())
}
