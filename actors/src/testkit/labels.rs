//! The index of labels, compared with the rows.

use crate::journal::keys;
use crate::journal::reader::{decode_labels, decode_row};
use crate::journal::store::Entries;
use crate::read::labels::LabelTally;

/// Compares the rows in `procedures` with the index of labels in `live`, both as they are on disk. Where a row cannot be
/// read, nobody knows its labels, and nothing is compared.
///
/// # Errors
///
/// One sentence, if the index has something else than the rows.
pub fn index_agrees(procedures: &Entries, live: &Entries) -> Result<(), String> {
    let mut tally = LabelTally::default();
    for (key, value) in procedures {
        if let Some(id) = keys::parse_labels(key) {
            let Ok(labels) = decode_labels(id, value) else {
                return Ok(());
            };
            tally.add_labels_of(id, &labels);
        } else {
            let row = keys::parse_row(key).and_then(|id| decode_row(id, value).ok());
            let Some(row) = row else { return Ok(()) };
            tally.add_row(row);
        }
    }
    for (key, _) in live {
        if let Some((digest, family)) = keys::parse_label(key) {
            tally.add_entry(digest, family);
        }
    }
    tally.difference().map_or(Ok(()), Err)
}
