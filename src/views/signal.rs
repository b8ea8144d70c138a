//! One signal that was delivered to a procedure. Its payload is not shown.

use procession_kernel::{ProcedureId, SignalEntry};
use serde::{Deserialize, Serialize};

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
}

impl SignalView {
    /// Shows one signal of a procedure.
    #[must_use]
    pub fn new(id: ProcedureId, number: u32, entry: &SignalEntry) -> Self {
        Self {
            id: id.to_string(),
            number,
            name: entry.name.to_string(),
            key: entry.key.as_ref().map(ToString::to_string),
            consumed: entry.consumed,
        }
    }
}
