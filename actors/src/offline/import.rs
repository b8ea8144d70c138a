//! `Importer`: puts an exported family into a journal that no engine runs on, as one commit or not at all. It never
//! overwrites, and never starts anything: a live family arrives paused at its root.

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
use crate::supervisor::lifecycle::recovery::{self, Code, Loaded};
use crate::view::Status;
use content::Content;
use settle::Settled;
use target::Target;

/// Shortest retention of a finished family. Somebody imported it by hand, and the journal's next engine may start a
/// day later.
pub(super) const KEPT_AT_LEAST: Duration = Duration::from_secs(24 * 3_600);

/// A closed journal that receives families exported from this or another journal.
///
/// A family keeps its number, and is imported with one commit, with an entry in the audit log. A live family arrives
/// paused at its root, so that somebody looks at it before an engine runs it. Stages that were running when it was
/// exported are in doubt, and run again when the family is resumed. An ended family is kept for its full retention
/// after the end, counted from the import, and at least for a day.
///
/// An export is a copy: before you resume a family here, make sure that it does not live elsewhere. Effects of stages
/// outside the engine, and user data, are not included. In another journal the tokens and fences of its stages differ
/// from those that it had.
pub struct Importer {
    // Dropped in this order: the copy must outlive the store that reads it.
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
    /// Number of the import's audit entry; `None` for a dry run.
    pub number: Option<u64>,
    /// `true` if it has not ended; it is then paused at its root.
    pub live: bool,
    /// When the result of an ended family is evicted.
    pub due: Option<Timestamp>,
    /// Its procedures, as they are after the import.
    pub procedures: Vec<Status>,
    /// Number of its history entries.
    pub history: usize,
    /// Number of its signals.
    pub signals: usize,
    /// Warnings, a sentence each.
    pub warnings: Vec<String>,
}

impl Importer {
    /// Opens the journal in a directory, in its place, and holds it until this value is dropped. Blocks while the
    /// journal is read.
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

    /// Opens a private copy of the journal in a directory, for dry runs. Nothing in the directory is written. Imports
    /// go into the copy, and are removed with it.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as from [`Offline::open_copy`](super::Offline::open_copy).
    pub fn open_copy(directory: &Path) -> Result<Self, StoreError> {
        Self::open_copy_in(directory, &std::env::temp_dir())
    }

    /// Opens a private copy as [`open_copy`](Self::open_copy) does, which is made in another directory than the system's.
    ///
    /// # Errors
    ///
    /// [`StoreError`] as from [`Offline::open_copy`](super::Offline::open_copy).
    pub fn open_copy_in(directory: &Path, scratch: &Path) -> Result<Self, StoreError> {
        let (copy, store) = copied(directory, scratch)?;
        Ok(Self {
            _copy: Some(copy),
            ..Self::on(Arc::new(store), Arc::new(SystemClock))
        })
    }

    /// Creates an importer for a store that no engine runs on, with its own clock.
    #[must_use]
    pub fn on(store: Arc<dyn JournalStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            reader: Reader::new(&store),
            store,
            clock,
            _copy: None,
        }
    }

    /// Reads a discharged family from the journal's own archive; `None` if the archive has no family of this number.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store or the entry cannot be read.
    pub async fn archived(&self, family: u64) -> Result<Option<FamilyExport>, ReadError> {
        FamilyExport::read_archived(&self.reader, family).await
    }

    /// Puts a family into the journal, as one commit or not at all. A dry run only returns what would be put. Of
    /// `by`, the import uses the name, the reason and the dry-run flag.
    ///
    /// The archive entry of a discharged family stays: it records the family as it was then.
    ///
    /// # Errors
    ///
    /// [`ImportError`] if the export contradicts itself or is incomplete; if the journal has a family of this number;
    /// if its idempotency key stands for another procedure; or if one of its locks is held.
    pub async fn import(&self, export: &FamilyExport, by: &OperatorRequest) -> Result<Imported, ImportError> {
        let content = Content::of(export).map_err(|why| ImportError::Unusable {
            family: export.family,
            why,
        })?;
        let target = Target {
            reader: &self.reader,
            loaded: &self.load(by.dry_run).await?,
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

    /// Reads the journal as a start would. Only an import that writes takes an epoch.
    async fn load(&self, dry_run: bool) -> Result<Loaded, StartError> {
        let (store, clock) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        let rules = procession_kernel::Rules::default();
        match dry_run {
            true => recovery::look(store, rules, Code::Any, clock).await,
            false => recovery::load(store, rules, Code::Any, clock).await,
        }
    }

    /// Commits with a new epoch: from here on no engine that ever had the journal may write.
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
        "it was quarantined where it was exported ({why}): the next start quarantines it again unless that is repaired"
    ))
}

/// Returns the first few of many names.
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
