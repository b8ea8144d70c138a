//! Locks and families: descendants enter what an ancestor holds, and a parent
//! that holds nothing while it waits keeps nobody out.

use procession::testkit::Run;

use super::kit::{at_rest, held, is_after, nothing_is_left, owners, submit, waiters};
use crate::lifecycle::kit::enumerate_client;
use crate::support::{Act, Holding, Lab, Plan, Planned, Tested, chain, plan, spawn};

/// A root that holds `t`, with this child; a stranger waits. The bodies named are let end in this order.
async fn enters(lab: &Lab, run: &Run, child: Plan, bodies: &[&str]) -> Tested {
    let root = plan("r", [spawn([child]), held("r2", Act::Done(7))]).exclusive("t");
    let root = submit(run, Holding(root), "r").await?;
    let stranger = submit(run, Planned(chain("s", 1).exclusive("t")), "s").await?;
    for body in bodies {
        let over = at_rest(run, root.id()).await?.ended.is_some();
        if !over && !lab.is_open(body) {
            run.until("it runs though the root holds", || lab.has(body)).await?;
            assert!(owners(run, "t").await?.contains(&root.id()));
            assert_eq!(
                waiters(run, "t").await?,
                [stranger.id()],
                "the end of a member wakes nobody"
            );
            assert!(!lab.has("s1"));
        }
        lab.open(body);
    }
    run.wait(root.outcome()).await??;
    run.wait(stranger.outcome()).await??;
    is_after(lab, "r2", "s1");
    nothing_is_left(run).await
}

#[test]
fn e_070_a_child_enters_what_its_parent_holds() -> Tested {
    let child = plan("c", [held("c1", Act::Done(1))]).exclusive("t");
    let (done, lab) =
        enumerate_client(async |lab: &Lab, run: &Run| enters(lab, run, child.clone(), &["c1", "r2"]).await)?;
    assert_eq!(lab.line(), "r1 c1 r2 s1");
    // Two submissions, four stages, and one grant after waiting: the child's rides in the spawn.
    assert_eq!(done.commits, 2 + 4 + 1);
    Ok(())
}

#[test]
fn e_070_a_grandchild_enters_what_the_root_holds() -> Tested {
    let grandchild = plan("g", [held("g1", Act::Done(1))]).exclusive("t");
    let child = plan("c", [spawn([grandchild]), held("c2", Act::Done(1))]);
    let (done, lab) =
        enumerate_client(async |lab: &Lab, run: &Run| enters(lab, run, child.clone(), &["g1", "c2", "r2"]).await)?;
    assert_eq!(lab.line(), "r1 c1 g1 c2 r2 s1");
    assert_eq!(done.commits, 2 + 6 + 1);
    Ok(())
}

#[test]
fn e_070_two_descendants_exclude_each_other() -> Tested {
    let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
        let first = plan("c", [held("c1", Act::Done(1))]).exclusive("t");
        let root = plan("r", [spawn([first, chain("d", 1).exclusive("t")]), Act::Done(7)]).exclusive("t");
        let root = submit(run, Holding(root), "r").await?;
        run.settle().await;
        assert!(lab.is_open("c1") || !lab.has("d1"));
        lab.open("c1");
        run.wait(root.outcome()).await??;
        is_after(lab, "c1", "d1");
        nothing_is_left(run).await
    })?;
    assert_eq!(lab.line(), "r1 c1 d1 r2");
    assert_eq!(done.commits, 1 + 4 + 1);
    Ok(())
}

#[test]
fn e_073_a_waiting_parent_that_does_not_hold_keeps_nobody_out() -> Tested {
    let child = plan("c", [Act::Sleep(600_000), Act::Done(1)]);
    let parent = plan("p", [held("p", spawn([child])), Act::Done(7)]).exclusive("t");
    let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
        let first = submit(run, Planned(parent.clone()), "p").await?;
        let stranger = submit(run, Planned(chain("s", 1).exclusive("t")), "s").await?;
        lab.open("p");
        // No time has passed: the child sleeps, and its parent waits for it.
        let status = at_rest(run, first.id()).await?;
        if run.now().0 == 0 {
            assert_eq!(status.locks, []);
            assert!(at_rest(run, stranger.id()).await?.ended.is_some());
            assert_eq!(run.executor.locks().await?, []);
        }
        run.wait(first.outcome()).await??;
        run.wait(stranger.outcome()).await??;
        nothing_is_left(run).await
    })?;
    assert_eq!(lab.line(), "p1 c1 s1 c2 p2");
    // Two submissions, five stages, the time, the stranger's grant, and the
    // parent's: it gave its lock back, so it is ready first, and granted then.
    assert_eq!(done.commits, 2 + 5 + 1 + 1 + 1);
    Ok(())
}
