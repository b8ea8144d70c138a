//! `Journal`: the actor that persists decisions before anything is acknowledged. It lives on a thread of its own, and
//! hands batches to the store in order of arrival, as many at once as the store prefers. It passes the answers to the
//! supervisor in the same order. It never interprets what it stores, and it renews the ownership of a store with a
//! lease.
//!
//! A failed append is final: the journal is poisoned, and no later batch is acknowledged.

pub mod batch;
mod bounds;
pub mod codec;
#[cfg(any(test, feature = "testkit"))]
pub mod conformance;
pub(crate) mod encode;
pub mod fjall;
pub mod keys;
pub mod layout;
pub(crate) mod lease;
#[cfg(any(test, feature = "testkit"))]
pub mod memory;
pub mod probe;
mod read_pool;
pub(crate) mod reader;
mod recent;
pub mod store;
mod under_way;

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

use std::cell::OnceCell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};

use actix::fut::ActorFuture;
use actix::prelude::*;
use actix_rt::task::JoinHandle;
use futures::future::LocalBoxFuture;
use procession_kernel::{Epoch, Receipt, Seq};

use crate::actor_loop::LastPanic;
use crate::queues::{Depth, Outbox};
use lease::Lease;
use under_way::UnderWay;

/// Families that a scan reads and skips between two requested ones. Starting a new scan costs about as much as
/// reading this many rows.
pub(crate) const READ_OVER: u64 = 32;
/// Most batches that the supervisor may have handed over without an answer. This is enough for any store that commits
/// several at once, and each batch may take megabytes.
pub const IN_FLIGHT_MAX: usize = 32;
/// Capacity of the journal's mailbox: every batch that the supervisor may hand over, and the release.
const MAILBOX: usize = 2 * IN_FLIGHT_MAX;

/// Asks for one batch to be written and synced.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Append(pub(crate) Batch);

/// Asks for an orderly release of the store; the journal then stops.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Release(pub(crate) Epoch);

/// The answer to the oldest unanswered batch or, without a batch, why no more are taken.
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct Appended(pub(crate) Result<Receipt, AppendError>);

/// Why the journal takes no more batches; set once.
type Poison = Rc<OnceCell<AppendError>>;

/// The journal's actor. It is the only owner of the store's strong reference.
pub(crate) struct Journal {
    /// `None` once the store was released.
    store: Option<Arc<dyn JournalStore>>,
    epoch: Epoch,
    owner: Rc<Outbox<Appended>>,
    depth: Arc<Depth>,
    under_way: UnderWay,
    /// Appends that the store prefers to have under way at once.
    most: usize,
    /// An answer on its way to a supervisor whose mailbox is full.
    telling: Option<LocalBoxFuture<'static, ()>>,
    /// `true` while a future of this actor takes answers in the background.
    takes_answers: bool,
    poison: Poison,
    /// The ownership that this actor renews, if it lapses.
    lease: Option<Lease>,
    renewal: Option<JoinHandle<()>>,
    panics: LastPanic,
}

impl Journal {
    pub(crate) fn new(
        store: Arc<dyn JournalStore>,
        (epoch, lease): (Epoch, Option<Lease>),
        owner: Outbox<Appended>,
        depth: Arc<Depth>,
        panics: LastPanic,
    ) -> Self {
        Self {
            most: store.under_way().max(1),
            store: Some(store),
            epoch,
            owner: Rc::new(owner),
            depth,
            under_way: UnderWay::default(),
            telling: None,
            takes_answers: false,
            poison: Poison::default(),
            lease,
            renewal: None,
            panics,
        }
    }

    /// Hands a batch to the store, behind all earlier ones.
    fn append(&mut self, batch: Batch) {
        let commit = (batch.epoch(), batch.seq());
        match (self.poison.get().cloned(), self.store.clone()) {
            (Some(cause), _) => self.under_way.push(async { Err(cause) }),
            (None, Some(store)) => self.under_way.push(async move {
                let receipt = store.append(batch).await?;
                of_batch(receipt, commit)
            }),
            (None, None) => {
                let closed = AppendError::Failed("the journal was closed".to_owned());
                self.under_way.push(async { Err(closed) });
            }
        }
    }

