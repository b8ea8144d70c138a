//! The locks of an undo: taken again where they were given back, and shared by
//! a part of a family that rolls back, of which one undo runs at a time.

use procession::LockNeed;
use procession::testkit::Run;

use super::kit::{at_rest, held, is_after, nothing_is_left, owners, submit};
use crate::lifecycle::kit::enumerate_client;
use crate::rollback::helper::rolled_back;
use crate::support::{Act, Lab, Planned, Tested, UndoAct, chain, plan, spawn};

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
