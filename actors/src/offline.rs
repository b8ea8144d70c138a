//! Reading a closed journal: the store is held while it is read, and no epoch is
//! taken. Opening it does what every opening does: a torn tail is cut off.

use std::path::Path;
use std::sync::Arc;

use procession_kernel::ProcedureId;
use serde::de::DeserializeOwned;

use crate::error::{ReadError, StoreError};
use crate::export::{EXPORT_MAX, FamilyExport};
use crate::journal::fjall::{FjallStore, SyncMode};
use crate::journal::{JournalStore, Reader};

/// A journal that no engine runs on, opened for reading.
pub struct Offline {
    _store: Arc<dyn JournalStore>,
    reader: Reader,
}

impl Offline {
    /// Opens the journal in a directory. Blocks while it is read.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if an engine holds it, or if it is damaged or missing.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        if !FjallStore::exists(directory) {
            let place = directory.display().to_string();
            return Err(StoreError::Io {
                place,
                why: "there is no journal in it".to_owned(),
            });
        }
        let store: Arc<dyn JournalStore> = Arc::new(FjallStore::open(directory, SyncMode::Data)?);
        let reader = Reader::new(&store);
        Ok(Self { _store: store, reader })
    }

    /// Reads all user data whose key begins with `prefix`, in the order of the keys.
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

    /// Copies everything that the journal holds of the family of `id`; none if it holds
    /// nothing. What an engine would quarantine is copied as it is, without a reason.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooLarge`] if it has more than 256 MiB: use
    /// [`export_up_to`](Self::export_up_to). [`ReadError`] if the store cannot be read.
    pub async fn export(&self, id: ProcedureId) -> Result<Option<FamilyExport>, ReadError> {
        self.export_up_to(id, EXPORT_MAX).await
    }

    /// Copies a family as [`export`](Self::export) does, with another limit. It is held in
    /// memory as a whole.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooLarge`] if it has more bytes. [`ReadError`] if the store cannot be read.
    pub async fn export_up_to(&self, id: ProcedureId, bytes: usize) -> Result<Option<FamilyExport>, ReadError> {
        FamilyExport::read(&self.reader, id.family, bytes).await
    }
}
