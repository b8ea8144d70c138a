//! Bypass of a family that rolls back: what is left of the rollback never runs.

use procession::ProcedureId;
use procession::errors::{AskError, NotNow, ProcedureError};
use procession::operate::{BypassAs, BypassScope, OperatorRequest};
use procession::procedure::JoinPolicy;
use procession::status::{Mark, ProcedureState as State};
use procession::testkit::Run;

use super::bypass::{bypass, bypass_as};
use crate::rollback::helper::{commits, enumerate_client, states, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, UndoAct, chain, failing, live, plan, spawn};

#[test]
fn what_is_left_of_a_rollback_never_runs() -> Tested {
    let root = failing("a", 3).undo(2, UndoAct::FailUntil("never".to_owned()));
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.settle().await;
        bypass(run, handle.id(), BypassScope::Alone).await?;
        assert!(matches!(
            run.wait(handle.outcome()).await?,
            Err(ProcedureError::Bypassed)
        ));
        run.pass(std::time::Duration::from_secs(60)).await;
        assert_eq!(handle.status().await?.state, State::Success);
        Ok(())
    })?;
    // Submit, three stages, an undo, one that fails, the bypass.
    assert_eq!((done.commits, lab.line().as_str()), (7, "a1 a2 a3 a3' a2'"));
    Ok(())
}

#[test]
fn an_undo_that_is_out_reports_too_late() -> Tested {
    let lab = Lab::default();
    let root = failing("a", 2).undo(2, UndoAct::Held("gate".to_owned()));
    live(&lab, async |run| {
        let handle = submit(run, Planned(root), "a").await?;
        run.until("the undo has begun", || lab.has("a2'")).await?;
        bypass(run, handle.id(), BypassScope::Alone).await?;
        let before = (commits(run).await?, run.executor.snapshot().await?.late);
        lab.open("gate");
        run.settle().await;
        let snapshot = run.executor.snapshot().await?;
        assert_eq!((snapshot.commits, snapshot.late), (before.0, before.1 + 1));
        assert_eq!((snapshot.live_families, snapshot.actors), (0, 0));
        Ok(())
    })?;
    assert_eq!(lab.line(), "a1 a2 a2'");
    Ok(())
}

/// The rollback above does not wait for the report of an undo that nobody hears any more.
#[test]
fn a_part_whose_undo_is_out_holds_up_no_rollback_above_it() -> Tested {
    let lab = Lab::default();
    let child = failing("c", 1).undo(1, UndoAct::Held("gate".to_owned()));
    let parent = plan("p", [Act::Spawn(vec![child], JoinPolicy::AllFinished, 0), Act::Done(1)]);
    let root = plan("r", [spawn([parent]), Act::Done(1)]);
    live(&lab, async |run| {
        let handle = submit(run, Planned(root), "r").await?;
        run.until("the undo has begun", || lab.has("c1'")).await?;
        let parent = ProcedureId::new(handle.id().family, 1);
        bypass_as(run, parent, BypassScope::Descendants, BypassAs::Failed).await?;
        run.settle().await;
        assert_eq!(
            states(run, handle.id()).await?,
            [State::RolledBack, State::Failed, State::Success]
        );
        lab.open("gate");
        run.settle().await;
        assert_eq!(run.executor.snapshot().await?.live_families, 0);
        Ok(())
    })?;
    assert_eq!(lab.line(), "r1 p1 c1 c1' r1'");
    Ok(())
}

#[test]
fn a_member_is_bypassed_only_with_the_part_that_fails() -> Tested {
    let child = failing("c", 1).undo(1, UndoAct::FailUntil("never".to_owned()));
    let root = plan("r", [spawn([child, chain("d", 1)]), Act::Done(1)]);
    let lab = Lab::default();
    live(&lab, async |run: &Run| {
        let handle = submit(run, Planned(root), "r").await?;
        run.settle().await;
        let c = ProcedureId::new(handle.id().family, 1);
        let by = || OperatorRequest::new("ann", "it hangs");
        let refused = run
            .executor
            .bypass(c, BypassScope::Alone, BypassAs::Success, by())
            .await;
        let expected = format!("{c} fails together with {0}; bypass {0} instead", handle.id());
        assert!(
            matches!(&refused, Err(AskError::NotNow { kind: NotNow::Failing, text: why }) if *why == expected),
            "{refused:?}"
        );
        run.executor
            .bypass(handle.id(), BypassScope::Descendants, BypassAs::Success, by())
            .await?;
        assert_eq!(states(run, handle.id()).await?, [State::Success; 3]);
        let marks: Vec<_> = run
            .executor
            .tree(handle.id())
            .await?
            .iter()
            .map(|status| status.mark)
            .collect();
        assert_eq!(marks, [Some(Mark::Bypassed), Some(Mark::Bypassed), None]);
        assert_eq!(run.executor.snapshot().await?.live_families, 0);
        Ok(())
    })
}

