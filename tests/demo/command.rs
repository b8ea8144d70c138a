//! Runs the binary as a user does.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::Outcome;

/// `procession demo tablets` with these arguments, separated by blanks.
pub(crate) fn demo(data: &Path, arguments: &str) -> Command {
    told("tablets", data, arguments)
}

/// `procession demo shop` with these arguments, separated by blanks.
pub(crate) fn shop(data: &Path, arguments: &str) -> Command {
    told("shop", data, arguments)
}

fn told(story: &str, data: &Path, arguments: &str) -> Command {
    let mut command = procession(story);
    command.arg("--data").arg(data).args(arguments.split_whitespace());
    command
}

/// `procession demo` with these arguments, and nothing said about where it works.
pub(crate) fn procession(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_procession"));
    command.arg("demo").args(arguments.split_whitespace());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns what was said on standard error.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the closing line of a run that must have succeeded.
pub(crate) fn closing(output: &Output) -> Outcome<Value> {
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, said(output)).into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(serde_json::from_str(text.lines().last().ok_or("nothing was printed")?)?)
}

/// Runs to the end; gives the closing line.
pub(crate) fn run(data: &Path, arguments: &str) -> Outcome<Value> {
    closing(&demo(data, &format!("{arguments} --json")).output()?)
}

/// The rows of each table, in order, as found by way of `--dump` and the files alone.
pub(crate) fn content(data: &Path) -> Outcome<BTreeMap<String, Vec<String>>> {
    let output = demo(data, "--dump").output()?;
    if !output.status.success() {
        return Err(said(&output).into());
    }
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let tablet: Value = serde_json::from_str(line)?;
        let field = |name: &str| tablet.get(name).ok_or(format!("no {name} in {line}"));
        let text = |name: &str| {
            field(name)?
                .as_str()
                .map(str::to_owned)
                .ok_or(format!("{name} is no text in {line}"))
        };
        let rows: Vec<String> = std::fs::read_to_string(text("path")?)?
            .lines()
            .map(str::to_owned)
            .collect();
        assert_eq!(Some(rows.len() as u64), field("rows")?.as_u64(), "{line}");
        assert_eq!(field("server")?.is_string(), text("state")? == "loaded", "{line}");
        tables.entry(text("table")?).or_default().extend(rows);
    }
    Ok(tables)
}

/// Checks that a verified run lost nothing.
pub(crate) fn must_be_whole(closing: &Value) {
    assert_eq!(closing["rows_found"], closing["rows_expected"], "{closing}");
    for count in ["missing", "duplicated", "orphan_files"] {
        assert_eq!(closing[count], 0, "{closing}");
    }
}

/// A run that can be watched and killed.
pub(crate) struct Running {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Outcome<Self> {
        let mut child = command.stdout(Stdio::null()).spawn()?;
        let lines = BufReader::new(child.stderr.take().ok_or("no standard error")?).lines();
        Ok(Self { child, lines })
    }

    /// Reads on until a line contains this text; gives the line, or none at the end.
    pub(crate) fn until(&mut self, text: &str) -> Outcome<Option<String>> {
        for line in self.lines.by_ref() {
            let line = line?;
            if line.contains(text) {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// Kills it after looking so many times whether it still runs; tells whether it did.
    pub(crate) fn kill_after(mut self, looks: u64) -> Outcome<bool> {
        for _ in 0..looks {
            if self.child.try_wait()?.is_some() {
                return Ok(false);
            }
        }
        self.child.kill()?;
        let status = self.child.wait()?;
        Ok(status.code().is_none())
    }

    /// Asks it to end, as Ctrl-C does, and waits for the end.
    pub(crate) fn interrupt(mut self) -> Outcome<(std::process::ExitStatus, String)> {
        let sent = Command::new("kill")
            .arg("-INT")
            .arg(self.child.id().to_string())
            .status()?;
        assert!(sent.success());
        let said: Vec<String> = self.lines.by_ref().collect::<Result<_, _>>()?;
        Ok((self.child.wait()?, said.join("\n")))
    }
}

/// A test that fails leaves no run behind.
impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill().and_then(|()| self.child.wait()));
    }
}
