//! Exports a family, a bounded piece at a time.

use procession_kernel::{Blob, KeyEntry, ProcedureId};

use crate::error::{ReadError, StoreError};
use crate::export::{ExportedEntry, FamilyExport};
use crate::journal::reader::{PAGE, StoredRow, decode_row};
use crate::journal::store::Scan;
use crate::journal::{Reader, Space, codec, keys};
use crate::view::ArchivedFamily;

/// The number of entries read at once. Values may have megabytes, and the limit is checked between reads.
const AT_ONCE: usize = 64;

/// How often an export starts over because the family moved during the read.
const TRIES: usize = 3;

/// The keyspaces in which a family is one range of keys. The rows come first.
const RANGES: [Space; 5] = [
    Space::Procedures,
    Space::Payloads,
    Space::History,
    Space::Signals,
    Space::Live,
];

impl FamilyExport {
    /// Reads what the journal holds of a family, at most `limit` bytes. Returns `None` if it holds nothing.
    pub(super) async fn read(
        reader: &Reader,
        family: u64,
        limit: usize,
        damage: Damage,
    ) -> Result<Option<Self>, ReadError> {
        for attempt in 1.. {
            let mut pieces = Pieces {
                reader,
                family,
                limit,
                damage,
                size: 0,
                entries: Vec::new(),
                unread: Vec::new(),
            };
            pieces.read_all().await?;
            if pieces.entries.is_empty() {
                return Ok(None);
            }
            // Every commit that moves a family writes one of its rows, so unchanged rows prove a consistent copy.
            let whole = pieces.rows_are_as_they_were().await?;
            if whole || attempt == TRIES {
                let mut export = Self::of(family, whole, pieces.entries);
                export.unreadable.extend(pieces.unread);
                return Ok(Some(export));
            }
        }
        Ok(None)
    }
}

impl FamilyExport {
    /// Lists the archive. Reads one family at a time, because each may be large.
    pub(super) async fn archived(reader: &Reader) -> Result<Vec<ArchivedFamily>, ReadError> {
        let mut scan = Scan {
            space: Space::Archive,
            from: Vec::new(),
            to: None,
            limit: 1,
        };
        let mut all = Vec::new();
        while let Some((key, value)) = reader.scan(scan.clone()).await?.pop() {
            let export = Self::from_bytes(&value)?;
            all.push(ArchivedFamily {
                family: export.family,
                procedures: export.members(),
                quarantined: export.quarantined,
                bytes: value.len(),
            });
            scan.from = key;
            scan.from.push(0);
        }
        Ok(all)
    }

    /// Reads one family of the archive. Returns `None` if the archive does not hold it.
    pub(crate) async fn read_archived(reader: &Reader, family: u64) -> Result<Option<Self>, ReadError> {
        let bytes = reader.get(Space::Archive, keys::family(family).to_vec()).await?;
        Ok(bytes.map(|bytes| Self::from_bytes(&bytes)).transpose()?)
    }
}

/// What becomes of an export if the files of the store are damaged where the family is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damage {
    /// It fails. An engine that discharges a family by it deletes what it names.
    Fails,
    /// What can be read is exported, if it is the rows at least, and the rest is named.
    Skipped,
}

struct Pieces<'a> {
    reader: &'a Reader,
    family: u64,
    limit: usize,
    damage: Damage,
    size: usize,
    entries: Vec<ExportedEntry>,
    /// What is damaged and was skipped.
    unread: Vec<String>,
}

