//! Abort of what is parked: it ends at once, and leaves nothing behind.

use std::time::Duration;

use procession::operate::AbortAnswer;
use procession::status::CauseKind;
use procession::testkit::{Run, Trouble};
use procession::{Builder, Procedure};

use super::helper::{at_rest, rolled_back, submit};
use crate::support::{Act, Lab, Limited, Plan, Planned, Tested, chain, enumerate, kinds, plan, spawn};

/// No permit of this kind is ever given.
fn none_given(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder).limit("limited", 0)
}

async fn submit_and_abort<P: Procedure>(run: &Run, procedure: P) -> Tested
where
    P::Output: std::fmt::Debug,
{
    let handle = submit(run, procedure, "k").await?;
    if at_rest(run, handle.id()).await?.cause.is_none() {
        let answer = run
            .wait(
                run.executor
                    .abort(handle.id(), procession::operate::OperatorRequest::new("ann", "not now")),
            )
            .await??;
        assert_eq!(answer.abort, Some(AbortAnswer::WillRollBack));
    }
    let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
    assert_eq!(cause.kind, CauseKind::Aborted);
    // What it waited for comes, and finds nobody.
    run.pass(Duration::from_secs(600)).await;
    let snapshot = run.executor.snapshot().await?;
    assert_eq!((snapshot.live_families, snapshot.going, snapshot.actors), (0, 0, 0));
    let limits = run.executor.limits().await?;
    assert!(
        limits.iter().all(|limit| limit.used == 0 && limit.waiting == 0),
        "{limits:?}"
    );
    Ok(())
}

/// Aborts it under crash enumeration, and gives commits and calls.
fn aborted(plan: &Plan, limited: bool) -> Result<(u64, String), Trouble> {
    let line = std::cell::RefCell::new(None);
    let done = enumerate(
        Lab::default,
        none_given,
        async |_: &Lab, run: &Run| {
            if limited {
                submit_and_abort(run, Limited(plan.clone())).await
            } else {
                submit_and_abort(run, Planned(plan.clone())).await
            }
        },
        &["rows"],
        |plain, crashed, crashes| {
            line.borrow_mut().get_or_insert_with(|| plain.line());
            plain.compare(crashed, crashes)
        },
    )?;
    Ok((done.commits, line.into_inner().unwrap_or_default()))
}

#[test]
fn e_051_abort_wherever_it_is_parked() -> Tested {
    let waiting = || Act::Wait("go".to_owned(), Some(300_000));
    let again = Act::Retry(1, Box::new(Act::Done(1)));
    let parent = plan("r", [spawn([plan("c", [waiting(), Act::Done(1)])]), Act::Done(1)]);
    let cases = [
        ("a permit", chain("a", 2), true, 2, ""),
        ("a backoff", plan("a", [again]), false, 4, "a1 a1'"),
        (
            "a sleep",
            plan("a", [Act::Sleep(300_000), Act::Done(1)]),
            false,
            4,
            "a1 a1'",
        ),
        ("an event", plan("a", [waiting(), Act::Done(1)]), false, 4, "a1 a1'"),
        ("a child", parent, false, 6, "r1 c1 c1' r1'"),
    ];
    for (parked_for, plan, limited, commits, calls) in cases {
        let found = aborted(&plan, limited).map_err(|why| format!("{parked_for}: {why}"))?;
        assert_eq!(found, (commits, calls.to_owned()), "parked for {parked_for}");
    }
    Ok(())
}
