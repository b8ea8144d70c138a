//! What has no room in a journal is refused, with what is in its way.

use std::sync::Arc;

use futures::executor::block_on;
use procession::errors::ImportError;
use procession::limits::LockNeed;
use procession::offline::FamilyExport;
use procession::provider::{AppendError, Batch, JournalStore, Space};
use procession::status::Seq;
use procession::testkit::{FaultPlan, MemoryStore, Trouble, World};
use procession::{Executor, Handle, ProcedureId};

use super::{by, import, import_with, refusal, submit};
use crate::support::{Act, Holding, Lab, Planned, Tested, failing, live_in, plan};

fn waits(name: &str) -> crate::support::Plan {
    plan(name, [Act::Next, Act::Wait("go".to_owned(), None), Act::Done(1)])
}

/// The second family of a world, so that the first of another is in the way of its number no more.
fn second(lock: Option<LockNeed>) -> Result<FamilyExport, Trouble> {
    live_in(&World::new(), &Lab::default(), async |run| {
        submit(run, Planned(failing("f", 1)), "first").await?;
        let handle: Handle<Holding> = run
            .executor
            .submit(Holding(waits("h").locks(lock.into_iter().collect::<Vec<_>>())))
            .key("the key")
            .await?;
        run.settle().await;
        assert_eq!(handle.id().family, 2);
        Ok(run.executor.export(handle.id()).await?)
    })
}

/// A world whose first family holds a lock.
fn holding(lock: LockNeed, key: &str) -> Result<World, Trouble> {
    let world = World::new();
    live_in(&world, &Lab::default(), async |run| {
        run.executor.submit(Holding(waits("o").locks([lock]))).key(key).await?;
        run.settle().await;
        Ok(())
    })?;
    Ok(world)
}

#[test]
fn a_number_that_is_taken_is_refused_however_it_is_taken() -> Tested {
    let there = World::new();
    let export = live_in(&there, &Lab::default(), async |run| {
        let id = submit(run, Planned(waits("w")), "the key").await?;
        Ok(run.executor.export(id).await?)
    })?;
    let refused = refusal(&there, &export)?;
    assert!(
        matches!(&refused, ImportError::Present { family: 1, how } if how == "it lives"),
        "{refused}"
    );
    assert!(refused.to_string().contains("into another journal"), "{refused}");

    let finished = World::new();
    live_in(&finished, &Lab::default(), async |run| {
        let id = submit(run, Planned(failing("f", 1)), "other").await?;
        run.wait(run.executor.outcome(id)).await??;
        Ok(())
    })?;
    let refused = refusal(&finished, &export)?;
    assert!(
        matches!(&refused, ImportError::Present { how, .. } if how.contains("goes at")),
        "{refused}"
    );

    // One whose root cannot be read is set aside by a start, whatever kinds it knows.
    let broken = there.fork();
    let spoilt: (Space, &[u8], &[u8]) = (Space::Procedures, &root_key(1), &[9]);
    broken.disk.import(Seq(99), [spoilt]);
    let refused = refusal(&broken, &export)?;
    assert!(
        matches!(&refused, ImportError::Present { how, .. } if how == "it is quarantined"),
        "{refused}"
    );
    Ok(())
}

fn root_key(family: u64) -> Vec<u8> {
    [&family.to_be_bytes()[..], &[0; 4]].concat()
}

#[test]
fn a_key_that_stands_for_another_is_refused() -> Tested {
    let export = second(None)?;
    let here = holding(LockNeed::exclusive("x"), "the key")?;
    let refused = refusal(&here, &export)?;
    assert!(
        matches!(&refused, ImportError::KeyTaken { id, .. } if *id == ProcedureId::root(1)),
        "{refused}"
    );
    assert!(
        refused.to_string().contains("the key") && refused.to_string().contains("1.0"),
        "{refused}"
    );
    Ok(())
}

