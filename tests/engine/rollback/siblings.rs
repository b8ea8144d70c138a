//! Members of a family that fails: not started, running, parked, failing too.

use std::time::Duration;

use procession::errors::AskError;
use procession::procedure::JoinPolicy;
use procession::status::ProcedureState as State;
use procession::testkit::{Fault, FaultPlan, Run, World};

use super::helper::{commits, enumerate_client, enumerate_single, rolled_back, states, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate_plan, failing, kinds, live, plan, spawn};

const HOUR: Duration = Duration::from_secs(3600);

fn boom() -> Act {
    Act::Fail("boom".to_owned())
}

fn held(gate: &str, act: Act) -> Act {
    Act::Held(gate.to_owned(), Box::new(act))
}

#[test]
fn e_028_members_not_started_never_run() -> Tested {
    let mut children: Vec<Plan> = (1..=10).map(|number| chain(&format!("c{number}-"), 1)).collect();
    if let Some(second) = children.get_mut(1) {
        *second = failing("c2-", 1);
    }
    let root = plan("r", [Act::Spawn(children, JoinPolicy::AllSucceeded, 1), Act::Done(1)]);
    let (done, lab) = enumerate_plan(&root)?;
    assert_eq!((done.commits, lab.line().as_str()), (6, "r1 c1-1 c2-1 c2-1' r1'"));
    live(&Lab::default(), async |run| {
        let handle = submit(run, Planned(root), "k").await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        let mut ends = vec![State::RolledBack; 11];
        if let Some(first) = ends.get_mut(1) {
            *first = State::Success;
        }
        assert_eq!(states(run, handle.id()).await?, ends);
        Ok(())
    })
}

/// A's stage is held open while B fails.
fn running(a: Plan) -> Plan {
    plan("r", [spawn([a, failing("b", 1)]), Act::Done(1)])
}

#[test]
fn e_031_a_running_sibling_reports_first() -> Tested {
    let next = plan("a", [held("a", Act::Next), Act::Done(1)]);
    let done = plan("a", [held("a", Act::Done(1))]);
    let cases = [
        (next, 7, "b1 a1' b1' r1'", State::RolledBack),
        (done.clone(), 6, "b1 b1' r1'", State::Success),
        (done.compensated(), 7, "b1 a1' b1' r1'", State::RolledBack),
    ];
    for (a, count, calls, end) in cases {
        let root = running(a);
        let (commits, lab) = enumerate_single(async |lab, run| {
            let handle = submit(run, Planned(root.clone()), "k").await?;
            run.until("b has failed", || lab.has("b1")).await?;
            run.pass(HOUR).await;
            if !lab.is_open("a") {
                assert!(
                    !lab.calls().iter().any(|call| call.undo),
                    "an undo in that hour: {}",
                    lab.line()
                );
            }
            lab.open("a");
            rolled_back(run.wait(handle.outcome()).await?)?;
            assert_eq!(
                states(run, handle.id()).await?,
                [State::RolledBack, end, State::RolledBack]
            );
            Ok(())
        })?;
        assert_eq!(commits, count);
        assert!(lab.line().ends_with(calls) && !lab.has("a2"), "{}", lab.line());
    }
    Ok(())
}

/// S sleeps, W waits, N is not started, A runs until it is let, B fails when it is let.
fn parked() -> Plan {
    let s = plan("s", [Act::Sleep(10_000), Act::Done(1)]);
    let w = plan("w", [Act::Wait("go".to_owned(), Some(3_600_000)), Act::Done(1)]);
    let a = plan("a", [held("a", Act::Next), Act::Done(1)]);
    let b = plan("b", [held("b", boom())]);
    plan(
        "r",
        [
            Act::Spawn(vec![s, w, a, b, chain("n", 1)], JoinPolicy::AllSucceeded, 4),
            Act::Done(1),
        ],
    )
}

