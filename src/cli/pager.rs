//! What does not fit on a terminal goes through the user's pager.

use std::io::Write;
use std::process::{Command, Stdio};

use ::console::Term;

use super::exit::Failure;
use super::print;

/// The pager, unless `PAGER` names another; an empty one is none.
const PAGER: &str = "less";
/// How `less` is to behave, unless `LESS` says so: colours pass, and lines are not folded.
const LESS: &str = "FRSX";

/// Returns how many rows the terminal has to which results go.
pub(super) fn rows() -> Option<usize> {
    let (rows, _) = Term::stdout().size_checked()?;
    Some(usize::from(rows))
}

/// Shows a text: through the pager if it has more lines than the terminal. Without a pager it is printed.
pub(super) fn show(text: &str) -> Result<(), Failure> {
    let fits = rows().is_none_or(|rows| text.lines().count() < rows);
    if !fits && paged(text) {
        return Ok(());
    }
    print::text(text)
}

/// Hands a text to the pager. Returns `false` if there is none.
fn paged(text: &str) -> bool {
    let named = std::env::var("PAGER").unwrap_or_else(|_| PAGER.to_owned());
    let mut words = named.split_whitespace();
    let Some(program) = words.next() else { return false };
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    let Ok(mut pager) = command.spawn() else { return false };
    if let Some(mut to) = pager.stdin.take() {
        // A pager that is quit early closes the pipe.
        to.write_all(text.as_bytes()).ok();
    }
    pager.wait().is_ok()
}
