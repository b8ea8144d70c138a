//! The newest commit, as readers see it.
//!
//! fjall raises the number up to which a snapshot sees under two locks. A commit raises it last, under the lock of
//! the log; each background change of tables raises it under its keyspace's lock alone. A snapshot opened while a
//! commit fills memory tables may therefore see part of the commit: see `docs/internals/fjall-torn-snapshot.md`.
//! Nobody else commits while the committing thread has the writer, so the snapshot that it opens right after its
//! commit holds whole commits only. Readers share that snapshot.

use std::sync::{PoisonError, RwLock};

use fjall::{Database, Snapshot};

/// A snapshot of the newest commit, or of an earlier one if none since has written what readers look for in it. While it
/// is kept, fjall drops no version that it sees. So it is replaced after some kilobytes of commits in any case.
pub(super) struct Committed(RwLock<Snapshot>);

impl Committed {
    /// Must be called while nothing is committed.
    pub(super) fn new(database: &Database) -> Self {
        Self(RwLock::new(database.snapshot()))
    }

    /// Shows the newest commit to readers. The caller has the writer, and has not answered the commit yet.
    pub(super) fn renew(&self, database: &Database) {
        let newest = database.snapshot();
        let mut shown = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *shown, newest);
        drop(shown);
        // Dropping it may clean up, and readers must not wait for that.
        drop(before);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
