//! What a person answers when a node of a stream asks.

use serde::{Deserialize, Serialize};

/// A person's answer. As JSON it is `{"act": "retry"}`, `{"act": "fail"}` or `{"act": {"succeed": 7}}`.
#[derive(Serialize, Deserialize)]
pub(super) struct Answer<T> {
    /// The node that it is for; without it, the one that asks. An answer for an earlier node is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) place: Option<u32>,
    pub(super) act: Act<T>,
}

/// What becomes of the node.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Act<T> {
    Retry,
    Succeed(T),
    Fail,
}
