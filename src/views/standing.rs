//! How a procedure stands, in the words of the page. Columns of the command line and plans use the same words.

use procession_kernel::{ProcedureState, StateSnapshot, WaitReason};

use super::procedure::ProcedureView;
use super::words::Reason;

/// A failed procedure that has not ended.
const ROLLING_BACK: &str = "rolling back";

impl Reason {
    /// Returns how a procedure stands that does not run for this reason.
    #[must_use]
    pub const fn standing(self) -> &'static str {
        match self {
            Self::Lock => "waiting · lock",
            Self::Permit => "waiting · permit",
            Self::Children => "waiting · children",
            Self::Event => "waiting · event",
            Self::Timer => "waiting · timer",
            Self::Gate => "waiting · gate",
            Self::Width => "waiting · width",
            Self::Queue => "queued",
            Self::Suspect => "queued · suspect",
            Self::Backoff => "retrying",
            Self::Paused => "paused",
            Self::Poison => "poison",
            Self::RepeatLimit => "repeat limit",
            Self::RollbackFailed => "rollback failed",
            Self::Decision => "asks",
            Self::Quarantined => "quarantined",
        }
    }
}

impl ProcedureView {
    /// Returns how it stands, in a word or two, such as `running`, `waiting · event` or `rolled back`.
    #[must_use]
    pub fn standing(&self) -> String {
        let state = state_named(&self.state);
        let word = match (self.reason, &self.ended, state) {
            (Some(Reason::Quarantined), ..) => Reason::Quarantined.standing(),
            (Some(reason), None, _) => reason.standing(),
            (None, None, Some(ProcedureState::Failed)) => ROLLING_BACK,
            (None, None, _) if self.going => "running",
            (_, _, Some(state)) => state_word(state),
            // A state of a later release.
            (_, _, None) => &self.state,
        };
        match (&self.mark, &self.ended) {
            (Some(mark), Some(_)) => format!("{word} · {mark}"),
            (Some(_), None) | (None, _) => word.to_owned(),
        }
    }
}

fn state_named(name: &str) -> Option<ProcedureState> {
    ProcedureState::ALL.into_iter().find(|state| state.to_string() == name)
}

/// Returns the words for a state that the API names, such as `rolled back` for `rolled_back`. The name of a state of a
/// later release stays as it is.
#[must_use]
pub fn state_words(name: &str) -> &str {
    match state_named(name) {
        Some(state) => state_word(state),
        None => name,
    }
}

const fn state_word(state: ProcedureState) -> &'static str {
    match state {
        ProcedureState::Initializing => "initializing",
        ProcedureState::Runnable => "runnable",
        ProcedureState::Waiting | ProcedureState::WaitingTimeout => "waiting",
        ProcedureState::Failed => "failed",
        ProcedureState::RolledBack => "rolled back",
        ProcedureState::Success => "success",
    }
}

/// Says how a procedure stood before an act, or stands after it.
#[must_use]
pub fn snapshot_words(snapshot: &StateSnapshot) -> String {
    match &snapshot.wait {
        // These name what is waited for.
        Some(
            wait @ (WaitReason::Lock(_) | WaitReason::Permit(_) | WaitReason::Event(..) | WaitReason::Backoff(..)),
        ) => format!("{} ({wait})", Reason::from(wait).standing()),
        Some(wait) => Reason::from(wait).standing().to_owned(),
        None if snapshot.state == ProcedureState::Failed && !snapshot.ended => ROLLING_BACK.to_owned(),
        None if snapshot.in_flight => "running".to_owned(),
        None => state_word(snapshot.state).to_owned(),
    }
}

#[cfg(test)]
mod tests;
