//! A procedure's own time: it runs from the submission, over restarts, and fails what runs too long.

use std::future::IntoFuture;
use std::time::Duration;

use procession::Handle;
use procession::errors::ProcedureError;
use procession::procedure::Timestamp;
use procession::status::CauseKind;
use procession::testkit::{Run, Trouble, World};

use crate::support::{Act, Lab, Plan, Planned, Tested, enumerate, kinds, live_in, plan};

/// Waits for the failure by its own time of 2.5 s.
async fn times_out(run: &Run, handle: &Handle<Planned>) -> Tested {
    match run.wait(handle.outcome()).await? {
        Err(ProcedureError::RolledBack { cause, not_undone }) => {
            assert_eq!(cause.kind, CauseKind::TimedOut);
            assert!(cause.text.contains("2.5 s"), "{}", cause.text);
            assert_eq!(cause.origin, handle.id());
            assert!(not_undone.is_empty());
            Ok(())
        }
        other => Err(format!("it ended with {other:?}").into()),
    }
}

async fn submit(run: &Run, procedure: &Plan) -> Result<Handle<Planned>, Trouble> {
    Ok(run
        .wait(run.executor.submit(Planned(procedure.clone())).key("p").into_future())
        .await??)
}

fn waiting() -> Plan {
    plan("p", [Act::Wait("never".to_owned(), None), Act::Done(1)]).timeout(2_500)
}

#[test]
fn e_083_the_procedures_own_timeout_fails_it() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let before = live_in(&world, &lab, async |run| {
        submit(run, &waiting()).await?;
        run.pass(Duration::from_secs(1)).await;
        Ok(run.executor.snapshot().await?.commits)
    })?;
    live_in(&world, &lab, async |run| {
        let handle = submit(run, &waiting()).await?;
        times_out(run, &handle).await?;
        assert_eq!(handle.status().await?.ended, Some(Timestamp(2_500_000)));
        let after = run.executor.snapshot().await?.commits;
        assert_eq!((before, after), (2, 2));
        assert_eq!(lab.line(), "p1 p1'");
        // It fires once.
        run.pass(Duration::from_secs(10)).await;
        assert_eq!(run.executor.snapshot().await?.commits, after);
        Ok(())
    })
}

#[test]
fn e_083_the_procedures_own_timeout_through_crashes() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let handle = submit(run, &waiting()).await?;
        times_out(run, &handle).await
    };
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!(plain.line(), "p1 p1'");
        plain.compare(crashed, crashes)
    };
    let done = enumerate(Lab::default, kinds, drive, &[], check)?;
    assert_eq!(done.commits, 4);
    Ok(())
}

/// Runs a plan whose stage 1 is held until 4 s.
async fn ends_at_four(lab: &Lab, run: &Run, procedure: &Plan) -> Tested {
    let handle = submit(run, procedure).await?;
    let left = Timestamp(4_000_000).since(run.now());
    run.pass(left).await;
    lab.open("stage 1");
    times_out(run, &handle).await
}

fn overrun(then: Act) -> Plan {
    plan("p", [Act::Held("stage 1".to_owned(), Box::new(then)), Act::Done(1)]).timeout(2_500)
}

#[test]
fn e_084_a_timeout_while_a_stage_runs_lets_it_end_first() -> Tested {
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!(plain.line(), "p1 p1'");
        // It is undone as it was committed: with what stage 1 has done.
        let undo = plain.calls().pop().map(|call| call.value);
        assert_eq!(undo, Some(vec![1]));
        plain.compare(crashed, crashes)
    };
    let drive = async |lab: &Lab, run: &Run| ends_at_four(lab, run, &overrun(Act::Next)).await;
    let done = enumerate(Lab::default, kinds, drive, &[], check)?;
    // Submit, expiry, stage 1, its undo.
    assert_eq!(done.commits, 4);
    Ok(())
}

#[test]
fn e_084_done_after_the_expiry_is_rolled_back() -> Tested {
    let check = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!(plain.line(), "p1 p1'");
        plain.compare(crashed, crashes)
    };
    let drive = async |lab: &Lab, run: &Run| ends_at_four(lab, run, &overrun(Act::Done(7))).await;
    let done = enumerate(Lab::default, kinds, drive, &[], check)?;
    assert_eq!(done.commits, 4);
    Ok(())
}
