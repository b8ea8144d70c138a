//! Rows, histories and signals of a closed journal.

use std::collections::BTreeSet;

use procession_kernel::{AuditEntry, Epoch, FailureEntry, HistoryEntry, ProcedureId, Seq};

use super::Offline;
use crate::error::{AskError, ReadError};
use crate::journal::reader::PAGE;
use crate::journal::store::Scan;
use crate::journal::{DiskRoom, Space, keys};
use crate::view::{FamilyScope, KeyedProcedure, Mailbox, Page, SignalSummary, Status, ValueBehind};

/// Returns the family that a key of an index names.
type FamilyOf = fn(&[u8]) -> Option<u64>;

fn live(key: &[u8]) -> Option<u64> {
    keys::parse_family(key)
}

fn finished(key: &[u8]) -> Option<u64> {
    keys::parse_finished(key).map(|(_, family)| family)
}

impl Offline {
    /// Lists up to 1,000 procedures in `scope` that `admits` accepts, by id, starting after a cursor. After 100,000
    /// rows it stops and sets `truncated`.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store cannot be read.
    pub async fn list(
        &self,
        scope: &FamilyScope,
        cursor: Option<ProcedureId>,
        limit: usize,
        admits: impl FnMut(&Status) -> bool,
    ) -> Result<Page, AskError> {
        self.committed.list_where(scope, cursor, limit, admits).await
    }

    /// Reads the numbers of the families that the indexes name, live ones and those that have ended, without reading a row:
    /// with them an export goes on where rows cannot be read. Returns as well what of the indexes cannot be read.
    pub async fn indexed_families(&self) -> (BTreeSet<u64>, Vec<ReadError>) {
        let (mut families, mut unread) = (BTreeSet::new(), Vec::new());
        for (space, end, family_of) in [
            (Space::Live, keys::first_label().to_vec(), live as FamilyOf),
            (Space::Finished, keys::first_failure().to_vec(), finished as FamilyOf),
        ] {
            let mut scan = Scan {
                space,
                from: Vec::new(),
                to: Some(end),
                limit: PAGE,
            };
            loop {
                let page = match self.reader.scan(scan.clone()).await {
                    Ok(page) => page,
                    Err(error) => {
                        unread.push(error.into());
                        break;
                    }
                };
                families.extend(page.iter().filter_map(|(key, _)| family_of(key)));
                match page.last() {
                    Some((last, _)) if page.len() == PAGE => scan.from = keys::after(last),
                    Some(_) | None => break,
                }
            }
        }
        (families, unread)
    }

    /// Reads one procedure. Returns `None` if the journal does not know it.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store or the row cannot be read.
    pub async fn status(&self, id: ProcedureId) -> Result<Option<Status>, AskError> {
        self.committed.status(id).await
    }

    /// Reads the newest failures that nobody has acknowledged, `limit` or a few more. Returns as well whether there are
    /// more.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store cannot be read.
    pub async fn newest_failures(&self, limit: usize) -> Result<(Vec<FailureEntry>, bool), AskError> {
        self.committed.newest_failures(limit).await
    }

    /// Reads every kept entry of the audit log, newest first.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store or an entry cannot be read.
    pub async fn audit(&self) -> Result<Vec<AuditEntry>, AskError> {
        self.committed.audit(0, u64::MAX, usize::MAX).await
    }

    /// Reads what was submitted with an idempotency key. Returns `None` if nothing was, or if the key has been
    /// forgotten.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store, the key or the row cannot be read.
    pub async fn find(&self, key: &str) -> Result<Option<KeyedProcedure>, AskError> {
        self.committed.find(key).await
    }

    /// Reads the family of a procedure, by member. The list is empty if the journal does not know it.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store or a row cannot be read.
    pub async fn family(&self, id: ProcedureId) -> Result<Vec<Status>, AskError> {
        self.committed.family(id.family, 0, usize::MAX).await
    }

    /// Reads the executed stages and undos of the family of a procedure, in commit order.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store or an entry cannot be read.
    pub async fn history(&self, id: ProcedureId) -> Result<Vec<HistoryEntry>, AskError> {
        self.committed.history(id.family, usize::MAX).await
    }

    /// Reads the value behind an entry of a procedure's history; see [`CommittedReader::value_behind`].
    ///
    /// # Errors
    ///
    /// [`AskError`] if an entry or a value cannot be read.
    ///
    /// [`CommittedReader::value_behind`]: crate::CommittedReader::value_behind
    pub async fn value_behind(&self, id: ProcedureId, number: u32) -> Result<Option<ValueBehind>, AskError> {
        self.committed.value_behind(id, number).await
    }

    /// Reads the stored signals to the family of a procedure, without their payloads.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store or a signal cannot be read.
    pub async fn signals(&self, id: ProcedureId) -> Result<Vec<SignalSummary>, AskError> {
        self.committed.signals_of_family(id.family, usize::MAX).await
    }

    /// Returns which signals a live procedure has yet to consume, and which events it takes no further signals of.
    /// Returns `None` if it has ended, or the journal does not know it.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store, the row or a signal cannot be read.
    pub async fn mailbox(&self, id: ProcedureId) -> Result<Option<Mailbox>, AskError> {
        let row = self.committed.row(id).await?.filter(|row| !row.is_ended());
        let Some(row) = row else { return Ok(None) };
        let signals = self.committed.signals(id, usize::MAX).await?;
        Ok(Some(Mailbox::stored(&row, &signals)))
    }

    /// Returns the newest commit of the journal.
    #[must_use]
    pub const fn as_of(&self) -> (Epoch, Seq) {
        self.as_of
    }

    /// Returns the room on the disk of the journal, if the system tells.
    #[must_use]
    pub const fn disk_room(&self) -> Option<DiskRoom> {
        self.room
    }

    /// Returns the size of the journal in bytes.
    #[must_use]
    pub fn size_bytes(&self) -> Option<u64> {
        self.reader.size_bytes()
    }
}
