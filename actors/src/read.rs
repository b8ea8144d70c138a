//! `CommittedReader`: answers every question about committed state from the store.
//!
//! The supervisor's messages, the dashboard and the reader of closed journals all use it. It enters no mailbox, so any
//! number of viewers delays no stage. The store shows only what is synced. It may be ahead of the newest change that a
//! subscriber was told of.

pub(crate) mod failures;
mod family;
pub(crate) mod labels;
mod left_values;
pub(crate) mod pages;
mod signals;

use std::collections::BTreeMap;
use std::sync::Arc;

use procession_kernel::{AuditEntry, Blob, HistoryEntry, Key, KeyEntry, LabelDigest, NotNow, ProcedureId, Row};
use serde::de::DeserializeOwned;

use crate::error::{AskError, ReadError};
use crate::export::FamilyExport;
use crate::journal::keys::{OUTPUT, PAYLOAD};
use crate::journal::{Reader, Space, codec, keys};
use crate::procedure::Procedure;
use crate::value;
use crate::view::{
    ArchivedFamily, FamilyScope, HistoryPage, KeyedProcedure, ListFilter, Outcome, Page, SignalSummary, Sizes, Status,
    StoredCounts, Values,
};
pub(crate) use family::Damage;
use pages::page;

/// The maximum number of entries of a family's history that are read to count the entries of one member.
const HISTORY_COUNTED: usize = 2_000;

/// The maximum number of signals of one page: each is read with its payload.
const SIGNALS_PAGE: usize = 1_000;

/// Quarantined families, each with the reason. Pending answers share it.
pub(crate) type Quarantined = Arc<BTreeMap<u64, String>>;

/// Reads committed state without asking the engine. Cheap to clone; it does not keep the store open.
///
/// Quarantined families are shown as their rows say, unless the supervisor made the reader. A caller that has a
/// [`Snapshot`](crate::view::Snapshot) can apply [`Status::quarantined`].
#[derive(Clone)]
pub struct CommittedReader {
    reader: Reader,
    quarantined: Quarantined,
}

impl CommittedReader {
    pub(crate) const fn new(reader: Reader, quarantined: Quarantined) -> Self {
        Self { reader, quarantined }
    }

    /// Returns why a family is quarantined, if it is.
    pub(crate) fn why_quarantined(&self, family: u64) -> Option<&str> {
        self.quarantined.get(&family).map(String::as_str)
    }

    /// Reads one page of rows, by id, 1,000 at most. After 100,000 rows it stops and sets `truncated`.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store cannot be read, or the engine has stopped.
    pub async fn list(&self, filter: ListFilter, cursor: Option<ProcedureId>, limit: usize) -> Result<Page, AskError> {
        // Only rows that are shown are converted to a status.
        let show = |row: &Row| filter.admits(row).then(|| self.shown(row));
        Ok(page(&self.reader, &filter.scope(), cursor, limit, show).await?)
    }

    /// Reads one page of the procedures in `scope` that `admits` accepts, with the same bounds as
    /// [`list`](Self::list).
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store cannot be read, or the engine has stopped.
    pub async fn list_where(
        &self,
        scope: &FamilyScope,
        cursor: Option<ProcedureId>,
        limit: usize,
        mut admits: impl FnMut(&Status) -> bool,
    ) -> Result<Page, AskError> {
        let show = |row: &Row| Some(self.shown(row)).filter(&mut admits);
        Ok(page(&self.reader, scope, cursor, limit, show).await?)
    }

    /// Reads one procedure. Returns `None` if the journal does not know it.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the row cannot be read, or the engine has stopped.
    pub async fn status(&self, id: ProcedureId) -> Result<Option<Status>, AskError> {
        Ok(self.row(id).await?.map(|row| self.shown(&row)))
    }

    /// Reads what was submitted with an idempotency key. Returns `None` if nothing was, or if the key has been
    /// forgotten: keys go with the result, unless they were to be kept longer.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the key or the row cannot be read, or the engine has stopped.
    pub async fn find(&self, key: &str) -> Result<Option<KeyedProcedure>, AskError> {
        let Some(entry) = self.key_entry(key).await? else {
            return Ok(None);
        };
        let status = self.status(entry.id).await?;
        Ok(Some(KeyedProcedure::of(&entry, status)))
    }

