//! What states and machines come to.

use std::fmt;

use procession_saga_language::definition;
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

/// A call that its definition calls running has answered, and how it stands is not known.
impl From<definition::Status> for SagaStatus {
    fn from(status: definition::Status) -> Self {
        match status {
            definition::Status::Success => Self::Success,
            definition::Status::Failed => Self::Failed,
            definition::Status::Unknown | definition::Status::Running => Self::Unknown,
            definition::Status::Skipped => Self::Skipped,
        }
    }
}
