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
    turn: Turn,
}

/// Whether the turn under way commits at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    /// It does not.
    Other,
    /// It does if it is asked to.
    Looks,
    /// It was asked to.
    Asked,
}

impl InPlace {
    pub(crate) fn new(store: &Arc<dyn JournalStore>) -> Self {
        Self {
            store: store.appends_at_once().then(|| Arc::downgrade(store)),
            rest: 0,
            turn: Turn::Other,
        }
    }

    /// Returns `true` if batches may be appended to the store here: not for a while after a slow commit.
    pub(super) fn is_ready(&mut self) -> bool {
        let rests = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        self.store.is_some() && !rests
    }

    /// Begins a turn that commits at its end if it is asked to.
    pub(super) const fn begin_turn(&mut self) {
        self.turn = Turn::Looks;
    }

    /// Asks the turn under way to commit at its end, and returns `true` if it does so.
    pub(super) const fn ask_turn(&mut self) -> bool {
        let looks = !matches!(self.turn, Turn::Other);
        if looks {
            self.turn = Turn::Asked;
        }
        looks
    }

    /// Ends the turn, and returns `true` if it was asked to commit.
    pub(super) fn end_turn(&mut self) -> bool {
        std::mem::replace(&mut self.turn, Turn::Other) == Turn::Asked
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

    /// Gives the store time for what the newest commit here left to be done, once its receipt was passed on.
    pub(super) fn settle(&self) {
        self.store().iter().for_each(|store| store.settle());
    }
}
