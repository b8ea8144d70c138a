//! What a stage leaves in its history entry: the state instance that lists show, and that its undo goes by.

use serde::{Deserialize, Serialize};

use super::instance::is_false;
use crate::saga::service::FaultRecord;
use crate::saga::status::SagaStatus;

/// Longest message of a fault in a note, in bytes.
const MESSAGE_MAX: usize = 200;
/// Most names of states in a note.
const ROUTED_MAX: usize = 32;

/// The note of one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::saga) struct Note {
    /// The task, where the stage is named otherwise.
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::saga) task: Option<String>,
    /// What the try came to. None where no task was called.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::saga) status: Option<SagaStatus>,
    /// The visit that began the instance, if it was an earlier one.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::saga) began: Option<u32>,
    /// The stage rested or slept, so another try of the instance may have come after it.
    #[serde(rename = "a", default, skip_serializing_if = "is_false")]
    pub(in crate::saga) again: bool,
    /// States through which it went on, and the end that it came to.
    #[serde(rename = "r", default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::saga) routed: Vec<String>,
    /// Class and message of a fault.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::saga) fault: Option<(String, String)>,
    /// Variables that more than one branch has written.
    #[serde(rename = "v", default, skip_serializing_if = "Vec::is_empty")]
    pub(in crate::saga) twice: Vec<String>,
}

impl Note {
    pub(super) fn set_fault(&mut self, fault: &FaultRecord) {
        self.fault = Some(short(fault));
    }

    pub(super) fn route(&mut self, state: &str) {
        if self.routed.len() < ROUTED_MAX {
            self.routed.push(state.to_owned());
        }
    }
}

/// What an undo leaves: the compensator that it called, or why it called none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::saga) struct UndoNote {
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::saga) compensator: Option<String>,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::saga) fault: Option<(String, String)>,
    /// A person has skipped an undo that includes this one, so nothing is undone.
    #[serde(rename = "p", default, skip_serializing_if = "is_false")]
    pub(in crate::saga) passed_over: bool,
    /// Why the compensator's Output is not in the context, if it does not fit.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    pub(in crate::saga) left_out: Option<String>,
}

impl UndoNote {
    pub(super) fn new(compensator: &str, fault: Option<&FaultRecord>) -> Self {
        Self {
            compensator: Some(compensator.to_owned()),
            fault: fault.map(short),
            ..Self::default()
        }
    }

    pub(super) fn left_out(self, why: String) -> Self {
        Self {
            left_out: Some(why),
            ..self
        }
    }

    pub(super) fn passed_over() -> Self {
        Self {
            passed_over: true,
            ..Self::default()
        }
    }
}

fn short(fault: &FaultRecord) -> (String, String) {
    let end = fault.message.floor_char_boundary(MESSAGE_MAX);
    let message = fault.message.get(..end).unwrap_or_default();
    (fault.class.clone(), message.to_owned())
}
