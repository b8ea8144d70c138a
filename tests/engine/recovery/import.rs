//! The import of a family: what it was goes on in another journal, or in its own again, when
//! somebody has looked at it.

mod back;
mod crashed;
mod doubt;
mod hostile;
mod labels;
mod refused;

use std::future::IntoFuture;
use std::pin::pin;
use std::sync::Arc;

use futures::executor::block_on;
use futures::future::{Either, select};
use procession::errors::ImportError;
use procession::offline::{FamilyExport, Imported};
use procession::operate::{OperatorRequest, PauseScope};
use procession::provider::{Clock, Space};
use procession::status::{ProcedureState, Seq, WaitReason};
use procession::testkit::{Ended, FaultPlan, MemoryStore, Run, Trouble, World};
use procession::{Builder, Executor, Handle, ProcedureId};
use procession_actors::journal::keys;
use procession_actors::testkit::format;
use procession_actors::testkit::labels::index_agrees;

use crate::support::{Act, Lab, Planned, Tested, UndoAct, failing, kinds, live_in, plan, spawn};

/// Who imports, and why.
pub(super) fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "to look at it")
}

/// Imports into a world in which no engine runs.
pub(super) fn import_with(
    world: &World,
    plan: FaultPlan,
    export: &FamilyExport,
    by: &OperatorRequest,
) -> Result<Ended<Result<Imported, ImportError>>, Trouble> {
    let store = Arc::new(MemoryStore::open(&world.disk, plan)?);
    let builder = Executor::builder(store.clone());
    let builder = builder.clock(Arc::new(world.clock.clone()));
    let crashed = store.crashed();
    let import = async {
        let importer = builder.importer().await?;
        Ok::<_, Trouble>(importer.import(export, by).await)
    };
    let ended = block_on(async {
        match select(pin!(import), crashed).await {
            Either::Left((imported, _)) => imported.map(Ended::Done),
            Either::Right(((), _)) => Ok(Ended::Crashed),
        }
    });
    store.crash();
    ended
}

pub(super) fn import(world: &World, export: &FamilyExport) -> Result<Imported, Trouble> {
    Ok(import_with(world, FaultPlan::none(), export, &by())?.done()??)
}

/// Why an import is refused, and that nothing of it was written.
pub(super) fn refusal(world: &World, export: &FamilyExport) -> Result<ImportError, Trouble> {
    let before = dump(world);
    let refused = import_with(world, FaultPlan::none(), export, &by())?.done()?;
    assert_eq!(dump(world), before, "nothing was written");
    Ok(refused.err().ok_or("it was to be refused")?)
}

/// The index of labels has what the rows have, and something of it.
pub(super) fn labels_are_found(world: &World) -> Tested {
    let live = world.disk.dump(&Space::Live);
    assert!(
        live.iter().any(|(key, _)| keys::parse_label(key).is_some()),
        "it has labels"
    );
    Ok(index_agrees(&world.disk.dump(&Space::Procedures), &live)?)
}

/// Everything on disk.
pub(super) fn dump(world: &World) -> Vec<(Space, Vec<u8>, Vec<u8>)> {
    let spaces = Space::ENGINE.into_iter();
    let all = spaces.flat_map(|space| {
        let entries = world.disk.dump(&space).into_iter();
        entries.map(move |(key, value)| (space.clone(), key, value))
    });
    all.collect()
}

pub(super) async fn submit(run: &Run, procedure: Planned, key: &str) -> Result<ProcedureId, Trouble> {
    let submitted = run.executor.submit(procedure).key(key).label("key", key);
    let handle: Handle<Planned> = run.wait(submitted.into_future()).await??;
    run.settle().await;
    Ok(handle.id())
}

pub(super) async fn resume(run: &Run, id: ProcedureId) -> Tested {
    run.executor
        .resume(PauseScope::One(id), OperatorRequest::new("bob", "looked at it"))
        .await?;
    run.settle().await;
    Ok(())
}

