//! One stored value of an exported procedure. Its size alone is shown.

use procession_actors::FamilyExport;
use procession_actors::journal::{Space, keys};
use serde::{Deserialize, Serialize};

/// One stored value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ValueView {
    /// Whose value.
    pub id: String,
    /// Which value: `payload` or `output`.
    pub part: String,
    /// Its size in bytes.
    pub bytes: usize,
}

/// Returns the stored values of an exported family, in the order of the journal.
#[must_use]
pub fn values_of(export: &FamilyExport) -> Vec<ValueView> {
    let space = Space::Payloads.name();
    let entries = export.entries.iter().filter(|entry| entry.space == space);
    let values = entries.filter_map(|entry| {
        let key = entry.key.as_slice();
        let part = if key.last() == Some(&keys::OUTPUT) {
            "output"
        } else {
            "payload"
        };
        Some(ValueView {
            id: keys::parse_procedure(key)?.to_string(),
            part: part.to_owned(),
            bytes: entry.value.len(),
        })
    });
    values.collect()
}
