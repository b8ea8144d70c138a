//! What is asked of the limiter in one request, and what of it is lacking.

use crate::id::LimitKey;
use crate::lock::{LockNeed, LockPath};

/// Permits and locks that are asked for, held or given back together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// One permit of each of these limits.
    pub limits: Vec<LimitKey>,
    /// These locks.
    pub locks: Vec<LockNeed>,
}

impl Needs {
    /// Tells whether nothing is needed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.limits.is_empty() && self.locks.is_empty()
    }
}

/// A thing that a waiter does not get yet.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lacking {
    /// A permit of this limit.
    Permit(LimitKey),
    /// A lock on this path.
    Lock(LockPath),
}
