//! What operators did.

use procession_kernel::{AuditEntry, Changed};
use serde::{Deserialize, Serialize};

use super::{snapshot_words, time};

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditView {
    /// Its number.
    pub number: String,
    /// When it was done.
    pub at: String,
    /// Who did it.
    pub who: String,
    /// The reason given.
    pub why: String,
    /// What was done, in words.
    pub verb: String,
    /// The procedure that it concerns.
    pub target: Option<String>,
    /// The changes that are named.
    pub changes: Vec<ChangedView>,
    /// How many procedures changed in total.
    pub changed: u32,
    /// The procedure that it submitted.
    pub submitted: Option<String>,
    /// The key of the request.
    pub key: Option<String>,
}

/// How one procedure changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ChangedView {
    /// Which one.
    pub id: String,
    /// How it stood before, in words.
    pub before: String,
    /// How it stood then.
    pub after: String,
}

impl From<&AuditEntry> for AuditView {
    fn from(entry: &AuditEntry) -> Self {
        Self {
            number: entry.number.to_string(),
            at: time(entry.at),
            who: entry.who.clone(),
            why: entry.why.clone(),
            verb: entry.words.clone(),
            target: entry.target.map(|id| id.to_string()),
            changes: entry.changes.iter().map(ChangedView::from).collect(),
            changed: entry.changed,
            submitted: entry.submitted.map(|id| id.to_string()),
            key: entry.key.as_ref().map(ToString::to_string),
        }
    }
}

impl From<&Changed> for ChangedView {
    fn from(changed: &Changed) -> Self {
        Self {
            id: changed.id.to_string(),
            before: snapshot_words(&changed.before),
            after: snapshot_words(&changed.after),
        }
    }
}