    /// Reads what a key stands for, without the procedure.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the key cannot be read, or the engine has stopped.
    pub async fn key_entry(&self, key: &str) -> Result<Option<KeyEntry>, AskError> {
        Ok(self.reader.key_entry(key.as_bytes()).await?)
    }

    /// Reads the members of a family from number `from` on, at most `limit` of them. The list is empty if the journal
    /// does not know the family.
    ///
    /// # Errors
    ///
    /// [`AskError`] if a row cannot be read, or the engine has stopped.
    pub async fn family(&self, family: u64, from: u32, limit: usize) -> Result<Vec<Status>, AskError> {
        let rows = self.reader.rows_from(ProcedureId::new(family, from), limit).await;
        let rows = rows.map_err(|error| self.unreadable(family, error))?;
        Ok(rows.iter().map(|row| self.shown(row)).collect())
    }

    /// Reads the first `limit` entries of a family's history, in commit order.
    ///
    /// # Errors
    ///
    /// [`AskError`] if an entry cannot be read, or the engine has stopped.
    pub async fn history(&self, family: u64, limit: usize) -> Result<Vec<HistoryEntry>, AskError> {
        let history = self.reader.history(family, limit).await;
        history.map_err(|error| self.unreadable(family, error))
    }

    /// Reads the same entries as [`history`](Self::history) without the values that their stages left: of each the size
    /// alone. Lists look through many entries, and show no value.
    ///
    /// # Errors
    ///
    /// [`AskError`] if an entry cannot be read, or the engine has stopped.
    pub async fn history_outline(&self, family: u64, limit: usize) -> Result<Vec<HistoryEntry>, AskError> {
        let history = self.reader.history_outline(family, limit).await;
        history.map_err(|error| self.unreadable(family, error))
    }

    /// Reads the value that a root was submitted with, encoded. Returns `None` if the journal does not know the root, or
    /// if the value is not kept.
    ///
    /// # Errors
    ///
    /// [`AskError`] if it cannot be read, or the engine has stopped.
    pub async fn submitted(&self, family: u64) -> Result<Option<Blob>, AskError> {
        let Some(root) = self.row(ProcedureId::root(family)).await? else {
            return Ok(None);
        };
        let submitted = self.reader.submitted(&root).await;
        let submitted = submitted.map_err(|error| self.unreadable(family, error))?;
        Ok(submitted.map(|(value, _)| value))
    }

    /// Reads entries of a family's history from before a number, newest first, at most `limit` of them and 1,000.
    /// `None` begins with the newest.
    ///
    /// # Errors
    ///
    /// [`AskError`] if an entry cannot be read, or the engine has stopped.
    pub async fn history_page(&self, family: u64, before: Option<u32>, limit: usize) -> Result<HistoryPage, AskError> {
        let read = self.reader.history_before(family, before, limit).await;
        let (entries, next) = read.map_err(|error| self.unreadable(family, error))?;
        Ok(HistoryPage { entries, next })
    }

    /// Reads how a procedure ended. Returns `None` if it has not ended, or the journal does not know it.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the row or the output cannot be read, or the engine has stopped.
    pub async fn outcome(&self, id: ProcedureId) -> Result<Option<Outcome>, AskError> {
        let read = self.reader.row_with(id, OUTPUT).await;
        let read = read.map_err(|error| self.unreadable(id.family, error))?;
        let ended = read.filter(|(row, _)| row.is_ended());
        Ok(ended.map(|(row, output)| Outcome::stored(row, output.map(Blob::from))))
    }

    /// Reads the sizes of a procedure's payload and output.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if they cannot be read, or the engine has stopped.
    pub async fn sizes(&self, id: ProcedureId) -> Result<Sizes, AskError> {
        let values = self.values(id).await?;
        Ok(Sizes {
            payload: values.payload.map(|bytes| bytes.len()),
            output: values.output.map(|bytes| bytes.len()),
        })
    }

    /// Reads a procedure's payload and output as users wrote them.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if they cannot be read, or the engine has stopped.
    pub async fn values(&self, id: ProcedureId) -> Result<Values, AskError> {
        Ok(Values {
            payload: self.reader.payload(id, PAYLOAD).await?,
            output: self.reader.payload(id, OUTPUT).await?,
        })
    }

