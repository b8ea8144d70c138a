//! What an idempotency key stands for.

use procession_kernel::{KeyEntry, ProcedureId, Timestamp};

use super::Status;

/// The procedure that was submitted with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyedProcedure {
    /// It has not ended. It may wait, and its family may be quarantined: the status says so.
    Live(Status),
    /// It has ended, and its result is still there.
    Ended(Status),
    /// Its result has gone. The key is kept longer, so a repeated submission still starts nothing.
    Gone {
        /// Its id.
        id: ProcedureId,
        /// Until when the key is kept. `None` if the result went while it was looked up, and the key with it.
        until: Option<Timestamp>,
    },
}

impl KeyedProcedure {
    /// Puts together what a key stands for, and how that stands if it is still there.
    #[must_use]
    pub fn of(entry: &KeyEntry, status: Option<Status>) -> Self {
        match status {
            Some(status) if status.ended.is_none() => Self::Live(status),
            Some(status) => Self::Ended(status),
            None => Self::Gone {
                id: entry.id,
                until: entry.until,
            },
        }
    }

    /// Returns the procedure's id.
    #[must_use]
    pub const fn id(&self) -> ProcedureId {
        match self {
            Self::Live(status) | Self::Ended(status) => status.id,
            Self::Gone { id, .. } => *id,
        }
    }

    /// Returns a word for how it stands: `live`, `ended` or `gone`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Live(_) => "live",
            Self::Ended(_) => "ended",
            Self::Gone { .. } => "gone",
        }
    }

    /// Returns until when the key is kept, if its result has gone.
    #[must_use]
    pub const fn key_until(&self) -> Option<Timestamp> {
        match self {
            Self::Live(_) | Self::Ended(_) => None,
            Self::Gone { until, .. } => *until,
        }
    }

    /// Returns its status, unless its result has gone.
    #[must_use]
    pub const fn status(&self) -> Option<&Status> {
        match self {
            Self::Live(status) | Self::Ended(status) => Some(status),
            Self::Gone { .. } => None,
        }
    }
}
