//! A parent and its children through restarts, round after round.

use procession::testkit::{Fault, FaultPlan, World};

use super::kit::{at_rest, crash, each_ran_twice, enumerate_client, stepped, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate_plan, kinds, live_in, plan, spawn};
use procession::ProcedureId;
use procession::procedure::JoinPolicy;

fn two_in_turn() -> Plan {
    let children = vec![chain("a", 1), chain("b", 1)];
    plan("r", [Act::Spawn(children, JoinPolicy::AllSucceeded, 1), Act::Done(1)])
}

fn three_levels() -> Plan {
    let s = plan("s", [spawn([chain("t", 1)]), Act::Done(2)]);
    plan("r", [spawn([s]), Act::Done(1)])
}

#[test]
fn e_013_stepped_restarts() -> Tested {
    let (restarts, lab) = stepped(&two_in_turn(), Fault::CrashBefore, 2, 2)?;
    assert_eq!((restarts, lab.line().as_str()), (4, "r1 r1 a1 a1 b1 b1 r2 r2"));
    each_ran_twice(&lab)?;
    let (restarts, lab) = stepped(&two_in_turn(), Fault::CrashAfter, 2, 1)?;
    assert_eq!((restarts, lab.line().as_str()), (4, "r1 a1 b1 r2"));
    let (done, _) = enumerate_plan(&two_in_turn())?;
    assert_eq!(done.commits, 5);
    Ok(())
}

#[test]
fn e_014_grandchildren() -> Tested {
    let (done, lab) = enumerate_plan(&three_levels())?;
    assert_eq!((done.commits, lab.line().as_str()), (6, "r1 s1 t1 s2 r2"));
    let (restarts, lab) = stepped(&three_levels(), Fault::CrashBefore, 2, 2)?;
    assert_eq!((restarts, lab.line().as_str()), (5, "r1 r1 s1 s1 t1 t1 s2 s2 r2 r2"));
    each_ran_twice(&lab)
}

/// Two children, then three; each but the last of its round waits for the one after it.
fn two_rounds() -> Plan {
    let child = |name: &str, output, gate: Option<&str>| {
        let done = Act::Done(output);
        match gate {
            Some(gate) => plan(name, [Act::Held(gate.into(), Box::new(done))]),
            None => plan(name, [done]),
        }
    };
    let first = vec![child("a", 10, Some("b ended")), child("b", 20, None)];
    let second = vec![
        child("c", 30, Some("d ended")),
        child("d", 40, Some("e ended")),
        child("e", 50, None),
    ];
    let round = |children| Act::Spawn(children, JoinPolicy::AllSucceeded, 0);
    plan(
        "r",
        [
            round(first),
            Act::See(Box::new(round(second))),
            Act::See(Box::new(Act::Done(1))),
        ],
    )
}

#[test]
fn e_016_rounds_ids_and_outputs() -> Tested {
    let ended = std::sync::Mutex::new(Vec::new());
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(two_rounds()), "k").await?;
        for gate in ["b ended", "e ended", "d ended"] {
            // At rest the one that it is named after has ended, save after two
            // crashes: suspects run one at a time, and this one is held back.
            run.settle().await;
            lab.open(gate);
        }
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        let history = run.executor.history(handle.id()).await?;
        let members: Vec<u32> = history.iter().map(|entry| entry.member).collect();
        ended.lock().map_err(|_| "a run panicked")?.push(members);
        Ok(())
    })?;
    assert_eq!(done.commits, 9);
    let ended = ended.into_inner()?;
    assert_eq!(ended.first(), Some(&vec![0, 2, 1, 0, 5, 4, 3, 0]));
    let seen = [
        "r2 saw 1 Success Some(10) None",
        "r2 saw 2 Success Some(20) None",
        "r3 saw 3 Success Some(30) None",
        "r3 saw 4 Success Some(40) None",
        "r3 saw 5 Success Some(50) None",
    ];
    assert_eq!(lab.noted(), seen);
    Ok(())
}

#[test]
fn e_022_a_parent_does_not_run_early() -> Tested {
    let last = Act::Held("gate".into(), Box::new(Act::Done(1)));
    let child = plan("c", [Act::Wait("go".into(), None), last]);
    let root = plan("r", [spawn([child]), Act::Done(1)]);
    let child = ProcedureId::new(1, 1);
    let (world, lab) = (World::new(), Lab::default());
    for _ in 0..3 {
        world.run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder),
            async |run| {
                submit(run, Planned(root.clone()), "k").await?;
                at_rest(run, child).await?;
                crash::<Tested>(run).await
            },
        )?;
        assert_eq!(lab.line(), "r1 c1");
    }
    live_in(&world, &lab, async |run| {
        let handle = submit(run, Planned(root.clone()), "k").await?;
        at_rest(run, child).await?;
        assert!(!lab.has("r2"));
        run.executor.signal(child, "go", &1_i64).await?;
        run.settle().await;
        assert_eq!(lab.line(), "r1 c1 c2");
        lab.open("gate");
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        Ok(())
    })?;
    assert_eq!(lab.line(), "r1 c1 c2 r2");
    let (done, lab) = enumerate_client(async |lab, run| {
        lab.open("gate");
        let handle = submit(run, Planned(root.clone()), "k").await?;
        let child = ProcedureId::new(handle.id().family, 1);
        if at_rest(run, child).await?.ended.is_none() {
            run.wait(run.executor.signal(child, "go", &1_i64).key("s")).await??;
        }
        run.wait(handle.outcome()).await??;
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (6, "r1 c1 c2 r2"));
    Ok(())
}
