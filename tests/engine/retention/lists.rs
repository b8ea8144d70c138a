//! Every row says what comes next, and that is true.

use std::future::IntoFuture;
use std::time::Duration;

use procession::ProcedureId;
use procession::operate::{OperatorRequest, PauseScope};
use procession::status::{ListFilter, Status};
use procession::testkit::Run;

use crate::support::{Act, Holding, Lab, Patient, Plan, Planned, Tested, UndoAct, failing, live, plan, spawn};

fn waits(name: &str) -> Plan {
    plan(name, [Act::Wait("go".to_owned(), None), Act::Done(1)])
}

async fn all(run: &Run) -> Result<Vec<Status>, procession::testkit::Trouble> {
    Ok(run.executor.list(ListFilter::default(), None, 1_000).await?.items)
}

async fn submit(run: &Run, plan: Plan) -> Result<ProcedureId, procession::testkit::Trouble> {
    let handle = run.wait(run.executor.submit(Planned(plan)).into_future()).await??;
    run.settle().await;
    Ok(handle.id())
}

#[test]
fn e_114_every_row_says_what_comes_next() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let by = || OperatorRequest::new("ann", "a test");
        submit(run, plan("e", [Act::Wait("go".to_owned(), Some(60_000)), Act::Done(1)])).await?;
        submit(run, plan("t", [Act::Sleep(90_000), Act::Done(1)])).await?;
        submit(run, plan("p", [spawn([waits("c")]), Act::Done(1)])).await?;
        let adds = Act::AddChild(Box::new(waits("d")), Box::new(Act::Done(1)));
        submit(run, plan("a", [adds])).await?;
        let holder = run.executor.submit(Holding(waits("h").exclusive("x")));
        run.wait(holder.into_future()).await??;
        submit(run, waits("l").exclusive("x")).await?;
        submit(run, plan("b", [Act::Retry(1, Box::new(Act::Done(1)))])).await?;
        let stuck = failing("u", 1).undo(1, UndoAct::FailUntil("never".to_owned()));
        run.wait(run.executor.submit(Patient(stuck)).into_future()).await??;
        run.settle().await;
        let paused = submit(run, plan("z", [Act::Sleep(120_000), Act::Done(1)])).await?;
        run.executor.pause(PauseScope::One(paused), by()).await?;
        submit(run, plan("g", [Act::Held("g".to_owned(), Box::new(Act::Done(1)))])).await?;
        submit(run, plan("n", [Act::Done(1)])).await?;
        let told: Vec<String> = all(run).await?.into_iter().map(|status| status.next).collect();
        assert_eq!(
            told,
            [
                "stage 2 runs once go arrives, at the latest at 1970-01-01T00:01:00Z",
                "stage 2 runs at 1970-01-01T00:01:30Z",
                "stage 2 runs once its children finish",
                "stage 2 runs once go arrives",
                "it succeeds once its children have ended",
                "stage 2 runs once go arrives",
                "stage 2 runs once go arrives",
                "stage 1 runs once the lock x is free and its turn has come",
                "stage 1 runs at 1970-01-01T00:00:01Z",
                "its undo is retried at 1970-01-01T00:00:01Z",
                "stage 2 runs at 1970-01-01T00:02:00Z, but not before an operator resumes it",
                "stage 1 runs, or is queued at its worker",
                "nothing: it has ended",
            ]
        );
        later(run, &lab).await
    })
}

/// And it came true.
async fn later(run: &Run, lab: &Lab) -> Tested {
    run.pass(Duration::from_mins(3)).await;
    for body in ["e2", "t2", "b1", "u1'"] {
        assert!(lab.has(body), "{body}");
    }
    for body in ["p2", "l1", "z2"] {
        assert!(!lab.has(body), "{body}");
    }
    let told: Vec<String> = all(run).await?.into_iter().map(|status| status.next).collect();
    let expected = [
        "nothing, until an operator retries or skips its undo",
        "stage 2 runs once an operator resumes it",
    ];
    for words in expected {
        assert_eq!(
            told.iter().filter(|next| *next == words).count(),
            1,
            "{words}: {told:?}"
        );
    }
    Ok(())
}
