//! Errors: one type for each moment at which something can be refused.

use procession_actors::{AskError, CodecError, ReadError, StageError};
use procession_kernel::Cause;

use super::check::Problem;
use super::state::NodeState;
use super::stream::StreamName;

/// Problems that a [`BuildError`] lists.
pub(super) const PROBLEMS_MAX: usize = 20;

/// Names that a text lists; a set may have 100,000.
const NAMES_LISTED: usize = 20;

/// Lists the first of these names, and how many more there are.
pub(super) fn listed(names: &[String], between: &str) -> String {
    let first = names.get(..NAMES_LISTED).unwrap_or(names).join(between);
    match names.len().saturating_sub(NAMES_LISTED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

/// Why a set cannot be built: everything that is wrong with it, in the order of its nodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub struct BuildError {
    /// The first 20 problems.
    pub problems: Vec<Problem>,
    /// How many more there are.
    pub more: usize,
}

impl BuildError {
    fn text(&self) -> String {
        let mut text = self
            .problems
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join("; ");
        if self.more > 0 {
            text.push_str(&format!("; and {} more", self.more));
        }
        text
    }
}

/// Why a set, or one of its nodes, could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// The set has no node of this name.
    #[error("the set has no node \"{name}\"")]
    UnknownNode {
        /// The name.
        name: String,
    },
    /// The node is not one of this processor.
    #[error("node \"{name}\" is one of \"{found}\", not of \"{expected}\"")]
    OtherProcessor {
        /// The node.
        name: String,
        /// The processor that was named.
        expected: String,
        /// That of the node.
        found: String,
    },
    /// The node has ended without an output.
    #[error("node \"{name}\" has no output: it is {state}{}", cause_text(.cause.as_deref()))]
    NoOutput {
        /// The node.
        name: String,
        /// How it ended.
        state: NodeState,
        /// Why, if it failed.
        cause: Option<String>,
    },
    /// The set was stopped by a node's failure, or cancelled.
    #[error("the set was stopped: {}", .cause.text)]
    Stopped {
        /// Why.
        cause: Cause,
    },
    /// The engine did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// The output is not of the processor's type.
    #[error(transparent)]
    Codec(#[from] CodecError),
}

/// Why a person's decision about a node was not carried out. Nothing has changed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The set has no node of this name.
    #[error("the set has no node \"{name}\"")]
    UnknownNode {
        /// The name.
        name: String,
    },
    /// The node does not wait for a decision.
    #[error("node \"{name}\" is {state}, not PENDING")]
    NotPending {
        /// The node.
        name: String,
        /// Its state.
        state: NodeState,
    },
    /// The output is not one of the node's processor.
    #[error("the output given is not one of \"{processor}\": {why}")]
    WrongOutput {
        /// The node's processor.
        processor: String,
        /// What is wrong with it.
        why: String,
    },
    /// No node of the stream asks.
    #[error("stream {stream} asks nothing")]
    AsksNothing {
        /// The stream.
        stream: StreamName,
    },
    /// The node has ended, or there is none at this place.
    #[error("stream {stream} has no node at place {place} that has yet to end")]
    Passed {
        /// The stream.
        stream: StreamName,
        /// The place.
        place: u32,
    },
    /// The engine refused it, or did not answer. It says what to do.
    #[error(transparent)]
    Ask(#[from] AskError),
}

/// What a node cannot have of its parents. With `?` a store that cannot be read is tried again, and anything else fails the
/// node: another attempt would find the same.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ParentError {
    /// The node has no parent of this name.
    #[error("\"{name}\" is no parent of node \"{node}\"; its parents are: {}", listed(.parents, ", "))]
    Unknown {
        /// The node.
        node: String,
        /// The name that was asked for.
        name: String,
        /// The names of its parents.
        parents: Vec<String>,
    },
    /// The parent has not succeeded, or was ended without an output.
    #[error("node \"{name}\" has no output: it is {state}{}", cause_text(.cause.as_deref()))]
    NoOutput {
        /// The parent.
        name: String,
        /// Its state.
        state: NodeState,
        /// Why it failed, or what it asks.
        cause: Option<String>,
    },
    /// The parent's output is of another type.
    #[error("the output of node \"{name}\", one of \"{processor}\", cannot be read: {why}")]
    WrongType {
        /// The parent.
        name: String,
        /// Its processor.
        processor: String,
        /// What is wrong.
        why: CodecError,
    },
    /// The store could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<ParentError> for StageError {
    fn from(error: ParentError) -> Self {
        match error {
            ParentError::Read(error) => error.into(),
            other @ (ParentError::Unknown { .. } | ParentError::NoOutput { .. } | ParentError::WrongType { .. }) => {
                Self::fail(other)
            }
        }
    }
}

fn cause_text(cause: Option<&str>) -> String {
    cause.map_or_else(String::new, |cause| format!(": {cause}"))
}
