//! Families that cannot be read are listed, archived and discharged all the same.

use std::future::IntoFuture;

use futures::executor::block_on;
use procession::ProcedureId;
use procession::errors::AskError;
use procession::health::Rule;
use procession::offline::Offline;
use procession::operate::{BypassAs, BypassScope, OperatorRequest, PauseScope};
use procession::procedure::JoinPolicy;
use procession::provider::{Batch, JournalStore, Seq, Space};
use procession::status::{ListFilter, ProcedureState, WaitReason};
use procession::testkit::{Run, Trouble, World};
use procession_actors::journal::{EmbeddedStore, SyncMode};

use super::world::{key, write};
use crate::support::{Act, Holding, Lab, Planned, Tested, UndoAct, failing, live_in, plan, spawn};

fn by() -> OperatorRequest {
    OperatorRequest::new("ann", "it is damaged")
}

/// A family of three that waits, its root holding the lock `t`; and a stranger for that lock.
async fn make(run: &Run) -> Result<(ProcedureId, ProcedureId), Trouble> {
    let waits = |name: &str| plan(name, [Act::Wait("go".to_owned(), None), Act::Done(1)]);
    let root = plan("r", [spawn([waits("a"), waits("b")]), Act::Done(2)]).exclusive("t");
    let root = run
        .wait(run.executor.submit(Holding(root)).key("the key").into_future())
        .await??;
    run.settle().await;
    run.executor
        .signal(ProcedureId::new(root.id().family, 1), "later", &7_i64)
        .key("k")
        .await?;
    let stranger = plan("s", [Act::Done(3)]).exclusive("t");
    let stranger = run.wait(run.executor.submit(Planned(stranger)).into_future()).await??;
    run.settle().await;
    Ok((root.id(), stranger.id()))
}

/// Nothing of the family is left but its archive.
fn is_gone(world: &World, family: u64) {
    let prefix = family.to_be_bytes();
    for space in Space::ENGINE.iter().filter(|space| **space != Space::Archive) {
        let mut left = world.disk.dump(space);
        left.retain(|(key, _)| key.starts_with(&prefix));
        assert!(left.is_empty(), "{space:?}: {left:?}");
    }
    assert!(!world.disk.dump(&Space::Keys).iter().any(|(key, _)| key == b"the key"));
}

/// Whatever is asked of one whose row is no row, the answer is why its family is set aside.
async fn says_why(run: &Run, id: ProcedureId) {
    let executor = &run.executor;
    let answers = [
        executor.status(id).await.err(),
        executor.tree(id).await.err(),
        executor.explain(id).await.err(),
        executor.abort(id, by()).await.err(),
        executor.signal(id, "go", &1_i64).await.err(),
        executor.override_result(id, &1_i64, by()).await.err(),
    ];
    for answer in answers {
        let text = answer.map(|error| error.to_string()).unwrap_or_default();
        let is_told = text.starts_with(&format!("the family {} is quarantined: ", id.family));
        assert!(is_told && text.ends_with("or discharge it"), "{text}");
    }
}

#[test]
fn a_family_whose_rows_cannot_be_read_is_discharged_by_its_keys() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let (root, stranger) = live_in(&world, &lab, make)?;
    // One child's row is no row, the other's is missing.
    write(&world, |batch| {
        batch.put(Space::Procedures, &key(root.family, 1), b"\x01no row");
        batch.delete(Space::Procedures, &key(root.family, 2));
    })?;
    live_in(&world, &lab, async |run| {
        let page = run.executor.list(ListFilter::default(), None, 10).await?;
        let listed: Vec<_> = page
            .items
            .iter()
            .map(|status| (status.id, status.wait.clone()))
            .collect();
        assert_eq!(page.unreadable, [ProcedureId::new(root.family, 1)]);
        assert_eq!(
            listed.first(),
            Some(&(root, Some(WaitReason::Quarantined))),
            "{listed:?}"
        );
        assert!(!lab.has("s1"), "the root's row is whole: it keeps its lock");
        says_why(run, ProcedureId::new(root.family, 1)).await;
        let done = run.executor.discharge(root.family, by()).await?;
        assert_eq!(done.changed, 2, "two rows, one of them readable");
        assert_eq!(
            run.wait(run.executor.outcome(stranger)).await??.state,
            ProcedureState::Success
        );
        is_gone(&world, root.family);
        let archived = run.executor.archived(root.family).await?;
        assert_eq!((archived.procedures.len(), archived.unreadable.len()), (1, 1));
        assert!(archived.entries.iter().any(|entry| entry.space == "signals"));
        Ok(())
    })
}

