//! The export of a family: everything that the journal holds of it, whatever its state.

use std::future::IntoFuture;

use futures::executor::block_on;
use procession::errors::{AskError, ReadError, StartError};
use procession::offline::FamilyExport;
use procession::provider::{Batch, JournalStore, Space};
use procession::status::{Ending, ProcedureState};
use procession::testkit::{FaultPlan, MemoryStore, Run, Trouble, World};
use procession::{Executor, Handle, ProcedureId};

use crate::support::{Act, Lab, Patient, Planned, Tested, UndoAct, failing, kinds, live_in, plan, spawn};

/// Everything on disk of the only family there is.
fn on_disk(world: &World) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let spaces = Space::ENGINE.into_iter().filter(|space| *space != Space::Meta);
    let dumped = spaces.flat_map(|space| {
        let name = space.name();
        world
            .disk
            .dump(&space)
            .into_iter()
            .map(move |(key, value)| (name.clone(), key, value))
    });
    let mut all: Vec<_> = dumped.collect();
    all.sort();
    all
}

fn raw(export: &FamilyExport) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let entries = export.entries.iter();
    let mut all: Vec<_> = entries
        .map(|entry| {
            (
                entry.space.clone(),
                entry.key.as_slice().to_vec(),
                entry.value.as_slice().to_vec(),
            )
        })
        .collect();
    all.sort();
    all
}

/// As bytes and back, and as text and back.
fn travels(export: &FamilyExport) -> Tested {
    let bytes = export.to_bytes()?;
    assert_eq!(FamilyExport::from_bytes(&bytes)?, *export);
    let text = serde_json::to_string(export)?;
    assert_eq!(serde_json::from_str::<FamilyExport>(&text)?, *export);
    Ok(())
}

/// A parent that waits for its child, which waits for an event.
fn waiting() -> Planned {
    let child = plan("c", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
    Planned(plan("p", [Act::Next, spawn([child]), Act::Done(2)]))
}

async fn submit(run: &Run, procedure: Planned) -> Result<ProcedureId, Trouble> {
    let submitted = run.executor.submit(procedure).key("the key");
    let handle: Handle<Planned> = run.wait(submitted.into_future()).await??;
    run.settle().await;
    Ok(handle.id())
}

#[test]
fn a_live_family_is_exported_whole() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let id = submit(run, waiting()).await?;
        let child = ProcedureId::new(id.family, 1);
        run.executor.signal(child, "later", &7_i64).key("k").await?;
        // Any member names the family.
        let export = run.executor.export(child).await?;
        assert_eq!(raw(&export), on_disk(&world));
        assert!(export.whole && export.unreadable.is_empty() && export.quarantined.is_none());
        assert_eq!(export.statuses(), run.executor.tree(id).await?);
        assert_eq!(export.history(), run.executor.history(id).await?);
        let shown: Vec<_> = export
            .procedures
            .iter()
            .map(|one| (one.id.clone(), one.state.clone(), one.wait.clone().unwrap_or_default()))
            .collect();
        let word = |state: ProcedureState| state.to_string();
        assert_eq!(
            shown,
            [
                (
                    id.to_string(),
                    word(ProcedureState::Waiting),
                    "waits for its children".to_owned()
                ),
                (
                    child.to_string(),
                    word(ProcedureState::WaitingTimeout),
                    "waits for the event go".to_owned()
                ),
            ]
        );
        assert_eq!(
            export
                .procedures
                .iter()
                .filter_map(|one| one.key.as_deref())
                .collect::<Vec<_>>(),
            ["the key"]
        );
        let ended: Vec<_> = export
            .stages
            .iter()
            .map(|one| (one.id.clone(), one.ending.as_str()))
            .collect();
        assert_eq!(
            ended,
            [
                (id.to_string(), "Next"),
                (id.to_string(), "Spawn"),
                (child.to_string(), "Wait")
            ]
        );
        travels(&export)?;
        let unknown = run.executor.export(ProcedureId::root(id.family + 1)).await;
        assert!(matches!(unknown, Err(AskError::Unknown(_))), "{unknown:?}");
        Ok(())
    })
}

#[test]
fn a_finished_family_is_exported_whole() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let id = submit(run, Planned(failing("f", 2).undo(1, UndoAct::Fail(1)))).await?;
        let outcome = run.wait(run.executor.outcome(id)).await??;
        assert_eq!(outcome.state, ProcedureState::RolledBack);
        let export = run.executor.export(id).await?;
        assert_eq!(raw(&export), on_disk(&world));
        assert!(export.entries.iter().any(|entry| entry.space == "finished"));
        assert!(export.history().iter().any(|entry| entry.ending == Ending::UndoFailed));
        assert_eq!(export.statuses(), run.executor.tree(id).await?);
        travels(&export)
    })
}

