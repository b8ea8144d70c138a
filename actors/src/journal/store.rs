//! What the engine asks of a store: ordered keyspaces, atomic batches, an owner.
//!
//! To ensure correctness, a store must keep these promises; the suite in
//! `conformance` checks them:
//! - a batch is there as a whole or not at all, after any crash;
//! - when `append` answers with a receipt, the batch is on stable storage;
//! - batches take effect in the order in which `append` was called, also when
//!   several are under way;
//! - once `acquire` has answered with an epoch, every batch of an older one is
//!   answered `Fenced` and leaves nothing, also if the new owner never writes;
//! - epochs only grow, and may be skipped: an owner may die before it writes;
//! - after a failed append, no later one of the same epoch succeeds, those
//!   that were under way when it failed included;
//! - `get` and `scan` see every batch whose receipt has been given;
//! - once `close` has answered, the same place can be opened again at once,
//!   whoever still holds the old store.

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

/// What became of a batch that has no receipt.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// Another owner has a newer epoch: stop at once.
    #[error("another engine has taken the store with epoch {newer}; stop this one")]
    Fenced {
        /// The epoch of the new owner.
        newer: Epoch,
    },
    /// The store cannot say whether the batch is there. Read the
    /// [`head`](JournalStore::head) before anything else.
    #[error("the store cannot say whether the commit is on disk: {0}")]
    Unknown(String),
    /// The batch is not there, and no later one will be.
    #[error("the commit failed: {0}")]
    Failed(String),
}

/// Where a journal stands: the newest batch that took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Head {
    /// The epoch of its owner.
    pub epoch: Epoch,
    /// Its number.
    pub seq: Seq,
}

/// Keys and values in the order of the keys.
pub type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// A range of keys of one keyspace, read in order.
#[derive(Debug, Clone)]
pub struct Scan {
    /// The keyspace.
    pub space: Space,
    /// The first key that may be given.
    pub from: Vec<u8>,
    /// The first key that may not be given; none is the end of the keyspace.
    pub to: Option<Vec<u8>>,
    /// How many entries at most; go on from the last key.
    pub limit: usize,
}

/// Room on the disk on which a store is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRoom {
    /// Bytes that are free for who runs the engine.
    pub free: u64,
    /// Bytes of the whole disk.
    pub whole: u64,
}

/// A store of ordered keyspaces with atomic batches and one owner at a time.
pub trait JournalStore: Send + Sync + 'static {
    /// Takes the store, and returns the epoch that its owner must write with. When it answers, no batch of an older
    /// epoch can take effect any more: what [`head`](Self::head) and reads say from then on is final until the new
    /// owner writes.
    fn acquire(&self) -> BoxFuture<'_, Result<Epoch, StoreError>>;

    /// Returns for how long ownership lasts after [`acquire`](Self::acquire) and each [`renew`](Self::renew); `None`,
    /// the default, if it never lapses. The engine renews three times within it, and stops when it has lapsed.
    fn lease(&self) -> Option<Duration> {
        None
    }

    /// Says that the owner is alive, for stores on which ownership lapses. Answered [`Fenced`](AppendError::Fenced)
    /// once another owner has acquired the store; any other error is tried again until the lease is over.
    fn renew(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>>;

    /// Gives the store up in order.
    fn release(&self, epoch: Epoch) -> BoxFuture<'_, Result<(), AppendError>>;

    /// Gives back every thread, lock and file handle of the store, whatever state it is in: poisoned, after a
    /// failed commit, or never acquired. Waits until reads and commits under way have ended, and may block the
    /// thread as reads may. Afterwards every call is answered with an error that says that the journal was
    /// closed. May be called more than once; each call answers when all is given back.
    fn close(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }

    /// Returns how many appends the store likes to have under way at once. The engine calls [`append`](Self::append)
    /// again before that many are answered, and takes the answers in the order of the calls. 1, the default, is best
    /// where one sync ends before the next begins; a store behind a network likes more. At most
    /// [`IN_FLIGHT_MAX`](super::IN_FLIGHT_MAX) count.
    fn under_way(&self) -> usize {
        1
    }

    /// Writes one batch atomically and syncs it. After one has failed, every later one of the same epoch fails, those
    /// that are under way included.
    fn append(&self, batch: Batch) -> BoxFuture<'_, Result<Receipt, AppendError>>;

    /// Returns the epoch and the number of the last batch that took effect, whoever wrote it; none if there is none.
    /// It writes nothing and takes nothing, so a reader may ask.
    fn head(&self) -> BoxFuture<'_, Result<Option<Head>, StoreError>>;

    /// Reads one value.
    fn get(&self, space: Space, key: Vec<u8>) -> BoxFuture<'_, Result<Option<Vec<u8>>, StoreError>>;

    /// Reads a range.
    fn scan(&self, scan: Scan) -> BoxFuture<'_, Result<Entries, StoreError>>;

    /// Gives the names of the keyspaces of user data that it has. Unless a store says otherwise they are what
    /// `meta` names, as the embedded store writes it.
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

    /// Returns how large keys, values and batches may be. They do not change while the store is open.
    fn bounds(&self) -> StoreBounds;

    /// Gives the bytes that the store takes up, if it can tell.
    fn size_bytes(&self) -> Option<u64>;

    /// Gives the room on its disk, if it is on one and can tell. It may block as reads may.
    fn disk_room(&self) -> Option<DiskRoom> {
        None
    }

    /// Tells how long its newest syncs took, if it syncs and has measured them.
    fn sync_times(&self) -> Option<SyncTimes> {
        None
    }

    /// Tells whether reads may block the thread, and so must leave the arbiters.
    fn reads_block(&self) -> bool;

    /// Tells whether [`append`](Self::append) is done, sync and all, the first time that it is polled,
    /// on the thread that polls it. The engine then saves changes of thread while it has little to do.
    fn appends_at_once(&self) -> bool {
        false
    }
}
