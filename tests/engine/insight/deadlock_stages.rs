//! A deadlock between stages: each holds for life what its first stage took, and its next one wants
//! what the other has. Aborting the victim resolves it, though the victim lacks what it waited for.

use std::time::Duration;

use procession::testkit::{Run, Trouble, enumerate};
use procession::{LockNeed, ProcedureId, ProcedureState, Rule};

use super::kit::set_up;
use crate::support::{Act, Holding, Lab, Tested, plan};

/// Holds one path from its first stage on; its second wants the other, too.
async fn submit(run: &Run, name: &str, holds: &str, wants: &str) -> Result<ProcedureId, Trouble> {
    let mut plan = plan(name, [Act::Sleep(1_000), Act::Done(1)]).exclusive(holds);
    plan.locks.entry(2).or_default().push(LockNeed::exclusive(wants));
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
            run.executor.abort(b, "the test", "a deadlock").await?;
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