#[test]
fn e_032_parked_siblings_stop() -> Tested {
    let (_, lab) = enumerate_single(async |lab, run| {
        let handle = submit(run, Planned(parked()), "k").await?;
        run.settle().await;
        lab.open("b");
        run.settle().await;
        lab.open("a");
        rolled_back(run.wait(handle.outcome()).await?)?;
        // What they waited for comes when the family has rolled back.
        let w = lab.id("w").ok_or("w has an id")?;
        let late = run.wait(run.executor.signal(w, "go", &1).key("go")).await?;
        assert!(matches!(late, Err(AskError::Finished { .. })), "{late:?}");
        run.pass(2 * HOUR).await;
        Ok(())
    })?;
    for once in ["s1'", "w1'", "a1'", "b1'", "r1'"] {
        assert_eq!(lab.count(once), 1, "{once} in {}", lab.line());
    }
    for never in ["s2", "w2", "a2", "n1", "n1'"] {
        assert_eq!(lab.count(never), 0, "{never} in {}", lab.line());
    }
    Ok(())
}

#[test]
fn e_032_a_late_wake_is_counted_and_commits_nothing() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(parked()), "k").await?;
        run.settle().await;
        lab.open("b");
        let before = commits(run).await?;
        assert_eq!(run.executor.snapshot().await?.late, 0);
        // A still runs, so the family has not begun to roll back when both times come.
        run.pass(2 * HOUR).await;
        let snapshot = run.executor.snapshot().await?;
        assert_eq!(
            (snapshot.late, snapshot.commits),
            (2, before),
            "the sleep's time and the wait's"
        );
        assert!(!lab.has("s2") && !lab.has("w2"));
        lab.open("a");
        rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(commits(run).await?, before + 6, "a1 and five undos");
        Ok(())
    })
}

/// A and B report in one commit: a stranger's commit is under way, its receipt withheld.
fn both_fail(first: &str, second: &str) -> Tested {
    let lab = Lab::default();
    let fail = |text: &str| Act::Fail(text.to_owned());
    let root = plan(
        "r",
        [
            spawn([
                plan("a", [held("a", fail("of a"))]),
                plan("b", [held("b", fail("of b"))]),
            ]),
            Act::Done(1),
        ],
    );
    let set_up = |builder| kinds(&lab, builder).merge(8).in_flight(1);
    // The stranger is the third commit, behind the submission and the spawn.
    let ended = World::new().run(FaultPlan::at(3, Fault::Withhold), set_up, async |run| {
        let handle = submit(run, Planned(root.clone()), "k").await?;
        run.settle().await;
        let stranger = run.executor.clone();
        let stranger = actix_rt::spawn(async move { stranger.submit(Planned(chain("x", 1))).await.is_ok() });
        run.until("the receipt is withheld", || run.store.is_withholding())
            .await?;
        for gate in [first, second] {
            lab.open(gate);
            run.settle().await;
        }
        let batches = run.store.commits();
        run.store.release_receipts();
        run.until("both are on disk", || run.store.commits() > batches).await?;
        assert!(run.wait(stranger).await??);
        let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(cause.text, format!("of {first}"));
        let tree = run.executor.tree(handle.id()).await?;
        let causes: Vec<_> = tree
            .iter()
            .map(|status| status.cause.as_ref().map(|cause| cause.text.as_str()))
            .collect();
        assert_eq!(
            causes,
            [Some(format!("of {first}").as_str()), Some("of a"), Some("of b")]
        );
        for once in ["a1'", "b1'", "r1'"] {
            assert_eq!(lab.count(once), 1);
        }
        assert!(
            lab.line().ends_with(&format!("{second}1' {first}1' r1'")),
            "{}",
            lab.line()
        );
        let snapshot = run.executor.snapshot().await?;
        assert!(snapshot.commits > snapshot.batches, "the two reports were one commit");
        Ok(())
    })?;
    ended.done()
}

#[test]
fn e_033_two_failures_at_once() -> Tested {
    both_fail("a", "b")?;
    both_fail("b", "a")
}

#[test]
fn e_033_one_after_the_other_through_crashes() -> Tested {
    let (done, lab) = enumerate_client(async |lab: &Lab, run: &Run| {
        let children = ["a", "b"].map(|name| plan(name, [held(name, Act::Fail(format!("of {name}")))]));
        let handle = submit(run, Planned(plan("r", [spawn(children), Act::Done(1)])), "k").await?;
        for gate in ["a", "b"] {
            run.settle().await;
            lab.open(gate);
        }
        let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(cause.text, "of a");
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (7, "r1 a1 b1 b1' a1' r1'"));
    Ok(())
}
