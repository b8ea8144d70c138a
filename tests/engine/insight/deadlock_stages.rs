//! A deadlock between stages: each holds for life what its first stage took, and its next one wants
//! what the other has. Aborting the victim resolves it, though the victim lacks what it waited for.

use std::time::Duration;

use procession::ProcedureId;
use procession::health::Rule;
use procession::limits::{LockNeed, LockPath};
use procession::procedure::JoinPolicy;
use procession::status::ProcedureState;
use procession::testkit::{FaultPlan, Run, Trouble, World};

use super::kit::{live_in, set_up, the_verdict};
use crate::support::{Act, Holding, Lab, Plan, Planned, Tested, chain, enumerate, plan, spawn};

/// Holds one path from its first stage on; its second wants the other, too.
fn holder(name: &str, holds: &str, wants: &str) -> Plan {
    let mut plan = plan(name, [Act::Sleep(1_000), Act::Done(1)]).exclusive(holds);
    plan.locks
        .entry(2)
        .or_default()
        .push(LockNeed::exclusive(LockPath::parse(wants)));
    plan
}

async fn submit(run: &Run, name: &str, holds: &str, wants: &str) -> Result<ProcedureId, Trouble> {
    let plan = holder(name, holds, wants);
    let id = run.executor.submit(Holding(plan)).key(name).await?.id();
    run.settle().await;
    Ok(id)
}

#[test]
fn e_076_aborting_the_victim_of_a_deadlock_between_stages_lets_the_other_succeed() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let (a, b) = (submit(run, "A", "x", "y").await?, submit(run, "B", "y", "x").await?);
        run.pass(Duration::from_secs(2)).await;
        for verdict in run.executor.verdicts().await? {
            assert_eq!((verdict.rule, verdict.procedure), (Rule::Deadlock, Some(b)));
            run.executor
                .abort(b, procession::operate::OperatorRequest::new("the test", "a deadlock"))
                .await?;
        }
        for id in [b, a] {
            run.wait(run.executor.outcome(id)).await??;
        }
        assert_eq!(run.executor.status(a).await?.state, ProcedureState::Success);
        assert_eq!(run.executor.status(b).await?.state, ProcedureState::RolledBack);
        assert_eq!(run.executor.verdicts().await?, []);
        assert_eq!(run.executor.locks().await?, []);
        Ok(())
    };
    let lines = std::cell::RefCell::new(Vec::new());
    enumerate(Lab::default, set_up, drive, &[], |plain, crashed, crashes| {
        lines.borrow_mut().push(plain.line());
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(lines.borrow()[0], "A1 B1 B1' A2", "x was never B's");
    Ok(())
}

/// Its parent waited for another one alone, and has ended: nobody could abort that.
#[test]
fn e_076_the_victim_of_a_deadlock_is_one_that_has_not_ended() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let b = submit(run, "B", "y", "x").await?;
        let mut left = holder("L", "x", "y");
        left.holding = true;
        let children = vec![chain("Q", 1), left];
        let root = plan("A", [Act::Spawn(children, JoinPolicy::AtLeast(1), 0), Act::Done(2)]);
        let a = run.executor.submit(Planned(root)).key("A").await?.id();
        let left = ProcedureId::new(a.family, 2);
        run.wait(run.executor.outcome(a)).await??;
        run.pass(Duration::from_secs(2)).await;
        for verdict in run.executor.verdicts().await? {
            assert_eq!((verdict.rule, verdict.procedure), (Rule::Deadlock, Some(left)));
            assert!(verdict.text.contains(&format!("aborting {left} resolves it")));
            run.executor
                .abort(
                    left,
                    procession::operate::OperatorRequest::new("the test", "a deadlock"),
                )
                .await?;
        }
        run.wait(run.executor.outcome(b)).await??;
        let ended = run.wait(run.executor.outcome(left)).await??;
        assert_eq!(ended.state, ProcedureState::RolledBack);
        assert_eq!(run.executor.verdicts().await?, []);
        assert_eq!(run.executor.locks().await?, []);
        Ok(())
    };
    enumerate(Lab::default, set_up, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    Ok(())
}

/// The younger one, which would be the victim, is beyond its point of no return.
#[test]
fn e_076_the_victim_of_a_deadlock_is_one_that_can_be_aborted() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, FaultPlan::none(), async |run| {
        let a = submit(run, "A", "x", "y").await?;
        let beyond = holder("B", "y", "x").one_way(1);
        let b = run.executor.submit(Holding(beyond)).key("B").await?.id();
        run.settle().await;
        run.pass(Duration::from_secs(2)).await;
        let verdict = the_verdict(run).await?;
        assert_eq!((verdict.rule, verdict.procedure), (Rule::Deadlock, Some(a)));
        run.executor
            .abort(a, procession::operate::OperatorRequest::new("the test", "a deadlock"))
            .await?;
        assert_eq!(run.wait(run.executor.outcome(b)).await??.state, ProcedureState::Success);
        assert_eq!(
            run.wait(run.executor.outcome(a)).await??.state,
            ProcedureState::RolledBack
        );
        assert_eq!(run.executor.verdicts().await?, []);
        Ok(())
    })
}

/// Two rollbacks: each has a child to compensate whose lock the other has taken for life since. Neither child is live, so
/// the search must start from what rolls back.
#[test]
fn e_076_rollbacks_that_wait_for_each_other_are_a_deadlock() -> Tested {
    let failing = |name: &str, child: &str, used: &str, held: &str| {
        let acts = [
            spawn([chain(child, 1).exclusive(used).compensated()]),
            Act::Wait("go".to_owned(), None),
            Act::Sleep(1_000),
            Act::Fail("boom".to_owned()),
        ];
        Holding(plan(name, acts).exclusive_in(3, held))
    };
    let lab = Lab::default();
    live_in(&World::new(), &lab, FaultPlan::none(), async |run| {
        let a = run.executor.submit(failing("A", "a", "y", "x")).await?.id();
        let b = run.executor.submit(failing("B", "b", "x", "y")).await?.id();
        run.settle().await;
        for id in [a, b] {
            run.wait(run.executor.signal(id, "go", &1_i64)).await??;
        }
        run.pass(Duration::from_secs(2)).await;
        assert_eq!(lab.line(), "A1 a1 A2 B1 b1 B2 A3 B3 A4 B4 A4' B4' A3' B3' A2' B2'");
        let verdict = the_verdict(run).await?;
        assert_eq!(verdict.rule, Rule::Deadlock, "{verdict:?}");
        assert!([Some(a), Some(b)].contains(&verdict.procedure), "{verdict:?}");
        Ok(())
    })
}
