//! The operators' log: who did what, when and why, and what it changed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{Key, ProcedureId, Seq, Timestamp};
use crate::lifecycle::ProcedureState;
use crate::verb::{AbortAnswer, Act, Verb};
use crate::wait::WaitReason;

/// The number of entries kept. The oldest are dropped first.
pub const AUDIT_KEPT: usize = 10_000;
/// The number of changes named in one entry. Further changes are only counted.
pub const AUDIT_CHANGES: usize = 100;

/// The sender of a request, the reason, and the conditions under which it takes effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OperatorRequest {
    /// Name of the person or program.
    pub who: String,
    /// The reason given.
    pub why: String,
    /// `true` to report what would be done, without doing it.
    pub dry_run: bool,
    /// The idempotency key. The same request with the same key takes effect once.
    pub key: Option<Key>,
    /// Refuses the request if the row no longer has this revision.
    pub expected: Option<Seq>,
}

impl OperatorRequest {
    /// Creates a request of this person or program, for this reason.
    #[must_use]
    pub fn new(who: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            who: who.into(),
            why: why.into(),
            ..Self::default()
        }
    }

    /// Asks only for the plan: nothing is changed.
    #[must_use]
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Sets the key by which a repeat is recognised.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(Key::from(key.into()));
        self
    }

    /// Refuses the request if the row no longer has this revision.
    #[must_use]
    pub fn expecting(mut self, revision: Seq) -> Self {
        self.expected = Some(revision);
        self
    }
}

/// The state of one procedure before or after a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StateSnapshot {
    /// Its state.
    #[serde(rename = "s")]
    pub state: ProcedureState,
    /// Why it does not run.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitReason>,
    /// `true` if one of its stages has been dispatched, or will be at once.
    #[serde(rename = "g", default, skip_serializing_if = "std::ops::Not::not")]
    pub in_flight: bool,
    /// `true` if it has ended. A failed procedure that has not ended rolls back.
    #[serde(rename = "e", default, skip_serializing_if = "std::ops::Not::not")]
    pub ended: bool,
}

impl fmt::Display for StateSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.wait, self.in_flight) {
            (Some(wait), _) => write!(f, "{} ({wait})", self.state),
            (None, true) => write!(f, "{} (a stage is set going)", self.state),
            (None, false) => write!(f, "{}", self.state),
        }
    }
}

/// What a request did, or would do, to one procedure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Changed {
    /// The procedure.
    #[serde(rename = "i")]
    pub id: ProcedureId,
    /// The state before the request.
    #[serde(rename = "b")]
    pub before: StateSnapshot,
    /// The state after the request.
    #[serde(rename = "a")]
    pub after: StateSnapshot,
}

impl Changed {
    /// Creates the change of one procedure.
    #[must_use]
    pub const fn new(id: ProcedureId, before: StateSnapshot, after: StateSnapshot) -> Self {
        Self { id, before, after }
    }
}

/// How many executed stages an abort or a bypass concerns, of all members below it. A family that moves has more of them
/// when it is aborted than its plan showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Reach {
    /// Those that are undone.
    #[serde(rename = "u")]
    pub undone: u64,
    /// Those that stay.
    #[serde(rename = "s")]
    pub stays: u64,
}

/// One act of an operator, journalled in its own commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// The number of the entry, which is the key on disk and not part of the value.
    #[serde(skip)]
    pub number: u64,
    /// When the operator acted.
    #[serde(rename = "t")]
    pub at: Timestamp,
    /// The person or program that acted.
    #[serde(rename = "w")]
    pub who: String,
    /// The reason given.
    #[serde(rename = "y")]
    pub why: String,
    /// The act in words, for people. Code relies on [`act`](Self::act).
    #[serde(rename = "v")]
    pub words: String,
    /// The procedure that it concerns.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub target: Option<ProcedureId>,
    /// The changes that are named.
    #[serde(rename = "c", default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Changed>,
    /// How many procedures changed in total.
    #[serde(rename = "n", default)]
    pub changed: u32,
    /// The key of the request.
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
    /// The [digest](crate::Blob::digest) of the value in a request with a key; of a submission, a digest of its own key,
    /// its value and its children. The words do not contain this value. `None` if the request had no value, or if the
    /// entry was written before digests were recorded.
    #[serde(rename = "h", default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<u64>,
    /// The act. `None` if a later release added the act. Also `None` if the entry was written before this was recorded
    /// and [`restored`](Self::restored) cannot read it from the words.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "Act::known")]
    pub act: Option<Act>,
    /// What an abort met. A repeat of the request gets the same answer. `None` for other acts, and for aborts that were
    /// written before this was recorded.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub abort: Option<AbortAnswer>,
    /// The root that the act submitted: a new one, or the one that runs its target again.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<ProcedureId>,
    /// How many executed stages an abort or a bypass concerned. A repeat of the request gets the same answer. `None` for
    /// other acts, and for those that were written before this was recorded.
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<Reach>,
}

impl AuditEntry {
    /// Completes an entry that was read from the store. Sets its number, which is the key on disk. Also sets the act
    /// and the abort's answer if the entry was written before these were recorded.
    #[must_use]
    pub fn restored(mut self, number: u64) -> Self {
        self.number = number;
        if self.act.is_none() {
            self.act = Act::from_words(&self.words);
        }
        if matches!(self.act, Some(Act::Operate(Verb::Abort(_)))) && self.abort.is_none() {
            // Only an abort that began a rollback was ever written.
            self.abort = Some(AbortAnswer::WillRollBack);
        }
        self
    }

    /// Returns `true` if this act with this value repeats the recorded act.
    pub(crate) fn is_repeated_by(&self, act: &Act, words: &str, digest: Option<u64>) -> bool {
        match &self.act {
            Some(before) => before == act && self.digest == digest,
            // Older entries have only words, and some of them no digest.
            None => self.words == words && (self.digest.is_none() || self.digest == digest),
        }
    }
}
