//! Stored values of an exported family: how large each is, and in full where users' data may be seen.

use procession_actors::FamilyExport;
use procession_actors::journal::{Space, codec, keys};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One stored value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ValueView {
    /// Whose value.
    pub id: String,
    /// Which value: `payload`, `output`, or `submitted`, which is what a root was submitted with before it changed.
    pub part: String,
    /// Its size in bytes.
    pub bytes: usize,
    /// The value itself, where users' data may be seen.
    #[serde(flatten)]
    pub revealed: Option<RevealedView>,
}

/// What users stored: a payload, an output, a signal's payload or a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RevealedView {
    /// The value; `null` also if it is not one that JSON can express.
    pub value: Value,
    /// Its bytes in hexadecimal, if JSON cannot express it.
    pub raw: Option<String>,
}

impl RevealedView {
    /// Reads what users' code encoded.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        match codec::decode_user(bytes) {
            Ok(value) => Self { value, raw: None },
            Err(_) => Self {
                value: Value::Null,
                raw: Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
            },
        }
    }
}

/// Returns what users stored in full, with its size, as documents have it: `size`, `value` and `raw`.
pub(crate) fn revealed(bytes: &[u8]) -> Value {
    let RevealedView { value, raw } = RevealedView::of(bytes);
    json!({ "size": bytes.len(), "value": value, "raw": raw })
}

/// Returns the sizes of the stored values of an exported family, in the order of the journal.
#[must_use]
pub fn values_of(export: &FamilyExport) -> Vec<ValueView> {
    let sizes = stored(export).map(|(value, _)| value);
    sizes.collect()
}

/// Returns the same values in full. They are users' data.
pub fn revealed_values_of(export: &FamilyExport) -> impl Iterator<Item = ValueView> {
    stored(export).map(|(value, bytes)| ValueView {
        revealed: Some(RevealedView::of(bytes)),
        ..value
    })
}

fn stored(export: &FamilyExport) -> impl Iterator<Item = (ValueView, &[u8])> {
    let space = Space::Payloads.name();
    let entries = export.entries.iter().filter(move |entry| entry.space == space);
    entries.filter_map(|entry| {
        let key = entry.key.as_slice();
        let (part, bytes) = match key.last() {
            Some(&keys::OUTPUT) => ("output", entry.value.as_slice()),
            // Two bytes with the schema version of the value go before it.
            Some(&keys::SUBMITTED) => ("submitted", entry.value.as_slice().get(2..)?),
            Some(_) | None => ("payload", entry.value.as_slice()),
        };
        let value = ValueView {
            id: keys::parse_procedure(key)?.to_string(),
            part: part.to_owned(),
            bytes: bytes.len(),
            revealed: None,
        };
        Some((value, bytes))
    })
}
