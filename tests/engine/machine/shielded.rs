//! A member past its point of no return in a family that fails: it is let end
//! first, with all below it, and its stages are listed as not undone.

use procession::procedure::JoinPolicy;
use procession::status::ProcedureState as State;
use procession::testkit::Run;

use crate::rollback::helper::{enumerate_client, rolled_back, states, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, failing, live, plan};

fn siblings(children: impl Into<Vec<Plan>>) -> Plan {
    plan(
        "r",
        [Act::Spawn(children.into(), JoinPolicy::AllSucceeded, 0), Act::Done(1)],
    )
}

#[test]
fn it_ends_first_and_is_listed_as_not_undone() -> Tested {
    let p = plan("p", [Act::Next, Act::Sleep(5_000), Act::Done(2)]).one_way(2);
    let f = plan("f", [Act::Sleep(1_000), Act::Fail("boom".to_owned())]);
    let root = siblings([p, f]);
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "r").await?;
        let (cause, not_undone) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(cause.text, "boom");
        let left: Vec<u32> = not_undone.iter().map(|stage| stage.member).collect();
        assert_eq!(left, [1, 1, 1]);
        let expected = [State::RolledBack, State::Success, State::RolledBack];
        assert_eq!(states(run, handle.id()).await?, expected);
        Ok(())
    })?;
    // Submit, r1, p1, f1, p2, f's wake, f2, p's wake, p3, three undos.
    assert_eq!(
        (done.commits, lab.line().as_str()),
        (12, "r1 p1 f1 p2 f2 p3 f2' f1' r1'")
    );
    Ok(())
}

/// An abort of the root is honoured, and waits for it likewise.
#[test]
fn an_abort_of_the_family_waits_for_it() -> Tested {
    let p = plan("p", [Act::Next, Act::Wait("go".to_owned(), None), Act::Done(2)]).one_way(2);
    let root = siblings([p, chain("c", 1)]);
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "r").await?;
        run.settle().await;
        let by = procession::operate::OperatorRequest::new("ann", "no need").key("abort");
        run.wait(run.executor.abort(handle.id(), by)).await??;
        run.settle().await;
        if !lab.is_open("signalled") {
            assert!(!lab.has("r1'"), "nothing is undone while it lives");
            assert_eq!(run.executor.status(handle.id()).await?.state, State::Failed);
        }
        lab.open("signalled");
        let id = procession::ProcedureId::new(handle.id().family, 1);
        match run.wait(run.executor.signal(id, "go", &1_i64).key("go")).await? {
            Ok(_) | Err(procession::errors::AskError::Finished { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let (_, not_undone) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(not_undone.len(), 3);
        Ok(())
    })?;
    // Submit, r1, p1, c1, p2, abort, signal, p3, the undo of r1.
    assert_eq!((done.commits, lab.line().as_str()), (9, "r1 p1 c1 p2 p3 r1'"));
    Ok(())
}

/// What lives below it is let end, too: it may be needed.
#[test]
fn its_children_are_let_end_with_it() -> Tested {
    let child = plan("t", [Act::Sleep(5_000), Act::Next, Act::Done(2)]);
    let p = plan("p", [crate::support::spawn([child]), Act::Done(2)]).one_way(1);
    let f = plan("f", [Act::Sleep(1_000), Act::Fail("boom".to_owned())]);
    let lab = Lab::default();
    live(&lab, async |run: &Run| {
        let handle = submit(run, Planned(siblings([p, f])), "r").await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        let expected = [State::RolledBack, State::Success, State::RolledBack, State::Success];
        assert_eq!(states(run, handle.id()).await?, expected);
        Ok(())
    })?;
    assert_eq!(lab.line(), "r1 p1 f1 t1 f2 t2 t3 p2 f2' f1' r1'");
    Ok(())
}

/// Also while it is tried again for ever: the rollback waits, and goes on when it has ended.
#[test]
fn one_that_is_tried_again_holds_the_rollback_up() -> Tested {
    let p = plan("p", [Act::FailFirst(4, Box::new(Act::Done(2)))]).one_way(1);
    let root = siblings([p, failing("f", 1)]);
    let lab = Lab::default();
    live(&lab, async |run: &Run| {
        let handle = submit(run, Planned(root), "r").await?;
        run.pass(std::time::Duration::from_secs(300)).await;
        assert_eq!((lab.count("p1"), lab.has("f1'")), (3, false));
        let (_, not_undone) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(not_undone.len(), 1);
        Ok(())
    })?;
    assert_eq!(lab.line(), "r1 p1 f1 p1 p1 p1 p1 f1' r1'");
    Ok(())
}
