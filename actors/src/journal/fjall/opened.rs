//! An open journal: everything that holds threads, locks and files, and the order in which they are released.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use fjall::{Database, Keyspace};
use procession_kernel::Epoch;

use super::SyncMode;
use super::checkpoint::Checkpoints;
use super::commit_queue::CommitQueue;
use super::committed::Committed;
use super::directory::Directory;
use super::open;
use super::tables;
use super::watch::LogWatch;
use super::write::{Pending, Writer};
use crate::error::StoreError;
use crate::journal::keys::Space;
use crate::journal::recent::part_of;
use crate::journal::store::AppendError;
use crate::journal::store::Head;
use crate::telemetry::SyncSeconds;

/// How often a close checks whether fjall's threads have let go of its files. By then they have finished their work,
/// and each needs one turn of the processor. The total of five seconds is enough even on a machine that is overloaded
/// a hundred times.
const LOOKS: u32 = 50_000;
const LOOK: Duration = Duration::from_micros(100);

/// The state of a store while it is open.
pub(super) struct Opened {
    pub(super) checkpoints: Checkpoints,
    pub(super) spaces: RwLock<BTreeMap<Space, Keyspace>>,
    pub(super) recent: Keyspace,
    pub(super) committed: Committed,
    /// Every write goes directly into fjall's tables: the store alone, for measurements.
    pub(super) is_plain: bool,
    pub(super) database: Database,
    pub(super) commit_queue: CommitQueue<Writer, Pending>,
    pub(super) sync: SyncMode,
    /// Limit of all memory tables together, in bytes, beyond which the largest are written out.
    pub(super) memory_bytes: u64,
    pub(super) sync_seconds: SyncSeconds,
    pub(super) watch: Mutex<LogWatch>,
    pub(super) directory: Directory,
}

impl Opened {
    /// Returns the part of a keyspace whose writes pass through `recent`.
    pub(super) fn part(&self, space: &Space) -> Option<u8> {
        if self.is_plain { None } else { part_of(space) }
    }

    pub(super) fn keyspace(&self, space: &Space) -> Option<Keyspace> {
        self.spaces
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(space)
            .cloned()
    }

    pub(super) fn unreadable(&self, space: &Space, error: &fjall::Error) -> StoreError {
        open::translate(&self.directory, &format!("keyspace \"{}\"", space.name()), error)
    }

    /// Reads every table through. Returns the number of bytes read, and a text for each damage.
    pub(super) fn verify_tables(&self) -> (u64, Vec<String>) {
        let spaces = self.spaces.read().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut bytes, mut damages) = (0, Vec::new());
        for keyspace in spaces.values().chain([&self.recent]) {
            let (read, found) = tables::verify(&keyspace.tree);
            bytes += read;
            damages.extend(found);
        }
        (bytes, damages)
    }

    pub(super) fn place(&self) -> &Path {
        self.directory.place()
    }

    pub(super) fn release(&self, epoch: Epoch) -> Result<(), AppendError> {
        self.commit_queue.writer().admit(epoch)?;
        self.settle();
        self.directory
            .sync_mark()
            .map_err(|error| AppendError::Failed(format!("the watermark was not synced: {error}")))
    }

    pub(super) fn head(&self) -> Result<Option<Head>, StoreError> {
        let writer = self.commit_queue.writer();
        match &writer.failure {
            // Only the next opening shows whether the failed batch is in the log.
            Some(why) => Err(StoreError::Io {
                place: self.place().display().to_string(),
                why: format!("a commit failed ({why}); the next opening of the journal shows its outcome"),
            }),
            // The first owner has epoch 1.
            None => Ok((writer.epoch > Epoch::default()).then_some(Head {
                epoch: writer.epoch,
                seq: writer.seq,
            })),
        }
    }

    /// Releases everything that waits for a checkpoint which does not end.
    pub(super) fn begin_close(&self) {
        self.checkpoints.end();
    }

    /// Releases everything, the directory's lock last, so that the next holder finds nobody else in the files.
    pub(super) fn close(self) {
        // Batches queued before the close are committed, as if they had been polled in time.
        self.commit_queued();
        self.settle();
        let Self {
            checkpoints,
            spaces,
            recent,
            database,
            watch,
            directory,
            ..
        } = self;
        let stopped = catch_unwind(AssertUnwindSafe(|| {
            drop(checkpoints);
            drop((spaces, recent, watch));
            stop(database)
        }));
        if !matches!(stopped, Ok(true)) {
            tracing::error!(place = %directory.place().display(), "the journal's store did not stop in order");
        }
        drop(directory);
    }
}

/// Stops fjall, and returns `true` if its threads have let go of the files. fjall waits only until they have finished
/// their work. They drop their shared state afterwards, including the log, which the last of them syncs once more.
fn stop(database: Database) -> bool {
    let shared = Arc::downgrade(&database.supervisor.keyspaces);
    drop(database);
    (0..LOOKS).any(|_| is_let_go(&shared))
}

fn is_let_go<T>(shared: &Weak<T>) -> bool {
    let is_let_go = shared.strong_count() == 0;
    if !is_let_go {
        std::thread::park_timeout(LOOK);
    }
    is_let_go
}
