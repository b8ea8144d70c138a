//! The conformance suite over each store that ships.

use procession_actors::journal::conformance::{BrokenPromise, check};
use procession_actors::journal::fjall::{FjallStore, SyncMode};
use procession_actors::journal::memory::{FaultPlan, MemoryDisk, MemoryStore};

#[test]
fn the_memory_store_keeps_every_promise() -> Result<(), BrokenPromise> {
    check(|| {
        let disk = MemoryDisk::new();
        move || MemoryStore::open(&disk, FaultPlan::none())
    })
}

#[test]
fn so_it_does_with_its_newest_writes_in_memory() -> Result<(), BrokenPromise> {
    for seed in 0..8 {
        check(|| {
            let disk = MemoryDisk::new();
            move || MemoryStore::open(&disk, FaultPlan::none().recent(seed))
        })?;
    }
    Ok(())
}

#[test]
fn the_embedded_store_keeps_every_promise() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let mut places = (0..).map(|number: u32| directory.path().join(number.to_string()));
    for sync in [SyncMode::Data, SyncMode::All] {
        check(|| {
            let place = places.next().unwrap_or_default();
            move || FjallStore::open(&place, sync)
        })?;
    }
    Ok(())
}

#[test]
fn so_it_does_when_each_batch_is_put_into_tables_at_once() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let mut places = (0..).map(|number: u32| directory.path().join(number.to_string()));
    check(|| {
        let place = places.next().unwrap_or_default();
        move || Ok(FjallStore::open(&place, SyncMode::Data)?.checkpoint_at(1))
    })?;
    Ok(())
}
