//! What the hooks of a kind receive, and which hook is meant.

use std::time::Duration;

use procession_kernel::{Cause, Kind, ProcedureId, ProcedureState, Timestamp};

/// The argument of [`Procedure::on_submit`](crate::Procedure::on_submit).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Submitted {
    /// The procedure that was born.
    pub id: ProcedureId,
    /// Its kind, for types that are registered as several.
    pub kind: Kind,
    /// When it was born.
    pub at: Timestamp,
}

/// The argument of [`Procedure::on_finish`](crate::Procedure::on_finish).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// The procedure that has ended.
    pub id: ProcedureId,
    /// Its kind, for types that are registered as several.
    pub kind: Kind,
    /// How it ended: `Success`, `RolledBack` or `Failed`.
    pub state: ProcedureState,
    /// Why it failed; `None` after a success.
    pub cause: Option<Cause>,
    /// Time from birth to end, including restarts.
    pub elapsed: Duration,
}

/// One call of a kind's metric hooks.
pub(crate) enum HookCall {
    Submitted(Submitted),
    Finished(Finished),
}

impl HookCall {
    pub(crate) const fn kind(&self) -> &Kind {
        match self {
            Self::Submitted(submitted) => &submitted.kind,
            Self::Finished(finished) => &finished.kind,
        }
    }
}

/// The point of the start at which a recovery hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HookPoint {
    Before,
    After,
}

impl HookPoint {
    pub(crate) const fn hook(self) -> &'static str {
        match self {
            Self::Before => "before_recover",
            Self::After => "after_recover",
        }
    }
}