    /// Reads a procedure's value as it is committed, live or ended, decoded as the type that runs it. A value of an
    /// older version is returned as the type upgrades it; nothing is stored. Returns `None` if the journal does not know
    /// the procedure.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it cannot be read, or is not of this type or kind, or the engine has stopped.
    pub async fn value<P: Procedure>(&self, id: ProcedureId) -> Result<Option<P>, ReadError> {
        value::read(&self.reader, id).await
    }

    /// Reads the stage that a procedure runs or would run next, as it is committed. One that is rolled back or has ended
    /// keeps the stage at which it was then. Returns `None` if the journal does not know the procedure.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if it cannot be read, or is none of this type, or the engine has stopped.
    pub async fn stage<P: Procedure>(&self, id: ProcedureId) -> Result<Option<P::Stage>, AskError> {
        let row = self.row(id).await?;
        let stage = row.map(|row| codec::decode_user(row.stage.as_slice())).transpose();
        stage.map_err(|error| AskError::Read(error.into()))
    }

    /// Reads a committed value of user data.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it cannot be read, or is not of this type, or the engine has stopped.
    pub async fn get<T: DeserializeOwned>(&self, space: &str, key: impl AsRef<[u8]>) -> Result<Option<T>, ReadError> {
        let space = Space::User(Key::from(space));
        let bytes = self.reader.get(space, key.as_ref().to_vec()).await?;
        Ok(bytes.map(|bytes| codec::decode_user(&bytes)).transpose()?)
    }

    /// Reads the stored signals of a procedure by number, at most `limit` of them. They include waiting signals, and
    /// signals that are kept for their keys. Payloads are read but not returned.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if they cannot be read, or the engine has stopped.
    pub async fn signals(&self, id: ProcedureId, limit: usize) -> Result<Vec<SignalSummary>, AskError> {
        Ok(signals::read(&self.reader, &keys::procedure(id), limit).await?)
    }

    /// Reads the stored signals of a procedure as [`signals`](Self::signals) does, each with its payload:
    /// [`codec::decode_user`](crate::journal::codec::decode_user) reads it. Payloads are user data; of a signal that was
    /// consumed and is kept for its key, it is empty.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if they cannot be read, or the engine has stopped.
    pub async fn signals_with_payloads(
        &self,
        id: ProcedureId,
        limit: usize,
    ) -> Result<Vec<(SignalSummary, Blob)>, AskError> {
        Ok(signals::read_with_payloads(&self.reader, &keys::procedure(id), limit).await?)
    }

    /// Reads the stored signals of a procedure from this number on, each with its payload, at most `limit` of them and
    /// 1,000: the next page begins behind the last number. Otherwise like
    /// [`signals_with_payloads`](Self::signals_with_payloads).
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if they cannot be read, or the engine has stopped.
    pub async fn signals_from(
        &self,
        id: ProcedureId,
        from: u32,
        limit: usize,
    ) -> Result<Vec<(SignalSummary, Blob)>, AskError> {
        let limit = limit.min(SIGNALS_PAGE);
        Ok(signals::read_from(&self.reader, id, from, limit).await?)
    }

    /// Reads the stored signals of all members of a family, as [`signals`](Self::signals) does.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if they cannot be read, or the engine has stopped.
    pub async fn signals_of_family(&self, family: u64, limit: usize) -> Result<Vec<SignalSummary>, AskError> {
        Ok(signals::read(&self.reader, &keys::family(family), limit).await?)
    }

    /// Counts the stored history entries and signals of a procedure. Returns `None` if the journal does not know it.
    ///
    /// Reads at most the first 2,000 entries of the family's history, and signals up to 16 or 64 KiB. Reads nothing if
    /// the row says that there is nothing.
    ///
    /// # Errors
    ///
    /// [`AskError`] if something cannot be read, or the engine has stopped.
    pub async fn counts(&self, id: ProcedureId) -> Result<Option<StoredCounts>, AskError> {
        let Some(row) = self.row(id).await? else {
            return Ok(None);
        };
        let mut counts = StoredCounts::default();
        if row.history > 0 {
            let entries = self.history(id.family, HISTORY_COUNTED).await?;
            let is_cut = entries.len() == HISTORY_COUNTED;
            counts.history = entries.iter().filter(|entry| entry.member == id.member).count();
            // The row names the procedure's own newest entry, so a cut behind that entry hides none.
            counts.more_history = is_cut && entries.last().is_some_and(|last| last.number < row.history);
        }
        if row.signals > 0 {
            (counts.signals, counts.more_signals) = signals::count(&self.reader, id).await?;
        }
        Ok(Some(counts))
    }

