//! A store in memory whose single calls a test can change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use procession::errors::StoreError;
use procession::provider::{AppendError, Batch, Entries, Head, JournalStore, Receipt, Scan, Space, StoreBounds};
use procession::status::Epoch;
use procession::testkit::{FaultPlan, MemoryDisk, MemoryStore};

/// The calls that a test may change. By default each is forwarded.
pub(crate) trait StoreCalls: Send + Sync + 'static {
    fn append<'a>(&'a self, store: &'a MemoryStore, batch: Batch) -> BoxFuture<'a, Result<Receipt, AppendError>> {
        store.append(batch)
    }

    fn get<'a>(
        &'a self,
        store: &'a MemoryStore,
        space: Space,
        key: Vec<u8>,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, StoreError>> {
        store.get(space, key)
    }

    fn size_bytes(&self, store: &MemoryStore) -> Option<u64> {
        store.size_bytes()
    }

    fn reads_block(&self) -> bool {
        false
    }

    fn appends_at_once(&self) -> bool {
        false
    }
}

/// Counts the batches. Each takes a sync.
pub(crate) struct CountsAppends(pub(crate) Arc<AtomicUsize>);

impl StoreCalls for CountsAppends {
    fn append<'a>(&'a self, store: &'a MemoryStore, batch: Batch) -> BoxFuture<'a, Result<Receipt, AppendError>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        store.append(batch)
    }
}

/// A store in memory whose calls go through the test's own.
pub(crate) struct InterceptedStore<C> {
    store: MemoryStore,
    calls: C,
}

impl<C> InterceptedStore<C> {
    pub(crate) fn open(disk: &MemoryDisk, calls: C) -> Result<Self, StoreError> {
        let store = MemoryStore::open(disk, FaultPlan::none())?;
        Ok(Self { store, calls })
    }
}

impl<C: StoreCalls> JournalStore for InterceptedStore<C> {
    fn acquire(&self) -> BoxFuture<'_, Result<Epoch, StoreError>> {
        self.store.acquire()
    }

    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        self.store.renew(epoch)
    }

    fn release(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        self.store.release(epoch)
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Receipt, AppendError>> {
        self.calls.append(&self.store, batch)
    }

    fn head(&self) -> BoxFuture<'_, Result<Option<Head>, StoreError>> {
        self.store.head()
    }

    fn get(&self, space: Space, key: Vec<u8>) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        self.calls.get(&self.store, space, key)
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'_, Result<Entries, StoreError>> {
        self.store.scan(scan)
    }

    fn bounds(&self) -> StoreBounds {
        self.store.bounds()
    }

    fn size_bytes(&self) -> Option<u64> {
        self.calls.size_bytes(&self.store)
    }

    fn reads_block(&self) -> bool {
        self.calls.reads_block()
    }

    fn appends_at_once(&self) -> bool {
        self.calls.appends_at_once()
    }
}
