//! A family that was exported elsewhere goes on in a world of its own.

use procession::offline::FamilyExport;
use procession::status::ProcedureState;
use procession::testkit::{self, Check, Fault as Kill, FaultPlan, Run, World};

use crate::Tested;
use crate::outside::Outside;
use crate::provision::{Fault, Provision};

/// Runs it elsewhere, crashes it at this commit, and exports it as the next start finds it.
fn exported(fault: Fault, commit: u64) -> Result<FamilyExport, Box<dyn std::error::Error>> {
    let (world, outside) = (World::new(), Outside::new()?);
    let submit = async |run: &Run| {
        let name = "other".to_owned();
        let handle = run.executor.submit(Provision { name, fault }).key("key").await?;
        // Its files are written on other threads, which are no part of the simulation.
        while handle.status().await?.ended.is_none() {
            run.pass(std::time::Duration::from_secs(1)).await;
        }
        Ok(())
    };
    let plan = FaultPlan::at(commit, Kill::CrashAfter);
    world.run(plan, |builder| builder.register::<Provision>(outside), submit)?;
    let export = world.run(
        FaultPlan::none(),
        // Its kind is unknown here, so that it stands still.
        |builder| builder.register::<procession::procedure::Noop>(()),
        async |run: &Run| Ok(run.executor.export(procession::ProcedureId::root(1)).await?),
    );
    let bytes = export?.done()?.to_bytes()?;
    Ok(FamilyExport::from_bytes(&bytes)?)
}

#[test]
fn an_exported_family_goes_on_where_it_stood() -> Tested {
    let export = exported(Fault::None, 3)?;
    assert!(export.quarantined.is_some());
    let outside = Outside::new()?;
    let env = outside.clone();
    let outcome = testkit::replay(&export, move |builder| builder.register::<Provision>(env.clone()))?;
    assert_eq!(outcome.state, ProcedureState::Success);
    assert_eq!(outcome.output::<String>()?.as_deref(), Some("other"));
    // What ran before the export is not run again.
    assert_eq!(outside.effects.standing(), ["announced"]);
    assert_eq!(std::fs::read_dir(outside.path())?.count(), 0);
    Ok(())
}

#[test]
fn a_family_that_has_ended_stands_where_it_stood() -> Tested {
    let export = exported(Fault::Fails, 1_000)?;
    let outside = Outside::new()?;
    let outcome = testkit::replay(&export, move |builder| builder.register::<Provision>(outside.clone()))?;
    assert_eq!(outcome.state, ProcedureState::RolledBack);
    assert_eq!(outcome.cause.map(|cause| cause.text).as_deref(), Some("it is planted"));
    Ok(())
}

#[test]
fn one_whose_kind_is_not_known_is_named() -> Tested {
    let export = exported(Fault::None, 3)?;
    let refused = testkit::replay(&export, |builder| builder.register::<procession::procedure::Noop>(()));
    let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("no procedure of kind \"provision\""), "{text}");
    Ok(())
}

#[test]
fn a_number_that_no_engine_gives_is_refused() -> Tested {
    let mut export = exported(Fault::None, 3)?;
    export.family = u64::MAX;
    let refused = World::of_export(&export);
    let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(text.contains("no engine assigns a family the number"), "{text}");
    Ok(())
}

#[test]
fn an_incident_is_crashed_at_every_commit_from_where_it_stood() -> Tested {
    let register = |outside: &Outside, builder: procession::Builder| builder.register::<Provision>(outside.clone());
    let sound = Check::replaying(&exported(Fault::None, 2)?, Outside::new, register)?;
    let checked = sound.picture(Outside::picture).crash_at_every_commit()?;
    assert!(checked.crashes > 8, "{checked:?}");
    let appends = Check::replaying(&exported(Fault::Appends, 2)?, Outside::new, register)?;
    let finding = appends.picture(Outside::picture).crash_at_every_commit();
    let text = finding.err().map(|finding| finding.to_string()).unwrap_or_default();
    assert!(
        text.contains("a crash before commit") && text.contains("volume\\nvolume"),
        "{text}"
    );
    Ok(())
}

#[test]
fn user_data_are_put_into_a_world() -> Tested {
    let world = World::of_export(&exported(Fault::None, 3)?)?;
    world.put("volumes", "v9", &"there")?;
    let read = world.run(
        FaultPlan::none(),
        |builder| builder.register::<procession::procedure::Noop>(()),
        async |run: &Run| {
            let read = run.executor.get::<String>("volumes", "v9").await?;
            // One that is born here gets another number than the one that came.
            let born = run.executor.submit(procession::procedure::Noop).await?;
            assert!(born.id().family > 1, "{}", born.id());
            Ok(read)
        },
    )?;
    assert_eq!(read.done()?.as_deref(), Some("there"));
    Ok(())
}