impl Pieces<'_> {
    async fn read_all(&mut self) -> Result<(), ReadError> {
        for space in RANGES {
            self.read_range(space).await?;
        }
        let root = ProcedureId::root(self.family);
        // Rows come first, and the root's row is the first of them.
        let first = self.entries.first();
        let entry = first.filter(|entry| entry.key.as_slice() == keys::procedure(root));
        let row = entry.and_then(|entry| decode_row(root, entry.value.as_slice()).ok());
        match row.map(StoredRow::without_labels) {
            Some(row) => {
                if let Some(key) = row.key {
                    self.read_one(Space::Keys, key.as_str().as_bytes().to_vec()).await?;
                }
                if let Some(due) = row.due {
                    self.read_one(Space::Finished, keys::finished(due, self.family).to_vec())
                        .await?;
                }
                if let Some(ended) = row.ended.filter(|_| row.state.is_failure()) {
                    // There as long as nobody has acknowledged the failure.
                    self.read_one(Space::Finished, keys::failure(ended, self.family).to_vec())
                        .await?;
                }
            }
            None if !self.entries.is_empty() => self.search_key().await?,
            None => {}
        }
        Ok(())
    }

    fn add(&mut self, space: &Space, key: Vec<u8>, value: Vec<u8>) -> Result<(), ReadError> {
        self.size += key.len() + value.len();
        if self.size > self.limit {
            return Err(ReadError::TooLarge {
                what: format!("the export of family {}", self.family),
                limit: self.limit,
            });
        }
        self.entries.push(ExportedEntry::new(space, key, value));
        Ok(())
    }

    /// Skips the rest of a keyspace that is damaged, or fails.
    fn skip(&mut self, space: &Space, error: StoreError) -> Result<(), ReadError> {
        let is_damaged = matches!(error, StoreError::Damaged { .. });
        if self.damage == Damage::Fails || *space == Space::Procedures || !is_damaged {
            return Err(error.into());
        }
        self.unread.push(error.to_string());
        Ok(())
    }

    async fn read_one(&mut self, space: Space, key: Vec<u8>) -> Result<(), ReadError> {
        match self.reader.get(space.clone(), key.clone()).await {
            Ok(Some(value)) => self.add(&space, key, value),
            Ok(None) => Ok(()),
            Err(error) => self.skip(&space, error),
        }
    }

    async fn read_range(&mut self, space: Space) -> Result<(), ReadError> {
        let prefix = keys::family(self.family).to_vec();
        let mut scan = Scan {
            space: space.clone(),
            to: keys::after_prefix(&prefix),
            from: prefix,
            limit: AT_ONCE,
        };
        loop {
            let page = match self.reader.scan(scan.clone()).await {
                Ok(page) => page,
                Err(error) => return self.skip(&space, error),
            };
            let full = page.len() == AT_ONCE;
            for (key, value) in page {
                scan.from.clone_from(&key);
                self.add(&space, key, value)?;
            }
            scan.from.push(0);
            if !full {
                return Ok(());
            }
        }
    }

    /// Searches all idempotency keys for the family's key, because its root's row cannot be read.
    async fn search_key(&mut self) -> Result<(), ReadError> {
        let mut scan = Scan {
            space: Space::Keys,
            from: Vec::new(),
            to: None,
            limit: PAGE,
        };
        loop {
            let page = match self.reader.scan(scan.clone()).await {
                Ok(page) => page,
                Err(error) => return self.skip(&Space::Keys, error),
            };
            let full = page.len() == PAGE;
            for (key, value) in page {
                scan.from.clone_from(&key);
                let stands_for = codec::decode::<KeyEntry>(&value).map(|entry| entry.id.family);
                if stands_for.is_ok_and(|family| family == self.family) {
                    return self.add(&Space::Keys, key, value);
                }
            }
            scan.from.push(0);
            if !full {
                return Ok(());
            }
        }
    }

    async fn rows_are_as_they_were(&self) -> Result<bool, ReadError> {
        let mut again = Pieces {
            entries: Vec::new(),
            unread: Vec::new(),
            size: 0,
            ..*self
        };
        again.read_range(Space::Procedures).await?;
        let row = |entry: &ExportedEntry| -> (Blob, Blob) { (entry.key.clone(), entry.value.clone()) };
        let before = self
            .entries
            .iter()
            .filter(|entry| entry.space == Space::Procedures.name());
        Ok(before.map(row).eq(again.entries.iter().map(row)))
    }
}