    /// Reads the audit entries with numbers from `first` to just before `before`, newest first, at most `limit` of
    /// them.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if they cannot be read, or the engine has stopped.
    pub async fn audit(&self, first: u64, before: u64, limit: usize) -> Result<Vec<AuditEntry>, AskError> {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let first = first.max(before.saturating_sub(limit));
        let mut entries = self.reader.audit(first, before).await?;
        entries.reverse();
        Ok(entries)
    }

    /// Copies everything that the journal holds of a family, up to `limit` bytes. Returns `None` if it holds nothing.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooLarge`] if the family has more bytes than `limit`; [`AskError::Read`] if it cannot be read.
    pub async fn export(&self, family: u64, limit: usize) -> Result<Option<FamilyExport>, AskError> {
        self.export_with(family, limit, Damage::Fails).await
    }

    pub(crate) async fn export_with(
        &self,
        family: u64,
        limit: usize,
        damage: Damage,
    ) -> Result<Option<FamilyExport>, AskError> {
        let mut export = FamilyExport::read(&self.reader, family, limit, damage).await?;
        if let Some(export) = &mut export {
            export.quarantined = self.why_quarantined(family).map(str::to_owned);
        }
        Ok(export)
    }

    /// Lists the discharged families.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the archive cannot be read, or the engine has stopped.
    pub async fn archive(&self) -> Result<Vec<ArchivedFamily>, AskError> {
        Ok(FamilyExport::archived(&self.reader).await?)
    }

    /// Reads one family of the archive. Returns `None` if the archive does not hold it.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if it cannot be read, or the engine has stopped.
    pub async fn archived(&self, family: u64) -> Result<Option<FamilyExport>, AskError> {
        Ok(FamilyExport::read_archived(&self.reader, family).await?)
    }

    /// Returns the digests under which the index of labels has the family of this export. Where rows cannot be read, the
    /// index is searched.
    pub(crate) async fn label_digests(&self, export: &FamilyExport) -> Result<Vec<LabelDigest>, AskError> {
        let rows: Result<Vec<Row>, String> = export.rows().collect();
        match rows {
            Ok(rows) => Ok(labels::digests_of(&rows)),
            Err(_) => Ok(labels::search(&self.reader, export.family).await?),
        }
    }

    pub(crate) async fn row(&self, id: ProcedureId) -> Result<Option<Row>, AskError> {
        let row = self.reader.row(id).await;
        row.map_err(|error| self.unreadable(id.family, error))
    }

    /// Returns the answer to a request about a procedure that is not live.
    pub(crate) async fn why_not_live(&self, id: ProcedureId) -> AskError {
        match self.row(id).await {
            Ok(Some(row)) if row.is_ended() => AskError::Finished {
                id,
                revision: row.revision,
            },
            Ok(Some(_)) => match self.why_quarantined(id.family) {
                Some(why) => quarantined(id.family, why),
                None => AskError::NotNow {
                    kind: NotNow::Quarantined,
                    text: format!("the family of {id} is quarantined; see why with a snapshot"),
                },
            },
            Ok(None) => AskError::Unknown(id),
            Err(error) => error,
        }
    }

    fn shown(&self, row: &Row) -> Status {
        let status = Status::of(row);
        if self.quarantined.contains_key(&row.id.family) {
            status.quarantined()
        } else {
            status
        }
    }

    /// Prefers the reason of the quarantine, if there is one. A damaged row is the usual reason, and the quarantine
    /// says more than the codec's error does.
    fn unreadable(&self, family: u64, error: ReadError) -> AskError {
        match (error, self.why_quarantined(family)) {
            (ReadError::Codec(_), Some(why)) => quarantined(family, why),
            (error, _) => AskError::Read(error),
        }
    }
}

fn quarantined(family: u64, why: &str) -> AskError {
    AskError::NotNow {
        kind: NotNow::Quarantined,
        text: format!("the family {family} is quarantined: {why}; start a binary that can load it, or discharge it"),
    }
}
