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

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use fjall::{Database, Keyspace, PersistMode};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{BoxFuture, ready};
use procession_kernel::{Epoch, Receipt, Seq};

use super::batch::{Batch, Write};
use super::keys::Space;
use super::store::{AppendError, DiskRoom, Entries, JournalStore, Scan, SyncTimes};
use crate::error::StoreError;
use crate::telemetry::SyncSeconds;

mod checkpoint;
mod copy;
mod directory;
mod line;
mod log;
mod manifest;
mod open;
mod read;
mod recent;
mod record;
mod remedy;
mod write;

use checkpoint::Checkpoints;
use directory::Directory;
pub(crate) use directory::room_of;
use line::Line;
use recent::part_of;
#[cfg(feature = "testkit")]
pub(crate) use record::rewritten;
use write::{Pending, Writer};

/// The newest format of the journal that this release reads, and the one it writes.
///
/// 2 since rows name locks: a release that knows 1 would drop them without a word.
/// 3 since the newest commits are in a keyspace of their own: one that knows 2 would not see them.
/// A store of an older format becomes one of 3 with the first commit of an engine.
pub const FORMAT: u32 = 3;

/// Key in `meta` of the format, a big-endian `u32`.
pub const FORMAT_KEY: &[u8] = b"format";
/// Key in `meta` of the newest epoch, a big-endian `u64`.
pub const EPOCH_KEY: &[u8] = b"epoch";
/// Key in `meta` of the newest batch: epoch and `Seq`, big-endian, 16 bytes.
pub const SEQ_KEY: &[u8] = b"seq";
/// Beginning of the keys in `meta` that name the keyspaces in use, so that one that is missing is noticed.
pub const SPACE_PREFIX: &[u8] = b"space/";

/// Longest name of a user keyspace, in bytes. fjall takes 255, prefix included;
/// 100 is enough for a name and leaves a store of another kind some room.
pub const USER_SPACE_MAX: usize = 100;
/// Longest key, in bytes: fjall's limit.
pub const KEY_MAX: usize = 65_535;
/// Longest value, in bytes: fjall's limit, less some room for what else a record holds.
pub const VALUE_MAX: usize = 0xf000_0000;

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
    // Dropped in this order: the lock on the directory goes last.
    checkpoints: Checkpoints,
    spaces: RwLock<BTreeMap<Space, Keyspace>>,
    recent: Keyspace,
    /// Every write goes into fjall's tables by itself: the store alone, for measurements.
    is_plain: bool,
    database: Database,
    line: Line<Writer, Pending>,
    sync: SyncMode,
    sync_seconds: SyncSeconds,
    directory: Directory,
}

/// Says why a store would refuse this write, if it would; asked before user
/// code's writes become part of a commit, since a refused commit stops the engine.
#[must_use]
pub fn refusal(write: &Write<'_>) -> Option<String> {
    if let Space::User(name) = write.space {
        let size = name.as_str().len();
        if size == 0 || size > USER_SPACE_MAX {
            return Some(format!(
                "the name of a user keyspace has {size} bytes; give it 1 to {USER_SPACE_MAX}"
            ));
        }
    }
    let size = write.key.len();
    if size == 0 || size > KEY_MAX {
        return Some(format!(
            "a key in \"{}\" has {size} bytes; give it 1 to {KEY_MAX}",
            write.space.name()
        ));
    }
    let size = write.value.map_or(0, <[u8]>::len);
    (size > VALUE_MAX).then(|| {
        format!(
            "a value in \"{}\" has {size} bytes; the limit is {VALUE_MAX}",
            write.space.name()
        )
    })
}

impl FjallStore {
    /// Bytes of commits, and of their index in memory, at which the newest version of what they wrote is put into
    /// tables, unless told otherwise. With more, more is written over before; but a start reads them.
    pub const CHECKPOINT_BYTES: usize = 24 * 1024 * 1024;

    /// Opens the journal in a directory, and makes it if the directory is empty or missing.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: another engine holds it, it is damaged, it is of a newer
    /// release, or the directory holds something else.
    pub fn open(directory: &Path, sync: SyncMode) -> Result<Self, StoreError> {
        open::open(directory, sync)
    }

    /// Opens a journal as [`open`](Self::open) does, for measuring what fjall alone does with the same writes:
    /// nothing passes through `recent`.
    pub(super) fn open_plain(directory: &Path, sync: SyncMode) -> Result<Self, StoreError> {
        let mut store = open::open(directory, sync)?;
        store.is_plain = true;
        Ok(store)
    }

