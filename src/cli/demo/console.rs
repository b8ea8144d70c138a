//! The only place of the demo that prints: results on standard output, notices on
//! standard error, so that a pipe gets results alone.

use std::io::{self, Write};

/// Prints a line of the result. A closed pipe is not an error of the demo.
pub fn result(text: &str) {
    let mut out = io::stdout().lock();
    drop(writeln!(out, "{text}").and_then(|()| out.flush()));
}

/// Prints a notice.
pub fn notice(text: &str) {
    let mut out = io::stderr().lock();
    drop(writeln!(out, "{text}").and_then(|()| out.flush()));
}
