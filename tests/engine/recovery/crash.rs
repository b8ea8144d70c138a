//! Crashes at every commit, and again at every commit of the recovery: the
//! world is always the one without crashes, and each run is counted.

use procession::Procedure;
use procession::errors::AskError;
use procession::status::ProcedureState;
use procession::testkit::{Ended, Enumeration, Fault, FaultPlan, Run, World, second_faults};

use crate::support::{
    Act, Lab, Patient, Plan, Planned, Tested, UndoAct, chain, end, enumerate, failing, kinds, live_in, plan, spawn,
};

/// A script's commits, and how many prefixes of their frames were tried.
///
/// A commit of one record is torn in front of it and inside it; one of `n`
/// records in front of each, and inside the first and the last.
pub(crate) struct Expected {
    pub(crate) commits: u64,
    pub(crate) torn: usize,
}

pub(crate) fn check(done: Enumeration, expected: &Expected) {
    let commits = usize::try_from(expected.commits).unwrap_or(usize::MAX);
    // The second crash at each commit of the next life: after a first one before
    // commit i there are the start's own and n - i + 1, after one behind it a
    // commit less. Over all i that is n (n + 2), and twice as many in both ways.
    let ways = second_faults((1, Fault::CrashBefore), 0).count();
    let second = ways * commits * (commits + 2);
    let wanted = Enumeration {
        commits: expected.commits,
        runs: 2 * commits + expected.torn,
        second,
    };
    assert_eq!(done, wanted);
    assert!(expected.torn >= commits, "each commit is torn at least once");
}

fn enumerate_one<P: Procedure>(submit: impl Fn() -> P) -> Result<Enumeration, procession::testkit::Trouble> {
    enumerate(
        Lab::default,
        kinds,
        async |_: &Lab, run: &Run| {
            // How it ends is compared by the final world.
            end(run, submit(), "the plan").await?.ok();
            Ok(())
        },
        &["rows"],
        Lab::compare,
    )
}

#[test]
fn e_092_e_093_crashes_in_a_chain() -> Tested {
    check(
        enumerate_one(|| Planned(chain("a", 10)))?,
        &Expected { commits: 11, torn: 60 },
    );
    Ok(())
}

#[test]
fn e_092_e_093_crashes_with_two_children() -> Tested {
    let root = || plan("r", [spawn([chain("a", 1), chain("b", 1)]), Act::Done(1)]);
    check(enumerate_one(|| Planned(root()))?, &Expected { commits: 5, torn: 37 });
    Ok(())
}

#[test]
fn e_092_e_093_crashes_with_grandchildren() -> Tested {
    let root = || {
        plan(
            "r",
            [spawn([plan("s", [spawn([chain("t", 1)]), Act::Done(1)])]), Act::Done(1)],
        )
    };
    check(enumerate_one(|| Planned(root()))?, &Expected { commits: 6, torn: 43 });
    Ok(())
}

#[test]
fn e_092_e_093_crashes_in_a_nested_rollback() -> Tested {
    let root = || {
        plan(
            "r",
            [
                spawn([plan("s", [spawn([failing("t", 1)]), Act::Done(1)])]),
                Act::Done(1),
            ],
        )
    };
    check(enumerate_one(|| Planned(root()))?, &Expected { commits: 7, torn: 48 });
    Ok(())
}

/// The family of E-030: K is kept, C and its child G are compensated.
pub(crate) fn compensated() -> Plan {
    let c = plan("c", [spawn([chain("g", 1).compensated()]), Act::Done(1)]).compensated();
    let children = vec![chain("k", 1), c];
    plan(
        "r",
        [
            Act::Spawn(children, procession::procedure::JoinPolicy::AllSucceeded, 1),
            Act::Fail("boom".to_owned()),
        ],
    )
}