#[test]
fn a_family_whose_root_cannot_be_read_frees_its_key() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let (root, stranger) = live_in(&world, &lab, make)?;
    write(&world, |batch| {
        batch.put(Space::Procedures, &key(root.family, 0), b"\x01no row")
    })?;
    live_in(&world, &lab, async |run| {
        // What its row held is not known any more.
        assert_eq!(
            run.wait(run.executor.outcome(stranger)).await??.state,
            ProcedureState::Success
        );
        let page = run.executor.list(ListFilter::default(), None, 10).await?;
        assert_eq!(page.unreadable, [root]);
        assert!(run.executor.status(root).await.is_err());
        run.executor.discharge(root.family, by()).await?;
        is_gone(&world, root.family);
        let page = run.executor.list(ListFilter::default(), None, 10).await?;
        assert!(page.unreadable.is_empty());
        Ok(())
    })?;
    live_in(&world, &lab, async |run| {
        let snapshot = run.executor.snapshot().await?;
        assert!(snapshot.quarantined.is_empty() && snapshot.live_families == 0);
        assert_eq!(run.executor.archive().await?.len(), 1, "the archive stays");
        Ok(())
    })
}

#[test]
fn a_family_without_rows_is_discharged() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    write(&world, |batch| {
        batch.put(Space::Live, &77_u64.to_be_bytes(), b"");
    })?;
    live_in(&world, &lab, async |run| {
        assert_eq!(run.executor.snapshot().await?.quarantined.len(), 1);
        run.executor.discharge(77, by()).await?;
        is_gone(&world, 77);
        Ok(())
    })
}

/// Goes on with one whose rollback has met a hole in its history.
fn with_a_hole(drive: impl AsyncFnOnce((&World, &Lab), &Run, ProcedureId) -> Tested) -> Tested {
    with_damage(|batch, id| batch.delete(Space::History, &key(id.family, 1)), drive)
}

fn with_damage(
    damage: impl FnOnce(&mut Batch, ProcedureId),
    drive: impl AsyncFnOnce((&World, &Lab), &Run, ProcedureId) -> Tested,
) -> Tested {
    with_damage_at(3, damage, drive)
}

/// The undo of this stage, one of three, fails as long as the first life lasts.
fn with_damage_at(
    stage: u32,
    damage: impl FnOnce(&mut Batch, ProcedureId),
    drive: impl AsyncFnOnce((&World, &Lab), &Run, ProcedureId) -> Tested,
) -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let stuck = failing("f", 3)
        .undo(stage, UndoAct::FailUntil("never".to_owned()))
        .exclusive("t");
    let id = live_in(&world, &lab, async |run| {
        let id = run.wait(run.executor.submit(Holding(stuck)).into_future()).await??.id();
        run.settle().await;
        assert_eq!(run.executor.status(id).await?.state, ProcedureState::Failed);
        Ok(id)
    })?;
    write(&world, |batch| damage(batch, id))?;
    live_in(&world, &lab, async |run| {
        run.pass(std::time::Duration::from_mins(1)).await;
        drive((&world, &lab), run, id).await
    })
}

#[test]
fn a_family_with_a_hole_in_its_history_is_discharged() -> Tested {
    with_a_hole(async |(world, lab), run, id| {
        let status = run.executor.status(id).await?;
        assert_eq!(
            (status.state, &status.wait),
            (ProcedureState::Failed, &Some(WaitReason::Quarantined))
        );
        assert!(status.next.contains("its history has a hole"), "{}", status.next);
        let explained = run.executor.explain(id).await?.reason;
        assert!(
            explained.contains("its entry 1 is missing: the stage before"),
            "{explained}"
        );
        assert!(explained.contains("(entry 2)"), "{explained}");
        let verdicts = run.executor.verdicts().await?;
        let hole = verdicts.iter().find_map(|verdict| verdict.fact("hole"));
        assert!(hole.is_some_and(|hole| hole.contains("entry 1")), "{hole:?}");
        let stranger = plan("s", [Act::Done(3)]).exclusive("t");
        let stranger = run.wait(run.executor.submit(Planned(stranger)).into_future()).await??;
        run.settle().await;
        assert!(!lab.has("s1"), "it keeps its lock");
        let dry = run.executor.discharge(id.family, by().dry_run()).await?;
        assert_eq!(dry.changed, 1);
        assert!(
            run.executor.snapshot().await?.quarantined.is_empty(),
            "a dry run sets nothing aside"
        );
        run.executor.discharge(id.family, by()).await?;
        assert_eq!(run.wait(stranger.outcome()).await??, 3);
        is_gone(world, id.family);
        let archived = run.executor.archived(id.family).await?;
        let why = archived.quarantined.unwrap_or_default();
        assert!(why.contains("has a hole"), "{why}");
        assert!(why.contains("its entry 1 is missing: the stage before"), "{why}");
        Ok(())
    })
}

