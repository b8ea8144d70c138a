//! Family numbers go on when nothing is left of those that had them.

use std::future::IntoFuture;
use std::time::Duration;

use procession::ProcedureId;
use procession::operate::OperatorRequest;
use procession::provider::Space;
use procession::testkit::{Run, Trouble, World};

use crate::support::{Lab, Planned, Tested, chain, live_in};

async fn ends(run: &Run) -> Result<ProcedureId, Trouble> {
    let handle = run
        .wait(run.executor.submit(Planned(chain("a", 1))).into_future())
        .await??;
    run.wait(handle.outcome()).await??;
    Ok(handle.id())
}

#[test]
fn e_109_numbers_go_on_after_everything_was_deleted() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let mut newest = ProcedureId::root(0);
    for _ in 0..3 {
        let ids = live_in(&world, &lab, async |run| {
            let ids = [ends(run).await?, ends(run).await?];
            run.pass(Duration::from_mins(16)).await;
            Ok(ids)
        })?;
        assert!(newest < ids[0] && ids[0] < ids[1], "{newest}, then {ids:?}");
        newest = ids[1];
        for space in [
            Space::Procedures,
            Space::History,
            Space::Keys,
            Space::Live,
            Space::Finished,
        ] {
            assert!(world.disk.dump(&space).is_empty(), "{space:?} is empty");
        }
    }
    Ok(())
}

#[test]
fn e_109_numbers_go_on_after_a_discharge() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let first = live_in(&world, &lab, ends)?;
    super::world::write(&world, |batch| {
        let key = super::world::key(first.family, 0);
        batch.put(Space::Procedures, &key, b"\x01no row");
        batch.put(Space::Live, &first.family.to_be_bytes(), b"");
    })?;
    live_in(&world, &lab, async |run| {
        run.executor
            .discharge(first.family, OperatorRequest::new("ann", "a test"))
            .await?;
        assert!(ends(run).await? > first);
        Ok(())
    })
}
