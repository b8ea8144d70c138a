//! The embedded store: keyspaces of fjall in a directory that one process
//! owns. Only the files below it name fjall.
//!
//! A batch is one write batch of fjall and one sync of its log; most of its
//! writes are one value in it (`recent`), until a checkpoint. What is found at
//! opening: a torn tail of the log is dropped, since nobody was told of it;
//! a log that is broken in the middle, missing, or shorter than the watermark,
//! a missing keyspace or table, and a damaged table index are errors. A damaged
//! block of a table is found when it is read. What is not found: damage to the
//! last batch before a power cut, when the watermark was lost with it; that
//! looks like the torn tail of a batch that was never acknowledged.

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
use super::store::{AppendError, DiskRoom, Entries, Head, JournalStore, Scan, SyncTimes};
use crate::error::StoreError;

mod chain;
mod checkpoint;
mod committed;
mod copy;
mod directory;
mod line;
mod locks;
mod log;
mod log_files;
mod manifest;
mod open;
mod opened;
mod reach;
mod read;
mod remedy;
mod tables;
mod unfinished;
mod versions;
mod watch;
mod write;

use opened::Opened;
use write::Pending;

// Records of the newest commits, in the bytes that fjall reads and writes.
type Encoder = recent::Encoder<Slice>;
type Layers = recent::Layers<Slice>;
type BatchRecord = recent::BatchRecord<Slice>;
type Table = recent::Table<Slice>;

/// Longest value, in bytes: fjall's limit, less some room for what else a record holds.
const VALUE_MAX: usize = 0xf000_0000;

/// What the store takes. fjall takes 255 bytes of a name, prefix included; 100 are enough for a name and leave a store
/// of another kind some room. The key's bound is fjall's. A batch is one item of a log, which must stay readable as a
/// whole in memory.
pub(crate) const BOUNDS: StoreBounds = StoreBounds {
    space_name: 100,
    key: 65_535,
    value: VALUE_MAX,
    batch: VALUE_MAX,
};

/// How much of its log the store syncs with each batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SyncMode {
    /// The data, as `fdatasync` does: enough on every system that keeps its word.
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
    /// All that holds threads, locks or files, in one place that can be emptied: none once it was closed. Each call
    /// uses it under the shared lock, so `close` waits for the calls under way, and for nobody who merely holds
    /// the store. A call takes the lock once: a second time could wait for a `close` that waits for the first.
    opened: RwLock<Option<Opened>>,
}

impl FjallStore {
    /// Bytes of commits, and of their index in memory, at which the newest version of what they wrote is put into
    /// tables, unless told otherwise. With more, more is written over before; but a start reads them.
    pub const CHECKPOINT_BYTES: usize = 24 * 1024 * 1024;

    /// Bytes of all memory tables together beyond which the largest are written out, unless told otherwise. That of
    /// the newest commits may take 48 MiB and each other one 16 MiB, so a store of ten busy keyspaces would reach
    /// 200 MiB by itself, and one of a hundred 1.6 GiB. With this, six keyspaces are as they would be alone; of more,
    /// each has smaller tables, which are merged once more. What is being written out comes on top, for as long as
    /// that takes.
    pub const MEMORY_BYTES: u64 = 128 * 1024 * 1024;

    /// Opens the journal in a directory, and makes it if the directory is empty or missing.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: another engine holds it, it is damaged, it is of a newer
    /// release, or the directory holds something else.
    pub fn open(directory: &Path, sync: SyncMode) -> Result<Self, StoreError> {
        Ok(Self::holding(open::open(directory, sync)?))
    }

    /// Opens a journal as [`open`](Self::open) does, for measuring what fjall alone does with the same writes:
    /// nothing passes through `recent`.
    pub(super) fn open_plain(directory: &Path, sync: SyncMode) -> Result<Self, StoreError> {
        let mut opened = open::open(directory, sync)?;
        opened.is_plain = true;
        Ok(Self::holding(opened))
    }

    /// Sets at how many bytes of commits the newest version of what they wrote is put into tables, in place of
    /// [`CHECKPOINT_BYTES`](Self::CHECKPOINT_BYTES). Up to three times as many are kept while that goes on; then
    /// commits wait.
    #[must_use]
    pub fn checkpoint_at(mut self, bytes: usize) -> Self {
        let opened = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = opened {
            opened.checkpoints.set_due_at(bytes);
        }
        self
    }

