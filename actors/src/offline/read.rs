//! Rows, histories and signals of a closed journal.

use procession_kernel::{Epoch, HistoryEntry, ProcedureId, Seq};

use super::Offline;
use crate::beside::kept_signals;
use crate::error::ReadError;
use crate::journal::{DiskRoom, Space, keys};
use crate::pages::page;
use crate::view::{Among, KeptSignal, Page, Status};

impl Offline {
    /// Lists procedures by id, from a cursor on: those that `admits` says of the families
    /// that `among` names, 1,000 at most. After 100,000 rows it stops, and says so.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store cannot be read.
    pub async fn list(
        &self,
        among: &Among,
        cursor: Option<ProcedureId>,
        limit: usize,
        mut admits: impl FnMut(&Status) -> bool,
    ) -> Result<Page, ReadError> {
        let show = |row: &_| Some(Status::of(row)).filter(&mut admits);
        Ok(page(&self.reader, among, cursor, limit, show).await?)
    }

    /// Reads one procedure; none if the journal does not know it.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store or the row cannot be read.
    pub async fn status(&self, id: ProcedureId) -> Result<Option<Status>, ReadError> {
        Ok(self.reader.row(id).await?.as_ref().map(Status::of))
    }

    /// Reads the family of a procedure, by member; empty if the journal does not know it.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store or a row cannot be read.
    pub async fn family(&self, id: ProcedureId) -> Result<Vec<Status>, ReadError> {
        Ok(self.reader.rows(id.family).await?.iter().map(Status::of).collect())
    }

    /// Reads the executed stages and undos of the family of a procedure, in commit order.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store or an entry cannot be read.
    pub async fn history(&self, id: ProcedureId) -> Result<Vec<HistoryEntry>, ReadError> {
        self.reader.history(id.family).await
    }

    /// Reads the signals to the family of a procedure that are still there, without their payloads.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store or a signal cannot be read.
    pub async fn signals(&self, id: ProcedureId) -> Result<Vec<KeptSignal>, ReadError> {
        let entries = self
            .reader
            .scan_prefix(Space::Signals, &keys::family(id.family))
            .await?;
        Ok(kept_signals(&entries)?)
    }

    /// Gives the newest commit of the journal.
    #[must_use]
    pub const fn as_of(&self) -> (Epoch, Seq) {
        self.as_of
    }

    /// Gives the room on the disk of the journal, if the system tells.
    #[must_use]
    pub const fn disk_room(&self) -> Option<DiskRoom> {
        self.room
    }

    /// Gives the bytes that the journal takes up.
    #[must_use]
    pub fn size_bytes(&self) -> Option<u64> {
        self.reader.size_bytes()
    }
}
