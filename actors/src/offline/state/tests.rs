//! A look at a journal changes nothing of it.

use futures::executor::block_on;
use procession_kernel::Epoch;
use tempfile::TempDir;

use super::*;
use crate::journal::{Batch, EmbeddedStore, JournalStore, SyncMode};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[test]
fn a_look_takes_no_epoch() -> Outcome {
    let place = TempDir::new()?;
    let store = EmbeddedStore::open(place.path(), SyncMode::None)?;
    let epoch = block_on(store.acquire())?;
    block_on(store.append(Batch::new(epoch)))?;
    drop(store);
    let offline = Offline::open(place.path())?;
    for _ in 0..3 {
        // Reads that may block are handed to a runtime.
        actix_rt::System::new().block_on(offline.state())?;
    }
    assert_eq!(block_on(offline.store.acquire())?, Epoch(epoch.0 + 1));
    Ok(())
}
