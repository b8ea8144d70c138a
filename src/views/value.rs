//! Stored values of an exported family: how large each is, and in full where users' data may be seen.

use std::borrow::Cow;

use procession_actors::FamilyExport;
use procession_actors::journal::{Space, codec, keys};
use procession_kernel::ProcedureId;
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
    stored(export).into_iter().map(|(value, _)| value).collect()
}

/// Returns the same values in full. They are users' data.
pub fn revealed_values_of(export: &FamilyExport) -> impl Iterator<Item = ValueView> {
    stored(export).into_iter().map(|(value, bytes)| ValueView {
        revealed: Some(RevealedView::of(&bytes)),
        ..value
    })
}

fn stored(export: &FamilyExport) -> Vec<(ValueView, Cow<'_, [u8]>)> {
    let space = Space::Payloads.name();
    let entries = export.entries.iter().filter(|entry| entry.space == space);
    let under_keys = entries.filter_map(|entry| {
        let id = keys::parse_procedure(entry.key.as_slice())?;
        let (part, bytes) = match entry.key.as_slice().last() {
            Some(&keys::OUTPUT) => ("output", entry.value.as_slice()),
            // Two bytes with the schema version of the value go before it.
            Some(&keys::SUBMITTED) => ("submitted", entry.value.as_slice().get(2..)?),
            Some(_) | None => ("payload", entry.value.as_slice()),
        };
        Some((id, view(id, part, bytes), Cow::Borrowed(bytes)))
    });
    let mut stored: Vec<(ProcedureId, ValueView, Cow<'_, [u8]>)> = under_keys.collect();
    // A small value that the root was submitted with is in the history. It comes where a larger one would.
    if let Some(submitted) = export.submitted_in_history() {
        let root = ProcedureId::root(export.family);
        let bytes = submitted.value.as_slice();
        let first = (root, view(root, "submitted", bytes), Cow::Owned(bytes.to_vec()));
        stored.insert(stored.partition_point(|(id, ..)| *id <= root), first);
    }
    stored.into_iter().map(|(_, value, bytes)| (value, bytes)).collect()
}

fn view(id: ProcedureId, part: &str, bytes: &[u8]) -> ValueView {
    ValueView {
        id: id.to_string(),
        part: part.to_owned(),
        bytes: bytes.len(),
        revealed: None,
    }
}
