//! An open journal: all that holds threads, locks and files, and the order in which they are given back.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use fjall::{Database, Keyspace};
use procession_kernel::Epoch;

use super::SyncMode;
use super::checkpoint::Checkpoints;
use super::committed::Committed;
use super::directory::Directory;
use super::line::Line;
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

/// How often and for how long it is asked whether fjall's threads have let go of its files: they have ended their
/// work by then, and need a turn of the processor each. Five seconds are plenty of turns even on a machine that
/// is busy a hundred times over.
const LOOKS: u32 = 50_000;
const LOOK: Duration = Duration::from_micros(100);

/// What a store works with while it is open.
pub(super) struct Opened {
    pub(super) checkpoints: Checkpoints,
    pub(super) spaces: RwLock<BTreeMap<Space, Keyspace>>,
    pub(super) recent: Keyspace,
    pub(super) committed: Committed,
    /// Every write goes into fjall's tables by itself: the store alone, for measurements.
    pub(super) is_plain: bool,
    pub(super) database: Database,
    pub(super) line: Line<Writer, Pending>,
    pub(super) sync: SyncMode,
    /// Bytes of all memory tables together, beyond which the largest are written out.
    pub(super) memory_bytes: u64,
    pub(super) sync_seconds: SyncSeconds,
    pub(super) watch: Mutex<LogWatch>,
    pub(super) directory: Directory,
}

impl Opened {
    /// Gives the place of a keyspace whose writes pass through `recent`.
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

    /// Reads every table through. Gives how many bytes that were, and what is damaged.
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
        self.line.writer().admit(epoch)?;
        self.directory
            .sync_mark()
            .map_err(|error| AppendError::Failed(format!("the watermark was not synced: {error}")))
    }

    pub(super) fn head(&self) -> Result<Option<Head>, StoreError> {
        let writer = self.line.writer();
        match &writer.failure {
            // Only the next opening shows whether the failed batch is in the log.
            Some(why) => Err(StoreError::Io {
                place: self.place().display().to_string(),
                why: format!("a commit failed ({why}), and what became of it shows when the journal is opened again"),
            }),
            // The first owner has epoch 1.
            None => Ok((writer.epoch > Epoch::default()).then_some(Head {
                epoch: writer.epoch,
                seq: writer.seq,
            })),
        }
    }

    /// Lets nothing wait any longer for a checkpoint that does not end.
    pub(super) fn begin_close(&self) {
        self.checkpoints.end();
    }

    /// Gives everything back, the directory's lock last: whoever takes it next finds nobody else in the files.
    pub(super) fn close(self) {
        // What was handed in before the close is committed, as if it had been polled in time.
        self.commit_queued();
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

/// Stops fjall, and tells whether its threads have let go of the files. It waits itself until they have ended their
/// work; only after that do they drop what they share, the log among it, which is synced once more by whoever is last.
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
