//! Why a node cannot be appended, and why a stream cannot be read.

use procession_actors::{AskError, StageError, SubmitError};

use super::name::StreamName;
use crate::flow::check::Problem;

/// Why nodes were not appended. Nothing of the call is stored, unless it says that this is not known.
///
/// In a stage `?` tries again what may pass, and fails what no other attempt helps.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendError {
    /// More nodes than one append may have.
    #[error("append of {nodes} nodes, at most {limit}: use extend")]
    TooMany {
        /// The nodes given; of an iterator that does not know its length, those that were read.
        nodes: usize,
        /// The bound.
        limit: usize,
    },
    /// A stream cannot take such a node.
    #[error(transparent)]
    Node(Problem),
    /// The engine cannot run the node.
    #[error("{why}")]
    Refused {
        /// Why, and what to do.
        why: String,
    },
    /// As many signals wait as may: nodes, and notifications that no node has read.
    #[error(
        "stream {stream} has {waiting} waiting signals, nodes and notifications, the limit: append again when it has caught up"
    )]
    Full {
        /// The stream.
        stream: StreamName,
        /// The bound.
        waiting: usize,
    },
    /// It was told to [finish](super::Stream::finish), was stopped by a node, or was cancelled.
    #[error("stream {stream} has finished: nothing can be appended")]
    Finished {
        /// The stream.
        stream: StreamName,
    },
    /// Another node of this name waits, or is among the newest 100 with a name that have ended.
    #[error("node \"{node}\" is in stream {stream} already, at place {place}, with other content")]
    Conflict {
        /// The name.
        node: String,
        /// The stream.
        stream: StreamName,
        /// The place of the other node.
        place: u32,
    },
    /// The engine has no streams.
    #[error("the engine takes no streams: call `streams` on the builder")]
    NoStreams,
    /// The stream could not be opened.
    #[error(transparent)]
    Open(SubmitError),
    /// The engine did not answer.
    #[error(transparent)]
    Ask(#[from] AskError),
}

impl From<AppendError> for StageError {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Full { .. } | AppendError::Open(_) | AppendError::Ask(_) => Self::retry(error),
            AppendError::TooMany { .. }
            | AppendError::Node(_)
            | AppendError::Refused { .. }
            | AppendError::Finished { .. }
            | AppendError::Conflict { .. }
            | AppendError::NoStreams => Self::fail(error),
        }
    }
}
