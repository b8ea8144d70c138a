//! A journal that fails while the engine drains: everybody who waits for the end of the drain is told.

use std::future::IntoFuture;
use std::time::Duration;

use futures::future::join;
use procession::errors::AskError;
use procession::status::DrainReport;
use procession::testkit::{Ended, Fault, FaultPlan, Run, World};

use crate::support::{Act, Lab, Planned, Tested, kinds, plan};

const DEADLINE: Duration = Duration::from_secs(30);

/// What the two who drain were told.
type Answers = [Result<DrainReport, AskError>; 2];

type Told = Result<Answers, Box<dyn std::error::Error>>;

/// Two stages are out when the drain begins; one ends in time, the other if `late` says so.
async fn drains(run: &Run, lab: &Lab, late: bool) -> Told {
    for gate in ["in time", "late"] {
        let acts = [Act::Held(gate.to_owned(), Box::new(Act::Next)), Act::Done(1)];
        // A commit that fails before the drain is told to whoever submits.
        drop(run.executor.submit(Planned(plan(gate, acts))).into_future().await);
    }
    run.settle().await;
    let executor = run.executor.clone();
    let both = actix_rt::spawn(async move { join(executor.drain(DEADLINE), executor.drain(DEADLINE)).await });
    run.settle().await;
    lab.open("in time");
    run.settle().await;
    if late {
        lab.open("late");
    }
    let (one, other) = run.wait(both).await??;
    Ok([one, other])
}

/// Runs it with this fault, and gives what those who drained were told, and how many commits there were.
fn drained(plan: FaultPlan, late: bool) -> Result<(Answers, u64), Box<dyn std::error::Error>> {
    let (world, lab) = (World::new(), Lab::default());
    let ended = world.run(
        plan,
        |builder| kinds(&lab, builder),
        async |run| {
            let told = drains(run, &lab, late).await;
            Ok((told?, run.store.commits()))
        },
    )?;
    match ended {
        Ended::Done(told) => Ok(told),
        Ended::Crashed => Err("no crash is planned".into()),
    }
}

#[test]
fn whichever_commit_fails_those_who_drain_are_told() -> Tested {
    for late in [true, false] {
        let (told, commits) = drained(FaultPlan::none(), late)?;
        assert!(told.iter().all(Result::is_ok), "{told:?}");
        for commit in 1..commits {
            for fault in [Fault::FailWrite, Fault::FailSync, Fault::FailNoSpace] {
                let (told, _) = drained(FaultPlan::at(commit, fault), late)?;
                for answer in told {
                    assert!(
                        matches!(answer, Err(AskError::JournalFailed(_))),
                        "{fault:?} at commit {commit}, late {late}: {answer:?}"
                    );
                }
            }
        }
    }
    Ok(())
}
