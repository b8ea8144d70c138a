//! What the hooks of a kind are told, and which hook is meant.

use std::time::Duration;

use procession_kernel::{Cause, Kind, ProcedureId, ProcedureState, Timestamp};

/// What [`Procedure::on_submit`](crate::Procedure::on_submit) is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Submitted {
    /// Who was born.
    pub id: ProcedureId,
    /// When.
    pub at: Timestamp,
}

/// What [`Procedure::on_finish`](crate::Procedure::on_finish) is told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finished {
    /// Who has ended.
    pub id: ProcedureId,
    /// How: `Success`, `RolledBack` or `Failed`.
    pub state: ProcedureState,
    /// Why, unless it succeeded.
    pub cause: Option<Cause>,
    /// Time from its birth to its end, restarts included.
    pub elapsed: Duration,
}

/// One call of a kind's metric hooks.
pub(crate) enum HookCall {
    Submitted(Kind, Submitted),
    Finished(Kind, Finished),
}

impl HookCall {
    pub(crate) const fn kind(&self) -> &Kind {
        match self {
            Self::Submitted(kind, _) | Self::Finished(kind, _) => kind,
        }
    }
}

/// When in the start a recovery hook is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    Before,
    After,
}

impl Moment {
    pub(crate) const fn hook(self) -> &'static str {
        match self {
            Self::Before => "before_recover",
            Self::After => "after_recover",
        }
    }
}
