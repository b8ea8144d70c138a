//! Reading a closed journal: in its place, where the store is held while it is read, or from a private copy, which
//! leaves no trace. No epoch is taken. Only `import` writes, with an epoch of its own.

mod import;
mod read;
mod state;
mod verify;

pub use import::{Imported, Importer};
pub use state::OfflineState;
pub use verify::Verified;

use std::path::Path;
use std::sync::Arc;

use procession_kernel::{Epoch, ProcedureId, Seq};
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use crate::error::{AskError, ReadError, StoreError};
use crate::export::{EXPORT_MAX, FamilyExport};
use crate::journal::{DiskRoom, EmbeddedStore, JournalStore, Reader, SyncMode};
use crate::read::{CommittedReader, Damage, Quarantined};

/// A journal that no engine runs on, opened for reading.
pub struct Offline {
    // Dropped in this order: the copy must outlive the store that reads it.
    store: Arc<dyn JournalStore>,
    /// The same store, whose tables can be verified.
    tables: Arc<EmbeddedStore>,
    reader: Reader,
    committed: CommittedReader,
    as_of: (Epoch, Seq),
    /// The room around the journal itself, not around its copy.
    room: Option<DiskRoom>,
    _copy: Option<TempDir>,
}

impl Offline {
    /// Opens the journal in a directory, in its place. As with any opening, a torn tail is cut off. Blocks while the
    /// journal is read.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if an engine holds it, or if it is damaged or missing.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        if !EmbeddedStore::exists(directory) {
            return Err(missing(directory));
        }
        Self::open_in(EmbeddedStore::open(directory, SyncMode::Data)?, directory, None)
    }

    /// Opens a private copy of the journal in a directory. Nothing in the directory is written, and engines may open
    /// it as soon as this returns. The copy is made in the system's directory for temporary files (`TMPDIR`), is
    /// readable by this user only, and is removed with this value. Blocks while the journal is copied and read.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if an engine holds the journal, if it is damaged or missing, or if there is no room for the
    /// copy.
    pub fn open_copy(directory: &Path) -> Result<Self, StoreError> {
        Self::open_copy_in(directory, &std::env::temp_dir())
    }

    /// Opens a private copy as [`open_copy`](Self::open_copy) does, which is made in another directory than the system's.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as from [`open_copy`](Self::open_copy).
    pub fn open_copy_in(directory: &Path, scratch: &Path) -> Result<Self, StoreError> {
        let (copy, store) = copied(directory, scratch)?;
        Self::open_in(store, directory, Some(copy))
    }

    fn open_in(store: EmbeddedStore, directory: &Path, copy: Option<TempDir>) -> Result<Self, StoreError> {
        let tables = Arc::new(store);
        let store: Arc<dyn JournalStore> = Arc::clone(&tables) as _;
        let reader = Reader::new(&store);
        let head = futures::executor::block_on(store.head())?;
        let as_of = head.map_or_else(Default::default, |head| (head.epoch, head.seq));
        Ok(Self {
            store,
            tables,
            committed: CommittedReader::new(reader.clone(), Quarantined::default()),
            reader,
            as_of,
            room: EmbeddedStore::room_of(directory),
            _copy: copy,
        })
    }

    /// Returns the reader of what is committed, which reads what this type has no method for.
    #[must_use]
    pub const fn committed(&self) -> &CommittedReader {
        &self.committed
    }

    /// Reads all user data whose key begins with `prefix`, in key order.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read, or a value is not of this type.
    pub async fn scan<T: DeserializeOwned>(
        &self,
        space: &str,
        prefix: impl AsRef<[u8]>,
    ) -> Result<Vec<(Vec<u8>, T)>, ReadError> {
        self.reader.scan_user(space, prefix.as_ref()).await
    }

    /// Copies everything that the journal holds of the family of `id`. Returns `None` if it holds nothing. A family
    /// that an engine would quarantine is copied as it is, without a reason. What is in a damaged part of the store's files
    /// is left out, and [`unreadable`](FamilyExport::unreadable) says so.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooLarge`] if the family has more than 256 MiB: use [`export_up_to`](Self::export_up_to).
    /// [`AskError::Read`] if the store cannot be read, or its rows are in a damaged part.
    pub async fn export(&self, id: ProcedureId) -> Result<Option<FamilyExport>, AskError> {
        self.export_up_to(id, EXPORT_MAX).await
    }

    /// Copies a family as [`export`](Self::export) does, with another limit. The copy is held in memory as a whole.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooLarge`] if the family has more bytes. [`AskError::Read`] if the store cannot be read, or its rows are in
    /// a damaged part.
    pub async fn export_up_to(&self, id: ProcedureId, bytes: usize) -> Result<Option<FamilyExport>, AskError> {
        self.committed.export_with(id.family, bytes, Damage::Skipped).await
    }
}

fn missing(directory: &Path) -> StoreError {
    StoreError::Io {
        place: directory.display().to_string(),
        why: "there is no journal in it".to_owned(),
    }
}

/// Copies the journal in a directory into a temporary one, and opens it there. The copy is removed with the returned
/// directory.
fn copied(directory: &Path, scratch: &Path) -> Result<(TempDir, EmbeddedStore), StoreError> {
    let copy = private_directory(scratch).map_err(|error| StoreError::Io {
        place: directory.display().to_string(),
        why: format!(
            "no private copy can be made in {}: {error}; set TMPDIR to a directory with room",
            scratch.display()
        ),
    })?;
    EmbeddedStore::copy(directory, copy.path())?;
    let store = EmbeddedStore::open(copy.path(), SyncMode::Data)
        .map_err(|error| error.of_original(copy.path(), directory))?
        .copy_of(directory);
    Ok((copy, store))
}

fn private_directory(scratch: &Path) -> std::io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("procession-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.tempdir_in(scratch)
}
