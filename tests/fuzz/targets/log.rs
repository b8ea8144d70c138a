//! The log of the embedded store as the look before its opening reads it, and the
//! disk of the store in memory.

use futures::executor::block_on;
use procession::provider::{JournalStore, Space};
use procession::testkit::{FaultPlan, MemoryDisk, MemoryStore};
use procession_actors::testkit::log;

use super::Checked;

/// What is found whole stays whole alone, and nothing behind it makes it less.
pub(crate) fn check(bytes: &[u8]) -> Checked {
    let found = log::look(bytes);
    let whole = bytes.get(..found.whole).ok_or("no more is whole than there is")?;
    let alone = log::look(whole);
    assert_eq!((alone.whole, alone.damaged), (found.whole, false));
    let mut longer = whole.to_vec();
    longer.extend_from_slice(&[0; 9]);
    assert_eq!(log::look(&longer).whole, found.whole, "zeros are no batch");
    Ok(())
}

/// A disk opens or says why not, and what it opens with is there the next time.
pub(crate) fn check_disk(bytes: &[u8]) -> Checked {
    let disk = MemoryDisk::from_bytes(bytes.to_vec());
    match MemoryStore::open(&disk, FaultPlan::none()) {
        Err(error) => assert!(error.to_string().contains("byte"), "{error}"),
        Ok(store) => {
            block_on(store.acquire())?;
            drop(store);
            let spaces: Vec<_> = disk.spaces().into_iter().map(|space| disk.dump(&space)).collect();
            drop(disk.dump(&Space::Meta));
            drop(MemoryStore::open(&disk, FaultPlan::none())?);
            let again: Vec<_> = disk.spaces().into_iter().map(|space| disk.dump(&space)).collect();
            assert_eq!(spaces, again);
        }
    }
    Ok(())
}
