//! A node of a stream as it is stored: in the signal that appends it, and in the stream's value while it is in hand.

use std::time::Duration;

use procession_actors::guarded;
use procession_actors::messages::SendSignal;
use procession_kernel::{Blob, Kind, ProcedureId};
use serde::{Deserialize, Serialize};

use super::error::AppendError;
use crate::flow::check::{self, Problem};
use crate::flow::node::{Node, OnError, When, Work};
use crate::flow::retry::StoredRetry;
use crate::flow::task::{NOTIFY, Woken};

/// Name of the event for which a stream waits: the next node, or its end.
pub(super) const NODE: &str = "procession.node";
/// Nodes of one append, so that others come in between.
pub(super) const APPEND_MAX: usize = 100;

/// Returns the name of the event that notifies the node at this place. Each place has its own, so that a notification
/// never reaches a later node.
pub(crate) fn notify_event(place: u32) -> String {
    format!("{NOTIFY}/{place}")
}

/// Returns `true` if this is the name of such an event.
pub(super) fn is_notify_event(name: &str) -> bool {
    let place = name.strip_prefix(NOTIFY).and_then(|rest| rest.strip_prefix('/'));
    place.is_some_and(|place| place.parse::<u32>().is_ok_and(|place| notify_event(place) == name))
}

/// A node that was appended.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredNode {
    #[serde(rename = "n", default, skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(rename = "k")]
    pub(super) kind: Kind,
    #[serde(rename = "v")]
    pub(super) version: u16,
    #[serde(rename = "d")]
    pub(super) data: Blob,
    /// It begins whatever became of the node before it.
    #[serde(rename = "a", default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) all_finished: bool,
    #[serde(rename = "f", default, skip_serializing_if = "OnError::is_pend")]
    pub(super) on_error: OnError,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub(super) retry: Option<StoredRetry>,
    #[serde(rename = "t", default, skip_serializing_if = "Option::is_none")]
    pub(super) timeout: Option<Duration>,
}

impl StoredNode {
    /// Checks a node, and encodes it.
    pub(super) fn new(node: Node) -> Result<Self, AppendError> {
        let shown = node.shown_name();
        let refused = |problem| Err(AppendError::Node(problem));
        if let Some(problem) = check::name_problem(&node.name).filter(|_| node.is_named) {
            return refused(problem);
        }
        if !node.after.is_empty() {
            return refused(Problem::ParentsInStream { node: shown });
        }
        if node.priority.is_some() {
            return refused(Problem::PriorityInStream { node: shown });
        }
        let when = match node.when {
            When::AllSucceeded | When::AllFinished => None,
            When::AtLeast(least) => Some(format!("AtLeast({least})")),
            When::Named(_) => Some("Named".to_owned()),
            When::Custom => Some("Custom".to_owned()),
        };
        if let Some(when) = when {
            return refused(Problem::WhenInStream { node: shown, when });
        }
        if let Some(problem) = node.retry.and_then(|retry| check::retry_problems(&shown, retry).next()) {
            return refused(problem);
        }
        let Work::Processor(work) = &node.work else {
            return refused(Problem::ProcedureInStream { node: shown });
        };
        let work = match guarded("its processor", || work.data()) {
            Ok(Ok(work)) => work,
            Ok(Err(why)) => return refused(Problem::codec(&shown, &why)),
            Err(why) => return refused(Problem::Codec { node: shown, why }),
        };
        if work.takes_locks {
            let processor = work.kind.to_owned();
            return refused(Problem::LocksInStream { processor });
        }
        Ok(Self {
            name: node.name,
            kind: Kind::from(work.kind),
            version: work.version,
            data: work.bytes,
            all_finished: node.when == When::AllFinished,
            on_error: node.on_error,
            retry: node.retry.map(StoredRetry::from),
            timeout: node.timeout,
        })
    }

    /// Returns the signal that appends it to the stream with this id.
    pub(super) fn signal(&self, stream: ProcedureId) -> Result<SendSignal, AppendError> {
        let signal = SendSignal::new(stream, NODE, self);
        let signal = signal.map_err(|why| AppendError::Node(Problem::codec(&self.name, &why)))?;
        Ok(match self.name.as_str() {
            "" => signal,
            name => signal.key(name),
        })
    }
}

/// A node that a stream has begun and not ended, while it asks or is parked.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct InHand {
    #[serde(rename = "p")]
    pub(super) place: u32,
    #[serde(rename = "n")]
    pub(super) node: StoredNode,
    /// What had ended its wait when it asked a person.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub(super) woken: Option<Woken>,
    /// What it asks.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub(super) question: Option<String>,
}
