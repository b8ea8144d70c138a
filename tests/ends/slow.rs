//! A store in memory, reached by several machines, whose live families take long to read: until its owner has renewed its
//! lease so often, or the store is closed.

use std::time::Duration;

use futures::future::BoxFuture;
use procession::provider::{
    AppendError, Batch, Entries, Epoch, Head, JournalStore, Key, Receipt, Scan, Space, StoreBounds, StoreError,
};
use procession::testkit::{FaultPlan, MemoryDisk, MemoryStore};
use tokio::sync::watch;

/// How its one range is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    NotYet,
    Begun,
    /// Nobody needs to wait any more.
    Free,
}

pub(crate) struct SlowStore {
    store: MemoryStore,
    /// Renewals until live families can be read.
    wanted: u64,
    blocks: bool,
    renewals: watch::Sender<u64>,
    read: watch::Sender<Read>,
}

impl SlowStore {
    pub(crate) fn open(disk: &MemoryDisk, lease: Duration, wanted: u64, blocks: bool) -> Result<Self, StoreError> {
        Ok(Self {
            store: MemoryStore::open_shared(disk, FaultPlan::none().lease(lease))?,
            wanted,
            blocks,
            renewals: watch::Sender::new(0),
            read: watch::Sender::new(Read::NotYet),
        })
    }

    /// Waits until its owner reads live families.
    pub(crate) async fn is_read(&self) {
        self.read.subscribe().wait_for(|read| *read != Read::NotYet).await.ok();
    }

    pub(crate) fn renewals(&self) -> u64 {
        *self.renewals.borrow()
    }

    /// Lets everybody read from here on.
    pub(crate) fn free(&self) {
        self.read.send_replace(Read::Free);
        self.renewals.send_modify(|_| {});
    }

    async fn wait(&self) {
        let mut renewals = self.renewals.subscribe();
        let is_over = |renewals: &u64| *renewals >= self.wanted || *self.read.borrow() == Read::Free;
        renewals.wait_for(is_over).await.ok();
    }
}

impl JournalStore for SlowStore {
    fn acquire(&self) -> BoxFuture<'_, Result<Epoch, StoreError>> {
        self.store.acquire()
    }

    fn lease(&self) -> Option<Duration> {
        self.store.lease()
    }

    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        let renewed = self.store.renew(epoch);
        Box::pin(async move {
            renewed.await?;
            self.renewals.send_modify(|renewals| *renewals += 1);
            Ok(())
        })
    }

    fn release(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        self.store.release(epoch)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        let closed = self.store.close();
        self.free();
        closed
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Receipt, AppendError>> {
        self.store.append(batch)
    }

    fn head(&self) -> BoxFuture<'_, Result<Option<Head>, StoreError>> {
        self.store.head()
    }

    fn get(&self, space: Space, key: Vec<u8>) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        self.store.get(space, key)
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'_, Result<Entries, StoreError>> {
        Box::pin(async move {
            if scan.space == Space::Live {
                self.read.send_if_modified(|read| {
                    let is_first = *read == Read::NotYet;
                    if is_first {
                        *read = Read::Begun;
                    }
                    is_first
                });
                self.wait().await;
            }
            self.store.scan(scan).await
        })
    }

    fn user_spaces(&self) -> BoxFuture<'_, Result<Vec<Key>, StoreError>> {
        self.store.user_spaces()
    }

    fn bounds(&self) -> StoreBounds {
        self.store.bounds()
    }

    fn size_bytes(&self) -> Option<u64> {
        self.store.size_bytes()
    }

    fn reads_block(&self) -> bool {
        self.blocks
    }
}
