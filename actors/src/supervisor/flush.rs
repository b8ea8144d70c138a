//! When what was decided goes to the journal, and on which thread.
//!
//! A batch is handed over when no message waits for the supervisor any more: all
//! that was reported by then shares one sync. Where that is one decision of the
//! only procedure that is active, the supervisor commits it on its own thread:
//! nobody could be served meanwhile, and two changes of thread are saved, which
//! take as long as a third of the sync (docs/decisions/0017).

use std::sync::{Arc, Weak};
use std::time::Duration;

use actix::prelude::*;
use futures::executor::block_on;
use procession_kernel::Receipt;

use super::Supervisor;
use crate::clock::machine_now;
use crate::journal::{Append, AppendError, Appended, Batch, JournalStore};

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

    /// Gives the store, unless it was slow not long ago.
    fn store(&mut self) -> Option<Arc<dyn JournalStore>> {
        let store = self.store.as_ref()?.upgrade()?;
        if self.rest > 0 {
            self.rest -= 1;
            return None;
        }
        Some(store)
    }

    fn append(&mut self, store: &dyn JournalStore, batch: Batch) -> Result<Receipt, AppendError> {
        let begun = machine_now();
        let appended = block_on(store.append(batch));
        if begun.elapsed() > SLOW {
            self.rest = REST;
        }
        appended
    }
}

/// Says that no message waits any more.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) struct FlushTime;

impl Handler<FlushTime> for Supervisor {
    type Result = ();

    fn handle(&mut self, _: FlushTime, ctx: &mut Self::Context) {
        self.flush_noted = false;
        if self.poisoned.is_some() {
            return;
        }
        let alone = self.commits.is_single() && self.actors.len() <= 1;
        match self.in_place.store().filter(|_| alone) {
            Some(store) => self.commit_here(&*store, ctx),
            None => self.flush(ctx),
        }
    }
}

impl Supervisor {
    /// Hands over what was decided: at once while the journal is busy, which makes
    /// batches of its own accord, else when the mailbox is empty.
    pub(super) fn flush_soon(&mut self, ctx: &mut Context<Self>) {
        if !self.commits.may_wait() {
            self.flush(ctx);
        } else if !self.flush_noted {
            self.flush_noted = true;
            // The context takes it up when it finds the mailbox empty.
            ctx.notify(FlushTime);
        }
    }

    pub(super) fn flush(&mut self, ctx: &mut Context<Self>) {
        while let Some(batch) = self.next_batch() {
            if self.journal.try_send(Append(batch)).is_err() {
                self.poison("the journal's thread has ended".to_owned());
                self.fail_all(ctx);
                return;
            }
        }
    }

    fn commit_here(&mut self, store: &dyn JournalStore, ctx: &mut Context<Self>) {
        if let Some(batch) = self.next_batch() {
            let appended = self.in_place.append(store, batch);
            self.handle(Appended(appended), ctx);
        }
    }

    fn next_batch(&mut self) -> Option<Batch> {
        let batch = self.commits.next_batch()?;
        self.counts.batches += 1;
        self.counts.writes += batch.len() as u64;
        self.counts.bytes += batch.size_bytes() as u64;
        self.commits.appended(self.clock.now());
        Some(batch)
    }
}