/// Rows without what an import changes, and all else as it is.
fn settled(export: &FamilyExport) -> Result<Vec<(String, Vec<u8>, String)>, Trouble> {
    let mut all = Vec::new();
    for entry in &export.entries {
        let key = entry.key.as_slice();
        let row = keys::parse_row(key).filter(|_| entry.space == "procedures");
        let value = if let Some(id) = row {
            let mut row = format::row(id, entry.value.as_slice())?;
            row.revision = Seq::default();
            row.waits_after = Seq::default();
            row.rare_mut().paused = false;
            format!("{row:?}")
        } else {
            format!("{:?}", entry.value.as_slice())
        };
        all.push((entry.space.clone(), key.to_vec(), value));
    }
    all.sort();
    Ok(all)
}

/// A parent with a child that waits for an event and one that sleeps, both undone with it.
fn parent(end: Act) -> Planned {
    let waits = plan("w", [Act::Wait("go".to_owned(), None), Act::DoneSignal]).compensated();
    let sleeps = plan("s", [Act::Next, Act::Sleep(60_000), Act::Done(3)]).compensated();
    Planned(plan("p", [Act::Next, spawn([waits, sleeps]), end]).undo(1, UndoAct::Fail(1)))
}

/// Lives on until the end: a signal, some time, and what follows.
async fn live_on(run: &Run, id: ProcedureId) -> Result<(ProcedureState, Option<i64>), Trouble> {
    run.executor
        .signal(ProcedureId::new(id.family, 1), "go", &5_i64)
        .await?;
    let outcome = run.wait(run.executor.outcome(id)).await??;
    Ok((outcome.state, outcome.output::<i64>()?))
}

/// Exports it halfway, and lets it end in both worlds; gives how it ended, and what ran since.
fn in_both(end: Act) -> Result<((ProcedureState, Option<i64>), String), Trouble> {
    let (there, lab) = (World::new(), Lab::default());
    let (id, export, began, ended) = live_in(&there, &lab, async |run| {
        let id = submit(run, parent(end.clone()), "the key").await?;
        let child = ProcedureId::new(id.family, 1);
        run.executor.signal(child, "later", &7_i64).key("k").await?;
        let export = run.executor.export(id).await?;
        let began = lab.line();
        Ok((id, export, began, live_on(run, id).await?))
    })?;
    let (here, copy) = (World::new(), Lab::default());
    let imported = import(&here, &export)?;
    labels_are_found(&here)?;
    assert!(imported.live && imported.number.is_some() && imported.due.is_none());
    assert_eq!((imported.procedures.len(), imported.signals), (3, 1));
    let moved = live_in(&here, &copy, async |run| {
        run.settle().await;
        assert_eq!(copy.line(), "", "nothing runs before it is resumed");
        assert!(run.executor.status(id).await?.paused);
        assert_eq!(settled(&run.executor.export(id).await?)?, settled(&export)?);
        resume(run, id).await?;
        live_on(run, id).await
    })?;
    assert_eq!(moved, ended);
    let since = lab.line().replacen(&began, "", 1);
    assert_eq!(copy.line().trim(), since.trim());
    Ok((ended, since))
}

#[test]
fn a_live_family_ends_elsewhere_as_it_would_have_ended() -> Tested {
    let (ended, _) = in_both(Act::Done(9))?;
    assert_eq!(ended, (ProcedureState::Success, Some(9)));
    Ok(())
}

#[test]
fn a_family_that_fails_elsewhere_is_undone_in_the_exact_order() -> Tested {
    let (ended, since) = in_both(Act::Fail("boom".to_owned()))?;
    assert_eq!(ended.0, ProcedureState::RolledBack);
    // Stages of both worlds are among the undone.
    assert!(since.trim().ends_with("p1' p1'") && since.contains("s1'"), "{since}");
    Ok(())
}

