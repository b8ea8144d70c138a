//! One visit to a task: all its tries, over retries, rests and restarts.

use serde::{Deserialize, Serialize};

use crate::saga::status::SagaStatus;

/// A state instance: the task in hand, or the last one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Instance {
    /// The engine's visit with which it began: it names the instance in tokens and notes.
    #[serde(rename = "b")]
    pub(super) began: u32,
    #[serde(rename = "s")]
    pub(super) status: SagaStatus,
    #[serde(rename = "u", default, skip_serializing_if = "is_false")]
    pub(super) is_for_update: bool,
    /// A try is undone if the saga is.
    #[serde(rename = "t", default, skip_serializing_if = "is_false")]
    pub(super) stands: bool,
    /// Some of its sub machines succeeded, whatever it came to itself.
    #[serde(rename = "p", default, skip_serializing_if = "is_false")]
    pub(super) partly: bool,
    /// Tries so far.
    #[serde(rename = "n", default, skip_serializing_if = "is_zero")]
    pub(super) tries: u32,
}

impl Instance {
    pub(super) fn new(began: u32, is_for_update: bool) -> Self {
        Self {
            began,
            status: SagaStatus::Running,
            is_for_update,
            stands: false,
            partly: false,
            tries: 0,
        }
    }

    /// Counts a try that came to this, and returns what the instance has come to. A try in doubt is not taken back: a
    /// later one that fails leaves the instance in doubt.
    pub(super) fn tried(&mut self, status: SagaStatus, is_undone: bool) -> SagaStatus {
        let stays_in_doubt = self.status == SagaStatus::Unknown && status == SagaStatus::Failed;
        if !stays_in_doubt {
            self.status = status;
        }
        self.stands |= is_undone && self.status.has_effect();
        self.status
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) fn is_first(place: &usize) -> bool {
    *place == 0
}
