//! What the states of a member have come to so far, in a few bytes.

use serde::{Deserialize, Serialize};

use super::instance::Instance;
use crate::saga::status::SagaStatus;

/// The sum of all state instances of a member but the newest. It does not grow with their number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    /// Bits of `UNKNOWN` to `UPDATES`.
    #[serde(rename = "f")]
    flags: u8,
    /// Instances that took effect, or may have, and are undone if the saga is.
    #[serde(rename = "n")]
    stands: u32,
}

/// One is in doubt.
const UNKNOWN: u8 = 1;
/// One failed.
const FAILED: u8 = 2;
/// One that is for an update succeeded, or was skipped.
const EFFECT: u8 = 4;
/// One is for an update, whatever it came to.
const UPDATES: u8 = 8;
/// One that is for an update is in doubt.
const DOUBTFUL_UPDATE: u8 = 16;

impl Tally {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Counts an instance that will not be tried again.
    pub(super) fn add(&mut self, instance: &Instance) {
        self.stands = self.stands.saturating_add(u32::from(instance.stands));
        self.flags |= flags_of(instance);
    }

    /// Counts what another member has counted.
    pub(super) fn merge(&mut self, other: Self) {
        self.stands = self.stands.saturating_add(other.stands);
        self.flags |= other.flags;
    }

    /// Returns this sum with one instance more.
    pub(super) fn with(mut self, newest: Option<&Instance>) -> Self {
        if let Some(instance) = newest {
            self.add(instance);
        }
        self
    }

    /// Returns how many instances are undone if the saga is.
    pub(super) const fn stands(&self) -> u32 {
        self.stands
    }

    pub(super) const fn updates(&self) -> bool {
        self.flags & UPDATES != 0
    }

    /// A person says that what is in doubt counts as skipped.
    pub(super) fn skip_doubts(&mut self) {
        if self.flags & DOUBTFUL_UPDATE != 0 {
            self.flags |= EFFECT;
        }
        self.flags &= !(UNKNOWN | DOUBTFUL_UPDATE);
    }

    /// Returns what a member comes to that ends here.
    pub(super) const fn status(&self) -> SagaStatus {
        if self.flags & UNKNOWN != 0 {
            SagaStatus::Unknown
        } else if self.flags & FAILED == 0 {
            SagaStatus::Success
        } else if self.flags & EFFECT != 0 {
            SagaStatus::Unknown
        } else {
            SagaStatus::Failed
        }
    }

    /// Returns what a member comes to that ends by a Fail, or stops here.
    pub(super) const fn status_of_failure(&self) -> SagaStatus {
        match self.status() {
            SagaStatus::Success if self.updates() => SagaStatus::Unknown,
            SagaStatus::Success => SagaStatus::Failed,
            status @ (SagaStatus::Unknown | SagaStatus::Failed | SagaStatus::Running | SagaStatus::Skipped) => status,
        }
    }
}

fn flags_of(instance: &Instance) -> u8 {
    let of_status = match instance.status {
        SagaStatus::Unknown | SagaStatus::Running => UNKNOWN,
        SagaStatus::Failed => FAILED,
        SagaStatus::Success | SagaStatus::Skipped => 0,
    };
    let of_update = match (instance.is_for_update, instance.status) {
        (false, _) => 0,
        (true, SagaStatus::Success | SagaStatus::Skipped) => UPDATES | EFFECT,
        (true, SagaStatus::Unknown | SagaStatus::Running) => UPDATES | DOUBTFUL_UPDATE,
        (true, SagaStatus::Failed) => UPDATES,
    };
    let of_parts = if instance.partly { UPDATES | EFFECT } else { 0 };
    of_status | of_update | of_parts
}