    /// Sets how many bytes all memory tables may take together before the largest are written out, in place of
    /// [`MEMORY_BYTES`](Self::MEMORY_BYTES).
    #[must_use]
    pub fn memory_at(mut self, bytes: u64) -> Self {
        let opened = self.opened.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = opened {
            opened.memory_bytes = bytes;
        }
        self
    }

    /// Tells whether there is a journal in a directory: a tool that only reads
    /// asks before it opens, since opening makes one.
    #[must_use]
    pub fn exists(directory: &Path) -> bool {
        directory::holds_store(directory)
    }

    /// Copies the journal in a directory into another one that is empty. No engine may hold it; one that starts
    /// meanwhile waits a second, and others may read beside. Nothing is written where it is; what engines left there, a torn
    /// tail for example, is copied as it is. Blocks while it is copied.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: there is no journal, an engine holds it, or it cannot be read or written.
    pub fn copy(directory: &Path, to: &Path) -> Result<(), StoreError> {
        copy::copy(directory, to)
    }

    /// Gives the room on the disk of a directory, if the system tells.
    #[must_use]
    pub fn room_of(directory: &Path) -> Option<DiskRoom> {
        directory::room_of(directory)
    }

    /// Says which engine holds the journal in a directory; none if none does, and empty if nobody can tell which.
    /// Others may read it, and an engine that opens it in the same instant waits for this look.
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
            opened: RwLock::new(Some(opened)),
        }
    }

    /// Reads every table through. Gives how many bytes that were, and what is damaged.
    pub(crate) fn verify_tables(&self) -> (u64, Vec<String>) {
        self.with(Opened::verify_tables).unwrap_or_default()
    }

    /// Uses what is open; none if it was closed. Must not be called from within itself.
    fn with<T>(&self, act: impl FnOnce(&Opened) -> T) -> Option<T> {
        let opened = self.opened.read().unwrap_or_else(PoisonError::into_inner);
        opened.as_ref().map(act)
    }

    /// Reads from what is open.
    fn read<T>(&self, read: impl FnOnce(&Opened) -> Result<T, StoreError>) -> Result<T, StoreError> {
        self.with(read).unwrap_or_else(|| {
            Err(StoreError::Closed {
                place: self.place.display().to_string(),
            })
        })
    }

    /// Asks what is open as its owner.
    fn own<T>(&self, act: impl FnOnce(&Opened) -> Result<T, AppendError>) -> Result<T, AppendError> {
        self.with(act)
            .unwrap_or_else(|| Err(AppendError::Failed(CLOSED.to_owned())))
    }

    /// Asks for a figure. It is not worth waiting for a close: its caller may be a thread that others wait for.
    fn figure<T>(&self, tell: impl FnOnce(&Opened) -> Option<T>) -> Option<T> {
        let opened = match self.opened.try_read() {
            Ok(opened) => opened,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        opened.as_ref().and_then(tell)
    }

    fn close_now(&self) {
        // A commit may wait for a checkpoint that gets nowhere; this answers it.
        self.with(Opened::begin_close);
        let mut opened = self.opened.write().unwrap_or_else(PoisonError::into_inner);
        // Ended under the lock: a second close answers when the first has given all back.
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

/// Gives how many bytes of a log are whole batches, and whether another follows what is none.
#[cfg(feature = "testkit")]
pub(crate) fn look(bytes: &[u8]) -> (usize, bool) {
    log::look(bytes)
}

impl JournalStore for FjallStore {
    fn acquire(&self) -> BoxFuture<'_, Result<Epoch, StoreError>> {
        ready(self.read(|opened| Ok(opened.line.writer().grant()))).boxed()
    }

    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        ready(self.own(|opened| opened.line.writer().admit(epoch))).boxed()
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
            opened.line.push(Pending { batch, answer });
            Ok(())
        });
        async move {
            queued?;
            // If it was closed meanwhile, `close` has committed what was handed in.
            self.with(Opened::commit_queued);
            receipt
                .await
                .unwrap_or_else(|_| Err(AppendError::Unknown("a commit panicked".to_owned())))
        }
        .boxed()
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
