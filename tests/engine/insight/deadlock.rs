//! Two families that wait for each other: found, told the same from every side,
//! and left for the operator to resolve.

use procession::ProcedureId;
use procession::health::{Deadlock, Rule, WaitingFor};
use procession::messages::{Submit, SubmitBatch};
use procession::status::ProcedureState;
use procession::testkit::{FaultPlan, Run, Trouble, World};

use super::kit::{at, live_in, set_up, the_verdict};
use crate::support::{Act, Holding, Lab, Plan, Tested, enumerate, plan, spawn};

/// Holds one path for life, and has a child that needs the other.
fn holder(name: &str, holds: &str, wants: &str) -> Plan {
    let child = plan(&name.to_lowercase(), [Act::Done(1)]).exclusive(wants);
    plan(name, [spawn([child]), Act::Done(2)]).exclusive(holds)
}

/// Both in one commit, in which each takes its own path.
async fn submit(run: &Run) -> Result<(ProcedureId, ProcedureId), Trouble> {
    let batch = SubmitBatch(vec![
        Submit::new(&Holding(holder("A", "x", "y")))?.key("A"),
        Submit::new(&Holding(holder("B", "y", "x")))?.key("B"),
    ]);
    let ids = run.executor.supervisor().send(batch).await??;
    run.settle().await;
    let [a, b] = ids.as_slice() else {
        return Err("two were submitted".into());
    };
    Ok((*a, *b))
}

/// One verdict, and the same deadlock from each of the four.
async fn found(run: &Run, a: ProcedureId, b: ProcedureId) -> Result<Deadlock, Trouble> {
    let verdict = the_verdict(run).await?;
    assert_eq!((verdict.rule, verdict.procedure), (Rule::Deadlock, Some(b)));
    let deadlock = verdict.deadlock.ok_or("it has links")?;
    let child = |root: ProcedureId| ProcedureId::new(root.family, 1);
    let links: Vec<_> = deadlock
        .cycle
        .iter()
        .map(|link| (link.from, link.to, link.why.clone()))
        .collect();
    assert_eq!(
        links,
        [
            (a, child(a), WaitingFor::Latch),
            (child(a), b, WaitingFor::Lock("y".into())),
            (b, child(b), WaitingFor::Latch),
            (child(b), a, WaitingFor::Lock("x".into())),
        ]
    );
    assert_eq!(deadlock.victim, b, "the youngest of those with the lowest priority");
    for id in [a, child(a), b, child(b)] {
        let explained = run.executor.explain(id).await?;
        assert_eq!(explained.deadlocks, std::slice::from_ref(&deadlock), "from {id}");
    }
    Ok(deadlock)
}

#[test]
fn e_076_a_deadlock_is_found_before_and_after_a_restart() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let drive = async |run: &Run| -> Result<Deadlock, Trouble> {
        let (a, b) = submit(run).await?;
        let deadlock = found(run, a, b).await?;
        run.pass(std::time::Duration::from_hours(24)).await;
        let again = found(run, a, b).await?;
        assert_eq!(again, deadlock, "nobody is killed, and nothing changes");
        Ok(deadlock)
    };
    let before = live_in(&world, &lab, FaultPlan::none(), drive)?;
    assert!(before.cycle.iter().all(|link| link.since == at(0)));
    let after = live_in(&world, &lab, FaultPlan::none(), drive)?;
    assert_eq!(after, before);
    Ok(())
}

#[test]
fn e_076_aborting_the_victim_lets_the_other_succeed() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        let (a, b) = submit(run).await?;
        if run.executor.status(b).await?.state == ProcedureState::Waiting {
            let deadlock = found(run, a, b).await?;
            run.executor
                .abort(
                    deadlock.victim,
                    procession::operate::OperatorRequest::new("the test", "a deadlock"),
                )
                .await?;
        }
        for id in [b, a] {
            run.wait(run.executor.outcome(id)).await??;
        }
        assert_eq!(run.executor.verdicts().await?, []);
        Ok(())
    };
    let lines = std::cell::RefCell::new(Vec::new());
    let done = enumerate(Lab::default, set_up, drive, &[], |plain, crashed, crashes| {
        lines.borrow_mut().push(plain.line());
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(
        lines.borrow()[0],
        "A1 B1 B1' a1 A2",
        "the child of the victim never ran"
    );
    // The batch, A1, B1, the abort, the undo, the grant of the other's child, a1, A2.
    assert_eq!(done.commits, 8);
    Ok(())
}

#[test]
fn e_076_who_waits_behind_a_deadlock_is_not_in_it() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, FaultPlan::none(), async |run| {
        let (a, b) = submit(run).await?;
        let batch = SubmitBatch(vec![Submit::new(&Holding(plan("s", [Act::Done(1)]).exclusive("x")))?]);
        let stranger = run.executor.supervisor().send(batch).await??[0];
        let deadlock = found(run, a, b).await?;
        let explained = run.executor.explain(stranger).await?;
        assert_eq!(explained.deadlocks, [deadlock], "its chain ends there");
        assert!(explained.deadlocks[0].cycle.iter().all(|link| link.from != stranger));
        assert!(explained.ends.is_empty(), "nobody at the end of it can move");

        Ok(())
    })
}
