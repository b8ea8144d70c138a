//! What one request asks of the limiter, and what of it is lacking.

use crate::id::LimitKey;
use crate::lock::{LockNeed, LockPath};

/// Permits and locks that are requested, held or released together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// One permit of each of these limits.
    pub limits: Vec<LimitKey>,
    /// These locks.
    pub locks: Vec<LockNeed>,
}

impl Needs {
    /// Returns `true` if nothing is needed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.locks.is_empty()
    }
}

/// A permit or lock that a waiter does not have yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lacking {
    /// A permit of this limit.
    Permit(LimitKey),
    /// A lock on this path.
    Lock(LockPath),
}
