//! `Journal`: the actor that persists before anything is acknowledged. It lives
//! on a thread of its own, writes one batch at a time in the order in which
//! they came, and never interprets what it stores.
//!
//! A failed append is final: the journal is poisoned, and tries no later one.

pub mod batch;
mod bounds;
pub mod codec;
#[cfg(any(test, feature = "testkit"))]
pub mod conformance;
pub(crate) mod encode;
pub mod fjall;
pub mod keys;
pub mod layout;
#[cfg(any(test, feature = "testkit"))]
pub mod memory;
pub mod probe;
mod read_pool;
pub(crate) mod reader;
mod recent;
pub mod store;

#[cfg(any(test, feature = "testkit"))]
use self::fjall::BOUNDS as EMBEDDED_BOUNDS;
#[cfg(feature = "testkit")]
pub(crate) use self::fjall::look as look_at_log;
pub use self::fjall::{FjallStore as EmbeddedStore, SyncMode};
#[cfg(feature = "testkit")]
pub(crate) use self::recent::rewritten as rewritten_commit;
pub use batch::Batch;
pub use bounds::StoreBounds;
pub use keys::Space;
pub use reader::Reader;
pub use store::{AppendError, DiskRoom, Head, JournalStore};

use std::sync::Arc;

use actix::prelude::*;
use procession_kernel::{Epoch, Receipt, Seq};

use crate::actor_loop::LastPanic;
use crate::mail::{Depth, Outbox};

/// Families that are read over between two that are asked for. To begin a scan
/// costs about as much as to read so many rows.
pub(crate) const READ_OVER: u64 = 32;
/// Batches that wait for the journal; the supervisor sends fewer than this.
const MAILBOX: usize = 64;

/// Asks for one batch to be written and synced.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Append(pub(crate) Batch);

/// Asks for the store to be given up in order; the journal then stops.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Release(pub(crate) Epoch);

/// What became of the oldest batch that was not answered yet.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Appended(pub(crate) Result<Receipt, AppendError>);

/// The journal's actor. It alone keeps the store alive.
pub(crate) struct Journal {
    /// None once it was given up.
    store: Option<Arc<dyn JournalStore>>,
    owner: Outbox<Appended>,
    mail: Arc<Depth>,
    poisoned: Option<AppendError>,
    panics: LastPanic,
}

impl Journal {
    pub(crate) fn new(
        store: Arc<dyn JournalStore>,
        owner: Outbox<Appended>,
        mail: Arc<Depth>,
        panics: LastPanic,
    ) -> Self {
        Self {
            store: Some(store),
            owner,
            mail,
            poisoned: None,
            panics,
        }
    }
}

impl Supervised for Journal {
    /// The batch that was under way has no other answer, and nobody knows what became of it.
    fn restarting(&mut self, ctx: &mut Self::Context) {
        let cause = AppendError::Unknown(self.panics.take("the journal"));
        tracing::error!(%cause, "the journal failed and takes no more commits");
        self.poisoned.get_or_insert_with(|| cause.clone());
        ctx.wait(self.owner.send(Appended(Err(cause))).into_actor(self));
    }
}

impl Actor for Journal {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Append> for Journal {
    type Result = ();

    fn handle(&mut self, Append(batch): Append, ctx: &mut Self::Context) {
        self.mail.taken();
        let store = self.store.clone();
        let poisoned = self.poisoned.clone();
        let write = async move {
            match (poisoned, store) {
                (Some(cause), _) => Err(cause),
                (None, Some(store)) => {
                    let commit = (batch.epoch(), batch.seq());
                    store.append(batch).await.and_then(|receipt| of_batch(receipt, commit))
                }
                (None, None) => Err(AppendError::Failed("the journal was closed".to_owned())),
            }
        };
        // `wait` keeps the mailbox shut until the batch is answered: order is by construction.
        ctx.wait(write.into_actor(self).then(|result, journal, _| {
            if let Err(cause) = &result {
                tracing::error!(%cause, "the journal failed and takes no more commits");
                journal.poisoned.get_or_insert_with(|| cause.clone());
            }
            journal.owner.send(Appended(result)).into_actor(journal)
        }));
    }
}

/// A receipt sets free all that its batch decided: one that is of another batch must set nothing free.
pub(crate) fn of_batch(receipt: Receipt, (epoch, seq): (Epoch, Seq)) -> Result<Receipt, AppendError> {
    if (receipt.epoch(), receipt.seq()) == (epoch, seq) {
        return Ok(receipt);
    }
    Err(AppendError::Unknown(format!(
        "the store answered commit {seq} of epoch {epoch} with a receipt of commit {} of epoch {}; what it wrote is \
         not known; report this to whoever made the store, and start again",
        receipt.seq(),
        receipt.epoch()
    )))
}

impl Handler<Release> for Journal {
    type Result = ResponseActFuture<Self, ()>;

    fn handle(&mut self, Release(epoch): Release, _: &mut Self::Context) -> Self::Result {
        self.mail.taken();
        let store = self.store.take();
        let release = async move {
            let Some(store) = store else { return };
            if let Err(cause) = store.release(epoch).await {
                tracing::warn!(%cause, "the store was not released in order");
            }
            // Closed before anybody is told: others may hold the store for a while yet, a read that waits for
            // its turn for example, and whoever waited for the release may open the journal again.
            store.close().await;
        };
        Box::pin(release.into_actor(self).map(|(), _, ctx| ctx.stop()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_of_another_batch_is_no_receipt() {
        let receipt = Receipt::new(Epoch(1), Seq(7));
        let taken = of_batch(receipt, (Epoch(1), Seq(7)));
        assert!(taken.is_ok_and(|taken| taken == receipt));
        for other in [(Epoch(1), Seq(6)), (Epoch(1), Seq(8)), (Epoch(2), Seq(7))] {
            let refused = of_batch(receipt, other);
            assert!(
                matches!(&refused, Err(AppendError::Unknown(why)) if why.contains("receipt of commit 7 of epoch 1")),
                "{refused:?}"
            );
        }
    }
}
