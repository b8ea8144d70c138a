//! The embedded store: keyspaces of fjall in a directory that one process
//! owns. The only file that names fjall.
//!
//! A batch is one write batch of fjall and one sync of its log. What is found
//! at opening: a torn tail of the log is dropped, since nobody was told of it;
//! a log that is broken in the middle, missing, or shorter than the watermark,
//! a missing keyspace or table, and a damaged table index are errors. A damaged
//! block of a table is found when it is read. What is not found: damage to the
//! last batch before a power cut, when the watermark was lost with it; that
//! looks like the torn tail of a batch that was never acknowledged.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::{PoisonError, RwLock};

use fjall::{Database, Keyspace, OwnedWriteBatch, PersistMode, Readable};
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{BoxFuture, ready};
use procession_kernel::{Epoch, Receipt, Seq};

use super::batch::{Batch, Write};
use super::keys::Space;
use super::store::{AppendError, DiskRoom, Entries, JournalStore, Scan};
use crate::clock::machine_now;
use crate::error::StoreError;
use crate::telemetry::SyncSeconds;

mod copy;
mod directory;
mod line;
mod log;
mod manifest;
mod open;
mod remedy;

use directory::Directory;
pub(crate) use directory::room_of;
use line::Line;

/// The newest format of the journal that this release reads, and the one it writes.
///
/// 2 since rows name locks: a release that knows 1 would drop them without a word.
/// A store of format 1 becomes one of 2 with the first commit of an engine.
pub const FORMAT: u32 = 2;

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
    spaces: RwLock<BTreeMap<Space, Keyspace>>,
    database: Database,
    line: Line<Writer, Pending>,
    sync: SyncMode,
    sync_seconds: SyncSeconds,
    directory: Directory,
}

/// Where the journal stands. Whoever has its lock may commit.
#[derive(Debug, Default)]
struct Writer {
    /// The newest epoch that took effect, and its newest batch.
    epoch: Epoch,
    seq: Seq,
    /// The newest epoch that was given out.
    granted: Epoch,
    /// Why no more is written.
    failure: Option<String>,
}

/// A batch that was handed in and not yet committed.
struct Pending {
    batch: Batch,
    answer: oneshot::Sender<Result<Receipt, AppendError>>,
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
    (u32::try_from(size).is_err()).then(|| {
        format!(
            "a value in \"{}\" has {size} bytes; the limit is {}",
            write.space.name(),
            u32::MAX
        )
    })
}