    /// Sets at how many bytes of commits the newest version of what they wrote is put into tables, in place of
    /// [`CHECKPOINT_BYTES`](Self::CHECKPOINT_BYTES). Up to three times as many are kept while that goes on; then
    /// commits wait.
    #[must_use]
    pub fn checkpoint_at(mut self, bytes: usize) -> Self {
        self.checkpoints.set_due_at(bytes);
        self
    }

    /// Tells whether there is a journal in a directory: a tool that only reads
    /// asks before it opens, since opening makes one.
    #[must_use]
    pub fn exists(directory: &Path) -> bool {
        directory::holds_store(directory)
    }

    /// Copies the journal in a directory, which nobody may hold meanwhile, into another
    /// one that is empty. Nothing is written where it is; what engines left there, a torn
    /// tail for example, is copied as it is. Blocks while it is copied.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: there is no journal, an engine holds it, or it cannot be read or written.
    pub fn copy(directory: &Path, to: &Path) -> Result<(), StoreError> {
        copy::copy(directory, to)
    }

    /// Says who holds the journal in a directory; none if nobody does. An
    /// engine that opens it in the same instant may be refused by this look.
    ///
    /// # Errors
    ///
    /// [`StoreError::Io`] if the directory cannot be read.
    pub fn holder(directory: &Path) -> Result<Option<String>, StoreError> {
        directory::holder(directory)
    }

    /// Gives the place of a keyspace whose writes pass through `recent`.
    fn part(&self, space: &Space) -> Option<u8> {
        if self.is_plain { None } else { part_of(space) }
    }

    fn keyspace(&self, space: &Space) -> Option<Keyspace> {
        self.spaces
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(space)
            .cloned()
    }

    fn unreadable(&self, space: &Space, error: &fjall::Error) -> StoreError {
        open::translate(&self.directory, &format!("keyspace \"{}\"", space.name()), error)
    }
}

/// Gives how many bytes of a log are whole batches, and whether another follows what is none.
#[cfg(feature = "testkit")]
pub(crate) fn look(bytes: &[u8]) -> (usize, bool) {
    log::look(bytes)
}

impl JournalStore for FjallStore {
    fn acquire(&self) -> BoxFuture<'_, Result<Epoch, StoreError>> {
        ready(Ok(self.line.writer().grant())).boxed()
    }

    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        ready(self.line.writer().admit(epoch)).boxed()
    }

    fn release(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>> {
        let admitted = self.line.writer().admit(epoch);
        let synced = admitted.and_then(|()| {
            self.directory
                .sync_mark()
                .map_err(|error| AppendError::Failed(format!("the watermark was not synced: {error}")))
        });
        ready(synced).boxed()
    }

    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Receipt, AppendError>> {
        // The call decides the order, not the poll.
        let (answer, receipt) = oneshot::channel();
        self.line.push(Pending { batch, answer });
        async move {
            self.commit_queued();
            receipt
                .await
                .unwrap_or_else(|_| Err(AppendError::Unknown("a commit panicked".to_owned())))
        }
        .boxed()
    }

    /// Gives none for an epoch that never wrote, and for one that a newer has followed.
    fn last_seq(&self, epoch: Epoch) -> BoxFuture<'_, Result<Option<Seq>, StoreError>> {
        let writer = self.line.writer();
        let answer = match &writer.failure {
            // Only the next opening shows whether the failed batch is in the log.
            Some(why) => Err(StoreError::Io {
                place: self.directory.place().display().to_string(),
                why: format!("a commit failed ({why}), and what became of it shows when the journal is opened again"),
            }),
            None => Ok((writer.epoch == epoch).then_some(writer.seq)),
        };
        ready(answer).boxed()
    }

    fn get(&self, space: Space, key: Vec<u8>) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>> {
        async move { self.read(&space, &key) }.boxed()
    }

    fn scan(&self, scan: Scan) -> BoxFuture<'_, Result<Entries, StoreError>> {
        async move { self.read_range(&scan) }.boxed()
    }

    fn size_bytes(&self) -> Option<u64> {
        self.database.disk_space().ok()
    }

    fn disk_room(&self) -> Option<DiskRoom> {
        self.directory.room()
    }

    fn sync_times(&self) -> Option<SyncTimes> {
        self.sync_seconds.times()
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
            .field("place", &self.directory.place())
            .field("sync", &self.sync)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod recent_tests;
#[cfg(test)]
mod tests;
