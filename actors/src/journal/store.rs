//! What the engine requires of a store: ordered keyspaces, atomic batches, one owner.
//!
//! A store must keep these promises; the suite in `conformance` checks them:
//! - a batch is there as a whole or not at all, after any crash;
//! - when `append` answers with a receipt, the batch is on stable storage;
//! - batches take effect in the order in which `append` was called, even if several are under way;
//! - once `acquire` has answered with an epoch, every batch of an older epoch is answered `Fenced` and leaves
//!   nothing, even if the new owner never writes;
//! - epochs only grow, and may be skipped, since an owner may die before it writes;
//! - after a failed append, no later append of the same epoch succeeds, including appends that were under way when it
//!   failed;
//! - `get` and `scan` see every batch whose receipt has been given;
//! - once `close` has answered, the same place can be opened again at once, even while references to the old store
//!   exist.

use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use procession_kernel::{Epoch, Key, Receipt, Seq};

use super::batch::Batch;
use super::bounds::StoreBounds;
use super::keys::{self, Space};
use super::layout::USER_SPACE_PREFIX;
use crate::error::StoreError;
pub use crate::telemetry::SyncTimes;

/// Why a batch has no receipt.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Another owner has a newer epoch: stop at once.
    #[error("another engine has taken the store with epoch {newer}; stop this one")]
    Fenced {
        /// The epoch of the new owner.
        newer: Epoch,
    },
    /// The store cannot say whether the batch is there. Read the [`head`](JournalStore::head) before anything else.
    #[error("the store cannot say whether the commit is on disk: {0}")]
    Unknown(String),
    /// The batch is not there, and no later batch will be.
    #[error("the commit failed: {0}")]
    Failed(String),
}

/// The position of a journal: the newest batch that took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// The epoch of its owner.
    pub epoch: Epoch,
    /// The number of the batch.
    pub seq: Seq,
}

/// Keys and values, in key order.
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Keys and their newest values, in key order; `None` marks a deleted key.
pub type RecentWrites = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// A range of keys in one keyspace, read in order.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The keyspace.
    pub space: Space,
    /// First key of the range.
    pub from: Vec<u8>,
    /// First key after the range; `None` is the end of the keyspace.
    pub to: Option<Vec<u8>>,
    /// Most entries to return; continue after the last key.
    pub limit: usize,
}

/// Most bytes, of keys and values together, that [`JournalStore::recent_writes`] returns.
pub const RECENT_BYTES: usize = 64 * 1024;

/// Room on the disk that holds a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRoom {
    /// Bytes that are free for the user who runs the engine.
    pub free: u64,
    /// Size of the whole disk in bytes.
    pub whole: u64,
}

