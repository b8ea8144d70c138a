//! Why a member stopped or failed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::saga::service::FaultRecord;

/// Most bytes of a text that a row keeps of an error.
const TEXT_MAX: usize = 2_048;

/// Codes that Seata gives to what its engine finds. A Fail has a code of its own.
pub(super) mod code {
    /// No entry of a Choice is true, and it has no `Default`.
    pub(in crate::saga) const NO_CHOICE: &str = "StateMachineNoChoiceMatched";
    /// An expression has no value.
    pub(in crate::saga) const ASSIGN: &str = "VariablesAssignError";
    /// No key of `Status` is true.
    pub(in crate::saga) const NO_STATUS: &str = "NoMatchedStatus";
    /// A time-out of the machine, or of a Fork.
    pub(in crate::saga) const TIMEOUT: &str = "StateMachineExecutionTimeout";
    /// A state that took effect has nothing that undoes it.
    pub(in crate::saga) const NO_COMPENSATOR: &str = "CompensationStateNotFound";
    /// A bound of the engine was met.
    pub(in crate::saga) const BOUND: &str = "OverBound";
}

/// What went wrong in a saga.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SagaError {
    /// The `ErrorCode` of the Fail at which it ended; otherwise Seata's code for what happened, such as
    /// `StateMachineNoChoiceMatched` or `VariablesAssignError`.
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The `Message` of the Fail; otherwise what happened, in words.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The class of the fault that a call failed with.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The message of that fault.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// The state at which it happened.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl SagaError {
    pub(super) fn new(code: &str, message: impl Into<String>, state: &str) -> Self {
        Self {
            code: Some(code.to_owned()),
            message: Some(cut(message.into())),
            state: Some(state.to_owned()),
            ..Self::default()
        }
    }

    /// A bound of the engine was met.
    pub(super) fn is_over_bound(&self) -> bool {
        self.code.as_deref() == Some(code::BOUND)
    }

    /// A call failed at this state.
    pub(super) fn of_fault(fault: &FaultRecord, state: &str) -> Self {
        Self {
            class: Some(fault.class.clone()),
            fault: Some(fault.message.clone()),
            state: Some(state.to_owned()),
            ..Self::default()
        }
    }

    /// The engine's time limit for the whole saga has passed.
    pub(in crate::saga) fn timed_out(text: &str) -> Self {
        Self {
            code: Some(code::TIMEOUT.to_owned()),
            message: Some(cut(text.to_owned())),
            ..Self::default()
        }
    }

    /// A Fail gives code and message to what went wrong before.
    pub(super) fn end_at(&mut self, code: Option<&str>, message: Option<&str>, state: &str) {
        self.code = code.map(str::to_owned);
        self.message = message.map(|message| cut(message.to_owned()));
        self.state.get_or_insert_with(|| state.to_owned());
    }
}

impl fmt::Display for SagaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(state) = &self.state {
            write!(f, "state [{state}]: ")?;
        }
        let parts = [&self.code, &self.message, &self.class, &self.fault];
        let mut parts = parts.into_iter().flatten();
        match parts.next() {
            Some(first) => f.write_str(first)?,
            None => return f.write_str("it failed without a code"),
        }
        parts.try_for_each(|part| write!(f, ": {part}"))
    }
}

pub(super) fn cut(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(TEXT_MAX));
    text
}
