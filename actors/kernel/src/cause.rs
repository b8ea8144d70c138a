//! Why a procedure failed, and which of its stages could not be undone.

use serde::{Deserialize, Serialize};

use crate::id::{Blob, ProcedureId};

/// Kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum CauseKind {
    /// A stage reported the failure.
    #[serde(rename = "f")]
    Failed,
    /// A stage asked for another attempt and had none left.
    #[serde(rename = "r")]
    AttemptsExhausted,
    /// User code panicked.
    #[serde(rename = "p")]
    Panicked,
    /// An operator or a caller aborted the procedure.
    #[serde(rename = "a")]
    Aborted,
    /// The procedure's deadline passed.
    #[serde(rename = "t")]
    TimedOut,
    /// The procedure exceeded a bound.
    #[serde(rename = "b")]
    OverBound,
    /// The children could no longer meet the join policy.
    #[serde(rename = "j")]
    JoinUnmet,
    /// A child's gate could no longer open, so the child was never called.
    #[serde(rename = "g")]
    GateShut,
    /// The last attempt of a stage exceeded a time limit of the stage, or of a part of it.
    #[serde(rename = "l")]
    StageTimedOut,
}

/// Cause of a failure: its kind, its text, and the procedure in which it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cause {
    /// Kind of the failure.
    #[serde(rename = "k")]
    pub kind: CauseKind,
    /// Text given by user code, or by the operator who aborted; cut to [`Cause::TEXT_MAX`] bytes.
    #[serde(rename = "t")]
    pub text: String,
    /// Procedure in which the failure began.
    #[serde(rename = "o")]
    pub origin: ProcedureId,
}

impl Cause {
    /// Longest text kept, in bytes: enough for a chain of errors, little enough for a row.
    pub const TEXT_MAX: usize = 2048;

    /// Creates a cause. The text is cut at a character boundary.
    #[must_use]
    pub fn new(kind: CauseKind, text: impl Into<String>, origin: ProcedureId) -> Self {
        let mut text = text.into();
        text.truncate(cut(&text, Self::TEXT_MAX).len());
        Self { kind, text, origin }
    }
}

/// Returns at most the first `most` bytes of a text, cut at a character boundary.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    text.split_at(text.floor_char_boundary(most)).0
}

/// An executed stage that could not be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotUndone {
    /// Member number of the procedure that executed the stage.
    #[serde(rename = "m")]
    pub member: u32,
    /// The encoded stage.
    #[serde(rename = "s")]
    pub stage: Blob,
}

impl NotUndone {
    /// Creates the note that this member's stage could not be undone.
    #[must_use]
    pub const fn new(member: u32, stage: Blob) -> Self {
        Self { member, stage }
    }
}
