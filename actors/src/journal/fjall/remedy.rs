//! What the system says, and what to do about it where that is known.

use std::io::{Error, ErrorKind};

const REMEDIES: [(ErrorKind, &str); 5] = [
    (
        ErrorKind::PermissionDenied,
        "let this process write there, or use another directory",
    ),
    (
        ErrorKind::ReadOnlyFilesystem,
        "make it writable, or use another directory",
    ),
    (ErrorKind::StorageFull, "make room"),
    (ErrorKind::QuotaExceeded, "make room, or raise the quota"),
    (
        ErrorKind::FileTooLarge,
        "raise the limit on the size of files (ulimit -f)",
    ),
];

/// Says what went wrong, and what to do.
pub(super) fn advise(error: &Error) -> String {
    let found = REMEDIES.iter().find(|(kind, _)| *kind == error.kind());
    found.map_or_else(|| error.to_string(), |(_, remedy)| format!("{error}; {remedy}"))
}
