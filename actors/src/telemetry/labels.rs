//! Values of labels as lists, and the index in them of the engine's own types.

use procession_kernel::{ProcedureState, WaitReason};

use crate::error::SubmitError;

pub(super) const LIVE: [&str; 5] = ["initializing", "runnable", "waiting", "waiting_timeout", "failed"];

/// Returns the index of a state in which a procedure has not ended.
pub(crate) const fn live_place(state: ProcedureState) -> Option<usize> {
    match state {
        ProcedureState::Initializing => Some(0),
        ProcedureState::Runnable => Some(1),
        ProcedureState::Waiting => Some(2),
        ProcedureState::WaitingTimeout => Some(3),
        ProcedureState::Failed => Some(4),
        ProcedureState::RolledBack | ProcedureState::Success => None,
    }
}

pub(super) const WAITS: [&str; 16] = [
    "width",
    "permit",
    "children",
    "timer",
    "event",
    "backoff",
    "queue",
    "suspect",
    "poison",
    "rollback_failed",
    "quarantined",
    "lock",
    "paused",
    "repeat_limit",
    "gate",
    "decision",
];

/// Returns the index of a wait reason.
pub(crate) const fn wait_place(reason: &WaitReason) -> usize {
    match reason {
        WaitReason::Width => 0,
        WaitReason::Permit(_) => 1,
        WaitReason::Children => 2,
        WaitReason::Timer(_) => 3,
        WaitReason::Event(..) => 4,
        WaitReason::Backoff(..) => 5,
        WaitReason::Queue => 6,
        WaitReason::Suspect => 7,
        WaitReason::Poison => 8,
        WaitReason::RollbackFailed => 9,
        WaitReason::Quarantined => 10,
        WaitReason::Lock(_) => 11,
        WaitReason::Paused => 12,
        WaitReason::RepeatLimit => 13,
        WaitReason::Gate => 14,
        WaitReason::Decision(_) => 15,
    }
}

pub(super) const OUTCOMES: [&str; 3] = ["success", "rolled_back", "failed"];

pub(super) const fn outcome_place(state: ProcedureState) -> Option<usize> {
    match state {
        ProcedureState::Success => Some(0),
        ProcedureState::RolledBack => Some(1),
        ProcedureState::Failed => Some(2),
        ProcedureState::Initializing
        | ProcedureState::Runnable
        | ProcedureState::Waiting
        | ProcedureState::WaitingTimeout => None,
    }
}

pub(super) const MAILBOXES: [&str; 5] = ["supervisor", "limiter", "journal", "reader", "worker"];

pub(super) const RULES: [&str; 19] = [
    "overrun",
    "retry_storm",
    "no_progress",
    "lost_wake",
    "deadlock",
    "actor_lost",
    "starved",
    "poison",
    "quarantined",
    "rollback_failed",
    "undecided",
    "unacknowledged_failures",
    "blocked_worker",
    "store_slow",
    "store_unreadable",
    "disk_nearly_full",
    "clock_ahead",
    "store_failed",
    "size",
];

pub(super) const REFUSALS: [&str; 15] = [
    "busy",
    "unknown_kind",
    "key_conflict",
    "bad_key",
    "too_large",
    "batch_too_large",
    "draining",
    "journal_failed",
    "stopped",
    "numbers_exhausted",
    "moved",
    "key_unread",
    "bad_children",
    "bad_name",
    "bad_labels",
];

/// Returns the index of a refusal; `None` for errors that the sender detects before sending.
pub(super) const fn refusal_place(error: &SubmitError) -> Option<usize> {
    match error {
        SubmitError::Busy { .. } => Some(0),
        SubmitError::UnknownKind { .. } => Some(1),
        SubmitError::KeyConflict { .. } | SubmitError::BatchConflict { .. } => Some(2),
        SubmitError::BadKey { .. } => Some(3),
        SubmitError::TooLarge { .. } => Some(4),
        SubmitError::BatchTooLarge { .. } => Some(5),
        SubmitError::BadChildren { .. } => Some(12),
        SubmitError::BadName { .. } => Some(13),
        SubmitError::BadLabels(_) => Some(14),
        SubmitError::Draining => Some(6),
        SubmitError::JournalFailed(_) => Some(7),
        SubmitError::Stopped => Some(8),
        SubmitError::NumbersExhausted => Some(9),
        SubmitError::Moved { .. } => Some(10),
        SubmitError::KeyUnread { .. } => Some(11),
        SubmitError::Unsupported { .. } | SubmitError::Codec(_) => None,
    }
}

/// Kind of a late report whose procedure is no longer known.
pub(super) const UNKNOWN: &str = "unknown";
/// Kind of a refused submission whose kind is not registered.
pub(super) const UNREGISTERED: &str = "unregistered";
/// Stage for all stages beyond the bound.
pub(super) const OTHER: &str = "other";
