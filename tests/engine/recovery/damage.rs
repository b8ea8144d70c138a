//! Damage: what nobody was told of is dropped, what was committed is missed
//! aloud, and families that can be read run.

use std::fs;
use std::future::IntoFuture;
use std::path::Path;

use futures::executor::block_on;
use procession::errors::{StartError, StoreError};
use procession::provider::{Batch, JournalStore, Space};
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, MemoryStore, Run, Trouble, World};
use procession::{Executor, ProcedureId};
use procession_actors::journal::keys;
use tempfile::TempDir;

use super::helper::{Other, acknowledged, work};
use crate::support::{
    Act, Lab, Planned, Tested, UndoAct, chain, enumerate_later, failing, kinds, live_in, plan, spawn,
};

/// Lets another process write until it has acknowledged some, and kills it.
fn killed(place: &Path) -> Result<Vec<(u64, ProcedureId)>, Trouble> {
    let mut other = Other::start(place, "write")?;
    let mut lines = Vec::new();
    for _ in 0..20 {
        lines.push(other.next("acknowledged: ")?);
    }
    lines.extend(other.kill("acknowledged: ")?);
    // The last line may have been cut off with the process.
    Ok(lines.iter().filter_map(|line| acknowledged(line).ok()).collect())
}

fn log(place: &Path) -> std::path::PathBuf {
    place.join("store").join("0.jnl")
}

/// Writes the log with this many bytes of its beginning once more at its end: a write that was cut short.
fn tear(place: &Path, bytes: usize) -> Tested {
    let mut log_bytes = fs::read(log(place))?;
    let end = log_bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .ok_or("the log is empty")?
        + 1;
    let torn: Vec<u8> = log_bytes.iter().take(bytes).copied().collect();
    for (to, from) in log_bytes.iter_mut().skip(end).zip(torn) {
        *to = from;
    }
    fs::write(log(place), log_bytes)?;
    Ok(())
}

/// Opens the store; all that was acknowledged is there under its id, and ends.
fn whole(place: &Path, known: &[(u64, ProcedureId)]) -> Tested {
    actix_rt::System::new().block_on(async {
        let executor = kinds(&Lab::default(), Executor::builder(place)).start().await?;
        for (number, id) in known {
            let handle = executor
                .submit(work(*number))
                .key(number.to_string())
                .into_future()
                .await?;
            assert_eq!(handle.id(), *id, "the submission {number} was acknowledged");
            assert_eq!(handle.outcome().await?, 7);
        }
        executor.drain(std::time::Duration::from_secs(5)).await?;
        Ok(())
    })
}

#[test]
fn e_101_killed_in_the_middle_of_a_write() -> Tested {
    let place = TempDir::new()?;
    let known = killed(place.path())?;
    assert!(known.len() >= 20);
    tear(place.path(), 40)?;
    whole(place.path(), &known)
}

/// Opens the store; it must be refused as damaged. Returns what it says.
fn damage(place: &Path) -> Result<String, Trouble> {
    actix_rt::System::new().block_on(async {
        let opened = kinds(&Lab::default(), Executor::builder(place)).start().await;
        match opened.err().ok_or("a damaged store was opened")? {
            StartError::Store(error @ StoreError::Damaged { .. }) => Ok(error.to_string()),
            other => Err(other.into()),
        }
    })
}

#[test]
fn e_101_a_flipped_byte_and_a_missing_file_are_named() -> Tested {
    let place = TempDir::new()?;
    let known = killed(place.path())?;
    let sound = fs::read(log(place.path()))?;
    let end = sound.iter().rposition(|byte| *byte != 0).ok_or("the log is empty")?;
    let mut flipped = sound.clone();
    *flipped.get_mut(end / 2).ok_or("the log is short")? ^= 1;
    fs::write(log(place.path()), &flipped)?;
    let said = damage(place.path())?;
    assert!(said.contains("0.jnl"), "{said}");

    fs::remove_file(log(place.path()))?;
    let said = damage(place.path())?;
    assert!(said.contains(".jnl"), "{said}");

    // The refusals have changed nothing.
    fs::write(log(place.path()), &sound)?;
    whole(place.path(), &known)
}

/// Changes the store behind the engine's back.
fn spoil(world: &World, change: impl FnOnce(&mut Batch)) -> Tested {
    let store = MemoryStore::open(&world.disk, FaultPlan::none())?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    change(&mut batch);
    block_on(store.append(batch))?;
    Ok(())
}

/// Five families, four of which are damaged: a row, a member, a value, a signal.
fn spoilt(world: &World, lab: &Lab) -> Result<[ProcedureId; 5], Trouble> {
    let waits = |name: &str| {
        plan(
            name,
            [
                spawn([plan("c", [Act::Wait("go".to_owned(), None), Act::Done(1)])]),
                Act::Done(2),
            ],
        )
    };
    let ids = live_in(world, lab, async |run| {
        let mut ids = Vec::new();
        for name in ["row", "member", "value", "signal", "sound"] {
            ids.push(
                run.wait(run.executor.submit(Planned(waits(name))).into_future())
                    .await??
                    .id(),
            );
            run.settle().await;
        }
        let signalled = ids.get(3).copied().ok_or("there are five")?;
        run.executor
            .signal(ProcedureId::new(signalled.family, 1), "later", &1_i64)
            .await?;
        Ok(ids)
    })?;
    let [row, member, value, signal, sound] = ids[..] else {
        return Err("there are five".into());
    };
    spoil(world, |batch| {
        batch.put(Space::Procedures, &keys::procedure(child(row)), b"no row");
        batch.delete(Space::Procedures, &keys::procedure(member));
        batch.delete(Space::Payloads, &keys::payload(child(value), keys::PAYLOAD));
        batch.put(Space::Signals, &keys::signal(child(signal), 1, "later"), &[1, 0xc1]);
    })?;
    Ok([row, member, value, signal, sound])
}

