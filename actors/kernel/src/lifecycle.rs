//! The states of a procedure, and the single table of legal transitions.
//!
//! ```text
//! Initializing ─▶ Runnable ⇄ Waiting | WaitingTimeout ─▶ Success
//!       │             │               │                      │ compensated
//!       └─────────────┴───── Failed ──┴──▶ RolledBack ◀──────┘
//! ```
//! A `Failed` procedure still faces its rollback; the state is final only for a kind without rollback. An operator's
//! bypass leads from any state to a final one.

use std::fmt;

use serde::{Deserialize, Serialize};

/// State of a procedure, after HBase's `ProcedureState`.
///
/// Append-only: the short names are on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ProcedureState {
    /// Born, and not yet started: held back by a width, a permit or a lock.
    #[serde(rename = "I")]
    Initializing,
    /// Its next stage runs or is queued.
    #[serde(rename = "R")]
    Runnable,
    /// Waits for its children.
    #[serde(rename = "W")]
    Waiting,
    /// Waits for a timer or an event.
    #[serde(rename = "T")]
    WaitingTimeout,
    /// Every executed stage that can be undone has been undone.
    #[serde(rename = "B")]
    RolledBack,
    /// Ended with an output.
    #[serde(rename = "S")]
    Success,
    /// Failed: its rollback is pending, or its kind has none.
    #[serde(rename = "F")]
    Failed,
}

impl ProcedureState {
    /// All states, in the order of the table.
    pub const ALL: [Self; 7] = [
        Self::Initializing,
        Self::Runnable,
        Self::Waiting,
        Self::WaitingTimeout,
        Self::Failed,
        Self::RolledBack,
        Self::Success,
    ];

    /// Returns `true` if one commit may lead from this state to `next`.
    #[must_use]
    pub const fn may_become(self, next: Self) -> bool {
        use ProcedureState as S;
        match self {
            S::Initializing => matches!(
                next,
                S::Initializing | S::Runnable | S::Failed | S::RolledBack | S::Success
            ),
            S::Runnable => !matches!(next, S::Initializing),
            S::Waiting => matches!(next, S::Waiting | S::Runnable | S::Failed | S::RolledBack | S::Success),
            S::WaitingTimeout => matches!(
                next,
                S::WaitingTimeout | S::Runnable | S::Failed | S::RolledBack | S::Success
            ),
            S::Failed => matches!(next, S::Failed | S::RolledBack | S::Success),
            S::Success => matches!(next, S::Success | S::RolledBack),
            S::RolledBack => matches!(next, S::RolledBack),
        }
    }

    /// Returns `true` for the states in which a procedure ends that did not succeed. One in the state `Failed` may not
    /// have ended yet.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::RolledBack)
    }

    /// Returns the table of legal transitions as `docs/reference/lifecycle.md` shows it.
    #[must_use]
    pub fn table() -> String {
        let mut table = String::from("| from \\ to |");
        for to in Self::ALL {
            table.push_str(&format!(" {to} |"));
        }
        table.push_str("\n|---|");
        table.push_str(&"---|".repeat(Self::ALL.len()));
        for from in Self::ALL {
            table.push_str(&format!("\n| {from} |"));
            for to in Self::ALL {
                let legal = if from.may_become(to) { " yes |" } else { " – |" };
                table.push_str(legal);
            }
        }
        table
    }
}

impl fmt::Display for ProcedureState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}
