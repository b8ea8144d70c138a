//! Rows and their labels. Labels have an entry in the same keyspace as the row that they were given to; rows that inherit
//! them name that entry.

use std::collections::BTreeMap;

use procession_kernel::{Labels, ProcedureId, Row, RowLabels};

use super::Reader;
use crate::error::{CodecError, ReadError, StoreError};
use crate::journal::codec;
use crate::journal::keys::{self, Space};
use crate::journal::store::{Entries, Scan};

/// A row as it was read, before its labels are. Whoever needs no labels says so.
pub(crate) struct StoredRow(Row);

impl StoredRow {
    /// Returns the procedure whose entry has the labels. `None` if there are none, or if they are in the row.
    pub(crate) fn labels_in(&self) -> Option<ProcedureId> {
        let member = self.0.labels.entry()?;
        Some(ProcedureId::new(self.0.id.family, member))
    }

    /// Returns the row for a caller that does not look at its labels. They are missing if they have an entry.
    pub(crate) fn without_labels(self) -> Row {
        self.0
    }
}

/// Decodes a row.
pub(crate) fn decode_row(id: ProcedureId, bytes: &[u8]) -> Result<StoredRow, CodecError> {
    let mut row: Row = codec::decode(bytes)?;
    row.id = id;
    Ok(StoredRow(row))
}

/// Decodes an entry of labels.
pub(crate) fn decode_labels(id: ProcedureId, bytes: &[u8]) -> Result<Labels, CodecError> {
    codec::decode(bytes).map_err(|error| CodecError {
        why: format!("the labels of {id}: {}", error.why),
        ..error
    })
}

/// The entries of labels among some entries of `procedures`.
#[derive(Default)]
pub(crate) struct LabelEntries(BTreeMap<ProcedureId, Result<RowLabels, CodecError>>);

impl LabelEntries {
    /// Collects them.
    pub(crate) fn of<'a>(entries: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Self {
        let mut all = Self::default();
        for (key, value) in entries {
            if let Some(id) = keys::parse_labels(key) {
                all.add(id, value);
            }
        }
        all
    }

    fn add(&mut self, id: ProcedureId, bytes: &[u8]) {
        let labels = decode_labels(id, bytes);
        let labels = labels.map(|labels| RowLabels::in_entry(id.member, labels));
        self.0.insert(id, labels);
    }

    /// Returns the row with its labels, which must be among these.
    pub(crate) fn complete(&self, row: StoredRow) -> Result<Row, CodecError> {
        let Some(id) = row.labels_in() else {
            return Ok(row.without_labels());
        };
        let found = self.0.get(&id).cloned();
        let labels = found.unwrap_or_else(|| {
            Err(CodecError {
                what: "the labels of a row cannot be read",
                why: format!("the labels of {id} are missing"),
            })
        })?;
        let mut row = row.without_labels();
        row.labels = labels;
        Ok(row)
    }

    /// Returns the row with its labels, which are read if they are not among these. Returns `None` if its family has
    /// been evicted since the row was read.
    pub(crate) async fn complete_or_read(
        &mut self,
        reader: &Reader,
        row: StoredRow,
    ) -> Result<Option<Result<Row, CodecError>>, StoreError> {
        if let Some(id) = row.labels_in().filter(|id| !self.0.contains_key(id)) {
            let read = async |key: &[u8]| reader.get(Space::Procedures, key.to_vec()).await;
            match read(&keys::labels(id)).await? {
                Some(bytes) => self.add(id, &bytes),
                // One commit deletes both.
                None if read(&keys::procedure(row.0.id)).await?.is_none() => return Ok(None),
                None => {}
            }
        }
        Ok(Some(self.complete(row)))
    }
}

/// Returns keys and values as slices.
pub(crate) fn slices(entries: &Entries) -> impl Iterator<Item = (&[u8], &[u8])> {
    entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice()))
}

impl Reader {
    /// Reads a row with its labels.
    pub(crate) async fn row(&self, id: ProcedureId) -> Result<Option<Row>, ReadError> {
        let bytes = self.get(Space::Procedures, keys::procedure(id).to_vec()).await?;
        match bytes {
            Some(bytes) => self.complete(decode_row(id, &bytes)?).await,
            None => Ok(None),
        }
    }

    /// Reads a row and one of its payloads in one call of the store.
    pub(crate) async fn row_with(&self, id: ProcedureId, tag: u8) -> Result<Option<(Row, Option<Vec<u8>>)>, ReadError> {
        let both = self.run(move |store| {
            let row = store.get(Space::Procedures, keys::procedure(id).to_vec());
            let payload = store.get(Space::Payloads, keys::payload(id, tag).to_vec());
            Box::pin(async move { Ok((row.await?, payload.await?)) })
        });
        let (row, payload) = both.await?;
        match row {
            Some(bytes) => {
                let row = self.complete(decode_row(id, &bytes)?).await?;
                Ok(row.map(|row| (row, payload)))
            }
            None => Ok(None),
        }
    }

    async fn complete(&self, row: StoredRow) -> Result<Option<Row>, ReadError> {
        let row = LabelEntries::default().complete_or_read(self, row).await?;
        Ok(row.transpose()?)
    }

    /// Reads the rows of one family, by member.
    pub(crate) async fn rows(&self, family: u64) -> Result<Vec<Row>, ReadError> {
        self.rows_from(ProcedureId::root(family), usize::MAX).await
    }

    /// Reads the rows of one family from `from` on, at most `limit` of them.
    pub(crate) async fn rows_from(&self, from: ProcedureId, limit: usize) -> Result<Vec<Row>, ReadError> {
        let to = keys::after_prefix(&keys::family(from.family));
        let mut from = keys::procedure(from).to_vec();
        let mut rows = Vec::new();
        loop {
            let wanted = super::PAGE.min(limit - rows.len());
            let scan = Scan {
                space: Space::Procedures,
                from,
                to: to.clone(),
                limit: wanted,
            };
            let entries = self.scan(scan).await?;
            let mut labels = LabelEntries::of(slices(&entries));
            for (key, value) in &entries {
                if let Some(id) = keys::parse_row(key) {
                    let row = decode_row(id, value)?;
                    rows.extend(labels.complete_or_read(self, row).await?.transpose()?);
                }
            }
            match entries.last().filter(|_| entries.len() == wanted && rows.len() < limit) {
                Some((last, _)) => from = keys::after(last),
                None => return Ok(rows),
            }
        }
    }
}

#[cfg(test)]
mod tests;
