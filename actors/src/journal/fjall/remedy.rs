//! Texts of system errors, with a remedy where one is known.

use std::fs;
use std::io::{Error, ErrorKind, Write};
use std::path::Path;

use super::directory::room_of;

/// Name and size of the file that is written to find out what is wrong with a disk. It is about as large as the write
/// of fjall's that failed.
const PROBE: &str = "probe";
const PROBE_BYTES: usize = 1024 * 1024;
/// With less room than this a table of usual size cannot be written.
const LITTLE: u64 = 64 * 1024 * 1024;

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

/// Returns what went wrong, and what to do.
pub(super) fn advise(error: &Error) -> String {
    let found = REMEDIES.iter().find(|(kind, _)| *kind == error.kind());
    found.map_or_else(|| error.to_string(), |(_, remedy)| format!("{error}; {remedy}"))
}

/// Returns why a write in the background failed. fjall keeps no error of its own threads, only that there was one.
/// The cause mostly persists, though, and shows when something is written now.
pub(super) fn background(place: &Path) -> String {
    let path = place.join(PROBE);
    let written = fs::File::create(&path).and_then(|mut file| {
        file.write_all(&vec![1; PROBE_BYTES])?;
        file.sync_all()
    });
    fs::remove_file(&path).ok();
    let room = room_of(place).map(|room| room.free).filter(|free| *free < LITTLE);
    let why = match (written, room) {
        (Err(error), _) => advise(&error),
        (Ok(()), Some(free)) => format!("only {free} bytes are free on its disk; make room"),
        (Ok(()), None) => {
            "its disk can be written again; see what the program and the system have logged, and start again".to_owned()
        }
    };
    format!("an earlier write in the background failed: {why}")
}
