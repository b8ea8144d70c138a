//! The embedded store's check of its log, for tests with arbitrary bytes.

use crate::journal::look_at_log;

/// The result of checking the bytes of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogCheck {
    /// Bytes of whole batches, from the beginning.
    pub whole: usize,
    /// `true` if another whole batch follows them: what lies between was changed.
    pub damaged: bool,
}

/// Checks the bytes of the newest log as an opening does.
#[must_use]
pub fn look(bytes: &[u8]) -> LogCheck {
    let (whole, damaged) = look_at_log(bytes);
    LogCheck { whole, damaged }
}
