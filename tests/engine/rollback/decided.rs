//! A failure that a stage decides on: what it did is part of its commit, and its undo sees it.

use procession::errors::ProcedureError;
use procession::status::{CauseKind, Ending, ProcedureState};

use super::helper::{at_rest, enumerate_client, rolled_back, submit};
use crate::support::Lab;
use crate::support::{Act, Final, Plan, Planned, Tested, UndoAct, chain, end, enumerate_plan, live, plan, spawn};

/// Two stages; the second adds 5 to a row, submits a family, and then does this. Its undo takes the 5 back, if the
/// value says that the stage was committed.
fn busy(last: Act) -> Plan {
    let submits = Act::Submit(Box::new(chain("s", 1)), Box::new(last));
    let acts = [Act::Next, Act::Add("n".to_owned(), 5, Box::new(submits))];
    plan("p", acts).undo(2, UndoAct::AddIfOwn("n".to_owned(), -5))
}

fn gives_up() -> Act {
    Act::GiveUp("boom".to_owned())
}

/// The values that the calls of this name saw.
fn saw(lab: &Lab, short: &str) -> Vec<Vec<u32>> {
    let calls = lab.calls();
    let of_name = calls.iter().filter(|call| call.short() == short);
    of_name.map(|call| call.value.clone()).collect()
}

#[test]
fn g_068_a_decided_failure_keeps_what_the_stage_did() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(busy(gives_up())), "p").await?;
        let (cause, not_undone) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!((cause.kind, cause.text.as_str()), (CauseKind::Failed, "boom"));
        assert_eq!(not_undone, []);
        run.settle().await;
        assert_eq!(
            run.executor.get::<i64>("rows", "n").await?,
            Some(0),
            "written, and taken back"
        );
        let history = run.executor.history(handle.id()).await?;
        let failed = history.iter().find(|entry| entry.ending == Ending::Fail);
        let failed = failed.ok_or("no stage failed")?;
        assert_eq!((failed.visit, failed.error.as_deref()), (1, Some("boom")));
        Ok(())
    })?;
    assert_eq!(done.commits, 5 + 1, "five, and the end of the family that it submitted");
    assert_eq!(saw(&lab, "p2'"), [[1, 2]], "its undo sees the value that it left");
    assert_eq!(lab.count("s1"), 1);
    Ok(())
}

#[test]
fn g_068_a_stage_error_keeps_nothing() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let outcome = end(run, Planned(busy(Act::Fail("boom".to_owned()))), "p").await?;
        assert_eq!(rolled_back(outcome)?.0.text, "boom");
        assert_eq!(run.executor.get::<i64>("rows", "n").await?, None);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (5, "p1 p2 p2' p1'"));
    assert_eq!(saw(&lab, "p2'"), [[1]]);
    Ok(())
}

#[test]
fn g_068_a_kind_without_rollback_ends_in_the_commit_of_the_failure() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let acts = [Act::Next, Act::Add("n".to_owned(), 5, Box::new(gives_up()))];
        match end(run, Final(plan("p", acts)), "p").await? {
            Err(ProcedureError::Failed { cause, .. }) => assert_eq!(cause.text, "boom"),
            other => return Err(format!("{other:?}").into()),
        }
        assert_eq!(run.executor.get::<i64>("rows", "n").await?, Some(5));
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (3, "p1 p2"));
    Ok(())
}

#[test]
fn g_068_past_the_point_of_no_return_it_is_tried_again_and_keeps_nothing() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        // The stage reads its own row: 5 each time, as long as no attempt has kept it.
        let acts = [Act::Add("n".to_owned(), 5, Box::new(gives_up()))];
        let handle = submit(run, Planned(plan("p", acts).one_way(1)), "p").await?;
        while lab.count("p1") < 6 {
            run.pass(std::time::Duration::from_secs(60)).await;
        }
        let status = at_rest(run, handle.id()).await?;
        assert_eq!(status.state, ProcedureState::WaitingTimeout);
        assert_eq!(run.executor.get::<i64>("rows", "n").await?, None);
        Ok(())
    })?;
    assert!(saw(&lab, "p1").iter().all(Vec::is_empty), "no attempt left a value");
    Ok(())
}

#[test]
fn g_068_a_stage_with_children_added_is_refused_and_told_what_to_return() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let added = Act::AddChild(Box::new(chain("c", 1)), Box::new(gives_up()));
        let outcome = end(run, Planned(plan("p", [added])), "p").await?;
        let cause = rolled_back(outcome)?.0;
        assert_eq!(cause.kind, CauseKind::OverBound);
        assert!(
            cause.text.contains("\"boom\"; return Next, Spawn or Done"),
            "{}",
            cause.text
        );
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (3, "p1 p1'"));
    Ok(())
}

#[test]
fn g_068_while_its_family_fails_what_it_did_counts_and_the_first_cause_stays() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let late = Act::Held(
            "go".to_owned(),
            Box::new(Act::Add("n".to_owned(), 5, Box::new(gives_up()))),
        );
        let children = [plan("a", [Act::Fail("first".to_owned())]), plan("b", [late])];
        let handle = submit(run, Planned(plan("p", [spawn(children)])), "p").await?;
        run.until("the first has failed", || lab.count("a1") > 0 && lab.count("b1") > 0)
            .await?;
        run.settle().await;
        lab.open("go");
        let cause = rolled_back(run.wait(handle.outcome()).await?)?.0;
        assert_eq!(cause.text, "first");
        let tree = run.executor.tree(handle.id()).await?;
        let own = tree.get(2).and_then(|status| status.cause.as_ref());
        assert_eq!(own.map(|cause| cause.text.as_str()), Some("boom"));
        assert_eq!(run.executor.get::<i64>("rows", "n").await?, Some(5));
        Ok(())
    })?;
    assert_eq!(saw(&lab, "b1'"), [[1]]);
    Ok(())
}

#[test]
fn a_stage_that_fails_so_is_undone_under_its_own_locks() -> Tested {
    let failing = plan("p", [Act::Next, gives_up()]).exclusive_in(2, "t");
    let (done, lab) = enumerate_plan(&failing)?;
    // Submitted, the first stage and the grant of the lock in one, the failure, two undos.
    assert_eq!((done.commits, lab.line().as_str()), (5, "p1 p2 p2' p1'"));
    assert_eq!(lab.clashes(), [] as [String; 0]);
    Ok(())
}
