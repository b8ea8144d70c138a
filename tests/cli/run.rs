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
    procession_in(&[], arguments)
}

/// The same, with these variables in its environment and none else of its own.
pub(crate) fn procession_in<'a>(
    environment: &[(&str, &str)],
    arguments: impl IntoIterator<Item = &'a str>,
) -> Outcome<Said> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    for own in ["URL", "TOKEN", "PROFILE", "CONFIG"] {
        command.env_remove(format!("PROCESSION_{own}"));
    }
    command.args(arguments).stdin(Stdio::null());
    said(command.envs(environment.iter().copied()))
}

/// Runs `procession` on a terminal of this size, as `script` makes one.
pub(crate) fn on_a_terminal(rows: u16, columns: u16, pager: &str, arguments: &str) -> Outcome<Said> {
    let binary = env!("CARGO_BIN_EXE_procession");
    let line = format!("stty rows {rows} cols {columns}; {binary} {arguments}");
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    said(command.env("PAGER", pager).stdin(Stdio::null()))
}

fn said(command: &mut Command) -> Outcome<Said> {
    let output = command.output()?;
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