#[test]
fn numbers_of_commits_and_families_go_on_above_the_imported() -> Tested {
    let there = World::new();
    let export = live_in(&there, &Lab::default(), async |run| {
        for key in ["a", "b", "c"] {
            submit(run, Planned(failing("f", 9)), key).await?;
        }
        let id = submit(run, parent(Act::Done(1)), "the key").await?;
        Ok(run.executor.export(id).await?)
    })?;
    let newest = export.statuses().iter().map(|status| status.revision).max();
    let here = World::new();
    let imported = import(&here, &export)?;
    assert!(imported.procedures.iter().all(|one| Some(one.revision) > newest));
    live_in(&here, &Lab::default(), async |run| {
        let id = submit(run, Planned(failing("f", 2)), "another").await?;
        assert!(id.family > export.family);
        let status = run.executor.status(id).await?;
        assert!(Some(status.revision) > imported.procedures.first().map(|one| one.revision));
        // The same request as ever is answered with what was imported.
        let again = submit(run, parent(Act::Done(1)), "the key").await?;
        assert_eq!(again.family, export.family);
        let audit = run.executor.audit(None, 10).await?;
        let [entry] = &audit[..] else {
            return Err(format!("one act: {audit:?}").into());
        };
        assert_eq!((Some(entry.number), entry.who.as_str()), (imported.number, "ann"));
        assert_eq!(entry.words, format!("import the family {}", export.family));
        assert_eq!(
            (entry.why.as_str(), entry.target, entry.changed),
            ("to look at it", Some(again), 3)
        );
        Ok(())
    })
}

#[test]
fn a_finished_family_is_kept_from_its_import_on() -> Tested {
    let (there, lab) = (World::new(), Lab::default());
    let set_up = |builder: Builder| kinds(&lab, builder.keep_failures(std::time::Duration::from_mins(15)));
    let end = async |run: &Run| {
        let id = submit(run, Planned(failing("f", 3)), "the key").await?;
        let outcome = run.wait(run.executor.outcome(id)).await??;
        Ok((run.executor.export(id).await?, outcome))
    };
    let (export, outcome) = there.run(FaultPlan::none(), set_up, end)?.done()?;
    let here = World::new();
    let day = std::time::Duration::from_secs(24 * 3_600);
    here.clock.advance_to(there.clock.now().after(10 * day));
    let imported = import(&here, &export)?;
    labels_are_found(&here)?;
    assert!(!imported.live);
    assert_eq!(
        imported.due,
        Some(here.clock.now().after(day)),
        "a day, though it was less"
    );
    let id = ProcedureId::root(export.family);
    live_in(&here, &Lab::default(), async |run| {
        let found = run.executor.outcome(id).await?;
        assert_eq!((found.state, found.cause), (outcome.state, outcome.cause));
        assert_eq!(run.executor.history(id).await?, export.history());
        run.pass(day - std::time::Duration::from_secs(1)).await;
        assert!(run.executor.status(id).await.is_ok());
        run.pass(std::time::Duration::from_secs(2)).await;
        assert!(run.executor.status(id).await.is_err(), "evicted");
        Ok(())
    })?;
    let left = dump(&here)
        .into_iter()
        .filter(|(space, ..)| !matches!(space, Space::Meta | Space::Audit));
    assert_eq!(left.count(), 0, "every entry of it has gone, its key too");
    Ok(())
}

#[test]
fn a_dry_run_says_all_and_writes_nothing() -> Tested {
    let there = World::new();
    let export = live_in(&there, &Lab::default(), async |run| {
        let id = submit(run, parent(Act::Done(1)), "the key").await?;
        Ok(run.executor.export(id).await?)
    })?;
    let here = World::new();
    let planned = import_with(&here, FaultPlan::none(), &export, &by().dry_run())?.done()??;
    assert_eq!(dump(&here), []);
    let done = import(&here, &export)?;
    assert_eq!(planned.number, None);
    assert_eq!(
        (planned.procedures, planned.warnings),
        (done.procedures.clone(), done.warnings.clone())
    );
    let warned = done.warnings.join("; ");
    assert!(
        warned.contains("code of planned (version 1)") && warned.contains("lives nowhere else"),
        "{warned}"
    );
    let [root, child, _] = &done.procedures[..] else {
        return Err("three procedures".into());
    };
    assert!(root.paused && root.key.is_some() && root.wait == Some(WaitReason::Children));
    assert!(matches!(&child.wait, Some(WaitReason::Event(name, _)) if name.as_str() == "go"));
    Ok(())
}
