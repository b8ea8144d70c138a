//! Verifies a closed journal: every byte of every table, and every entry of every keyspace.

use procession_kernel::{AuditEntry, FailureEntry, HistoryEntry, Key, KeyEntry};
use serde::de::IgnoredAny;

use super::Offline;
use crate::error::{CodecError, ReadError};
use crate::export::FamilyExport;
use crate::journal::encode::StoredSignal;
use crate::journal::layout::USER_SPACE_PREFIX;
use crate::journal::reader::{decode_labels, decode_row};
use crate::journal::store::Scan;
use crate::journal::{Space, codec, keys};
use crate::read::labels::LabelTally;

/// Entries per read. A value may have megabytes.
const PAGE: usize = 256;
/// Damages that are listed individually. Beyond that a disk is failing, and more texts add nothing.
const TOLD: usize = 1_000;

/// The result of verifying a journal.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Verified {
    /// Bytes of the tables that were read.
    pub bytes: u64,
    /// Entries that were read.
    pub entries: u64,
    /// A sentence for each damage; of very many, the first 1,000.
    pub damages: Vec<String>,
    /// Total number of damages.
    pub damaged: usize,
}

impl Verified {
    fn add(&mut self, damage: String) {
        self.damaged += 1;
        if self.damages.len() < TOLD {
            self.damages.push(damage);
        }
    }
}

impl Offline {
    /// Verifies the journal: compares each table with its checksum, and decodes each entry. Unreadable rows of
    /// procedures are counted here, too. Takes about as long as reading all of its files twice.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the store's keyspaces cannot be listed. Damage is no error, but part of the answer.
    pub async fn verify(&self) -> Result<Verified, ReadError> {
        let mut verified = Verified::default();
        let (bytes, damages) = self.tables.verify_tables();
        verified.bytes = bytes;
        damages.into_iter().for_each(|damage| verified.add(damage));
        let mut labels = Some(LabelTally::default());
        for space in self.all_spaces().await? {
            self.verify_space(&space, &mut verified, &mut labels).await;
        }
        let difference = labels.and_then(|labels| labels.difference());
        difference.into_iter().for_each(|damage| verified.add(damage));
        Ok(verified)
    }

    async fn all_spaces(&self) -> Result<Vec<Space>, ReadError> {
        let named = self.reader.scan_prefix(Space::Meta, USER_SPACE_PREFIX).await?;
        let user = named.iter().filter_map(|(key, _)| {
            let name = std::str::from_utf8(key.get(USER_SPACE_PREFIX.len()..)?).ok()?;
            Some(Space::User(Key::from(name)))
        });
        Ok(Space::ENGINE.into_iter().chain(user).collect())
    }

    /// Nothing is said about the index of labels once an entry of either side cannot be read.
    async fn verify_space(&self, space: &Space, verified: &mut Verified, labels: &mut Option<LabelTally>) {
        let mut from = Vec::new();
        loop {
            let scan = Scan {
                space: space.clone(),
                from,
                to: None,
                limit: PAGE,
            };
            let page = match self.reader.scan(scan).await {
                Ok(page) => page,
                // The next entry cannot be located, so the rest of this keyspace is skipped.
                Err(error) => {
                    labels.take();
                    return verified.add(error.to_string());
                }
            };
            verified.entries += page.len() as u64;
            for (key, value) in &page {
                if let Err(why) = decode(space, key, value, labels.as_mut()) {
                    if matches!(space, Space::Procedures | Space::Live) {
                        labels.take();
                    }
                    verified.add(format!("keyspace \"{}\", {}: {why}", space.name(), describe(key)));
                }
            }
            match page.last() {
                // The smallest greater key is the same with a zero appended.
                Some((last, _)) if page.len() == PAGE => from = [last.as_slice(), &[0]].concat(),
                _ => return,
            }
        }
    }
}

/// Names an entry by the procedure at the beginning of its key, or else by the bytes of the key.
fn describe(key: &[u8]) -> String {
    match keys::parse_procedure(key) {
        Some(id) => format!("entry of {id}"),
        None => format!("entry \"{}\"", key.escape_ascii()),
    }
}

fn decode(space: &Space, key: &[u8], value: &[u8], labels: Option<&mut LabelTally>) -> Result<(), CodecError> {
    let wanted = |is_known: bool| {
        is_known.then_some(()).ok_or_else(|| CodecError {
            what: "its key cannot be read",
            why: "it has no known shape".to_owned(),
        })
    };
    match space {
        Space::Procedures => match (keys::parse_row(key), keys::parse_labels(key)) {
            (Some(id), _) => {
                let row = decode_row(id, value)?;
                if let Some(labels) = labels {
                    labels.add_row(row);
                }
                Ok(())
            }
            (None, Some(id)) => {
                let own = decode_labels(id, value)?;
                if let Some(labels) = labels {
                    labels.add_labels_of(id, &own);
                }
                Ok(())
            }
            (None, None) => wanted(false),
        },
        Space::History => {
            wanted(keys::parse_procedure(key).is_some())?;
            codec::decode::<HistoryEntry>(value).map(drop)
        }
        Space::Signals => {
            wanted(keys::parse_signal(key).is_some())?;
            codec::decode::<StoredSignal>(value).map(drop)
        }
        Space::Keys => codec::decode::<KeyEntry>(value).map(drop),
        Space::Audit => codec::decode::<AuditEntry>(value).map(drop),
        Space::Archive => FamilyExport::from_bytes(value).map(drop),
        Space::Live => match keys::parse_label(key) {
            Some((digest, family)) => {
                labels.into_iter().for_each(|labels| labels.add_entry(digest, family));
                Ok(())
            }
            None => wanted(keys::parse_family(key).is_some()),
        },
        Space::Finished if keys::parse_failure(key).is_some() => codec::decode::<FailureEntry>(value).map(drop),
        Space::Finished => wanted(keys::parse_finished(key).is_some()),
        Space::Payloads => wanted(keys::parse_procedure(key).is_some()),
        Space::User(_) => codec::decode_user::<IgnoredAny>(value).map(drop),
        // Its values have different layouts; a start has already read those that it needs.
        Space::Meta => Ok(()),
    }
}

#[cfg(test)]
mod tests;