/// The third stage was undone, and nothing says so any more: it would be undone again.
#[test]
fn the_entry_of_an_undo_that_is_missing_is_named() -> Tested {
    let damage = |batch: &mut Batch, id: ProcedureId| batch.delete(Space::History, &key(id.family, 4));
    with_damage_at(2, damage, async |(_, lab), run, id| {
        let status = run.executor.status(id).await?;
        assert_eq!(status.wait, Some(WaitReason::Quarantined));
        let explained = run.executor.explain(id).await?.reason;
        assert!(
            explained.contains("the entry of the undo of stage 3 (entry 3)"),
            "{explained}"
        );
        assert_eq!(lab.count("f3'"), 1, "it is not undone again");
        Ok(())
    })
}

/// A journal in a directory, with everything that a world has.
fn in_a_directory(world: &World) -> Result<tempfile::TempDir, Trouble> {
    let place = tempfile::tempdir()?;
    let store = EmbeddedStore::open(place.path(), SyncMode::None)?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    batch.advance_to(Seq(1_000));
    for space in world.disk.spaces() {
        for (key, value) in world.disk.dump(&space) {
            batch.put(space.clone(), &key, &value);
        }
    }
    block_on(store.append(batch))?;
    Ok(place)
}

/// What a look at the closed journal says that rollbacks lack.
fn holes_of_the_closed_journal(world: &World) -> Result<Vec<String>, Trouble> {
    let place = in_a_directory(world)?;
    let offline = Offline::open(place.path())?;
    let state = actix_rt::System::new().block_on(offline.state())?;
    let verdicts = state.verdicts().into_iter();
    let broken = verdicts.filter(|verdict| verdict.rule == Rule::Quarantined);
    Ok(broken
        .filter_map(|verdict| verdict.fact("hole").map(str::to_owned))
        .collect())
}

/// Whether an engine has met the hole already or not, nothing else of the journal is taken for one.
#[test]
fn a_hole_is_told_of_a_closed_journal() -> Tested {
    for (missing, said) in [
        (None, None),
        (Some(1), Some("its entry 1 is missing: the stage before")),
        (Some(4), Some("the entry of the undo of stage 3 (entry 3)")),
    ] {
        let (world, lab) = (World::new(), Lab::default());
        // Its third stage is undone, and the undo of the second fails.
        let stuck = failing("f", 3).undo(2, UndoAct::FailUntil("never".to_owned()));
        let kept = plan("k", [Act::Next, Act::Done(1)]);
        let parent = plan("r", [spawn([kept, stuck.clone()]), Act::Done(2)]);
        let ids = live_in(&world, &lab, async |run| {
            let mut ids = Vec::new();
            for plan in [stuck, failing("g", 3), plan("d", [Act::Next, Act::Done(1)]), parent] {
                ids.push(run.wait(run.executor.submit(Planned(plan)).into_future()).await??.id());
                run.settle().await;
            }
            Ok(ids)
        })?;
        let id = *ids.first().ok_or("it was submitted")?;
        if let Some(number) = missing {
            write(&world, |batch| batch.delete(Space::History, &key(id.family, number)))?;
        }
        // Of those that have ended, nothing is needed any more.
        for ended in ids.iter().skip(1).take(2) {
            write(&world, |batch| batch.delete(Space::History, &key(ended.family, 1)))?;
        }
        for lives in 0..2 {
            let holes = holes_of_the_closed_journal(&world)?;
            let is_said = match (&holes[..], said) {
                ([], None) => true,
                ([hole], Some(said)) => hole.contains(said),
                _ => false,
            };
            assert!(is_said, "entry {missing:?} after {lives} lives: {holes:?}");
            live_in(&world, &lab, async |run| {
                run.settle().await;
                Ok(())
            })?;
        }
    }
    Ok(())
}

#[test]
fn a_page_of_a_history_is_read_though_what_is_behind_it_is_damaged() -> Tested {
    let entry = |batch: &mut Batch, id: ProcedureId| batch.put(Space::History, &key(id.family, 4), b"\x01no entry");
    with_damage_at(2, entry, async |_, run, id| {
        let page = run.executor.history_page(id, Some(4), 10).await?;
        let numbers: Vec<u32> = page.entries.iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, [3, 2, 1]);
        Ok(())
    })
}

#[test]
fn an_entry_that_cannot_be_read_is_named() -> Tested {
    let damage = |batch: &mut Batch, id: ProcedureId| batch.put(Space::History, &key(id.family, 2), b"\x01no entry");
    with_damage(damage, async |_, run, id| {
        let explained = run.executor.explain(id).await?.reason;
        assert!(explained.contains("entry 2 of the history of family"), "{explained}");
        Ok(())
    })
}