#[test]
fn a_quarantined_family_is_exported_with_its_reason() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let Planned(of_patient) = waiting();
    let id = live_in(&world, &lab, async |run| {
        let submitted = run.executor.submit(Patient(of_patient)).key("the key");
        let id = run.wait(submitted.into_future()).await??.id();
        run.settle().await;
        Ok(id)
    })?;
    let before = on_disk(&world);
    world
        .run(
            FaultPlan::none(),
            |builder| builder.register::<Planned>(lab.clone()),
            async |run| {
                let export = run.executor.export(id).await?;
                assert_eq!(raw(&export), before, "untouched, and exported");
                let why = export.quarantined.as_deref().unwrap_or_default();
                assert!(why.contains("no procedure of kind \"patient\""), "{why}");
                assert_eq!(export.statuses().len(), 2);
                travels(&export)
            },
        )?
        .done()?;
    Ok(())
}

#[test]
fn a_damaged_family_is_exported_as_far_as_it_is_there() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = live_in(&world, &lab, async |run| submit(run, waiting()).await)?;
    let store = MemoryStore::open(&world.disk, FaultPlan::none())?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    let keys = world.disk.dump(&Space::Procedures);
    let (root, _) = keys.first().ok_or("its rows are gone")?;
    batch.put(Space::Procedures, root, b"no row");
    block_on(store.append(batch))?;
    drop(store);
    let before = on_disk(&world);
    live_in(&world, &lab, async |run| {
        let export = run.executor.export(id).await?;
        assert_eq!(raw(&export), before, "the key is found, though the root cannot name it");
        assert_eq!(export.statuses().len(), 1, "the child can be read");
        let [unreadable] = &export.unreadable[..] else {
            return Err(format!("{:?}", export.unreadable).into());
        };
        assert!(unreadable.contains(&format!("the row of {id}")), "{unreadable}");
        travels(&export)
    })
}

#[test]
fn a_closed_journal_is_exported_the_same() -> Tested {
    let place = tempfile::tempdir()?;
    let place = place.path().join("journal");
    let lab = Lab::default();
    actix_rt::System::new().block_on(async {
        let executor = kinds(&lab, Executor::builder(&place)).start().await?;
        let handle = executor
            .submit(Planned(failing("f", 2)))
            .key("the key")
            .into_future()
            .await?;
        // How it ends is in the export.
        handle.outcome().await.err().ok_or("it was to fail")?;
        let live = executor.export(handle.id()).await?;
        let held = Executor::builder(&place).offline().await.err();
        assert!(matches!(held, Some(StartError::Store(_))), "{held:?}");
        executor.drain(std::time::Duration::from_secs(10)).await?;
        drop(executor);

        let offline = Executor::builder(&place).offline().await?;
        assert_eq!(offline.export(handle.id()).await?.as_ref(), Some(&live));
        let none = offline.export(ProcedureId::root(handle.id().family + 1)).await?;
        assert_eq!(none, None);
        let size = raw(&live)
            .iter()
            .map(|(_, key, value)| key.len() + value.len())
            .sum::<usize>();
        assert!(offline.export_up_to(handle.id(), size).await?.is_some());
        let refused = offline.export_up_to(handle.id(), size - 1).await;
        let Err(AskError::Read(ReadError::TooLarge { limit, .. })) = &refused else {
            return Err(format!("{refused:?}").into());
        };
        assert_eq!(*limit, size - 1);
        let text = refused.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(
            text.contains(&format!("family {}", handle.id().family)) && text.contains("offline"),
            "{text}"
        );
        Ok(())
    })
}

#[test]
fn an_export_of_a_newer_format_or_without_its_end_is_refused() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let id = submit(run, waiting()).await?;
        let mut export = run.executor.export(id).await?;
        let bytes = export.to_bytes()?;
        let torn = bytes.get(..bytes.len() - 1).unwrap_or_default();
        assert!(FamilyExport::from_bytes(torn).is_err());
        assert!(FamilyExport::from_bytes(&[]).is_err());
        assert_eq!(export.format, 1, "without labels, earlier releases can read it");
        export.format = FamilyExport::NEWEST_FORMAT + 1;
        let newer = FamilyExport::from_bytes(&export.to_bytes()?).err();
        let text = newer.map(|error| error.to_string()).unwrap_or_default();
        assert!(text.contains("format 3") && text.contains("up to 2"), "{text}");
        Ok(())
    })
}
