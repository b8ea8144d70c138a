//! Several submissions in one commit, and whose turn it is.

use procession::ProcedureId;
use procession::messages::{Submit, SubmitBatch};
use procession::testkit::{Run, Trouble};

use super::kit::enumerate_client;
use crate::support::{Lab, Planned, Tested, chain, live};

async fn batch(run: &Run) -> Result<Vec<ProcedureId>, Trouble> {
    let mut submits = Vec::new();
    for name in ["A", "B", "C"] {
        submits.push(Submit::new(&Planned(chain(name, 3)))?.key(name));
    }
    let ids = run
        .wait(run.executor.supervisor().send(SubmitBatch(submits)))
        .await???;
    for id in &ids {
        run.wait(run.executor.outcome(*id)).await??;
    }
    Ok(ids)
}

#[test]
fn e_004_next_goes_behind_all_that_wait() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let ids = batch(run).await?;
        assert_eq!(ids, [1, 2, 3].map(ProcedureId::root));
        assert_eq!(run.executor.snapshot().await?.commits, 10);
        Ok(())
    })?;
    assert_eq!(lab.line(), "A1 B1 C1 A2 B2 C2 A3 B3 C3");
    let (done, _) = enumerate_client(async |_, run| {
        batch(run).await?;
        Ok(())
    })?;
    assert_eq!(done.commits, 10);
    Ok(())
}
