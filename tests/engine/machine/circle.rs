//! One stage again and again: counted durably, and bounded where the kind says so.

use std::time::Duration;

use procession::errors::AskError;
use procession::operate::{OperatorRequest, PauseScope};
use procession::procedure::Timestamp;
use procession::status::{CauseKind, ProcedureState as State, Seq, WaitReason};
use procession::testkit::{Run, Trouble, World};

use crate::rollback::helper::{at_rest, commits, enumerate_client, rolled_back, submit};
use crate::support::{Act, Circling, Lab, Plan, Planned, Tested, chain, live, live_in, plan};

fn endless() -> Plan {
    plan("a", [Act::Next, Act::Goto(2)])
}

const TEXT: &str = "stage 2 ran 5 times in a row, which is the limit";

#[test]
fn e_043_the_bound_names_the_stage_and_the_count() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Circling(endless()), "a").await?;
        let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!((cause.kind, cause.text.as_str()), (CauseKind::OverBound, TEXT));
        Ok(())
    })?;
    // Submit, six stages, six undos.
    assert_eq!(done.commits, 13);
    assert_eq!(lab.line(), "a1 a2 a2 a2 a2 a2 a2' a2' a2' a2' a2' a1'");
    Ok(())
}

#[test]
fn e_043_the_count_survives_a_restart_after_three_visits() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let third = Act::Visits(vec![
        Act::Goto(2),
        Act::Goto(2),
        Act::Goto(2),
        Act::Held("gate".to_owned(), Box::new(Act::Goto(2))),
    ]);
    let root = plan("a", [Act::Next, third]);
    live_in(&world, &lab, async |run| {
        submit(run, Circling(root.clone()), "a").await?;
        run.until("the fourth visit has begun", || lab.count("a2") == 4).await
    })?;
    lab.open("gate");
    live_in(&world, &lab, async |run| {
        let handle = submit(run, Circling(root.clone()), "a").await?;
        assert_eq!(rolled_back(run.wait(handle.outcome()).await?)?.0.text, TEXT);
        Ok(())
    })?;
    // The fourth was met by the restart, and runs again; the fifth is the last.
    assert_eq!((lab.count("a2"), lab.count("a2'")), (6, 5));
    Ok(())
}

/// Another stage between them starts the count anew; an attempt that fails is none.
#[test]
fn only_the_same_stage_in_a_row_counts() -> Tested {
    let lab = Lab::default();
    let back = Act::Visits(vec![Act::Goto(1), Act::Goto(1), Act::Goto(1), Act::Done(4)]);
    let again = Act::Goto(1);
    let four = [again.clone(), again.clone(), again, Act::Next];
    let first = Act::Visits(four.iter().cycle().take(16).cloned().collect());
    live(&lab, async |run| {
        let handle = submit(run, Circling(plan("a", [first.clone(), back.clone()])), "a").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 4);
        Ok(())
    })?;
    assert_eq!((lab.count("a1"), lab.count("a2")), (16, 4));
    Ok(())
}

#[test]
fn e_043_without_a_bound_it_sleeps_on_until_the_abort() -> Tested {
    let root = plan("a", [Act::SleepAgain(1_000)]);
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.pass(Timestamp(4_500_000).since(run.now())).await;
        if at_rest(run, handle.id()).await?.cause.is_none() {
            run.wait(run.executor.abort(handle.id(), OperatorRequest::new("ann", "enough")))
                .await??;
        }
        let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(cause.kind, CauseKind::Aborted);
        Ok(())
    })?;
    assert_eq!(done.commits, 16);
    assert_eq!(lab.line(), "a1 a1 a1 a1 a1 a1' a1' a1' a1' a1'");
    Ok(())
}

/// Resumes it, unless an earlier life did.
async fn resume(run: &Run, id: procession::ProcedureId) -> Result<(), Trouble> {
    let by = OperatorRequest::new("ann", "the fault is gone").key("resume");
    run.wait(run.executor.resume(PauseScope::One(id), by)).await??;
    Ok(())
}

#[test]
fn past_its_point_of_no_return_it_waits_for_an_operator() -> Tested {
    let mut visits = vec![Act::Goto(2); 6];
    visits.push(Act::Done(3));
    let root = plan("a", [Act::Next, Act::Visits(visits)]).one_way(2);
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Circling(root.clone()), "a").await?;
        run.settle().await;
        if lab.count("a2") == 5 {
            let status = handle.status().await?;
            assert_eq!(
                (status.state, status.wait),
                (State::Runnable, Some(WaitReason::RepeatLimit))
            );
            run.pass(Duration::from_secs(3600)).await;
            assert_eq!(lab.count("a2"), 5, "time does not move it");
        }
        resume(run, handle.id()).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        Ok(())
    })?;
    // Submit, eight stages, the resume.
    assert_eq!((done.commits, lab.line().as_str()), (10, "a1 a2 a2 a2 a2 a2 a2 a2"));
    Ok(())
}

/// The children that the last visit asked for are born, and end, before it waits for an operator.
#[test]
fn what_the_last_visit_asked_for_is_done_first() -> Tested {
    let mut visits = vec![Act::Goto(2); 4];
    visits.push(Act::AddChild(Box::new(chain("c", 1)), Box::new(Act::Goto(2))));
    visits.push(Act::Done(3));
    let root = plan("a", [Act::Next, Act::Visits(visits)]).one_way(2);
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Circling(root.clone()), "a").await?;
        run.settle().await;
        if lab.count("a2") == 5 {
            assert_eq!(handle.status().await?.wait, Some(WaitReason::RepeatLimit));
        }
        resume(run, handle.id()).await?;
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        Ok(())
    })?;
    // Submit, eight stages, the resume.
    assert_eq!((done.commits, lab.line().as_str()), (10, "a1 a2 a2 a2 a2 a2 c1 a2"));
    Ok(())
}

#[test]
fn what_was_parked_for_going_in_circles_counts_from_the_resume_on() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Circling(endless().one_way(2)), "a").await?;
        for rounds in 1..=3 {
            run.settle().await;
            assert_eq!(lab.count("a2"), 5 * rounds);
            let before = commits(run).await?;
            let by = OperatorRequest::new("ann", "once more");
            let none = run.executor.retry_now(handle.id(), by.clone()).await;
            assert!(matches!(none, Err(AskError::NotNow { .. })));
            assert_eq!(commits(run).await?, before);
            run.executor.resume(PauseScope::One(handle.id()), by).await?;
        }
        assert!(handle.status().await?.revision > Seq::default());
        Ok(())
    })
}