#[test]
fn a_family_with_a_hole_in_its_history_is_live_and_is_bypassed() -> Tested {
    with_a_hole(async |_, run, id| {
        let status = run.executor.status(id).await?;
        assert_eq!(
            (&status.wait, status.set_aside),
            (&Some(WaitReason::Quarantined), false)
        );
        assert!(status.next.contains("bypasses or discharges it"), "{}", status.next);
        let stranger = plan("s", [Act::Done(3)]).exclusive("t");
        let stranger = run.wait(run.executor.submit(Planned(stranger)).into_future()).await??;
        // As of any that lives; what it would be tried again for is not there.
        run.executor.set_priority(id, 3, by()).await?;
        run.executor.pause(PauseScope::One(id), by()).await?;
        run.executor.resume(PauseScope::One(id), by()).await?;
        for refused in [
            run.executor.retry_now(id, by()).await,
            run.executor.retry_undo(id, by()).await,
            run.executor.skip_undo(id, by()).await,
        ] {
            assert!(matches!(refused, Err(AskError::NotNow { .. })), "{refused:?}");
        }
        assert_eq!(run.executor.status(id).await?.wait, Some(WaitReason::Quarantined));
        run.executor
            .bypass(id, BypassScope::Descendants, BypassAs::Failed, by())
            .await?;
        assert_eq!(run.wait(run.executor.outcome(id)).await??.state, ProcedureState::Failed);
        assert_eq!(run.wait(stranger.outcome()).await??, 3, "its lock is free");
        assert_eq!(run.executor.verdicts().await?, []);
        Ok(())
    })
}

/// Whoever ended before its family was set aside has an outcome, and a number that nobody had is unknown.
#[test]
fn outcomes_of_before_are_told_of_a_family_that_is_set_aside() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let root = live_in(&world, &lab, async |run| {
        let waits = plan("b", [Act::Wait("go".to_owned(), None), Act::Done(1)]);
        let root = plan("r", [spawn([plan("a", [Act::Done(5)]), waits]), Act::Done(2)]);
        let root = run.wait(run.executor.submit(Planned(root)).into_future()).await??.id();
        run.settle().await;
        Ok(root)
    })?;
    let member = |number| ProcedureId::new(root.family, number);
    write(&world, |batch| {
        batch.put(Space::Procedures, &key(root.family, 2), b"\x01no row")
    })?;
    live_in(&world, &lab, async |run| {
        assert_eq!(run.executor.snapshot().await?.quarantined.len(), 1);
        let ended = run.wait(run.executor.outcome(member(1))).await??;
        assert_eq!(ended.state, ProcedureState::Success);
        let nobody = run.wait(run.executor.outcome(member(9))).await?;
        assert!(
            matches!(&nobody, Err(AskError::Unknown(id)) if *id == member(9)),
            "{nobody:?}"
        );
        Ok(())
    })
}

/// What the others of the family do while it is discharged is in its archive, or does not happen.
#[test]
fn a_family_that_moves_is_discharged_whole() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let stuck = failing("f", 3).undo(3, UndoAct::FailUntil("never".to_owned()));
    let turns = plan("b", vec![Act::Next; 200]);
    let (id, first) = live_in(&world, &lab, async |run| {
        let waits = plan("w", [Act::Wait("go".to_owned(), None), spawn([turns]), Act::Done(1)]);
        let root = plan(
            "r",
            [Act::Spawn(vec![stuck, waits], JoinPolicy::AllFinished, 0), Act::Done(2)],
        );
        let id = run.wait(run.executor.submit(Planned(root)).into_future()).await??.id();
        run.settle().await;
        let history = run.executor.history(id).await?;
        let first = history.iter().find(|entry| entry.member == 1);
        Ok((id, first.ok_or("its child has run")?.number))
    })?;
    write(&world, |batch| batch.delete(Space::History, &key(id.family, first)))?;
    live_in(&world, &lab, async |run| {
        run.pass(std::time::Duration::from_mins(1)).await;
        let broken = run.executor.status(ProcedureId::new(id.family, 1)).await?;
        assert_eq!(broken.wait, Some(WaitReason::Quarantined));
        run.executor
            .signal(ProcedureId::new(id.family, 2), "go", &7_i64)
            .await?;
        let (first, second) = (
            run.executor.discharge(id.family, by()),
            run.executor
                .discharge(id.family, OperatorRequest::new("bob", "as well")),
        );
        let (first, second) = futures::join!(first, second);
        let first = first?;
        assert!(
            matches!(second, Err(AskError::NotNow { .. } | AskError::Unknown(_))),
            "{second:?}"
        );
        run.settle().await;
        is_gone(&world, id.family);
        let archived = run.executor.archived(id.family).await?;
        assert_eq!(
            archived.procedures.len(),
            usize::try_from(first.changed)?,
            "with what it did until then"
        );
        Ok(())
    })
}