    /// Passes answers to the supervisor, in order, until at most `left` appends are under way.
    fn poll_answers(&mut self, left: usize, cx: &mut TaskContext<'_>) -> Poll<()> {
        loop {
            // The next answer must not overtake an answer that waits for room in the supervisor's mailbox.
            if let Some(telling) = &mut self.telling {
                ready!(telling.as_mut().poll(cx));
                self.telling = None;
            }
            if self.under_way.len() == 0 {
                self.store.iter().for_each(|store| store.settle());
            }
            if self.under_way.len() <= left {
                return Poll::Ready(());
            }
            let Some(answer) = ready!(self.under_way.poll_oldest(cx)) else {
                return Poll::Ready(());
            };
            let answer = self.judge(answer);
            self.telling = Some(Box::pin(self.owner.send(Appended(answer))));
        }
    }

    /// After a failure every later answer is that failure, whatever the store says. The supervisor must not build on
    /// a commit whose predecessor may be missing.
    fn judge(&self, answer: Result<Receipt, AppendError>) -> Result<Receipt, AppendError> {
        if let Some(cause) = self.poison.get() {
            return Err(cause.clone());
        }
        answer.inspect_err(|cause| poison(&self.poison, cause))
    }

    /// Goes on with the renewals that the start has made until now.
    fn begin_renewal(&mut self) {
        let Some(store) = self.store.clone() else { return };
        let Some(mut lease) = self.lease else { return };
        let (epoch, owner, poisoned) = (self.epoch, Rc::clone(&self.owner), Rc::clone(&self.poison));
        // A separate task, because the actor's futures are not polled while its mailbox is kept shut.
        self.renewal = Some(actix_rt::spawn(async move {
            let cause = lease::keep(store, epoch, &mut lease).await;
            poison(&poisoned, &cause);
            owner.send(Appended(Err(cause))).await;
        }));
    }
}

/// Records why the journal takes no more batches; the first cause counts.
fn poison(poison: &Poison, cause: &AppendError) {
    if poison.set(cause.clone()).is_ok() {
        tracing::error!(%cause, "the journal failed and takes no more commits");
    }
}

/// Takes answers until at most `left` appends are under way.
struct Answers {
    left: usize,
}

impl ActorFuture<Journal> for Answers {
    type Output = ();

    fn poll(
        self: Pin<&mut Self>,
        journal: &mut Journal,
        _: &mut Context<Journal>,
        task: &mut TaskContext<'_>,
    ) -> Poll<()> {
        journal.poll_answers(self.left, task)
    }
}

impl Supervised for Journal {
    /// Batches that were under way get no other answer, since their outcome is unknown. One answer serves for all of
    /// them: the supervisor fails with the first.
    fn restarting(&mut self, ctx: &mut Self::Context) {
        let cause = AppendError::Unknown(self.panics.take("the journal"));
        self.under_way.clear();
        (self.telling, self.takes_answers) = (None, false);
        poison(&self.poison, &cause);
        ctx.wait(self.owner.send(Appended(Err(cause))).into_actor(self));
    }
}

impl Actor for Journal {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.set_mailbox_capacity(MAILBOX);
        // Not again after a panic: the journal is poisoned then.
        if self.renewal.is_none() && self.poison.get().is_none() {
            self.begin_renewal();
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
    }
}

impl Handler<Append> for Journal {
    type Result = ();

    fn handle(&mut self, Append(batch): Append, ctx: &mut Self::Context) {
        self.depth.taken();
        self.append(batch);
        // `wait` keeps the mailbox shut while the store has as many appends as it prefers.
        ctx.wait(Answers { left: self.most - 1 });
        if self.most > 1 && !self.takes_answers {
            self.takes_answers = true;
            ctx.spawn(Answers { left: 0 }.map(|(), journal, _| journal.takes_answers = false));
        }
    }
}

/// Checks that a receipt belongs to this batch. A receipt releases everything that its batch decided, so a receipt of
/// another batch must release nothing.
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
        self.depth.taken();
        // Behind every append: all batches are answered before the store is released.
        let answered = Answers { left: 0 };
        let released = answered.then(move |(), journal: &mut Self, _| {
            let (store, renewal) = (journal.store.take(), journal.renewal.take());
            let release = async move {
                if let Some(renewal) = renewal {
                    renewal.abort();
                    // The renewal holds a reference to the store until it has ended.
                    renewal.await.ok();
                }
                let Some(store) = store else { return };
                if let Err(cause) = store.release(epoch).await {
                    tracing::warn!(%cause, "the store was not released in order");
                }
                // The store is closed before the release is answered. Others may still hold it, for example a queued
                // read, and the caller may open the journal again right after the answer.
                store.close().await;
            };
            release.into_actor(journal)
        });
        Box::pin(released.map(|(), _, ctx| ctx.stop()))
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
