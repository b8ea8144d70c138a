//! Runs the binary as a user does.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;

/// What a command said, and how it ended.
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `procession` with these arguments and no terminal.
pub(crate) fn procession<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Outcome<Said> {
    let output = Command::new(env!("CARGO_BIN_EXE_procession"))
        .args(arguments)
        .env_remove("PROCESSION_URL")
        .stdin(Stdio::null())
        .output()?;
    Ok(Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout)?,
        err: String::from_utf8(output.stderr)?,
    })
}

/// Runs a verb on a journal; its arguments are separated by blanks.
pub(crate) fn look(arguments: &str, data: &Path) -> Outcome<Said> {
    let data = data.to_str().ok_or("the directory's name is not UTF-8")?;
    procession(arguments.split_whitespace().chain(["--data", data]))
}
