//! `Importer`: puts an exported family into a journal that no engine runs on, all of it
//! in one commit or nothing. It never overwrites, and never lets anything run: a live
//! family comes back paused at its root.

mod content;
mod fields;
mod settle;
mod target;
mod write;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use procession_kernel::{Epoch, OperatorRequest, ProcedureId, Timestamp};
use tempfile::TempDir;

use super::copied;
use crate::clock::{Clock, SystemClock};
use crate::error::{ImportError, ReadError, StartError, StoreError};
use crate::export::FamilyExport;
use crate::journal::{Batch, EmbeddedStore, JournalStore, Reader, SyncMode};
use crate::supervisor::lifecycle::recovery::{self, Code};
use crate::view::Status;
use content::Content;
use settle::Settled;
use target::Target;

/// How long a finished family is kept at least: somebody brought it by hand, and the
/// journal's next engine may start a day later.
pub(super) const KEPT_AT_LEAST: Duration = Duration::from_secs(24 * 3_600);

/// A closed journal, into which families may be put that were exported from this one or
/// from another.
///
/// A family keeps its number, and all of it is put in with one commit, with an entry in
/// the audit. One that lives comes back paused at its root, so that somebody looks at it
/// before an engine runs it; what was out when it was exported is in doubt, and runs again
/// when it is resumed. One that has ended is kept as long as it was to be kept after its
/// end, counted from the import, and at least a day.
///
/// An export is a copy: before a family is resumed here, be sure that it does not live
/// elsewhere. What stages did outside the engine, and user data, are no part of it. In
/// another journal the tokens and fences of its stages differ from those that it had.
pub struct Importer {
    // Dropped in this order: the copy goes when nobody reads it any more.
    store: Arc<dyn JournalStore>,
    reader: Reader,
    clock: Arc<dyn Clock>,
    _copy: Option<TempDir>,
}

/// What an import has put into a journal, or would put.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Imported {
    /// The family's number.
    pub family: u64,
    /// The import's entry in the audit; none for a dry run.
    pub number: Option<u64>,
    /// It has not ended: it is paused at its root.
    pub live: bool,
    /// When the result of one that has ended goes.
    pub due: Option<Timestamp>,
    /// Its procedures, as they stand then.
    pub procedures: Vec<Status>,
    /// Entries of its history.
    pub history: usize,
    /// Signals that it has.
    pub signals: usize,
    /// What to mind, a sentence each.
    pub warnings: Vec<String>,
}

impl Importer {
    /// Opens the journal in a directory, in its place, and holds it until this value is
    /// dropped. Blocks while it is read.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if an engine holds it, or if it is damaged or missing.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        if !EmbeddedStore::exists(directory) {
            return Err(super::missing(directory));
        }
        let store = EmbeddedStore::open(directory, SyncMode::Data)?;
        Ok(Self::on(Arc::new(store), Arc::new(SystemClock)))
    }

    /// Opens a private copy of the journal in a directory, for dry runs: nothing in the
    /// directory is written. What is imported goes into the copy, and with it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as [`Offline::open_copy`](super::Offline::open_copy) gives it.
    pub fn open_copy(directory: &Path) -> Result<Self, StoreError> {
        let (copy, store) = copied(directory)?;
        Ok(Self {
            _copy: Some(copy),
            ..Self::on(Arc::new(store), Arc::new(SystemClock))
        })
    }

    /// Imports into a store that no engine runs on, on a clock of its own.
    #[must_use]
    pub fn on(store: Arc<dyn JournalStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            reader: Reader::new(&store),
            store,
            clock,
            _copy: None,
        }
    }

    /// Reads a family of the journal's own archive, where a discharge put it; none if
    /// there is none of this number.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store or the entry cannot be read.
    pub async fn archived(&self, family: u64) -> Result<Option<FamilyExport>, ReadError> {
        FamilyExport::read_archived(&self.reader, family).await
    }

    /// Puts a family into the journal: all of it in one commit, or nothing. A dry run only
    /// says what would be put. Of `by` counts who, why, and whether it is a dry run.
    ///
    /// The archive's entry of a family that was discharged stays: it says how it was then.
    ///
    /// # Errors
    ///
    /// [`ImportError`]: the export contradicts itself or is not whole; the journal has a
    /// family of this number, its idempotency key stands for another, or a lock that it holds is held.
    pub async fn import(&self, export: &FamilyExport, by: &OperatorRequest) -> Result<Imported, ImportError> {
        let content = Content::of(export).map_err(|why| ImportError::Unusable {
            family: export.family,
            why,
        })?;
        let loaded = recovery::load(
            Arc::clone(&self.store),
            procession_kernel::Rules::default(),
            Code::Any,
            Arc::clone(&self.clock),
        );
        let target = Target {
            reader: &self.reader,
            loaded: &loaded.await?,
        };
        write::check_by(target.loaded.kernel.rules(), by)?;
        target.check(&content).await?;
        let seq = target.next_seq(&content);
        let settled = Settled::of(content, seq, self.clock.now()).map_err(|why| ImportError::Unusable {
            family: export.family,
            why,
        })?;
        let mut imported = settled.told();
        imported.warnings.extend(target.warnings(&settled.content).await?);
        imported.warnings.extend(quarantined(export));
        if by.dry_run {
            return Ok(imported);
        }
        let (batch, number) = write::batch(&target, &settled, by, self.clock.now()).await?;
        self.commit(target.loaded.epoch, batch).await?;
        imported.number = Some(number);
        Ok(imported)
    }

    /// The epoch is a new one: from here on no engine that ever had the journal may write.
    async fn commit(&self, epoch: Epoch, batch: Batch) -> Result<(), ImportError> {
        let store = Arc::clone(&self.store);
        let append = async move {
            store.append(batch).await.map_err(|why| why.to_string())?;
            store.release(epoch).await.map_err(|why| why.to_string())
        };
        let appended = if self.store.reads_block() {
            let work = actix_rt::task::spawn_blocking(move || futures::executor::block_on(append));
            work.await.map_err(|error| StartError::Thread(error.to_string()))?
        } else {
            append.await
        };
        appended.map_err(ImportError::Journal)
    }
}

fn quarantined(export: &FamilyExport) -> Option<String> {
    let why = export.quarantined.as_ref()?;
    Some(format!(
        "where it was exported it was set aside ({why}): the next start sets it aside again unless that is repaired"
    ))
}

/// Names the first few of many.
fn named(names: impl IntoIterator<Item = String>) -> String {
    const NAMED: usize = 8;
    let mut names: Vec<String> = names.into_iter().collect();
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    match more {
        0 => names.join(", "),
        more => format!("{}, and {more} more", names.join(", ")),
    }
}

fn root(family: u64) -> ProcedureId {
    ProcedureId::root(family)
}
