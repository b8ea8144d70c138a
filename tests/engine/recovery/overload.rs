//! More than the engine takes: refused with a number that says what to do, and
//! what was taken is not lost.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::join_all;
use procession::errors::{AskError, SubmitBound, SubmitError};
use procession::messages::Submit;
use procession::operate::{OperatorRequest, PauseScope};
use procession::procedure::Noop;
use procession::status::{ListFilter, ProcedureState};
use procession::testkit::{Fault, FaultPlan, Run, World};
use procession::{Builder, ProcedureId};

use crate::lifecycle::kit::enumerate_in;
use crate::support::{Act, Lab, Planned, Tested, chain, kinds, live, plan};

/// Requests that may wait.
const BOUND: usize = 10_000;
/// Submissions at once.
const FLOOD: usize = 100_000;

#[test]
fn e_107_a_flood_is_answered_with_ids_or_busy() -> Tested {
    let world = World::new();
    // With its receipt withheld the first commit holds up all, so the bound is met for certain.
    let plan = FaultPlan::at(1, Fault::Withhold);
    let set_up = |builder: procession::Builder| builder.register::<Noop>(()).max_queued(BOUND).merge(4_096);
    let ids = world
        .run(plan, set_up, async |run| {
            let submit = Submit::new(&Noop)?;
            let send = |_| run.executor.supervisor().send(submit.clone());
            let senders: Vec<_> = (0..FLOOD / 1_000)
                .map(|_| actix_rt::spawn(join_all((0..1_000).map(send))))
                .collect();
            run.settle().await;
            assert!(run.store.commits() <= 2, "no commit follows one that is not proved");
            run.store.release_receipts();
            let mut ids: Vec<ProcedureId> = Vec::new();
            let mut busy = 0;
            let mut answers = Vec::with_capacity(FLOOD);
            for sender in senders {
                answers.extend(sender.await?);
            }
            for answer in answers {
                match answer? {
                    Ok(id) => ids.push(id),
                    Err(SubmitError::Busy { retry_after, .. }) if retry_after > Duration::ZERO => busy += 1,
                    Err(other) => return Err(other.into()),
                }
            }
            assert_eq!((ids.len(), busy), (BOUND, FLOOD - BOUND));
            run.settle().await;
            Ok(ids)
        })?
        .done()?;
    // Every id is durable and has ended.
    let found = world
        .run(
            FaultPlan::none(),
            |builder| builder.register::<Noop>(()),
            async |run| {
                let (mut found, mut cursor) = (Vec::new(), None);
                loop {
                    let filter = ListFilter {
                        state: Some(ProcedureState::Success),
                        ..ListFilter::default()
                    };
                    let page = run.executor.list(filter, cursor, 1_000).await?;
                    found.extend(page.items.iter().map(|status| status.id));
                    cursor = page.next;
                    if cursor.is_none() {
                        return Ok(found);
                    }
                }
            },
        )?
        .done()?;
    let mut ids = ids;
    ids.sort_unstable();
    assert_eq!(found, ids);
    Ok(())
}

#[test]
fn what_is_awake_is_bounded_and_what_is_parked_is_not() -> Tested {
    const AWAKE: usize = 20;
    let lab = Lab::default();
    let set_up = |builder: Builder| kinds(&lab, builder).max_awake(AWAKE);
    let world = World::new();
    let run = world.run(FaultPlan::none(), set_up, async |run| {
        let executor = &run.executor;
        let wait = || Planned(plan("a", [Act::Wait("go".to_owned(), None), Act::Done(1)]));
        for _ in 0..3 * AWAKE {
            executor.submit(wait()).await?;
            run.settle().await;
        }
        // Held back, each of these is awake until somebody lets it go on.
        executor
            .pause(PauseScope::All, OperatorRequest::new("ann", "to fill it"))
            .await?;
        for _ in 0..AWAKE {
            executor.submit(wait()).await?;
        }
        let refused = executor.submit(wait()).await.err();
        let Some(SubmitError::Busy { bound, retry_after }) = &refused else {
            return Err(format!("{refused:?}").into());
        };
        assert_eq!((*bound, retry_after.is_zero()), (SubmitBound::Awake(AWAKE), false));
        let told = refused.map(|refused| refused.to_string()).unwrap_or_default();
        assert!(told.contains("20 procedures") && told.contains("max_awake"), "{told}");
        let commits = run.store.commits();
        assert!(executor.submit(wait()).await.is_err());
        assert_eq!(run.store.commits(), commits, "without a commit");
        // Parked they take little, and there is room again.
        executor
            .resume(PauseScope::All, OperatorRequest::new("ann", "it was full"))
            .await?;
        run.settle().await;
        executor.submit(wait()).await?;
        Ok(())
    })?;
    run.done()
}

