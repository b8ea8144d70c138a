//! A world whose store is changed behind the engine's back, while none runs.

use futures::executor::block_on;
use procession::provider::{Batch, JournalStore};
use procession::testkit::{FaultPlan, MemoryStore, World};

use crate::support::Tested;

/// Writes a batch as the next owner would.
pub(crate) fn write(world: &World, fill: impl FnOnce(&mut Batch)) -> Tested {
    let store = MemoryStore::open(&world.disk, FaultPlan::none())?;
    let mut batch = Batch::new(block_on(store.acquire())?);
    fill(&mut batch);
    block_on(store.append(batch))?;
    Ok(())
}

/// Key of a row, and of an entry of history.
pub(super) fn key(family: u64, number: u32) -> Vec<u8> {
    [&family.to_be_bytes()[..], &number.to_be_bytes()].concat()
}
