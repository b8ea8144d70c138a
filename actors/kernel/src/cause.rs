//! Why something failed, and what of it could not be undone.

use serde::{Deserialize, Serialize};

use crate::id::{Blob, ProcedureId};

/// Why something failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CauseKind {
    /// A stage said so.
    #[serde(rename = "f")]
    Failed,
    /// A stage asked for another attempt, and had no more.
    #[serde(rename = "r")]
    AttemptsExhausted,
    /// User code panicked.
    #[serde(rename = "p")]
    Panicked,
    /// Somebody aborted it.
    #[serde(rename = "a")]
    Aborted,
    /// Its time was up.
    #[serde(rename = "t")]
    TimedOut,
    /// It asked for more than a bound allows.
    #[serde(rename = "b")]
    OverBound,
    /// Its children could no longer meet the join policy.
    #[serde(rename = "j")]
    JoinUnmet,
}

/// Cause of a failure: kind, text, and the procedure in which it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// What sort of failure it is.
    #[serde(rename = "k")]
    pub kind: CauseKind,
    /// What user code, or who aborted, said of it; cut to [`Cause::TEXT_MAX`] bytes.
    #[serde(rename = "t")]
    pub text: String,
    /// The procedure in which it began.
    #[serde(rename = "o")]
    pub origin: ProcedureId,
}

impl Cause {
    /// Longest text kept, in bytes: enough for a chain of errors, little enough for a row.
    pub const TEXT_MAX: usize = 2048;

    /// Makes a cause; the text is cut at a character boundary.
    #[must_use]
    pub fn new(kind: CauseKind, text: impl Into<String>, origin: ProcedureId) -> Self {
        let mut text = text.into();
        text.truncate(cut(&text, Self::TEXT_MAX).len());
        Self { kind, text, origin }
    }
}

/// Gives the beginning of a text, of at most so many bytes, cut at a character boundary.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    text.split_at(text.floor_char_boundary(most)).0
}

/// A stage that was executed and could not be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotUndone {
    /// Whose stage it is.
    #[serde(rename = "m")]
    pub member: u32,
    /// The stage, encoded.
    #[serde(rename = "s")]
    pub stage: Blob,
}
