//! Reads beside the engine: what is committed, straight from the store. Nobody's
//! mailbox is entered, so any number of viewers delays no stage.
//!
//! The store shows what is synced, and nothing that is not. What is read here
//! may be newer than the newest change that a subscriber was told of.

use procession_kernel::{AuditEntry, HistoryEntry, ProcedureId, Row};

use crate::engine::Engine;
use crate::error::{AskError, CodecError, ReadError, StoreError};
use crate::export::FamilyExport;
use crate::journal::encode::StoredSignal;
use crate::journal::keys::{self, OUTPUT, PAYLOAD};
use crate::journal::store::{Entries, Scan};
use crate::journal::{JournalStore, Reader, Space, codec};
use crate::pages::page;
use crate::view::{Kept, KeptSignal, ListFilter, Page, Sizes, Status, Values};

/// Entries of a family's history among which those of one member are counted, at most.
const HISTORY_COUNTED: usize = 2_000;
/// Signals that are counted, at most: each is read with its payload.
const SIGNALS_COUNTED: usize = 16;
/// Bytes of signals behind which no more are counted. Whoever looks at a procedure reads them again and again,
/// and each may have a mebibyte.
const SIGNAL_BYTES_COUNTED: usize = 64 << 10;

/// Reads signals, all but what they carry.
pub(crate) fn kept_signals(entries: &Entries) -> Result<Vec<KeptSignal>, CodecError> {
    let known = entries
        .iter()
        .filter_map(|(key, value)| Some((keys::parse_signal(key)?, value)));
    let read = known.map(|((id, number, _), value)| {
        let StoredSignal { entry, payload } = codec::decode(value)?;
        let size = payload.as_slice().len();
        Ok(KeptSignal {
            id,
            number,
            entry,
            size,
        })
    });
    read.collect()
}

/// A handle that reads what is committed, beside the engine; cheap to clone. It
/// does not keep the store open.
#[derive(Clone)]
pub struct Beside {
    reader: Reader,
}

impl Engine {
    /// Gives what reads beside the engine.
    #[must_use]
    pub fn beside(&self) -> Beside {
        Beside {
            reader: self.reader().clone(),
        }
    }
}

impl Beside {
    /// Reads one page of rows, by id, 1,000 at most. Families that are in quarantine are
    /// not told apart.
    ///
    /// # Errors
    ///
    /// [`AskError::Read`] if the store cannot be read, or the engine has stopped.
    pub async fn list(&self, filter: ListFilter, cursor: Option<ProcedureId>, limit: usize) -> Result<Page, AskError> {
        let show = |row: &Row| filter.admits(row).then(|| Status::of(row));
        Ok(page(&self.reader, &filter.among(), cursor, limit, show).await?)
    }

    /// Reads one row; none if there is none.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it cannot be read, or the engine has stopped.
    pub async fn status(&self, id: ProcedureId) -> Result<Option<Status>, ReadError> {
        Ok(self.reader.row(id).await?.as_ref().map(Status::of))
    }

    /// Reads the members of a family from a number on, at most `limit` of them.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if one cannot be read, or the engine has stopped.
    pub async fn family(&self, family: u64, from: u32, limit: usize) -> Result<Vec<Status>, ReadError> {
        let rows = self.reader.rows_from(ProcedureId::new(family, from), limit).await?;
        Ok(rows.iter().map(Status::of).collect())
    }

    /// Reads the first `limit` entries of a family's history, in commit order.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if one cannot be read, or the engine has stopped.
    pub async fn history(&self, family: u64, limit: usize) -> Result<Vec<HistoryEntry>, ReadError> {
        self.reader.history_up_to(family, limit).await
    }

    /// Reads the sizes of a procedure's payload and output.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if they cannot be read, or the engine has stopped.
    pub async fn sizes(&self, id: ProcedureId) -> Result<Sizes, ReadError> {
        let size = async |tag| Ok::<_, ReadError>(self.reader.payload(id, tag).await?.map(|bytes| bytes.len()));
        Ok(Sizes {
            payload: size(PAYLOAD).await?,
            output: size(OUTPUT).await?,
        })
    }

