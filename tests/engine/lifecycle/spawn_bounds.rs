//! Spawns that are refused, and the one that spawns nothing.

use procession::errors::ProcedureError;
use procession::status::{Cause, CauseKind, ProcedureState, Status};
use procession::testkit::{Run, Trouble};
use procession::{Builder, ProcedureId};

use super::kit::{Changes, enumerate_in, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate_plan, kinds, live, plan, spawn};

fn bounded(lab: &Lab, builder: Builder) -> Builder {
    kinds(lab, builder).max_children(100).max_depth(4)
}

/// Runs one that fails; gives why, and its whole family.
async fn failed(run: &Run, plan: &Plan) -> Result<(Cause, Vec<Status>), Trouble> {
    let handle = submit(run, Planned(plan.clone()), "k").await?;
    match run.wait(handle.outcome()).await? {
        Err(ProcedureError::RolledBack { cause, .. }) => Ok((cause, run.executor.tree(handle.id()).await?)),
        other => Err(format!("{other:?}").into()),
    }
}

#[test]
fn e_021_too_many_children_are_refused() -> Tested {
    let root = plan("r", [spawn(vec![chain("c", 1); 101]), Act::Done(1)]);
    let drive = async |_: &Lab, run: &Run| {
        let (cause, family) = failed(run, &root).await?;
        assert_eq!(cause.kind, CauseKind::OverBound);
        assert!(
            cause.text.contains("101") && cause.text.contains("100"),
            "{}",
            cause.text
        );
        assert_eq!(family.len(), 1);
        Ok(())
    };
    let (done, lab) = enumerate_in(Lab::default, bounded, drive)?;
    assert_eq!((done.commits, lab.line().as_str()), (3, "r1 r1'"));
    Ok(())
}

#[test]
fn e_021_a_family_too_deep_is_refused() -> Tested {
    let parent = |name, child| plan(name, [spawn([child]), Act::Done(1)]);
    let root = parent("r", parent("s", parent("t", parent("u", chain("v", 1)))));
    let drive = async |_: &Lab, run: &Run| {
        let (cause, family) = failed(run, &root).await?;
        assert_eq!((cause.kind, cause.origin.member), (CauseKind::OverBound, 3));
        assert!(cause.text.contains('5') && cause.text.contains('4'), "{}", cause.text);
        assert_eq!(family.len(), 4);
        Ok(())
    };
    let (_, lab) = enumerate_in(Lab::default, bounded, drive)?;
    assert_eq!(lab.line(), "r1 s1 t1 u1 u1' t1' s1' r1'");
    Ok(())
}

#[test]
fn e_021_an_empty_spawn_is_next() -> Tested {
    let root = plan("r", [spawn([]), Act::Done(1)]);
    let lab = Lab::default();
    live(&lab, async |run| {
        let changes = Changes::watch(run).await?;
        let handle = submit(run, Planned(root.clone()), "k").await?;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        run.settle().await;
        let (runnable, success) = (ProcedureState::Runnable, ProcedureState::Success);
        assert_eq!(changes.states(ProcedureId::root(1)), [runnable, runnable, success]);
        Ok(())
    })?;
    let (done, lab) = enumerate_plan(&root)?;
    assert_eq!((done.commits, lab.line().as_str()), (3, "r1 r2"));
    Ok(())
}
