//! Where a test works: a journal, and beside it the ledger of what was acknowledged.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::Outcome;
use crate::work::Task;

/// More submissions than any fault leaves time for.
pub(crate) const ENDLESS: u64 = 1_000_000;

/// A directory for one test.
pub(crate) struct Ground {
    directory: TempDir,
    /// The journal's directory.
    pub(crate) journal: PathBuf,
}

impl Ground {
    pub(crate) fn new() -> Outcome<Self> {
        let directory = TempDir::new()?;
        let journal = directory.path().join("journal");
        Ok(Self { directory, journal })
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path().join("ledger")
    }

    /// So many submissions from this number on, of so many bytes each.
    pub(crate) fn task(&self, from: u64, count: u64, filler: usize) -> Task {
        Task {
            journal: self.journal.clone(),
            ledger: self.ledger(),
            from,
            count,
            filler,
            checkpoints: false,
        }
    }
}
