//! When what was decided goes to the journal, and on which thread.
//!
//! One decision of the only procedure that is active, if it is small, is committed on the
//! supervisor's own thread: nobody could be served meanwhile, and two changes of
//! thread are saved, which take a third of a sync (docs/decisions/0017).

use std::sync::{Arc, Weak};
use std::time::Duration;

use actix::prelude::*;
use futures::executor::block_on;
use procession_kernel::Receipt;

use super::Supervisor;
use crate::clock::machine_now;
use crate::journal::{Append, AppendError, Appended, Batch, JournalStore, of_batch};

/// A commit that takes longer than this keeps the supervisor from what may have
/// come meanwhile: ten syncs of a good disk.
const SLOW: Duration = Duration::from_millis(2);
/// How many commits go to the journal's thread after a slow one.
const REST: u32 = 1_024;

/// The store, for commits on the supervisor's own thread.
pub(crate) struct InPlace {
    /// None where appends wait for others; it does not keep the store open.
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

    /// Tells whether the store may be appended to here; not for a while after it was slow.
    fn is_ready(&mut self) -> bool {
        let rests = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        self.store.is_some() && !rests
    }

    fn store(&self) -> Option<Arc<dyn JournalStore>> {
        self.store.as_ref()?.upgrade()
    }

    fn append(&mut self, store: &dyn JournalStore, batch: Batch) -> Result<Receipt, AppendError> {
        let begun = machine_now();
        let commit = (batch.epoch(), batch.seq());
        let appended = block_on(store.append(batch)).and_then(|receipt| of_batch(receipt, commit));
        if begun.elapsed() > SLOW {
            self.rest = REST;
        }
        appended
    }
}

/// Says that what waited when something was decided has been handled.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct FlushTime;

impl Handler<FlushTime> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: FlushTime, ctx: &mut Self::Context) {
        if self.poisoned.is_some() {
            return;
        }
        let alone = self.commits.is_single() && self.actors.len() <= 1;
        match self.in_place.store().filter(|_| alone) {
            Some(store) => self.commit_here(&*store, ctx),
            None => self.flush(),
        }
    }
}

impl Supervisor {
    /// Hands over what was decided: at once, unless it may be for the supervisor
    /// to commit. That shows behind the messages that wait in the mailbox now.
    pub(super) fn flush_soon(&mut self, ctx: &mut Context<Self>) {
        let here = self.in_place.is_ready() && self.commits.is_single() && self.actors.len() <= 1;
        if here && ctx.address().try_send(FlushTime).is_ok() {
            return;
        }
        self.flush();
    }

    pub(super) fn flush(&mut self) {
        while let Some(batch) = self.next_batch() {
            if self.journal.try_send(Append(batch)).is_err() {
                self.fail("the journal's thread has ended".to_owned());
                return;
            }
        }
    }

    fn commit_here(&mut self, store: &dyn JournalStore, ctx: &mut Context<Self>) {
        if let Some(batch) = self.next_batch() {
            let appended = self.in_place.append(store, batch);
            self.appended(Appended(appended), ctx);
        }
    }

    fn next_batch(&mut self) -> Option<Batch> {
        let batch = self.commits.next_batch()?;
        self.metrics.appended(&batch);
        self.commits.appended(self.clock.now());
        Some(batch)
    }
}