/// A store of ordered keyspaces with atomic batches and one owner at a time.
pub trait JournalStore: Send + Sync + 'static {
    /// Takes ownership, and returns the epoch that the owner must write with. When it answers, no batch of an older
    /// epoch can take effect any more. Until the new owner writes, [`head`](Self::head) and reads are therefore
    /// final.
    fn acquire(&self) -> BoxFuture<'_, Result<Epoch, StoreError>>;

    /// Returns how long ownership lasts after [`acquire`](Self::acquire) and each [`renew`](Self::renew). `None`, the
    /// default, means that it never lapses. The engine renews three times within this time, beginning while it still
    /// reads what it starts with, and stops once ownership has lapsed.
    fn lease(&self) -> Option<Duration> {
        None
    }

    /// Renews ownership, for stores with a [`lease`](Self::lease). Answers [`Fenced`](AppendError::Fenced) once
    /// another owner has acquired the store. The engine retries after any other error until the lease is over.
    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>>;

    /// Releases ownership in order.
    fn release(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>>;

    /// Returns every thread, lock and file handle of the store, whatever its state: poisoned, after a failed commit,
    /// or never acquired. It waits until reads and commits under way have ended, and may block the thread as reads
    /// may. Every later call is answered with an error that says that the journal was closed. It may be called more
    /// than once; each call answers when everything is returned.
    fn close(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }

    /// Returns how many appends the store prefers to have under way at once. The engine calls
    /// [`append`](Self::append) again before that many are answered, and takes the answers in the order of the calls.
    /// The default, 1, is best for a store that completes one sync before the next begins; a store behind a network
    /// prefers more. At most [`IN_FLIGHT_MAX`](super::IN_FLIGHT_MAX) count.
    fn under_way(&self) -> usize {
        1
    }

    /// Writes one batch atomically and syncs it. After a failure every later append of the same epoch fails,
    /// including appends that are under way.
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Receipt, AppendError>>;

    /// Does what the newest batches left to be done and what nobody need wait for. The engine calls it after it has
    /// passed on the receipts of all batches under way, and it must not block for long. A call may be missing: the
    /// next [`append`](Self::append), [`release`](Self::release) or [`close`](Self::close) then does the same. The
    /// default does nothing.
    fn settle(&self) {}

    /// Returns the epoch and the number of the last batch that took effect, whoever wrote it, or `None` if there is
    /// none. It neither writes nor takes ownership, so readers may call it.
    fn head(&self) -> BoxFuture<'_, Result<Option<Head>, StoreError>>;

    /// Reads one value.
    fn get(&self, space: Space, key: Vec<u8>) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>>;

    /// Reads a range.
    fn scan(&self, scan: Scan) -> BoxFuture<'_, Result<Entries, StoreError>>;

    /// Returns the newest write of each key of a range, as far as the store has it in memory, or `None` if it has none, or
    /// if it would have to wait. It must not block: it is called on the supervisor's thread. Older writes of the range may
    /// be missing, so the caller must know which keys were written. At most [`RECENT_BYTES`] and as many writes as the scan's
    /// limit are returned, in the order of the keys, each key once; a store with more in memory answers `None`, and so does
    /// one that is closed. A write without a receipt is not among them.
    ///
    /// The default is `None`: the engine then calls [`scan`](Self::scan).
    fn recent_writes(&self, _scan: &Scan) -> Option<RecentWrites> {
        None
    }

    /// Returns the names of the keyspaces of user data. The default reads them from `meta`, where the embedded store
    /// records them.
    fn user_spaces(&self) -> BoxFuture<'_, Result<Vec<Key>, StoreError>> {
        let scan = Scan {
            space: Space::Meta,
            from: USER_SPACE_PREFIX.to_vec(),
            to: keys::after_prefix(USER_SPACE_PREFIX),
            limit: usize::MAX,
        };
        async move {
            let rows = self.scan(scan).await?.into_iter();
            let name = |key: &[u8]| {
                let name = key.get(USER_SPACE_PREFIX.len()..)?;
                Some(Key::from(String::from_utf8_lossy(name).into_owned()))
            };
            Ok(rows.filter_map(|(key, _)| name(&key)).collect())
        }
        .boxed()
    }

    /// Returns the largest keys, values and batches that the store takes. They do not change while the store is open.
    fn bounds(&self) -> StoreBounds;

    /// Returns the bytes that the store takes up, if it can tell. It may block as reads may: the embedded store takes
    /// the lock that a sync holds.
    fn size_bytes(&self) -> Option<u64>;

    /// Returns the room on the store's disk, or `None` if it has no disk or cannot tell. It may block as reads may.
    fn disk_room(&self) -> Option<DiskRoom> {
        None
    }

    /// Returns how long the newest syncs took, or `None` if the store does not measure them.
    fn sync_times(&self) -> Option<SyncTimes> {
        None
    }

    /// Returns `true` if reads may block the thread, and must therefore not run on an arbiter.
    fn reads_block(&self) -> bool;

    /// Returns `true` if [`append`](Self::append) completes in its first poll, including the sync, on the polling
    /// thread. The engine then saves thread switches while it has little to do.
    fn appends_at_once(&self) -> bool {
        false
    }
}