/// A succeeded child that is being undone holds its lock again; the bypass frees it.
#[test]
fn the_locks_of_a_compensation_are_freed() -> Tested {
    let c = chain("c", 1)
        .compensated()
        .exclusive("t")
        .undo(1, UndoAct::Held("gate".to_owned()));
    let root = plan("r", [spawn([c]), Act::Fail("boom".to_owned())]);
    let lab = Lab::default();
    live(&lab, async |run: &Run| {
        let handle = submit(run, Planned(root), "r").await?;
        run.until("the compensation has begun", || lab.has("c1'")).await?;
        let waiter = submit(run, Planned(plan("w", [Act::Done(2)]).exclusive("t")), "w").await?;
        run.settle().await;
        assert!(!lab.has("w1"));
        bypass(run, handle.id(), BypassScope::Descendants).await?;
        assert_eq!(run.wait(waiter.outcome()).await??, 2);
        lab.open("gate");
        run.settle().await;
        assert_eq!(run.executor.locks().await?.len(), 0);
        assert_eq!(run.executor.snapshot().await?.actors, 0);
        Ok(())
    })
}

/// One that waits for its lock, to be undone, waits no more.
#[test]
fn a_compensation_that_waits_for_its_lock_waits_no_more() -> Tested {
    let c = chain("c", 1).compensated().exclusive("t");
    let root = plan(
        "r",
        [
            spawn([c]),
            Act::Held("r".to_owned(), Box::new(Act::Fail("boom".to_owned()))),
        ],
    );
    let lab = Lab::default();
    live(&lab, async |run: &Run| {
        let handle = submit(run, Planned(root), "r").await?;
        run.until("r2 has begun", || lab.has("r2")).await?;
        let holds = plan("h", [Act::Held("h".to_owned(), Box::new(Act::Done(2)))]).exclusive("t");
        let holder = submit(run, Planned(holds), "h").await?;
        lab.open("r");
        run.settle().await;
        assert!(!lab.has("c1'"));
        bypass(run, handle.id(), BypassScope::Family).await?;
        lab.open("h");
        run.wait(holder.outcome()).await??;
        run.settle().await;
        assert_eq!(
            run.executor.locks().await?.len(),
            0,
            "nobody holds it, and nobody waits"
        );
        let next = submit(run, Planned(plan("n", [Act::Done(5)]).exclusive("t")), "n").await?;
        assert_eq!(run.wait(next.outcome()).await??, 5);
        Ok(())
    })
}

/// The part that rolls back lies below what is bypassed: its compensated child has
/// taken its lock again for an undo that fails until somebody repairs it.
fn part_of_it_rolls_back() -> Plan {
    let c = plan("c", [Act::Done(1)])
        .compensated()
        .exclusive("t")
        .undo(1, UndoAct::FailUntil("repaired".to_owned()));
    let p = plan("p", [spawn([c]), Act::Fail("boom".to_owned())]);
    plan("r", [Act::Spawn(vec![p], JoinPolicy::AllFinished, 0), Act::Done(3)])
}

#[test]
fn e_056_a_compensated_child_below_gives_its_lock_back() -> Tested {
    enumerate_client(async |_, run| {
        let handle = submit(run, Planned(part_of_it_rolls_back()), "r").await?;
        run.settle().await;
        bypass_as(run, handle.id(), BypassScope::Family, BypassAs::Failed).await?;
        assert!(run.wait(handle.outcome()).await?.is_err());
        let locks = run.executor.locks().await?;
        assert!(locks.is_empty(), "{locks:?}");
        Ok(())
    })?;
    Ok(())
}