#[test]
fn a_lock_that_is_held_is_refused_and_both_are_named() -> Tested {
    let (x, s) = (LockNeed::exclusive, LockNeed::shared);
    let clashes = [
        (x("a/b"), x("a/b")),
        (x("a/b"), x("a")),
        (x("a"), x("a/b")),
        (x(""), s("a/b")),
        (s("a/b"), x("")),
        (x("a/b"), s("a/b")),
    ];
    for (imported, held) in clashes {
        let export = second(Some(imported.clone()))?;
        let refused = refusal(&holding(held.clone(), "other")?, &export)?;
        let ImportError::Locked {
            id,
            lock,
            holder,
            held: other,
        } = &refused
        else {
            return Err(format!("{imported} and {held}: {refused}").into());
        };
        assert_eq!((*id, *holder), (ProcedureId::root(2), ProcedureId::root(1)));
        assert_eq!((lock, other), (&imported, &held));
    }
    for (imported, held) in [
        (s("a"), s("a")),
        (x("a/b"), x("a/bc")),
        (x("a/b"), s("a")),
        (s("a"), x("a/b")),
    ] {
        let (world, export) = (holding(held, "other")?, second(Some(imported.clone()))?);
        import(&world, &export)?;
        live_in(&world, &Lab::default(), async |run| {
            run.settle().await;
            let locks = run.executor.locks().await?;
            let holders = locks.iter().filter(|lock| lock.path == imported.path);
            let ids = holders.flat_map(|lock| lock.holders.iter().map(|(id, _)| *id));
            assert!(
                ids.collect::<Vec<_>>().contains(&ProcedureId::root(2)),
                "it keeps its lock: {locks:?}"
            );
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn who_had_the_journal_before_an_import_writes_no_more_and_before_a_dry_run_goes_on() -> Tested {
    let export = second(None)?;
    let here = World::new();
    let store: Arc<dyn JournalStore> = Arc::new(MemoryStore::open(&here.disk, FaultPlan::none())?);
    block_on(async {
        let old = store.acquire().await?;
        store.append(Batch::new(old)).await?;
        let importer = Executor::builder(Arc::clone(&store)).importer().await?;
        importer.import(&export, &by().dry_run()).await?;
        store.append(Batch::new(old)).await?;
        importer.import(&export, &by()).await?;
        let late = store.append(Batch::new(old)).await;
        assert!(
            matches!(&late, Err(AppendError::Fenced { newer }) if *newer > old),
            "{late:?}"
        );
        Ok(())
    })
}

#[test]
fn words_that_are_too_long_for_the_audit_are_refused() -> Tested {
    let export = second(None)?;
    let long = procession::operate::OperatorRequest::new("ann", "x".repeat(1_025));
    let refused = import_with(&World::new(), FaultPlan::none(), &export, &long)?.done()?;
    assert!(
        matches!(refused, Err(ImportError::TooLong { size: 1_025, .. })),
        "{refused:?}"
    );
    assert!(
        import_with(&World::new(), FaultPlan::none(), &export, &by())?
            .done()?
            .is_ok()
    );
    Ok(())
}

/// More than any engine commits or submits.
const FAR: u64 = 1 << 48;

/// A world whose next family and next commit have these numbers.
fn at(family: u64, seq: u64) -> World {
    let world = World::new();
    let families: (Space, &[u8], &[u8]) = (Space::Meta, b"families", &family.to_be_bytes());
    world.disk.import(Seq(seq), [families]);
    world
}

/// Exports the first family of a world that waits.
fn first(world: &World) -> Result<FamilyExport, Trouble> {
    live_in(world, &Lab::default(), async |run| {
        let id = submit(run, Planned(waits("w")), "the key").await?;
        Ok(run.executor.export(id).await?)
    })
}

#[test]
fn a_number_that_no_engine_reaches_is_refused_unless_the_journal_is_there() -> Tested {
    for (family, seq, said) in [
        (FAR + 1, 1, "the family's, is a number that no engine reaches"),
        (1, FAR, "the last commit of 1.0, is a number that no engine reaches"),
        (1 << 61, 1, "no engine reaches"),
        (1, (1 << 61) - 1_000, "no engine reaches"),
    ] {
        let export = first(&at(family, seq))?;
        let refused = refusal(&World::new(), &export)?;
        assert!(matches!(&refused, ImportError::Unusable { .. }), "{refused}");
        let text = refused.to_string();
        assert!(
            text.contains(said) && text.contains("export the family again"),
            "{text}"
        );
        import(&at(family + 1_000, seq + 1_000), &export)?;
    }
    Ok(())
}

#[test]
fn what_is_exported_behind_the_highest_import_is_imported_elsewhere() -> Tested {
    let here = World::new();
    import(&here, &first(&at(FAR - 1_000_000, FAR - 1_000_000))?)?;
    let next = live_in(&here, &Lab::default(), async |run| {
        let id = submit(run, Planned(waits("w")), "another").await?;
        Ok(run.executor.export(id).await?)
    })?;
    assert!(next.family > FAR - 1_000_000);
    import(&World::new(), &next)?;
    Ok(())
}
