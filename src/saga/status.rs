//! What states and machines come to.

use std::fmt;

use procession_saga_language::definition::Status;
use serde::{Deserialize, Serialize};

/// What a state, or a saga as a whole, has come to. The names are those of Seata's state language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum SagaStatus {
    /// `RU`: it runs.
    #[serde(rename = "RU")]
    Running,
    /// `SU`: it took effect.
    #[serde(rename = "SU")]
    Success,
    /// `FA`: it failed, and took no effect.
    #[serde(rename = "FA")]
    Failed,
    /// `UN`: it failed, and may have taken effect. It is in doubt.
    #[serde(rename = "UN")]
    Unknown,
    /// `SK`: a person skipped it.
    #[serde(rename = "SK")]
    Skipped,
}

impl SagaStatus {
    /// Returns the word of the state language: `SU`, `FA`, `UN`, `SK` or `RU`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "RU",
            Self::Success => "SU",
            Self::Failed => "FA",
            Self::Unknown => "UN",
            Self::Skipped => "SK",
        }
    }

    /// Returns what a definition's word means for a call that has answered. Of one that is called running it is not known
    /// how it stands.
    pub(super) const fn answered(status: Status) -> Self {
        match status {
            Status::Success => Self::Success,
            Status::Failed => Self::Failed,
            Status::Unknown | Status::Running => Self::Unknown,
            Status::Skipped => Self::Skipped,
        }
    }

    /// Returns whether it took effect, or may have.
    pub(super) const fn has_effect(self) -> bool {
        matches!(self, Self::Success | Self::Unknown)
    }
}

impl fmt::Display for SagaStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
