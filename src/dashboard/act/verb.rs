//! The table of verbs: for each verb of one procedure, the right that it asks for and what must be sent with it.

use procession_kernel::VerbName;

use crate::dashboard::access::Right;

/// What a verb requires.
pub(in crate::dashboard) struct Terms {
    /// The caller's right.
    pub(in crate::dashboard) right: Right,
    /// A reason must be sent, for the audit log.
    pub(super) needs_reason: bool,
    /// What the caller must have seen first.
    pub(super) caution: Caution,
}

/// How far the interface keeps an operator from a slip.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Caution {
    /// It can be taken back, or changes nothing.
    None,
    /// It cannot be taken back: the plan must be seen first.
    Plan,
    /// It gives up what the code would do: the plan must be seen, and the id typed once more.
    PlanAndId,
}

/// Finds a verb of one procedure by its name, with what it requires. The capacity of a limit, submissions and the
/// drain have paths of their own.
pub(in crate::dashboard) fn named(word: &str) -> Option<(VerbName, Terms)> {
    let name: VerbName = word.parse().ok()?;
    let (right, needs_reason, caution) = match name {
        VerbName::Pause | VerbName::Resume | VerbName::RetryNow => (Right::Operate, true, Caution::None),
        VerbName::RetryUndo => (Right::Operate, true, Caution::Plan),
        VerbName::Acknowledge => (Right::Operate, false, Caution::None),
        VerbName::RunAgain => (Right::Operate, true, Caution::None),
        VerbName::Abort => (Right::Abort, true, Caution::Plan),
        VerbName::SkipUndo => (Right::Repair, true, Caution::Plan),
        VerbName::Bypass | VerbName::OverrideResult | VerbName::Discharge => (Right::Repair, true, Caution::PlanAndId),
        // An answer is what the code waits for, so it needs no reason. The question must be seen first.
        VerbName::Decide => (Right::Operate, false, Caution::Plan),
        VerbName::SetPriority => (Right::Configure, true, Caution::None),
        VerbName::Signal => (Right::Submit, false, Caution::None),
        VerbName::Reveal | VerbName::Export => (Right::Payload, true, Caution::None),
        VerbName::SetLimit | VerbName::Submit | VerbName::Drain => return None,
    };
    let terms = Terms {
        right,
        needs_reason,
        caution,
    };
    Some((name, terms))
}