#[test]
fn e_107_what_is_too_large_is_refused_with_limit_and_size() -> Tested {
    let lab = Lab::default();
    let world = World::new();
    world
        .run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder).max_payload(1_000),
            async |run| {
                let handle = run
                    .executor
                    .submit(Planned(plan("a", [Act::Wait("go".to_owned(), None), Act::Done(1)])))
                    .await?;
                run.settle().await;
                let before = run.store.commits();
                let large = run.executor.submit(Planned(chain(&"x".repeat(2_000), 1))).await.err();
                assert!(
                    matches!(
                        large,
                        Some(SubmitError::TooLarge {
                            size: 2_000..,
                            limit: 1_000
                        })
                    ),
                    "{large:?}"
                );
                let signal = run.executor.signal(handle.id(), "go", &"x".repeat(2_000)).await;
                assert!(
                    matches!(
                        signal,
                        Err(AskError::TooLarge {
                            size: 2_000..,
                            limit: 1_000
                        })
                    ),
                    "{signal:?}"
                );
                assert_eq!(run.store.commits(), before, "without a commit");
                Ok(())
            },
        )?
        .done()?;
    Ok(())
}

#[test]
fn e_107_requests_are_bounded_as_submissions_are() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = run
            .executor
            .submit(Planned(plan("a", [Act::Wait("go".to_owned(), None), Act::Done(1)])))
            .await?;
        run.settle().await;
        let signals = (0..20_000).map(|_| run.executor.signal(handle.id(), "go", &1_i64).into_future());
        let mut answered = 0;
        for answer in join_all(signals).await {
            match answer {
                Ok(_) | Err(AskError::Busy { .. } | AskError::Finished { .. } | AskError::NotNow { .. }) => {
                    answered += 1
                }
                Err(other) => return Err(other.into()),
            }
        }
        assert_eq!(answered, 20_000);
        Ok(())
    })
}

/// A flood so small that it can be crashed at every commit: whoever hears `Busy` asks again, and so
/// does whoever hears nothing.
async fn flood(lab: &Lab, run: &Run) -> Tested {
    let large = run.executor.submit(Planned(chain(&"x".repeat(2_000), 1))).await;
    assert!(matches!(large, Err(SubmitError::TooLarge { limit: 1_000, .. })));
    let mut left: Vec<String> = (0..5).map(|number| format!("p{number}-")).collect();
    let mut ids = Vec::new();
    while !left.is_empty() {
        let plans = left.iter().map(|name| (Planned(chain(name, 1)), name.clone()));
        let submits = plans.map(|(plan, name)| run.executor.submit(plan).key(name).into_future());
        let answers = run.wait(join_all(submits)).await?;
        let mut refused = Vec::new();
        for (name, answer) in left.into_iter().zip(answers) {
            match answer {
                Ok(handle) => ids.push(handle.id()),
                Err(SubmitError::Busy { retry_after, .. }) if retry_after > Duration::ZERO => refused.push(name),
                Err(other) => return Err(other.into()),
            }
        }
        lab.note(format!("{} busy", refused.len()));
        left = refused;
    }
    for id in ids {
        run.wait(run.executor.outcome(id)).await??;
    }
    Ok(())
}

#[test]
fn e_107_a_small_flood_through_crashes() -> Tested {
    let set_up = |lab: &Lab, builder: Builder| kinds(lab, builder).max_queued(2).max_payload(1_000);
    let (done, lab) = enumerate_in(Lab::default, set_up, flood)?;
    assert_eq!(lab.noted(), ["3 busy", "1 busy", "0 busy"]);
    assert_eq!(done.commits, 5 * 2, "what was refused left no commit");
    Ok(())
}
