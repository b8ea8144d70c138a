//! An engine on a real journal, by simulated time.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use procession_actors::StoreError;
use procession_actors::clock::{Clock, SystemClock};
use procession_actors::journal::store::{
    AppendError, DiskRoom, Entries, Head, JournalStore, RecentWrites, Scan, SyncTimes,
};
use procession_actors::journal::{Batch, EmbeddedStore, Space, StoreBounds, SyncMode};
use procession_actors::testkit::TestClock;
use procession_kernel::{Epoch, Key, Receipt};

use super::moving::{self, Moving, QUIET_TURNS};
use super::world::Trouble;
use crate::executor::{Builder, Executor};
use crate::status::Mailboxes;

/// How long another thread is given, once everything seems to be at rest: it may have ended its work, and its answer is
/// not yet here.
const LAST_LOOK: Duration = Duration::from_millis(1);

/// An engine with the embedded journal in a directory, by a clock that the test moves: what a
/// [`World`](super::World) is for a journal in memory. Nothing of it crashes by itself; a process that is killed is
/// followed by one with the same directory.
///
/// ```
/// use procession::procedure::Noop;
/// use procession::testkit::{Simulated, TestClock, Trouble};
///
/// # fn main() -> Result<(), Trouble> {
/// let directory = tempfile::tempdir()?;
/// actix_rt::System::new().block_on(async {
///     let simulated = Simulated::start(directory.path(), TestClock::new(), |builder| builder.register::<Noop>(())).await?;
///     let submitted = simulated.executor.submit(Noop).into_future();
///     assert!(simulated.at_rest(submitted).await.is_some());
///     assert!(simulated.commits() > 0);
///     simulated.executor.shutdown().await;
///     Ok(())
/// })
/// # }
/// ```
pub struct Simulated {
    /// The engine.
    pub executor: Executor,
    /// Its clock.
    pub clock: TestClock,
    store: Arc<Counted>,
}

impl Simulated {
    /// Starts an engine with the journal in this directory, which is created if it is not there. It runs on the current
    /// thread, one commit a batch. `set_up` may give it neither another journal nor another clock.
    ///
    /// # Errors
    ///
    /// What the start says.
    pub async fn start(
        directory: &Path,
        clock: TestClock,
        set_up: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, Trouble> {
        let directory = directory.to_owned();
        let opened = actix_rt::task::spawn_blocking(move || EmbeddedStore::open(&directory, SyncMode::Data));
        let store = Arc::new(Counted::new(opened.await??));
        let builder = Executor::builder(Arc::clone(&store))
            .inline()
            .clock(Arc::new(clock.clone()));
        let executor = set_up(builder).start().await?;
        Ok(Self { executor, clock, store })
    }

    /// Returns how many batches were committed since it was started.
    #[must_use]
    pub fn commits(&self) -> u64 {
        self.store.commits.load(Ordering::Acquire)
    }

    /// Lets everything run that can run without time passing.
    pub async fn settle(&self) {
        moving::settle(self).await;
    }

    /// Awaits a future without letting time pass. Returns `None` once everything is at rest and its value is still not
    /// there.
    pub async fn at_rest<F: Future>(&self, future: F) -> Option<F::Output> {
        moving::at_rest(self, future).await
    }

    /// Lets time pass, deadline by deadline, and everything run that it sets going.
    pub async fn pass(&self, time: Duration) {
        moving::pass(self, time).await;
    }
}

impl Moving for Simulated {
    type Progress = (u64, Mailboxes);

    fn progress(&self) -> Self::Progress {
        (self.store.answered.load(Ordering::Acquire), self.executor.mailboxes())
    }

    fn is_busy(&self) -> bool {
        self.store.asked.load(Ordering::Acquire) != self.store.answered.load(Ordering::Acquire)
    }

    async fn turn(&self, quiet: usize) {
        match self.is_busy() || quiet + 1 == QUIET_TURNS || quiet == QUIET_TURNS / 2 {
            true => SystemClock.sleep_until(SystemClock.now().after(LAST_LOOK)).await,
            false => tokio::task::yield_now().await,
        }
    }

    fn clock(&self) -> &TestClock {
        &self.clock
    }
}

/// The embedded journal, with a count of what it was asked and has answered.
struct Counted {
    store: EmbeddedStore,
    asked: AtomicU64,
    answered: AtomicU64,
    commits: AtomicU64,
}

impl Counted {
    const fn new(store: EmbeddedStore) -> Self {
        let (asked, answered, commits) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        Self {
            store,
            asked,
            answered,
            commits,
        }
    }

    /// Counts a request: also one whose answer nobody awaits any more.
    fn counted<'a, T: Send + 'a>(&'a self, asked: BoxFuture<'a, T>) -> BoxFuture<'a, T> {
        struct Answered<'a>(&'a Counted);
        impl Drop for Answered<'_> {
            fn drop(&mut self) {
                self.0.answered.fetch_add(1, Ordering::AcqRel);
            }
        }
        self.asked.fetch_add(1, Ordering::AcqRel);
        let answered = Answered(self);
        async move {
            let answer = asked.await;
            drop(answered);
            answer
        }
        .boxed()
    }
}

impl JournalStore for Counted {
    fn acquire(&self) -> BoxFuture<'_, Result<Epoch, StoreError>> {
        self.counted(self.store.acquire())
    }

    fn lease(&self) -> Option<Duration> {
        self.store.lease()
    }

    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        self.counted(self.store.renew(epoch))
    }

    fn release(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        self.counted(self.store.release(epoch))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.counted(self.store.close())
    }

    fn under_way(&self) -> usize {
        self.store.under_way()
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Receipt, AppendError>> {
        let appended = self.store.append(batch);
        self.counted(
            async move {
                let receipt = appended.await?;
                self.commits.fetch_add(1, Ordering::AcqRel);
                Ok(receipt)
            }
            .boxed(),
        )
    }

    fn settle(&self) {
        self.store.settle();
    }

    fn head(&self) -> BoxFuture<'_, Result<Option<Head>, StoreError>> {
        self.counted(self.store.head())
    }

    fn get(&self, space: Space, key: Vec<u8>) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        self.counted(self.store.get(space, key))
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'_, Result<Entries, StoreError>> {
        self.counted(self.store.scan(scan))
    }

    fn recent_writes(&self, scan: &Scan) -> Option<RecentWrites> {
        self.store.recent_writes(scan)
    }

    fn user_spaces(&self) -> BoxFuture<'_, Result<Vec<Key>, StoreError>> {
        self.counted(self.store.user_spaces())
    }

    fn bounds(&self) -> StoreBounds {
        self.store.bounds()
    }

    fn size_bytes(&self) -> Option<u64> {
        self.store.size_bytes()
    }

    fn sync_times(&self) -> Option<SyncTimes> {
        self.store.sync_times()
    }

    fn disk_room(&self) -> Option<DiskRoom> {
        self.store.disk_room()
    }

    /// They do, and are made on the thread of the engine all the same: on others they would end in any order.
    fn reads_block(&self) -> bool {
        false
    }

    fn appends_at_once(&self) -> bool {
        self.store.appends_at_once()
    }
}
