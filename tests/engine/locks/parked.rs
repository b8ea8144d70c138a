//! Those who are parked for a lock when their family fails or is aborted: they
//! leave the queue, and the lock goes to the next.

use procession::ProcedureId;
use procession::operate::AbortAnswer;
use procession::status::CauseKind;
use procession::testkit::Run;

use super::kit::{at_rest, for_lock, held, holder, nothing_is_left, submit, waiters};
use crate::lifecycle::kit::enumerate_client;
use crate::rollback::helper::rolled_back;
use crate::support::{Act, Holding, Lab, Planned, Tested, UndoAct, chain, plan, spawn};

/// The stranger ends after the family has rolled back, or while it does.
async fn sibling_fails(lab: &Lab, run: &Run, while_undone: bool) -> Tested {
    // It is parked, and no suspect however many crashes come.
    let waiting = plan("x", [Act::Wait("go".to_owned(), None), Act::Done(7)]);
    let stranger = submit(run, Holding(waiting.exclusive("t")), "x").await?;
    let let_go = async || run.wait(run.executor.signal(stranger.id(), "go", &1).key("go")).await;
    let failing = plan("b", [held("b", Act::Fail("boom".to_owned()))]).undo(1, UndoAct::Held("undo".to_owned()));
    let queued = chain("l", 1).exclusive("t");
    let family = submit(run, Planned(plan("r", [spawn([queued, failing])])), "r").await?;
    run.settle().await;
    let next = submit(run, Planned(chain("n", 1).exclusive("t")), "n").await?;
    if lab.has("b1") && !lab.is_open("b") {
        assert_eq!(waiters(run, "t").await?.len(), 2);
    }
    lab.open("b");
    run.settle().await;
    if while_undone {
        // In a later life it may have ended already.
        let_go().await?.ok();
        run.wait(next.outcome()).await??;
        assert!(lab.is_open("undo") || run.executor.status(family.id()).await?.ended.is_none());
    }
    if lab.has("b1'") && !lab.is_open("undo") {
        // It left the queue when its family failed, and no start brings it back.
        let queued = ProcedureId::new(family.id().family, 1);
        assert!(!waiters(run, "t").await?.contains(&queued));
    }
    lab.open("undo");
    rolled_back(run.wait(family.outcome()).await?)?;
    let_go().await?.ok();
    run.wait(stranger.outcome()).await??;
    run.wait(next.outcome()).await??;
    assert!(!lab.has("l1") && !lab.has("l1'"), "{}", lab.line());
    nothing_is_left(run).await
}

#[test]
fn e_032_a_sibling_queued_for_a_lock_stops() -> Tested {
    for while_undone in [false, true] {
        let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| sibling_fails(lab, run, while_undone).await)
            .map_err(|why| format!("while it is undone: {while_undone}: {why}"))?;
        assert_eq!(lab.count("b1'"), 1);
        // Three submissions, five stages, the signal, two undos, and the grant of the next.
        assert_eq!(done.commits, 3 + 5 + 1 + 2 + 1);
    }
    Ok(())
}

#[test]
fn e_051_abort_of_one_parked_for_a_lock() -> Tested {
    let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
        let stranger = submit(run, Planned(holder("x", "t")), "x").await?;
        let a = submit(run, Planned(chain("a", 2).exclusive("t")), "a").await?;
        let status = at_rest(run, a.id()).await?;
        if status.cause.is_none() {
            assert_eq!(status.wait, for_lock("t"));
            let answer = run
                .wait(
                    run.executor
                        .abort(a.id(), procession::operate::OperatorRequest::new("ann", "not now")),
                )
                .await??;
            assert_eq!(answer.abort, Some(AbortAnswer::WillRollBack));
        }
        let (cause, _) = rolled_back(run.wait(a.outcome()).await?)?;
        assert_eq!(cause.kind, CauseKind::Aborted);
        assert!(waiters(run, "t").await?.is_empty());
        lab.open("x");
        run.wait(stranger.outcome()).await??;
        nothing_is_left(run).await
    })?;
    assert_eq!(lab.line(), "x1");
    // Two of the stranger's, and two of the one that is aborted.
    assert_eq!(done.commits, 2 + 2);
    Ok(())
}
