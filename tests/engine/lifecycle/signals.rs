//! A signal that comes before its wait, and one that comes after.

use procession::status::ProcedureState;
use procession::testkit::Run;

use super::kit::{Changes, at_rest, enumerate_client, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, live, plan};

fn waiter() -> Plan {
    let first = Act::Held("gate".into(), Box::new(Act::Next));
    plan("a", [first, Act::Wait("go".into(), None), Act::DoneSignal])
}

/// Submits, signals early or late, and waits for the end.
async fn drive(lab: &Lab, run: &Run, early: bool) -> Tested {
    let handle = submit(run, Planned(waiter()), "k").await?;
    if early {
        run.until("stage 1 runs", || lab.has("a1")).await?;
    } else {
        lab.open("gate");
        let status = at_rest(run, handle.id()).await?;
        assert!(status.ended.is_some() || status.state == ProcedureState::WaitingTimeout);
    }
    if at_rest(run, handle.id()).await?.ended.is_none() {
        run.wait(run.executor.signal(handle.id(), "go", &5_i64).key("s"))
            .await??;
    }
    lab.open("gate");
    assert_eq!(run.wait(handle.outcome()).await??, 5);
    Ok(())
}

#[test]
fn e_009_a_signal_after_its_wait() -> Tested {
    let (done, lab) = enumerate_client(async |lab, run| drive(lab, run, false).await)?;
    assert_eq!((done.commits, lab.line().as_str()), (5, "a1 a2 a3"));
    Ok(())
}

#[test]
fn e_009_a_signal_before_its_wait() -> Tested {
    let lab = Lab::default();
    let states = live(&lab, async |run| {
        let changes = Changes::watch(run).await?;
        drive(&lab, run, true).await?;
        run.settle().await;
        Ok(changes.states(procession::ProcedureId::root(1)))
    })?;
    // Submit, signal, stage 1, the Wait that consumes at once, Done.
    let runnable = ProcedureState::Runnable;
    assert_eq!(
        states,
        [runnable, runnable, runnable, runnable, ProcedureState::Success]
    );
    let (done, lab) = enumerate_client(async |lab, run| drive(lab, run, true).await)?;
    assert_eq!((done.commits, lab.line().as_str()), (5, "a1 a2 a3"));
    Ok(())
}
