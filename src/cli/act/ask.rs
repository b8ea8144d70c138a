//! Whether it is meant: asked on a terminal, and nowhere else.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, IsTerminal, Write};

use super::super::exit::Failure;
use super::target::Target;

/// Returns `true` if there is somebody to ask.
pub(crate) fn is_possible() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Returns `true` for what the code cannot take back: the id is asked for once more.
pub(super) fn cannot_be_undone(verb: &str) -> bool {
    matches!(verb, "bypass" | "override-result" | "discharge")
}

/// Asks. Any answer but yes is a failure.
pub(crate) fn must_be_meant(verb: &str, target: &Target) -> Result<(), Failure> {
    match is_meant(verb, target)? {
        true => Ok(()),
        false => Err(Failure::new("it was not confirmed, and nothing was done")),
    }
}

/// Asks. For what cannot be undone the id must be typed.
fn is_meant(verb: &str, target: &Target) -> Result<bool, Failure> {
    let (question, wanted) = match target {
        Target::One(id) if cannot_be_undone(verb) => (
            format!("this cannot be undone; type the id to {verb} {target}: "),
            id.to_string(),
        ),
        Target::One(_) | Target::Kind(_) | Target::Limit(_) | Target::All | Target::Filter(_) => {
            (format!("{verb} {target}? [y/N] "), "y".to_owned())
        }
    };
    let mut out = io::stderr().lock();
    out.write_all(question.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::new)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Failure::new)?;
    let answer = answer.trim().to_lowercase();
    Ok(answer == wanted || (wanted == "y" && answer == "yes"))
}

/// Makes a key that no other act has: the hasher's seeds are drawn by the system.
pub(super) fn new_key() -> String {
    let drawn = |part: u8| RandomState::new().hash_one((part, std::process::id()));
    format!("cli-{:016x}{:016x}", drawn(0), drawn(1))
}