fn child(root: ProcedureId) -> ProcedureId {
    ProcedureId::new(root.family, 1)
}

#[test]
fn e_101_families_that_can_be_read_run() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let [row, member, value, signal, sound] = spoilt(&world, &lab)?;
    live_in(&world, &lab, async |run| {
        let at_start: Vec<u64> = run
            .executor
            .snapshot()
            .await?
            .quarantined
            .iter()
            .map(|(family, _)| *family)
            .collect();
        assert_eq!(at_start, [row.family, member.family, signal.family]);
        // A value is only read when its stage runs.
        for root in [value, sound] {
            run.executor.signal(child(root), "go", &()).await?;
        }
        let outcome = run.wait(run.executor.outcome(sound)).await??;
        assert_eq!(outcome.state, ProcedureState::Success);
        let quarantined = run.executor.snapshot().await?.quarantined;
        for (root, why) in [
            (row, "the row of"),
            (member, "is missing"),
            (value, "the payload of"),
            (signal, "signal 1 of"),
        ] {
            let found = quarantined.iter().find(|(family, _)| *family == root.family);
            let said = found.map(|(_, why)| why.as_str()).unwrap_or_default();
            assert!(said.contains(why), "{root}: {said}");
        }
        Ok(())
    })
}

/// Two that roll back, of which one has a hole in its history.
fn holed(world: &World, lab: &Lab) -> Result<[ProcedureId; 2], Trouble> {
    let fails = failing("f", 3).undo(3, UndoAct::Fail(1));
    let (broken, sound) = live_in(world, lab, async |run| {
        let broken = run
            .wait(run.executor.submit(Planned(fails.clone())).into_future())
            .await??;
        let sound = run.wait(run.executor.submit(Planned(fails)).into_future()).await??;
        run.settle().await;
        Ok((broken.id(), sound.id()))
    })?;
    spoil(world, |batch| {
        batch.delete(Space::History, &keys::history(broken.family, 2))
    })?;
    Ok([broken, sound])
}

#[test]
fn e_101_a_hole_in_the_history_parks_the_rollback_that_needs_it_however_it_crashes() -> Tested {
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        let ids = holed(&world, &lab)?;
        Ok((world, (lab, ids)))
    };
    let set_up = |(lab, _): &(Lab, _), builder| kinds(lab, builder);
    let drive = async |(_, [broken, sound]): &(Lab, [ProcedureId; 2]), run: &Run, _: usize| {
        let outcome = run.wait(run.executor.outcome(*sound)).await??;
        assert_eq!(outcome.state, ProcedureState::RolledBack);
        let status = run.executor.status(*broken).await?;
        assert_eq!(
            (status.state, status.wait),
            (ProcedureState::Failed, Some(WaitReason::Quarantined))
        );
        let other = run.executor.submit(Planned(chain("o", 1))).key("o");
        let other = run.wait(other.into_future()).await??;
        assert_eq!(run.wait(other.outcome()).await??, 7);
        Ok(())
    };
    let commits = enumerate_later(prepare, set_up, drive, |_, _| Ok(()))?;
    // The start's own; four of the sound one, and two of the other up to the hole; submit and end of a new one.
    assert_eq!(commits, 9);
    Ok(())
}

#[test]
fn e_101_they_run_however_the_next_life_crashes() -> Tested {
    let prepare = || {
        let (world, lab) = (World::new(), Lab::default());
        let ids = spoilt(&world, &lab)?;
        Ok((world, (lab, ids)))
    };
    let set_up = |(lab, _): &(Lab, _), builder| kinds(lab, builder);
    let drive = async |(_, ids): &(Lab, [ProcedureId; 5]), run: &Run, _: usize| {
        let [row, member, value, signal, sound] = *ids;
        for root in [value, sound] {
            // It has ended, or was set aside, when an earlier life sent it.
            run.wait(run.executor.signal(child(root), "go", &()).key("go"))
                .await?
                .ok();
        }
        let outcome = run.wait(run.executor.outcome(sound)).await??;
        assert_eq!(outcome.state, ProcedureState::Success);
        run.settle().await;
        let quarantined = run.executor.snapshot().await?.quarantined;
        let mut families: Vec<u64> = quarantined.into_iter().map(|(family, _)| family).collect();
        families.sort_unstable();
        assert_eq!(families, [row.family, member.family, value.family, signal.family]);
        Ok(())
    };
    // The start's own, two signals, the child's stage and the root's.
    assert_eq!(enumerate_later(prepare, set_up, drive, |_, _| Ok(()))?, 5);
    Ok(())
}
