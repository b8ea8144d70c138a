//! An import that is cut off leaves all of the family or nothing, and an engine starts on both.

use procession::ProcedureId;
use procession::status::ProcedureState;
use procession::testkit::{Ended, Fault, FaultPlan, World};

use super::{by, dump, import, import_with, live_on, parent, resume, submit};
use crate::support::{Act, Lab, Planned, Tested, chain, live_in};

#[test]
fn a_crash_at_its_commit_leaves_all_or_nothing() -> Tested {
    let there = World::new();
    let export = live_in(&there, &Lab::default(), async |run| {
        submit(run, Planned(chain("c", 2)), "first").await?;
        let id = submit(run, parent(Act::Done(9)), "the key").await?;
        Ok(run.executor.export(id).await?)
    })?;
    let fresh = World::new();
    live_in(&fresh, &Lab::default(), async |run| {
        submit(run, Planned(chain("c", 2)), "first").await?;
        Ok(())
    })?;
    let before = dump(&fresh);
    let plain = fresh.fork();
    import(&plain, &export)?;
    let after = dump(&plain);
    let torn = plain.disk.torn_points(0);
    assert!(torn.len() > 10, "{torn:?}");
    let torn = torn.into_iter().map(|cut| Fault::Torn { cut });
    let lost = [Fault::CrashBefore, Fault::FailWrite, Fault::FailNoSpace];
    let lost: Vec<Fault> = lost.into_iter().chain(torn).collect();
    let there = [Fault::CrashAfter, Fault::FailSync, Fault::Withhold];
    for (fault, is_there) in lost
        .into_iter()
        .map(|fault| (fault, false))
        .chain(there.map(|fault| (fault, true)))
    {
        let world = fresh.fork();
        if fault != Fault::Withhold {
            let ended = import_with(&world, FaultPlan::at(0, fault), &export, &by())?;
            assert!(!matches!(ended, Ended::Done(Ok(_))), "{fault:?} was not acknowledged");
        } else {
            import(&world, &export)?;
        }
        assert_eq!(dump(&world) == after, is_there, "{fault:?}");
        assert_eq!(dump(&world) == before, !is_there, "{fault:?}");
        let id = ProcedureId::root(export.family);
        if !is_there {
            live_in(&world, &Lab::default(), async |run| {
                assert!(run.executor.status(id).await.is_err());
                Ok(())
            })?;
            import(&world, &export)?;
        }
        let ended = live_in(&world, &Lab::default(), async |run| {
            resume(run, id).await?;
            live_on(run, id).await
        })?;
        assert_eq!(ended, (ProcedureState::Success, Some(9)), "{fault:?}");
    }
    Ok(())
}
