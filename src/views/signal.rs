//! One signal that was delivered to a procedure. Of its payload the size alone is shown.

use procession_actors::FamilyExport;
use procession_actors::error::CodecError;
use procession_actors::view::SignalSummary;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::revealed;

/// One signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SignalView {
    /// To whom it was sent.
    pub id: String,
    /// Its number, in the order of delivery.
    pub number: u32,
    /// Name of the event.
    pub name: String,
    /// The sender's key.
    pub key: Option<String>,
    /// A stage has taken it.
    pub consumed: bool,
    /// What is shown of its payload: `redacted`, and its `size` in bytes, unless the host shows something else.
    #[serde(default)]
    pub payload: Value,
}

impl SignalView {
    /// Returns the bytes of its payload, if they are told.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.payload.get("size")?.as_u64()
    }
}

impl From<&SignalSummary> for SignalView {
    fn from(signal: &SignalSummary) -> Self {
        Self {
            id: signal.id.to_string(),
            number: signal.number,
            name: signal.entry.name.to_string(),
            key: signal.entry.key.as_ref().map(ToString::to_string),
            consumed: signal.entry.consumed,
            payload: json!({ "redacted": true, "size": signal.size }),
        }
    }
}

/// Returns the stored signals of an exported family. Of their payloads the sizes alone are shown.
///
/// # Errors
///
/// [`CodecError`] if a signal cannot be decoded.
pub fn signals_of(export: &FamilyExport) -> Result<Vec<SignalView>, CodecError> {
    let signals = export.signals()?;
    Ok(signals.iter().map(|(signal, _)| SignalView::from(signal)).collect())
}

/// Returns the same signals with their payloads in full: `size`, `value`, and `raw` bytes in hexadecimal if JSON cannot
/// express the value. They are users' data.
///
/// # Errors
///
/// [`CodecError`] if a signal cannot be decoded.
pub fn revealed_signals_of(export: &FamilyExport) -> Result<Vec<SignalView>, CodecError> {
    let signals = export.signals()?;
    let shown = signals.iter().map(|(signal, payload)| SignalView {
        payload: revealed(payload.as_slice()),
        ..SignalView::from(signal)
    });
    Ok(shown.collect())
}