impl FjallStore {
    /// Opens the journal in a directory, and makes it if the directory is empty or missing.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: another engine holds it, it is damaged, it is of a newer
    /// release, or the directory holds something else.
    pub fn open(directory: &Path, sync: SyncMode) -> Result<Self, StoreError> {
        open::open(directory, sync)
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

    /// Commits what was handed in, in that order, on the thread that asks first.
    fn commit_queued(&self) {
        self.line.serve(|writer, Pending { batch, answer }| {
            // Who no longer waits for the answer does not need it.
            answer.send(self.commit(writer, &batch)).ok();
        });
    }

    fn commit(&self, writer: &mut Writer, batch: &Batch) -> Result<Receipt, AppendError> {
        writer.admit(batch.epoch())?;
        let written = self.write(writer.epoch, batch);
        match &written {
            Ok(()) => {
                writer.epoch = batch.epoch();
                writer.seq = batch.seq();
                self.note(writer);
            }
            Err(AppendError::Failed(why) | AppendError::Unknown(why)) => writer.failure = Some(why.clone()),
            Err(AppendError::Fenced { .. }) => {}
        }
        written.map(|()| Receipt::new(batch.epoch(), batch.seq()))
    }

    /// Without a sync the mark could outlive the commit that it speaks of.
    fn note(&self, writer: &Writer) {
        if self.sync != SyncMode::None {
            self.directory.set_mark(writer.epoch, writer.seq);
        }
    }

    fn write(&self, newest: Epoch, batch: &Batch) -> Result<(), AppendError> {
        let mut writes = OwnedWriteBatch::with_capacity(self.database.clone(), batch.len() + 3)
            .durability(Some(self.sync.persist()));
        for group in in_order(batch).chunk_by(|one, next| one.space == next.space) {
            let Some(keyspace) = group
                .first()
                .map(|write| self.keyspace_for_write(write.space, &mut writes))
            else {
                continue;
            };
            let keyspace = keyspace?;
            for write in group {
                if let Some(why) = refusal(write) {
                    return Err(AppendError::Failed(why));
                }
                match write.value {
                    Some(value) => writes.insert(&keyspace, write.key, value),
                    None => writes.remove(&keyspace, write.key),
                }
            }
        }
        let meta = self.keyspace_for_write(&Space::Meta, &mut writes)?;
        if batch.epoch() != newest {
            writes.insert(&meta, EPOCH_KEY, batch.epoch().0.to_be_bytes());
            // What is written from here on, an older release may not understand.
            writes.insert(&meta, FORMAT_KEY, FORMAT.to_be_bytes());
        }
        writes.insert(&meta, SEQ_KEY, open::encode_seq(batch.epoch(), batch.seq()));
        let begun = machine_now();
        let committed = writes.commit();
        self.sync_seconds.record(begun.elapsed());
        committed.map_err(|error| {
            let why = open::explain(&error);
            // The one error that comes before anything is written.
            let is_refused = matches!(error, fjall::Error::Poisoned);
            if is_refused {
                AppendError::Failed(why)
            } else {
                AppendError::Unknown(why)
            }
        })
    }

    /// Gives a keyspace. One of the user's is made when it is first written;
    /// its name goes into `meta` with the batch that makes it worth keeping.
    fn keyspace_for_write(&self, space: &Space, writes: &mut OwnedWriteBatch) -> Result<Keyspace, AppendError> {
        if let Some(keyspace) = self.keyspace(space) {
            return Ok(keyspace);
        }
        let keyspace = open::make_keyspace(&self.database, &self.directory, space)
            .map_err(|error| AppendError::Failed(error.to_string()))?;
        if let Some(meta) = self.keyspace(&Space::Meta) {
            writes.insert(&meta, open::space_key(space), []);
        }
        self.spaces
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(space.clone(), keyspace.clone());
        Ok(keyspace)
    }

    fn keyspace(&self, space: &Space) -> Option<Keyspace> {
        self.spaces
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(space)
            .cloned()
    }

    /// Reads go through a snapshot: only that shows a batch as a whole, and only after its sync.
    fn read(&self, space: &Space, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(keyspace) = self.keyspace(space) else {
            return Ok(None);
        };
        let value = self.database.snapshot().get(&keyspace, key);
        value
            .map(|value| value.map(|bytes| bytes.to_vec()))
            .map_err(|error| self.unreadable(space, &error))
    }

    fn read_range(&self, scan: &Scan) -> Result<Entries, StoreError> {
        let is_empty = scan.to.as_ref().is_some_and(|to| *to <= scan.from);
        let Some(keyspace) = self.keyspace(&scan.space).filter(|_| !is_empty) else {
            return Ok(Entries::new());
        };
        let to = scan.to.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (Bound::Included(scan.from.as_slice()), to);
        let rows = self.database.snapshot().range::<&[u8], _>(&keyspace, range);
        rows.take(scan.limit)
            .map(|row| row.into_inner().map(|(key, value)| (key.to_vec(), value.to_vec())))
            .collect::<Result<Entries, _>>()
            .map_err(|error| self.unreadable(&scan.space, &error))
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

/// Bits that number a write within its batch; beyond so many writes they stay as they came.
const NUMBER_BITS: u32 = 24;

/// Neighbours in the keyspace are neighbours in its memtable: in this order each
/// insert finds its place near the last one. Writes of one key keep their order.
fn in_order(batch: &Batch) -> Vec<Write<'_>> {
    if batch.len() >> NUMBER_BITS > 0 {
        return batch.writes().collect();
    }
    // Sorted as numbers: to compare the keys themselves took a tenth of all that a commit does.
    let numbered = batch.writes().zip(0_u128..);
    let mut places: Vec<u128> = numbered
        .map(|(write, number)| (place(&write) << NUMBER_BITS) | number)
        .collect();
    places.sort_unstable();
    let number_of = |place: u128| usize::try_from(place & ((1 << NUMBER_BITS) - 1)).ok();
    let writes = places.into_iter().filter_map(|place| batch.write(number_of(place)?));
    writes.collect()
}

/// Where a write belongs: its keyspace, and the first 12 bytes of its key, which name the procedure or
/// the entry in nearly all of the engine's keys.
fn place(write: &Write<'_>) -> u128 {
    let mut bytes = [0; 16];
    let begin = write.key.get(..12).unwrap_or(write.key);
    let [_, _, _, space, key @ ..] = &mut bytes;
    *space = write.space.number();
    for (to, from) in key.iter_mut().zip(begin) {
        *to = *from;
    }
    u128::from_be_bytes(bytes)
}

impl Writer {
    fn admit(&self, epoch: Epoch) -> Result<(), AppendError> {
        if epoch < self.epoch {
            return Err(AppendError::Fenced { newer: self.epoch });
        }
        self.failure.clone().map_or(Ok(()), |why| Err(AppendError::Failed(why)))
    }

    fn grant(&mut self) -> Epoch {
        self.granted = Epoch(self.granted.max(self.epoch).0 + 1);
        self.granted
    }
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
mod tests;
