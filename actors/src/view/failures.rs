//! Failures that nobody has acknowledged, as they are read.

use procession_kernel::{FailureEntry, Timestamp};

/// The place of a failure in the list, from which the next page goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureCursor {
    /// When the root ended.
    pub ended: Timestamp,
    /// Its family.
    pub family: u64,
}

/// One page of the list of failures, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailurePage {
    /// The failures.
    pub items: Vec<FailureEntry>,
    /// Where the next page goes on; `None` after the last.
    pub next: Option<FailureCursor>,
    /// Entries of this page that cannot be read.
    pub unreadable: usize,
}
