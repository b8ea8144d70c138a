//! The only place of the demo that prints: results on standard output, notices on
//! standard error, so that a pipe gets results alone.

use std::io::{self, Write};
use std::sync::OnceLock;

/// Why a part of the result could not be written: the first reason of this process.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints a line of the result. A closed pipe is not an error: nobody reads on. Any other error is kept for the end.
pub fn result(text: &str) {
    let mut out = io::stdout().lock();
    keep(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// Keeps the reason why a part of the result could not be written.
pub(crate) fn keep(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        LOST.get_or_init(|| error.to_string());
    }
}

/// Returns why a part of the result could not be written, if one could not.
pub(crate) fn lost() -> Option<&'static str> {
    LOST.get().map(String::as_str)
}

/// Prints a notice.
pub fn notice(text: &str) {
    let mut out = io::stderr().lock();
    drop(writeln!(out, "{text}").and_then(|()| out.flush()));
}
