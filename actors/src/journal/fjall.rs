//! The embedded store: keyspaces of fjall in a directory that one process owns. Only the modules below this one name
//! fjall.
//!
//! A batch is one write batch of fjall and one sync of its log. Until a checkpoint, most of its writes are one value
//! in it (`recent`).
//!
//! An opening drops a torn tail of the log, since it was never acknowledged. It reports these as errors: a log that
//! is broken in the middle, missing, or shorter than the watermark; a missing keyspace or table; a damaged table
//! index. A damaged block of a table is found when it is read. One case is not found: damage to the last batch before
//! a power cut that also lost its watermark. It looks like the torn tail of a batch that was never acknowledged.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, TryLockError};

use fjall::{PersistMode, Slice};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{BoxFuture, ready};
use procession_kernel::{Epoch, Receipt};

use super::batch::Batch;
use super::bounds::StoreBounds;
use super::keys::Space;
use super::layout::CLOSED;
use super::recent;
use super::store::{AppendError, DiskRoom, Entries, Head, JournalStore, RecentWrites, Scan, SyncTimes};
use crate::error::{StoreError, of_original};

mod chain;
mod checkpoint;
mod commit_queue;
mod committed;
mod copy;
mod directory;
mod keyspace_tables;
mod locks;
mod log;
mod log_batch;
mod log_files;
mod manifest;
mod open;
mod opened;
mod read;
mod remedy;
mod tables;
mod unfinished;
mod versions;
mod watch;
mod write;
mod zero_fill;

use opened::Opened;
use write::Pending;

// Records of the newest commits, in the byte type that fjall reads and writes.
type Encoder = recent::Encoder<Slice>;
type Layers = recent::Layers<Slice>;
type BatchRecord = recent::BatchRecord<Slice>;
type Table = recent::Table<Slice>;

/// Longest value in bytes: fjall's limit, less some room for the rest of a record.
const VALUE_MAX: usize = 0xf000_0000;

/// The bounds of the store. fjall takes names of 255 bytes, prefix included; 100 bytes are enough for a name and
/// leave some room to other stores. The key's bound is fjall's. A batch is one item of a log, which must stay
/// readable as a whole in memory.
pub(crate) const BOUNDS: StoreBounds = StoreBounds {
    space_name: 100,
    key: 65_535,
    value: VALUE_MAX,
    batch: VALUE_MAX,
};

/// What the store syncs of its log with each batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncMode {
    /// The data, as `fdatasync` does: enough on every system that honours it.
    #[default]
    Data,
    /// The data and all of the file's attributes, as `fsync` does.
    All,
    /// Nothing: a power cut loses acknowledged commits. For measurements only.
    None,
}

impl SyncMode {
    const fn persist(self) -> PersistMode {
        match self {
            Self::Data => PersistMode::SyncData,
            Self::All => PersistMode::SyncAll,
            Self::None => PersistMode::Buffer,
        }
    }
}

/// The journal store in a directory of its own.
pub struct FjallStore {
    place: PathBuf,
    /// The journal that this is a copy of: errors name its files.
    original: Option<PathBuf>,
    /// Everything that holds threads, locks or files, in one place that can be emptied; `None` once it was closed.
    /// Each call uses it under the shared lock, so `close` waits for calls under way, but not for mere references to
    /// the store. A call must take the lock only once: a second time could wait for a `close` that waits for the
    /// first.
    opened: RwLock<Option<Opened>>,
}

impl FjallStore {
    /// Default size of commits and their index in memory at which a checkpoint is due. A larger size overwrites more
    /// before it reaches tables, but a start must read it all.
    pub const CHECKPOINT_BYTES: usize = 24 * 1024 * 1024;

    /// Default limit of all memory tables together, in bytes, beyond which the largest are written out. Alone, the
    /// table of the newest commits may take 48 MiB and each other table 16 MiB. A store of ten busy keyspaces would
    /// then reach 200 MiB, and one of a hundred 1.6 GiB. With this limit six keyspaces behave as they would alone;
    /// with more, each has smaller tables, which are merged once more. Tables being written out are not counted.
    pub const MEMORY_BYTES: u64 = 128 * 1024 * 1024;

