//! The embedded store's look at its log, for tests that give it any bytes.

use crate::journal::look_at_log;

/// What was found in the bytes of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Bytes of whole batches, from the beginning.
    pub whole: usize,
    /// Behind them is another whole batch: what lies between was changed.
    pub damaged: bool,
}

/// Looks at the bytes of the newest log as an opening does.
#[must_use]
pub fn look(bytes: &[u8]) -> Found {
    let (whole, damaged) = look_at_log(bytes);
    Found { whole, damaged }
}
