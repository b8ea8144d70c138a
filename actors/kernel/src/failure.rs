//! Failures that nobody has acknowledged: the roots that failed or were rolled back.

use serde::{Deserialize, Serialize};

use crate::cause::{CauseKind, cut};
use crate::fingerprint::fingerprint;
use crate::id::{Key, Kind, ProcedureId, Timestamp};
use crate::lifecycle::ProcedureState;
use crate::row::Row;

/// One entry of the list of failures. A root is listed from its end until somebody acknowledges the failure, or until
/// its retention has passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailureEntry {
    /// The family; part of the key on disk.
    #[serde(skip)]
    pub family: u64,
    /// When it ended; part of the key on disk.
    #[serde(skip)]
    pub ended: Timestamp,
    /// Kind of the root.
    #[serde(rename = "k")]
    pub kind: Kind,
    /// How it ended: `Failed` or `RolledBack`.
    #[serde(rename = "s")]
    pub state: ProcedureState,
    /// Kind of the failure.
    #[serde(rename = "c")]
    pub cause: CauseKind,
    /// [`fingerprint`] of the failure's whole text.
    #[serde(rename = "p")]
    pub print: u64,
    /// The failure's text, cut to [`FailureEntry::TEXT_MAX`] bytes.
    #[serde(rename = "t", default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The procedure in which the failure began.
    #[serde(rename = "o")]
    pub origin: ProcedureId,
    /// Kind of that procedure, if it is another.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub origin_kind: Option<Kind>,
    /// Idempotency key of its submission.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Key>,
}

impl FailureEntry {
    /// Longest text kept, in bytes. It tells failures apart; the row keeps more of it.
    pub const TEXT_MAX: usize = 256;

    /// Returns the entry of a root that has ended, if it is to be listed. One that somebody aborted or bypassed is not:
    /// whoever did that knows of it.
    #[must_use]
    pub fn of(root: &Row, origin_kind: Option<&Kind>) -> Option<Self> {
        let ended = root.ended?;
        let cause = root
            .rare()
            .cause
            .as_ref()
            .filter(|cause| cause.kind != CauseKind::Aborted)?;
        (is_failure(root) && root.rare().mark.is_none()).then(|| Self {
            family: root.id.family,
            ended,
            kind: root.kind.clone(),
            state: root.state,
            cause: cause.kind,
            print: fingerprint(&cause.text),
            text: cut(&cause.text, Self::TEXT_MAX).to_owned(),
            origin: cause.origin,
            origin_kind: origin_kind.filter(|kind| **kind != root.kind).cloned(),
            key: root.key.clone(),
        })
    }
}

/// Returns `true` for a root that has ended without success, so that its result is kept as long as that of a failure.
pub(crate) const fn is_failure(root: &Row) -> bool {
    root.is_ended() && root.state.is_failure()
}
