//! The newest commit, as readers see it.
//!
//! fjall raises the number up to which a snapshot sees under two locks: a commit does so last, under that of the
//! log, and each change of tables in the background under that of its keyspace alone. So a snapshot that is opened
//! while a commit puts its writes into memory tables may see some of them: see
//! `docs/internals/fjall-torn-snapshot.md`. Nobody commits while the committing thread has the writer, so the
//! snapshot that it opens right after its commit has whole commits alone. Readers share that one.

use std::sync::{PoisonError, RwLock};

use fjall::{Database, Snapshot};

/// A snapshot of the newest commit. As long as it is kept, fjall drops no version that it sees: each commit
/// replaces it, and where there are no commits nothing is written over.
pub(super) struct Committed(RwLock<Snapshot>);

impl Committed {
    /// Nobody may commit meanwhile.
    pub(super) fn new(database: &Database) -> Self {
        Self(RwLock::new(database.snapshot()))
    }

    /// Shows readers what was committed just now. Whoever calls it has the writer, and has not answered yet.
    pub(super) fn renew(&self, database: &Database) {
        let newest = database.snapshot();
        let mut shown = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *shown, newest);
        drop(shown);
        // It may have to clean up, and readers need not wait for that.
        drop(before);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