#[test]
fn e_092_e_093_crashes_in_a_compensation() -> Tested {
    check(
        enumerate_one(|| Planned(compensated()))?,
        &Expected { commits: 12, torn: 80 },
    );
    Ok(())
}

/// The chain of E-034, whose third undo fails three times.
pub(crate) fn failing_undo() -> Plan {
    failing("a", 3).undo(3, UndoAct::Fail(3))
}

#[test]
fn e_092_e_093_crashes_while_an_undo_fails() -> Tested {
    check(
        enumerate_one(|| Patient(failing_undo()))?,
        &Expected { commits: 13, torn: 56 },
    );
    Ok(())
}

#[test]
fn e_092_e_093_crashes_around_an_abort() -> Tested {
    let held = |gate: &str| Act::Held(gate.to_owned(), Box::new(Act::Next));
    let submit = || plan("a", [Act::Next, held("go on"), Act::Next, Act::Done(1)]);
    let done = enumerate(
        Lab::default,
        kinds,
        async |lab: &Lab, run: &Run| {
            let handle = run
                .wait(run.executor.submit(Planned(submit())).key("k").into_future())
                .await??;
            run.until("stage 2 has begun", || lab.has("a2")).await?;
            let status = handle.status().await?;
            if status.cause.is_none() && status.state != ProcedureState::Success {
                run.wait(run.executor.abort(
                    handle.id(),
                    procession::operate::OperatorRequest::new("somebody", "no need"),
                ))
                .await??;
            }
            lab.open("go on");
            run.wait(handle.outcome()).await?.ok();
            assert_eq!(
                handle.status().await?.cause.map(|cause| cause.text),
                Some("aborted by somebody: no need".to_owned())
            );
            Ok(())
        },
        &["rows"],
        Lab::compare,
    )?;
    check(done, &Expected { commits: 6, torn: 33 });
    Ok(())
}

#[test]
fn e_092_e_093_crashes_in_six_time_outs() -> Tested {
    let mut acts = vec![Act::Wait("never".to_owned(), Some(500)); 6];
    acts.push(Act::Fail("six time-outs".to_owned()));
    check(
        enumerate_one(|| Planned(plan("a", acts.clone())))?,
        &Expected { commits: 21, torn: 90 },
    );
    Ok(())
}

#[test]
fn e_092_e_093_crashes_while_a_signal_is_retried() -> Tested {
    let submit = || {
        plan(
            "a",
            [
                Act::Wait("go".to_owned(), None),
                Act::Retry(2, Box::new(Act::DoneSignal)),
            ],
        )
    };
    let done = enumerate(
        Lab::default,
        kinds,
        async |lab: &Lab, run: &Run| {
            let handle = run
                .wait(run.executor.submit(Planned(submit())).key("k").into_future())
                .await??;
            // Sent before the wait it would be consumed there, and wake nobody.
            run.settle().await;
            match run
                .wait(run.executor.signal(handle.id(), "go", &42_i64).key("s"))
                .await?
            {
                Ok(_) | Err(AskError::Finished { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            let payload = run.wait(handle.outcome()).await??;
            assert_eq!(payload, 42);
            assert!(lab.has("a2"));
            Ok(())
        },
        &["rows"],
        Lab::compare,
    )?;
    check(done, &Expected { commits: 8, torn: 37 });
    Ok(())
}

#[test]
fn e_093_a_crash_before_the_starts_own_commit_leaves_the_store_as_it_was() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let waits = plan("a", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
        run.wait(run.executor.submit(Planned(waits)).into_future()).await??;
        run.settle().await;
        Ok(())
    })?;
    let before = world.disk.len();
    for _ in 0..3 {
        let ended = world.run(
            FaultPlan::at(0, Fault::CrashBefore),
            |builder| kinds(&lab, builder),
            async |_| Ok(()),
        )?;
        assert!(matches!(ended, Ended::Crashed));
        assert_eq!(world.disk.len(), before);
    }
    Ok(())
}

use std::future::IntoFuture;
