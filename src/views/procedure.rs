//! One procedure, as lists and its own page show it.

use std::borrow::Cow;

use procession_actors::view::Status;
use procession_kernel::{Cause, Labels, LockNeed, ProcedureId};
use serde::{Deserialize, Serialize};

use super::{Reason, mark_word, read, time};

/// One procedure as it stands on disk: state, reason, since, and what comes next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProcedureView {
    /// Who it is, as `family.member`.
    pub id: String,
    /// The root of its family.
    pub root: String,
    /// Its parent; none for a root.
    pub parent: Option<String>,
    /// Its name, which its parent's list or its submission gave it, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The siblings that come before it at its gate, in the order given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Its type.
    pub kind: String,
    /// Schema of its stored payload.
    pub version: u16,
    /// Idempotency key of its submission.
    pub key: Option<String>,
    /// Its labels, inherited ones included, by name.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Its state.
    pub state: String,
    /// Why it does not run, in a word; none, too, if a later release has a word for it that is not known here.
    #[serde(default, deserialize_with = "read::reason")]
    pub reason: Option<Reason>,
    /// Why it does not run, in words.
    pub waits: Option<String>,
    /// The question that it asks a person.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read::said")]
    pub question: Option<String>,
    /// Since when state and reason are as they are.
    pub since: String,
    /// When time moves it, if time does.
    pub until: Option<String>,
    /// What comes next, in words.
    pub next: String,
    /// The stage that runs, or runs next.
    pub stage: String,
    /// Failed attempts of that stage.
    pub attempt: u32,
    /// A stage of it was out when the row was written.
    pub going: bool,
    /// Higher goes first where it waits.
    pub priority: i16,
    /// The trace in which it was submitted, as the header `traceparent` has it.
    pub trace: Option<String>,
    /// An operator has paused it and all below it.
    pub paused: bool,
    /// Its family is set aside: no act but a discharge is taken. Of an earlier release it is not known.
    #[serde(default)]
    pub set_aside: bool,
    /// It holds its permits.
    pub holds: bool,
    /// Locks that it holds.
    pub locks: Vec<LockHeldView>,
    /// The stage with which it passed its point of no return.
    pub past_no_return: Option<String>,
    /// Why it failed.
    pub cause: Option<CauseView>,
    /// How many executed stages of its part of the family were not undone.
    pub not_undone: usize,
    /// What an operator did to its end: `bypassed` or `overridden`.
    pub mark: Option<Cow<'static, str>>,
    /// When it was born.
    pub submitted: String,
    /// When it ended.
    pub ended: Option<String>,
    /// The commit that wrote its row.
    pub revision: String,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CauseView {
    /// What sort of failure it is.
    pub kind: String,
    /// What was said of it.
    #[serde(deserialize_with = "read::words")]
    pub text: String,
    /// The procedure in which it began.
    pub origin: String,
}

/// A lock that is held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LockHeldView {
    /// What is locked.
    pub path: String,
    /// `shared` or `exclusive`.
    pub mode: String,
}

impl From<&Status> for ProcedureView {
    fn from(status: &Status) -> Self {
        Self {
            id: status.id.to_string(),
            root: ProcedureId::root(status.id.family).to_string(),
            parent: status.parent.map(|parent| parent.to_string()),
            name: status.name.clone(),
            before: status.before.iter().map(ToString::to_string).collect(),
            kind: status.kind.to_string(),
            version: status.version,
            key: status.key.as_ref().map(ToString::to_string),
            labels: status.labels.clone(),
            state: status.state.to_string(),
            reason: status.wait.as_ref().map(Reason::from),
            waits: status.wait.as_ref().map(ToString::to_string),
            question: status.question.clone(),
            since: time(status.since),
            until: status.wait.as_ref().and_then(|wait| wait.deadline()).map(time),
            next: status.next.clone(),
            stage: status.stage.clone(),
            attempt: status.attempt,
            going: status.going,
            priority: status.priority,
            trace: status.trace.map(|trace| trace.to_string()),
            paused: status.paused,
            set_aside: status.set_aside,
            holds: status.holds,
            locks: status.locks.iter().map(LockHeldView::from).collect(),
            past_no_return: status.past_no_return.clone(),
            cause: status.cause.as_ref().map(CauseView::from),
            not_undone: status.not_undone.len(),
            mark: status.mark.map(mark_word).map(Cow::Borrowed),
            submitted: time(status.submitted),
            ended: status.ended.map(time),
            revision: status.revision.to_string(),
        }
    }
}

impl From<&Cause> for CauseView {
    fn from(cause: &Cause) -> Self {
        Self {
            kind: format!("{:?}", cause.kind),
            text: cause.text.clone(),
            origin: cause.origin.to_string(),
        }
    }
}

impl From<&LockNeed> for LockHeldView {
    fn from(lock: &LockNeed) -> Self {
        Self {
            path: lock.path.to_string(),
            mode: lock.mode.to_string(),
        }
    }
}
