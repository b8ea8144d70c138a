//! Commits on the supervisor's own thread.
//!
//! A small decision of the only active procedure is committed there. Nobody else could be served meanwhile. It saves
//! two thread switches, which take a third of a sync (docs/decisions/0017).

use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::executor::block_on;
use procession_kernel::Receipt;

use crate::clock::machine_now;
use crate::journal::{AppendError, Batch, JournalStore, of_batch};

/// A commit that takes longer than this keeps the supervisor from work that may have arrived meanwhile. What arrives
/// waits for a sync anyway, and a question waits no longer than anybody notices. On a disk that others use, too, one sync
/// in a hundred takes some 5 ms; with a limit of 2 ms nearly all commits went to the journal's thread there.
const SLOW: Duration = Duration::from_millis(20);
/// The number of commits that go to the journal's thread after a slow commit.
const REST: u32 = 1_024;

/// The store, for commits on the supervisor's own thread.
pub(crate) struct InPlace {
    /// `None` if appends to the store may wait. The reference does not keep the store open.
    store: Option<Weak<dyn JournalStore>>,
    rest: u32,
}

impl InPlace {
    pub(crate) fn new(store: &Arc<dyn JournalStore>) -> Self {
        Self {
            store: store.appends_at_once().then(|| Arc::downgrade(store)),
            rest: 0,
        }
    }

    /// Returns `true` if batches may be appended to the store here: not for a while after a slow commit.
    pub(super) fn is_ready(&mut self) -> bool {
        let rests = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        self.store.is_some() && !rests
    }

    pub(super) fn store(&self) -> Option<Arc<dyn JournalStore>> {
        self.store.as_ref()?.upgrade()
    }

    pub(super) fn append(&mut self, store: &dyn JournalStore, batch: Batch) -> Result<Receipt, AppendError> {
        let begun = machine_now();
        let commit = (batch.epoch(), batch.seq());
        let appended = block_on(store.append(batch)).and_then(|receipt| of_batch(receipt, commit));
        if begun.elapsed() > SLOW {
            self.rest = REST;
        }
        appended
    }
}
