//! A stage that was out when its family was exported may have run in part: it runs again,
//! but not before somebody lets the family go on.

use procession::ProcedureId;
use procession::limits::LockNeed;
use procession::offline::FamilyExport;
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{Trouble, World};

use super::{import, resume, submit};
use crate::support::{Act, Lab, Planned, Tested, UndoAct, failing, live_in, plan};

/// Exported while its second stage is out, under a lock.
fn with_a_stage_out() -> Result<FamilyExport, Trouble> {
    let (there, lab) = (World::new(), Lab::default());
    let held = Act::Held("gate".to_owned(), Box::new(Act::Next));
    let planned = plan("f", [Act::Next, held, Act::Done(4)]).locks([LockNeed::exclusive("t")]);
    live_in(&there, &lab, async |run| {
        let id = submit(run, Planned(planned), "the key").await?;
        assert!(run.executor.status(id).await?.going && lab.has("f2"));
        Ok(run.executor.export(id).await?)
    })
}

#[test]
fn a_stage_that_was_out_runs_again_when_it_is_resumed() -> Tested {
    let export = with_a_stage_out()?;
    let (here, lab) = (World::new(), Lab::default());
    let imported = import(&here, &export)?;
    let root = imported.procedures.first().ok_or("it has a root")?;
    assert_eq!((root.going, &root.wait), (false, &Some(WaitReason::Suspect)));
    assert_eq!(
        root.locks,
        [LockNeed::exclusive("t")],
        "nobody else enters what it may have begun"
    );
    let warned = imported.warnings.join("; ");
    assert!(
        warned.contains(&format!("a stage of {}.0 was running", export.family)),
        "{warned}"
    );
    // Starts leave it alone, however many.
    for _ in 0..3 {
        live_in(&here, &lab, async |run| {
            run.settle().await;
            run.pass(std::time::Duration::from_secs(3_600)).await;
            assert_eq!(lab.line(), "");
            Ok(())
        })?;
    }
    lab.open("gate");
    live_in(&here, &lab, async |run| {
        let id = ProcedureId::root(export.family);
        resume(run, id).await?;
        let outcome = run.wait(run.executor.outcome(id)).await??;
        assert_eq!(
            (outcome.state, outcome.output::<i64>()?),
            (ProcedureState::Success, Some(4))
        );
        assert_eq!(lab.line(), "f2 f3");
        Ok(())
    })
}

#[test]
fn one_that_is_aborted_runs_what_is_in_doubt_before_it_is_undone() -> Tested {
    let export = with_a_stage_out()?;
    let (here, lab) = (World::new(), Lab::default());
    lab.open("gate");
    import(&here, &export)?;
    live_in(&here, &lab, async |run| {
        let id = ProcedureId::root(export.family);
        run.executor
            .abort(id, procession::operate::OperatorRequest::new("ann", "not wanted here"))
            .await?;
        run.settle().await;
        assert_eq!(lab.line(), "", "paused");
        resume(run, id).await?;
        let outcome = run.wait(run.executor.outcome(id)).await??;
        assert_eq!(outcome.state, ProcedureState::RolledBack);
        assert_eq!(lab.line(), "f2 f2' f1'");
        Ok(())
    })
}

#[test]
fn a_family_that_rolls_back_goes_on_where_it_was() -> Tested {
    let (there, lab) = (World::new(), Lab::default());
    let gate = crate::support::UndoAct::FailUntil("repaired".to_owned());
    let planned = plan("f", [Act::Next, Act::Next, Act::Fail("boom".to_owned())]).undo(2, gate);
    let export = live_in(&there, &lab, async |run| {
        let id = submit(run, Planned(planned), "the key").await?;
        assert!(lab.has("f2'"), "its undo has failed once");
        Ok(run.executor.export(id).await?)
    })?;
    let (here, lab) = (World::new(), Lab::default());
    import(&here, &export)?;
    lab.open("repaired");
    live_in(&here, &lab, async |run| {
        let id = ProcedureId::root(export.family);
        run.pass(std::time::Duration::from_secs(3_600)).await;
        assert_eq!(lab.line(), "", "its backoff is over, and it is paused");
        resume(run, id).await?;
        let outcome = run.wait(run.executor.outcome(id)).await??;
        assert_eq!(outcome.state, ProcedureState::RolledBack);
        assert_eq!(lab.line(), "f2' f1'");
        Ok(())
    })
}

/// A rollback that stops at a hole is what an engine may hold, so it is taken, and the plan says so.
#[test]
fn a_rollback_that_lacks_an_entry_is_told_before_it_is_imported() -> Tested {
    let stuck = failing("f", 3).undo(3, UndoAct::FailUntil("never".to_owned()));
    let export = live_in(&World::new(), &Lab::default(), async |run| {
        let id = submit(run, Planned(stuck), "the key").await?;
        assert_eq!(run.executor.status(id).await?.state, ProcedureState::Failed);
        Ok(run.executor.export(id).await?)
    })?;
    let warned = |export: &FamilyExport| -> Result<bool, Trouble> {
        let warnings = import(&World::new(), export)?.warnings.join("; ");
        let is_told = warnings.contains("the rollback of 1.0 cannot go on");
        assert_eq!(is_told, warnings.contains("its entry 1 is missing"), "{warnings}");
        Ok(is_told)
    };
    assert!(!warned(&export)?, "it lacks nothing");
    let mut broken = export;
    let first = broken.entries.iter().position(|entry| entry.space == "history");
    broken.entries.remove(first.ok_or("it has a history")?);
    assert!(warned(&broken)?);
    Ok(())
}
