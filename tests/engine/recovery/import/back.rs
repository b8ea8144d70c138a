//! A family that was discharged comes back into its own journal, out of the archive.

use std::sync::Arc;

use futures::executor::block_on;
use procession::offline::FamilyExport;
use procession::operate::OperatorRequest;
use procession::status::ProcedureState;
use procession::testkit::{FaultPlan, MemoryStore, World};
use procession::{Executor, ProcedureId};

use super::{import, resume};
use crate::support::{Act, Lab, Patient, Planned, Tested, failing, live_in, plan};

/// Reads it out of the archive of a closed journal.
fn archived(world: &World, family: u64) -> Result<Option<FamilyExport>, procession::testkit::Trouble> {
    let store = Arc::new(MemoryStore::open(&world.disk, FaultPlan::none())?);
    block_on(async {
        let importer = Executor::builder(store).importer().await?;
        Ok(importer.archived(family).await?)
    })
}

#[test]
fn a_start_without_its_code_sets_it_aside_and_one_with_it_goes_on() -> Tested {
    let waits = plan("c", [Act::Next, Act::Sleep(1_000), Act::Done(1)]);
    let (id, export) = live_in(&World::new(), &Lab::default(), async |run| {
        let id = run.executor.submit(Patient(waits)).await?.id();
        run.settle().await;
        Ok((id, run.executor.export(id).await?))
    })?;
    let (here, lab) = (World::new(), Lab::default());
    import(&here, &export)?;
    let without = |builder: procession::Builder| builder.register::<Planned>(lab.clone());
    let quarantined = here.run(FaultPlan::none(), without, async |run| {
        run.settle().await;
        Ok(run.executor.snapshot().await?.quarantined)
    });
    let quarantined = quarantined?.done()?;
    assert!(
        matches!(&quarantined[..], [(family, why)] if *family == id.family && why.contains("\"patient\"")),
        "{quarantined:?}"
    );
    live_in(&here, &lab, async |run| {
        run.pass(std::time::Duration::from_secs(3_600)).await;
        assert_eq!(lab.line(), "", "its time is up, and it is paused");
        resume(run, id).await?;
        let outcome = run.wait(run.executor.outcome(id)).await??;
        assert_eq!((outcome.state, lab.line().as_str()), (ProcedureState::Success, "c3"));
        Ok(())
    })
}

#[test]
fn a_discharged_family_comes_back_out_of_the_archive() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let waits = plan("c", [Act::Next, Act::Wait("go".to_owned(), None), Act::Done(1)]);
    let id = live_in(&world, &lab, async |run| {
        let id = run.executor.submit(Patient(waits)).key("the key").await?.id();
        run.settle().await;
        Ok(id)
    })?;
    // Its code is gone, and somebody gives it up.
    let without = |builder: procession::Builder| builder.register::<Planned>(lab.clone());
    world
        .run(FaultPlan::none(), without, async |run| {
            run.executor
                .discharge(id.family, OperatorRequest::new("ann", "nobody has its code"))
                .await?;
            run.settle().await;
            Ok(())
        })?
        .done()?;
    assert_eq!(archived(&world, id.family + 1)?, None);
    let export = archived(&world, id.family)?.ok_or("it is in the archive")?;
    let imported = import(&world, &export)?;
    let warned = imported.warnings.join("; ");
    assert!(warned.contains("no procedure of kind \"patient\""), "{warned}");
    assert!(!warned.contains("of its own"), "it is the very one: {warned}");
    live_in(&world, &lab, async |run| {
        assert_eq!(run.executor.archive().await?.len(), 1, "what it was then stays");
        resume(run, id).await?;
        run.executor.signal(id, "go", &()).await?;
        let outcome = run.wait(run.executor.outcome(id)).await??;
        assert_eq!(outcome.state, ProcedureState::Success);
        assert_eq!(lab.line(), "c1 c2 c3", "no stage ran twice");
        let born = run.executor.submit(Planned(plan("n", [Act::Done(1)]))).await?;
        assert!(born.id() > ProcedureId::new(id.family, u32::MAX));
        Ok(())
    })
}

#[test]
fn what_failed_runs_again_with_its_first_value_where_it_was_imported() -> Tested {
    let (id, export) = live_in(&World::new(), &Lab::default(), async |run| {
        let id = run.executor.submit(Planned(failing("f", 3))).await?.id();
        run.wait(run.executor.outcome(id)).await??;
        Ok((id, run.executor.export(id).await?))
    })?;
    assert!(export.history().iter().any(|entry| entry.submitted.is_some()));
    let (here, lab) = (World::new(), Lab::default());
    import(&here, &export)?;
    live_in(&here, &lab, async |run| {
        let again = run
            .executor
            .run_again(id, OperatorRequest::new("ann", "it is mended"))
            .await?;
        again.submitted.ok_or("it does not run again")?;
        run.settle().await;
        let first = lab.calls().into_iter().next().ok_or("nothing ran")?;
        assert!(first.value.is_empty() && !first.undo, "{first:?}");
        Ok(())
    })
}
