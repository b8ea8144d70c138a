//! A child that is a family of its own.

use procession::ProcedureId;
use procession::status::ProcedureState;

use super::kit::{Changes, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, chain, enumerate_plan, live, plan, spawn};

fn root() -> Plan {
    plan("r", [spawn([chain("D", 1).detached()]), Act::Fail("boom".into())])
}

#[test]
fn e_020_a_detached_child_is_left_alone() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let changes = Changes::watch(run).await?;
        let handle = submit(run, Planned(root()), "k").await?;
        assert!(run.wait(handle.outcome()).await?.is_err());
        let detached = ProcedureId::root(handle.id().family + 1);
        let outcome = run.wait(run.executor.outcome(detached)).await??;
        assert_eq!(outcome.state, ProcedureState::Success);
        run.settle().await;
        assert!(!changes.states(handle.id()).contains(&ProcedureState::Waiting));
        assert_eq!(run.executor.tree(handle.id()).await?.len(), 1);
        let history = run.executor.history(detached).await?;
        assert_eq!(history.iter().map(|entry| entry.stands).collect::<Vec<_>>(), [true]);
        Ok(())
    })?;
    let of_root: Vec<String> = lab
        .calls()
        .iter()
        .map(|call| call.short())
        .filter(|call| call.starts_with('r'))
        .collect();
    assert_eq!(
        (of_root.join(" ").as_str(), lab.count("D1"), lab.count("D1'")),
        ("r1 r2 r2' r1'", 1, 0)
    );
    let (done, _) = enumerate_plan(&root())?;
    assert_eq!(done.commits, 6);
    Ok(())
}
