//! Since when a lock is held: from its grant on, whatever crashes between, until it is given up.

use std::time::Duration;

use procession::ProcedureId;
use procession::procedure::Timestamp;
use procession::testkit::{FaultPlan, Run, Trouble, World};

use super::kit::{held, nothing_is_left, submit};
use crate::lifecycle::kit::enumerate_client;
use crate::rollback::helper::rolled_back;
use crate::support::{Act, Holding, Lab, Planned, Tested, UndoAct, chain, kinds, plan, spawn};

const MINUTE: Duration = Duration::from_mins(1);

/// Returns who holds this path, and since when.
async fn holders(run: &Run, path: &str) -> Result<Vec<(ProcedureId, Option<Timestamp>)>, Trouble> {
    let locks = run.executor.locks().await?.into_iter();
    let of_path = locks.filter(|lock| lock.path.as_str() == path);
    let holders = of_path.flat_map(|lock| lock.holders.into_iter().map(|(id, _)| id).zip(lock.since));
    Ok(holders.collect())
}

#[test]
fn a_crash_changes_nothing_of_since_when_a_lock_is_held() -> Tested {
    let waits = |name: &str| plan(name, [Act::Wait("go".to_owned(), None), Act::Done(1)]).exclusive("t");
    let (done, lab) = enumerate_client(async |_: &Lab, run: &Run| {
        let first = submit(run, Holding(waits("a")), "a").await?;
        run.pass(MINUTE).await;
        let second = submit(run, Holding(waits("b")), "b").await?;
        run.pass(MINUTE).await;
        for handle in [&first, &second] {
            let status = first.status().await?;
            let of_first = (first.id(), Some(status.submitted));
            // The other has it since the first one's end.
            let expected = match status.ended {
                None => vec![of_first],
                Some(_) if second.status().await?.ended.is_some() => vec![],
                Some(ended) => vec![(second.id(), Some(ended))],
            };
            assert_eq!(holders(run, "t").await?, expected);
            run.wait(run.executor.signal(handle.id(), "go", &1).key("go"))
                .await?
                .ok();
            run.wait(handle.outcome()).await??;
            run.pass(MINUTE).await;
        }
        nothing_is_left(run).await
    })?;
    assert_eq!(lab.line(), "a1 a2 b1 b2");
    // Two submissions, four stages, two signals, and a grant after waiting.
    assert_eq!(done.commits, 2 + 4 + 2 + 1);
    Ok(())
}

/// In a world in which time passes at each gate.
fn on_the_clock(drive: impl AsyncFn(&Lab, &Run) -> Tested) -> Tested {
    let lab = Lab::default();
    World::new()
        .run(
            FaultPlan::none(),
            |builder| kinds(&lab, builder),
            async |run| drive(&lab, run).await,
        )?
        .done()
}

#[test]
fn from_stage_to_stage_it_is_held_on_and_parked_it_is_not() -> Tested {
    on_the_clock(async |lab, run| {
        run.pass(MINUTE).await;
        let acts = [
            held("one", Act::Next),
            held("two", Act::Sleep(1)),
            held("three", Act::Done(1)),
        ];
        let handle = submit(run, Planned(plan("a", acts).exclusive("t")), "a").await?;
        run.settle().await;
        let begun = run.now();
        assert_eq!(holders(run, "t").await?, [(handle.id(), Some(begun))]);
        run.pass(MINUTE).await;
        lab.open("one");
        run.settle().await;
        assert_eq!(lab.line(), "a1 a2");
        assert_eq!(
            holders(run, "t").await?,
            [(handle.id(), Some(begun))],
            "nobody had it between"
        );
        lab.open("two");
        run.settle().await;
        assert_eq!(holders(run, "t").await?, [], "one that sleeps holds nothing");
        run.pass(MINUTE).await;
        let again = holders(run, "t").await?;
        let [(id, Some(since))] = again[..] else {
            return Err(format!("it has it again: {again:?}").into());
        };
        assert!(id == handle.id() && since > begun && since < run.now());
        lab.open("three");
        run.wait(handle.outcome()).await??;
        nothing_is_left(run).await
    })
}

#[test]
fn an_undo_holds_its_locks_since_it_took_them() -> Tested {
    on_the_clock(async |lab, run| {
        let child = chain("c", 1)
            .exclusive("t")
            .compensated()
            .undo(1, UndoAct::Held("undo".to_owned()));
        let root = plan("r", [spawn([child]), held("r2", Act::Fail("boom".to_owned()))]);
        let family = submit(run, Planned(root), "r").await?;
        run.pass(MINUTE).await;
        assert_eq!(holders(run, "t").await?, [], "the child has ended");
        let now = run.now();
        lab.open("r2");
        run.settle().await;
        run.pass(MINUTE).await;
        let child = ProcedureId::new(family.id().family, 1);
        assert_eq!(holders(run, "t").await?, [(child, Some(now))]);
        lab.open("undo");
        rolled_back(run.wait(family.outcome()).await?)?;
        nothing_is_left(run).await
    })
}
