//! The states of a node, and how they are read off its row. Whether a gate can still open is in `reading`.

use std::fmt;

use procession_actors::view::Status;
use procession_kernel::{ProcedureState, WaitReason};
use serde::{Deserialize, Serialize};

/// The state of a node. SUCCESS, ERROR and CANCELLED are final.
///
/// It is a reading of what is stored, and nothing of its own. So it is right after any crash, and a whole branch that
/// waits for one node changes with that node's row alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum NodeState {
    /// Waits for its parents, and one of them will move by itself.
    Wait,
    /// May run, and waits for a place in the width, a permit, a lock, the next attempt, or a resume.
    Ready,
    /// Is called, or has parked itself until it is notified.
    Running,
    /// Waits for a person: it asks, or its parents can no longer let it begin unless somebody decides.
    Pending,
    /// Has succeeded, by its code or by a person.
    Success,
    /// Has failed.
    Error,
    /// Has ended with its set, without an end of its own.
    Cancelled,
}

impl NodeState {
    /// All states, in the order of a node's life.
    pub const ALL: [Self; 7] = [
        Self::Wait,
        Self::Ready,
        Self::Running,
        Self::Pending,
        Self::Success,
        Self::Error,
        Self::Cancelled,
    ];

    /// Returns `true` if it can no longer change.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Success | Self::Error | Self::Cancelled)
    }
}

impl fmt::Display for NodeState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Wait => "WAIT",
            Self::Ready => "READY",
            Self::Running => "RUNNING",
            Self::Pending => "PENDING",
            Self::Success => "SUCCESS",
            Self::Error => "ERROR",
            Self::Cancelled => "CANCELLED",
        })
    }
}

/// Reads the state of a node off its own row. A node at its gate reads WAIT.
pub(super) fn state_by_itself(status: &Status) -> NodeState {
    if status.ended.is_some() {
        if status.state == ProcedureState::Success {
            return NodeState::Success;
        }
        return failed_state(status);
    }
    if status.going {
        return NodeState::Running;
    }
    match &status.wait {
        Some(WaitReason::Gate) => NodeState::Wait,
        Some(WaitReason::Decision(_) | WaitReason::Poison | WaitReason::RollbackFailed | WaitReason::RepeatLimit) => {
            NodeState::Pending
        }
        // Of a procedure as a node these are part of its run, and so is its rollback.
        Some(WaitReason::Children | WaitReason::Timer(_) | WaitReason::Event(..)) => NodeState::Running,
        _ if has_failed(status) => NodeState::Running,
        Some(
            WaitReason::Width
            | WaitReason::Permit(_)
            | WaitReason::Backoff(..)
            | WaitReason::Queue
            | WaitReason::Suspect
            | WaitReason::Lock(_)
            | WaitReason::Paused
            | WaitReason::Quarantined,
        )
        | None => NodeState::Ready,
    }
}

/// Returns `true` if a node has failed, and its rollback or that of its family is not over.
pub(super) fn has_failed(status: &Status) -> bool {
    status.state == ProcedureState::Failed && !status.going && status.ended.is_none()
}

/// Returns how a node reads that has not succeeded. One that ends with its family has no cause of its own.
pub(super) fn failed_state(status: &Status) -> NodeState {
    if status.cause.is_some() {
        NodeState::Error
    } else {
        NodeState::Cancelled
    }
}

/// Returns why a node failed, or what it asks.
pub(super) fn cause_of(status: &Status) -> Option<&str> {
    let cause = status.cause.as_ref().map(|cause| cause.text.as_str());
    status.question.as_deref().or(cause)
}