    /// Opens the journal in a directory, and creates it if the directory is empty or missing.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if another engine holds the journal, it is damaged, a newer release wrote it, or the directory
    /// holds something else.
    pub fn open(directory: &Path, sync: SyncMode) -> Result<Self, StoreError> {
        Ok(Self::holding(open::open(directory, sync)?))
    }

    /// Opens a journal as [`open`](Self::open) does, but without `recent`, to measure fjall alone with the same
    /// writes.
    pub(super) fn open_plain(directory: &Path, sync: SyncMode) -> Result<Self, StoreError> {
        let mut opened = open::open(directory, sync)?;
        opened.is_plain = true;
        Ok(Self::holding(opened))
    }

    /// Sets the size of commits at which a checkpoint is due, instead of
    /// [`CHECKPOINT_BYTES`](Self::CHECKPOINT_BYTES). While a checkpoint runs, up to three times as much is kept; then
    /// commits wait.
    #[must_use]
    pub fn checkpoint_at(mut self, bytes: usize) -> Self {
        let opened = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = opened {
            opened.checkpoints.set_due_at(bytes);
        }
        self
    }

    /// Sets the limit of all memory tables together, instead of [`MEMORY_BYTES`](Self::MEMORY_BYTES).
    #[must_use]
    pub fn memory_at(mut self, bytes: u64) -> Self {
        let opened = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = opened {
            opened.memory_bytes = bytes;
        }
        self
    }

    /// Says that this is a copy of the journal in a directory: errors name the files there.
    #[must_use]
    pub(crate) fn copy_of(mut self, original: &Path) -> Self {
        self.original = Some(original.to_owned());
        self
    }

    /// Returns `true` if there is a journal in a directory. Tools that only read check this before they open it,
    /// since opening creates a journal.
    #[must_use]
    pub fn exists(directory: &Path) -> bool {
        directory::holds_store(directory)
    }

    /// Copies the journal in a directory into another, empty directory. No engine may hold the journal; an engine
    /// that starts meanwhile waits for a second, and others may read it at the same time. Nothing is written to the
    /// original, and leftovers of engines, such as a torn tail, are copied as they are. Blocks until the copy is
    /// complete.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if there is no journal, an engine holds it, or it cannot be read or written.
    pub fn copy(directory: &Path, to: &Path) -> Result<(), StoreError> {
        copy::copy(directory, to)
    }

    /// Returns the room on the disk of a directory, or `None` if the system does not tell.
    #[must_use]
    pub fn room_of(directory: &Path) -> Option<DiskRoom> {
        directory::room_of(directory)
    }

    /// Returns the name of the engine that holds the journal in a directory: `None` if no engine holds it, and empty
    /// if the holder is unknown. Others may read the journal, and an engine that opens it at the same instant waits
    /// for this look.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the directory cannot be read.
    pub fn holder(directory: &Path) -> Result<Option<String>, StoreError> {
        directory::holder(directory)
    }

    fn holding(opened: Opened) -> Self {
        Self {
            place: opened.place().to_owned(),
            original: None,
            opened: RwLock::new(Some(opened)),
        }
    }

    /// Reads every table through. Returns the number of bytes read, and a text for each damage.
    pub(crate) fn verify_tables(&self) -> (u64, Vec<String>) {
        let (bytes, mut damages) = self.with(Opened::verify_tables).unwrap_or_default();
        if let Some(original) = &self.original {
            for damage in &mut damages {
                *damage = of_original(damage, &self.place, original);
            }
        }
        (bytes, damages)
    }

