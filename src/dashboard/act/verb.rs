//! What can be asked for of one procedure: each verb with the right that it needs, and with
//! what must be sent for it.

use crate::dashboard::access::Right;

/// What can be asked for of one procedure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::dashboard) enum Verb {
    Pause,
    Resume,
    Retry,
    Abort,
    RetryUndo,
    SkipUndo,
    Bypass,
    OverrideResult,
    Discharge,
    Priority,
    Acknowledge,
    Signal,
    Reveal,
    Export,
}

impl Verb {
    /// Every verb.
    const ALL: [Self; 14] = [
        Self::Pause,
        Self::Resume,
        Self::Retry,
        Self::Abort,
        Self::RetryUndo,
        Self::SkipUndo,
        Self::Bypass,
        Self::OverrideResult,
        Self::Discharge,
        Self::Priority,
        Self::Acknowledge,
        Self::Signal,
        Self::Reveal,
        Self::Export,
    ];

    pub(in crate::dashboard) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == word)
    }

    /// Gives its name, as paths have it.
    pub(in crate::dashboard) const fn as_str(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Abort => "abort",
            Self::RetryUndo => "retry-undo",
            Self::SkipUndo => "skip-undo",
            Self::Bypass => "bypass",
            Self::OverrideResult => "override-result",
            Self::Discharge => "discharge",
            Self::Priority => "priority",
            Self::Acknowledge => "acknowledge",
            Self::Signal => "signal",
            Self::Reveal => "reveal",
            Self::Export => "export",
        }
    }

    pub(in crate::dashboard) const fn right(self) -> Right {
        match self {
            Self::Pause | Self::Resume | Self::Retry | Self::RetryUndo | Self::Acknowledge => Right::Operate,
            Self::Abort => Right::Abort,
            Self::SkipUndo | Self::Bypass | Self::OverrideResult | Self::Discharge => Right::Repair,
            Self::Priority => Right::Configure,
            Self::Signal => Right::Submit,
            Self::Reveal | Self::Export => Right::Payload,
        }
    }

    /// Tells whether a plan must be seen first: what it does cannot be taken back.
    pub(super) const fn needs_plan(self) -> bool {
        match self {
            Self::Abort | Self::RetryUndo | Self::SkipUndo => true,
            Self::Bypass | Self::OverrideResult | Self::Discharge => true,
            Self::Pause | Self::Resume | Self::Retry | Self::Priority => false,
            Self::Acknowledge | Self::Signal | Self::Reveal | Self::Export => false,
        }
    }

    /// Tells whether the id must be typed once more.
    pub(super) const fn needs_id(self) -> bool {
        matches!(self, Self::Bypass | Self::OverrideResult | Self::Discharge)
    }

    /// Tells whether it needs a reason: a sender gives none.
    pub(super) const fn needs_reason(self) -> bool {
        !matches!(self, Self::Acknowledge | Self::Signal)
    }
}
