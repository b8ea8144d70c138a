//! When a parent goes on though not all of its children have succeeded.

use std::time::Duration;

use procession::ProcedureId;
use procession::errors::ProcedureError;
use procession::procedure::JoinPolicy;
use procession::status::{Cause, ProcedureState};
use procession::testkit::{Fault, Run, Trouble};

use super::kit::{Changes, at_rest, each_ran_twice, enumerate_client, state_in, stepped, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate_plan, failing, live, plan};

fn joined(children: Vec<Plan>, join: JoinPolicy, width: u32) -> Plan {
    plan(
        "r",
        [Act::Spawn(children, join, width), Act::See(Box::new(Act::Done(1)))],
    )
}

fn member(number: u32) -> ProcedureId {
    ProcedureId::new(1, number)
}

#[test]
fn e_017_join_on_all_finished() -> Tested {
    let children = vec![chain("a", 1), failing("b", 1), chain("c", 1)];
    let (done, lab) = enumerate_plan(&joined(children, JoinPolicy::AllFinished, 1))?;
    assert_eq!((done.commits, lab.line().as_str()), (7, "r1 a1 b1 b1' c1 r2"));
    let seen = [
        "r2 saw 1 Success Some(7) None",
        "r2 saw 2 RolledBack None Some(\"boom\")",
        "r2 saw 3 Success Some(7) None",
    ];
    assert_eq!(lab.noted(), seen);
    Ok(())
}

fn waiting(name: &str) -> Plan {
    plan(name, [Act::Wait("go".into(), None), Act::Done(7)])
}

fn two_of_four() -> Plan {
    let children = vec![chain("a", 1), chain("b", 1), waiting("c"), waiting("d")];
    joined(children, JoinPolicy::AtLeast(2), 0)
}

/// Lets the root end first, then the children that it left behind.
async fn left_behind(run: &Run) -> Result<ProcedureId, Trouble> {
    let handle = submit(run, Planned(two_of_four()), "k").await?;
    assert_eq!(run.wait(handle.outcome()).await??, 1);
    for number in [3, 4] {
        let child = ProcedureId::new(handle.id().family, number);
        if at_rest(run, child).await?.ended.is_none() {
            run.wait(run.executor.signal(child, "go", &1_i64).key("s")).await??;
        }
        run.wait(run.executor.outcome(child)).await??;
    }
    Ok(handle.id())
}

#[test]
fn e_018_join_on_at_least_two() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        left_behind(run).await?;
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (11, "r1 a1 b1 c1 d1 r2 c2 d2"));
    let lab = Lab::default();
    live(&lab, async |run| {
        let changes = Changes::watch(run).await?;
        let handle = submit(run, Planned(two_of_four()), "k").await?;
        run.wait(handle.outcome()).await??;
        run.settle().await;
        let second = changes.first(member(2), ProcedureState::Success)?;
        assert_eq!(state_in(&second, member(0)), Some(ProcedureState::Runnable));
        // The family is not over, so its results stay however long it takes.
        run.pass(Duration::from_secs(3_600)).await;
        assert_eq!(run.executor.snapshot().await?.commits, 7);
        assert_eq!(at_rest(run, handle.id()).await?.state, ProcedureState::Success);
        let root = left_behind(run).await?;
        assert_eq!(run.executor.snapshot().await?.commits, 11);
        run.pass(Duration::from_secs(15 * 60 - 1)).await;
        assert!(at_rest(run, root).await?.ended.is_some());
        run.pass(Duration::from_secs(2)).await;
        assert!(at_rest(run, root).await.is_err());
        Ok(())
    })
}

#[test]
fn e_018_join_on_at_least_three_fails_with_the_second_failure() -> Tested {
    let children = vec![failing("a", 1), failing("b", 1), waiting("c"), waiting("d")];
    let root = joined(children, JoinPolicy::AtLeast(3), 0);
    let (_, lab) = enumerate_plan(&root)?;
    assert!(!lab.has("r2"));
    let lab = Lab::default();
    live(&lab, async |run| {
        let changes = Changes::watch(run).await?;
        let handle = submit(run, Planned(root.clone()), "k").await?;
        assert!(run.wait(handle.outcome()).await?.is_err());
        run.settle().await;
        let family = changes.first(member(0), ProcedureState::Failed)?;
        let [first, second] = [1, 2].map(|number| changes.first(member(number), ProcedureState::Failed));
        assert!(first?.seq < family.seq);
        assert_eq!(second?.seq, family.seq);
        for status in run.executor.tree(handle.id()).await? {
            assert_eq!(status.state, ProcedureState::RolledBack, "{}", status.id);
        }
        Ok(())
    })
}

fn named(children: Vec<Plan>, width: u32) -> Plan {
    joined(children, JoinPolicy::Named(vec![0, 2]), width)
}

#[test]
fn e_019_join_on_a_named_set() -> Tested {
    let children = vec![chain("a", 1), failing("b", 1), chain("c", 1)];
    let root = named(children.clone(), 0);
    let (_, lab) = enumerate_plan(&root)?;
    let undone: Vec<String> = lab
        .calls()
        .iter()
        .filter(|call| call.undo)
        .map(|call| call.short())
        .collect();
    assert_eq!((undone, lab.count("r2")), (vec!["b1'".to_owned()], 1));
    // A restart before every end, the children's among them. One at a time: of
    // several that meet two crashes each, the engine takes one for the killer.
    let (restarts, lab) = stepped(&named(children, 1), Fault::CrashBefore, 2, 2)?;
    assert_eq!(
        (restarts, lab.line().as_str()),
        (6, "r1 r1 a1 a1 b1 b1 b1' b1' c1 c1 r2 r2")
    );
    each_ran_twice(&lab)
}

#[test]
fn e_019_a_named_child_that_fails_is_named() -> Tested {
    let root = named(vec![chain("a", 1), chain("b", 1), failing("c", 1)], 0);
    let (_, lab) = enumerate_plan(&root)?;
    assert!(!lab.has("r2"));
    let lab = Lab::default();
    let cause: Cause = live(&lab, async |run| {
        let handle = submit(run, Planned(root.clone()), "k").await?;
        match run.wait(handle.outcome()).await? {
            Err(ProcedureError::RolledBack { cause, .. }) => Ok(cause),
            other => Err(format!("{other:?}").into()),
        }
    })?;
    assert_eq!((cause.origin, cause.text.as_str()), (member(3), "boom"));
    Ok(())
}
