//! From a submission to its outcome: how many commits it costs, and in which order.

use std::future::IntoFuture;

use procession::status::ProcedureState;

use crate::support::{Act, Lab, Planned, Tested, chain, end, enumerate_plan, live, plan};

#[test]
fn e_001_one_stage_costs_two_commits() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stage = plan("a", [Act::Held("gate".into(), Box::new(Act::Done(7)))]);
        let handle = run.wait(run.executor.submit(Planned(stage)).into_future()).await??;
        assert_eq!(run.executor.snapshot().await?.commits, 1);
        assert_eq!(handle.status().await?.state, ProcedureState::Runnable);
        lab.open("gate");
        assert_eq!(run.wait(handle.outcome()).await??, 7);
        assert_eq!(run.executor.snapshot().await?.commits, 2);
        assert_eq!(handle.status().await?.state, ProcedureState::Success);
        Ok(())
    })?;
    let (done, _) = enumerate_plan(&chain("a", 1))?;
    assert_eq!(done.commits, 2);
    Ok(())
}

#[test]
fn e_002_a_chain_costs_one_commit_a_stage() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        assert_eq!(end(run, Planned(chain("a", 10)), "k").await??, 7);
        assert_eq!(run.executor.snapshot().await?.commits, 11);
        assert_eq!(lab.calls().len(), 10);
        Ok(())
    })?;
    let (done, _) = enumerate_plan(&chain("a", 10))?;
    assert_eq!(done.commits, 11);
    Ok(())
}