    /// Calls `act` with the open store, or returns `None` if it was closed. Must not be nested: see `opened`.
    fn with<T>(&self, act: impl FnOnce(&Opened) -> T) -> Option<T> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        opened.as_ref().map(act)
    }

    /// Reads from the open store.
    fn read<T>(&self, read: impl FnOnce(&Opened) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let read = self.with(read).unwrap_or_else(|| {
            Err(StoreError::Closed {
                place: self.place.display().to_string(),
            })
        });
        match &self.original {
            Some(original) => read.map_err(|error| error.of_original(&self.place, original)),
            None => read,
        }
    }

    /// Calls the open store as its owner.
    fn own<T>(&self, act: impl FnOnce(&Opened) -> Result<T, AppendError>) -> Result<T, AppendError> {
        self.with(act)
            .unwrap_or_else(|| Err(AppendError::Failed(CLOSED.to_owned())))
    }

    /// Returns a figure of the open store. It never waits for a close, since the calling thread may be one that
    /// others wait for.
    fn figure<T>(&self, tell: impl FnOnce(&Opened) -> Option<T>) -> Option<T> {
        let opened = match self.opened.try_read() {
            Ok(opened) => opened,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        opened.as_ref().and_then(tell)
    }

    fn close_now(&self) {
        // A commit may wait for a checkpoint that makes no progress; this answers it.
        self.with(Opened::begin_close);
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        // Ended under the lock, so that a second close answers only when the first has returned everything.
        if let Some(opened) = opened.take() {
            opened.close();
        }
    }
}

impl Drop for FjallStore {
    fn drop(&mut self) {
        self.close_now();
    }
}

/// Returns how many bytes of a log are whole batches, and whether another whole batch follows an invalid one.
#[cfg(feature = "testkit")]
pub(crate) fn look(bytes: &[u8]) -> (usize, bool) {
    log::look(bytes)
}

impl JournalStore for FjallStore {
    fn acquire(&self) -> BoxFuture<'_, Result<Epoch, StoreError>> {
        ready(self.read(|opened| Ok(opened.commit_queue.writer().grant()))).boxed()
    }

    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        ready(self.own(|opened| opened.commit_queue.writer().admit(epoch))).boxed()
    }

    fn release(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        ready(self.own(|opened| opened.release(epoch))).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move { self.close_now() }.boxed()
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Receipt, AppendError>> {
        // The call decides the order, not the poll.
        let (answer, receipt) = oneshot::channel();
        let queued = self.own(|opened| {
            opened.commit_queue.push(Pending { batch, answer });
            Ok(())
        });
        async move {
            queued?;
            // If the store was closed meanwhile, `close` has committed the queued batches.
            self.with(Opened::commit_queued);
            receipt
                .await
                .unwrap_or_else(|_| Err(AppendError::Unknown("a commit panicked".to_owned())))
        }
        .boxed()
    }

    fn settle(&self) {
        // A close does the same, and others may wait for the calling thread.
        self.figure(|opened| {
            opened.settle();
            Some(())
        });
    }

    fn head(&self) -> BoxFuture<'_, Result<Option<Head>, StoreError>> {
        ready(self.read(Opened::head)).boxed()
    }

    fn get(&self, space: Space, key: Vec<u8>) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        async move { self.read(|opened| opened.read(&space, &key)) }.boxed()
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'_, Result<Entries, StoreError>> {
        async move { self.read(|opened| opened.read_range(&scan)) }.boxed()
    }

    fn recent_writes(&self, scan: &Scan) -> Option<RecentWrites> {
        self.figure(|opened| opened.recent_writes(scan))
    }

    fn bounds(&self) -> StoreBounds {
        BOUNDS
    }

    fn size_bytes(&self) -> Option<u64> {
        self.figure(|opened| opened.database.disk_space().ok())
    }

    fn disk_room(&self) -> Option<DiskRoom> {
        self.figure(|opened| opened.directory.room())
    }

    fn sync_times(&self) -> Option<SyncTimes> {
        self.figure(|opened| opened.sync_seconds.times())
    }

    fn reads_block(&self) -> bool {
        true
    }

    fn appends_at_once(&self) -> bool {
        true
    }
}

impl std::fmt::Debug for FjallStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FjallStore")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod copies_tests;
#[cfg(test)]
mod logs_tests;
#[cfg(test)]
mod owner_tests;
#[cfg(test)]
mod recent_tests;
#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
mod tests;