    /// Reads a procedure's payload and output, as users wrote them.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if they cannot be read, or the engine has stopped.
    pub async fn values(&self, id: ProcedureId) -> Result<Values, ReadError> {
        Ok(Values {
            payload: self.reader.payload(id, PAYLOAD).await?,
            output: self.reader.payload(id, OUTPUT).await?,
        })
    }

    /// Copies everything that the journal holds of a family, `limit` bytes at most; none if it
    /// holds nothing. Why a family is in quarantine is not told.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooLarge`] if it has more, or what keeps it from being read.
    pub async fn export(&self, family: u64, limit: usize) -> Result<Option<FamilyExport>, ReadError> {
        FamilyExport::read(&self.reader, family, limit).await
    }

    /// Reads the signals of a procedure that are kept, by number: until they are consumed, or
    /// for their keys. At most `limit` of them; each is read with its payload.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if they cannot be read, or the engine has stopped.
    pub async fn signals(&self, id: ProcedureId, limit: usize) -> Result<Vec<KeptSignal>, ReadError> {
        let entries = self.signal_entries(id, limit).await?;
        Ok(kept_signals(&entries)?)
    }

    async fn signal_entries(&self, id: ProcedureId, limit: usize) -> Result<Entries, StoreError> {
        let from = keys::procedure(id).to_vec();
        let to = keys::after_prefix(&from);
        let space = Space::Signals;
        self.reader.scan(Scan { space, from, to, limit }).await
    }

    /// Counts what is kept of a procedure; none if there is no such one. Of its family's history the first
    /// 2,000 entries are read, of its signals 16, or as many as come to 64 KiB, and nothing where its row says that there is nothing.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if it cannot be read, or the engine has stopped.
    pub async fn kept(&self, id: ProcedureId) -> Result<Option<Kept>, ReadError> {
        let Some(row) = self.reader.row(id).await? else {
            return Ok(None);
        };
        let mut kept = Kept::default();
        if row.history > 0 {
            let entries = self.history(id.family, HISTORY_COUNTED).await?;
            let is_cut = entries.len() == HISTORY_COUNTED;
            kept.history = entries.iter().filter(|entry| entry.member == id.member).count();
            // None of its own is newer than the row says.
            kept.more_history = is_cut && entries.last().is_some_and(|last| last.number < row.history);
        }
        if row.signals > 0 {
            let count = self.reader.run(move |store| Box::pin(count_signals(store, id)));
            (kept.signals, kept.more_signals) = count.await?;
        }
        Ok(Some(kept))
    }

    /// Reads acts of operators before one that is known, newest first, at most `limit` of them.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if they cannot be read, or the engine has stopped.
    pub async fn audit(&self, before: u64, limit: usize) -> Result<Vec<AuditEntry>, ReadError> {
        let limit = u64::try_from(limit).unwrap_or(u64::MAX);
        let mut entries = self.reader.audit(before.saturating_sub(limit), before).await?;
        entries.reverse();
        Ok(entries)
    }
}

/// Counts signals one by one, up to a number and a size; says whether there are more.
async fn count_signals(store: &dyn JournalStore, id: ProcedureId) -> Result<(usize, bool), StoreError> {
    let mut from = keys::procedure(id).to_vec();
    let to = keys::after_prefix(&from);
    let (mut count, mut bytes) = (0, 0);
    loop {
        let next = Scan {
            space: Space::Signals,
            from,
            to: to.clone(),
            limit: 1,
        };
        let Some((key, value)) = store.scan(next).await?.into_iter().next() else {
            return Ok((count, false));
        };
        if count == SIGNALS_COUNTED || bytes > SIGNAL_BYTES_COUNTED {
            return Ok((count, true));
        }
        count += 1;
        bytes += value.len();
        from = key;
        from.push(0);
    }
}
