//! Another process: this test binary once more, told by a variable what to do.

use std::future::IntoFuture;
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use procession::testkit::Trouble;
use procession::{Executor, ProcedureId};

use crate::support::{Lab, Planned, Tested, chain, kinds};

/// Names the directory in which the other process works.
const PLACE: &str = "PROCESSION_TEST_PLACE";
/// Says what it does there: `write` until it is killed, or `open` once.
const ROLE: &str = "PROCESSION_TEST_ROLE";

/// The other process; killed when it goes out of scope.
pub(crate) struct Other {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Other {
    pub(crate) fn start(place: &Path, role: &str) -> Result<Self, Trouble> {
        let mut child = Command::new(std::env::current_exe()?)
            .args([
                "--exact",
                "recovery::helper::works_in_another_process",
                "--nocapture",
                "--quiet",
            ])
            .env(PLACE, place)
            .env(ROLE, role)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let stdout = child.stdout.take().ok_or("its output is not there")?;
        Ok(Self {
            child,
            lines: BufReader::new(stdout).lines(),
        })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns what follows the mark in the next line that has it.
    pub(crate) fn next(&mut self, mark: &str) -> Result<String, Trouble> {
        for line in self.lines.by_ref() {
            let line = line?;
            if let Some((_, rest)) = line.split_once(mark) {
                return Ok(rest.to_owned());
            }
        }
        Err(format!("it ended without a line with \"{mark}\"").into())
    }

    /// Kills it at once, and gives what it had still said.
    pub(crate) fn kill(mut self, mark: &str) -> Result<Vec<String>, Trouble> {
        self.child.kill()?;
        self.child.wait()?;
        let mut rest = Vec::new();
        for line in self.lines.by_ref() {
            let line = line?;
            rest.extend(line.split_once(mark).map(|(_, rest)| rest.to_owned()));
        }
        Ok(rest)
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have been waited for already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What the next procedure with this number is.
pub(crate) fn work(number: u64) -> Planned {
    Planned(chain(&format!("w{number}-"), 3))
}

/// Parses `number id`.
pub(crate) fn acknowledged(line: &str) -> Result<(u64, ProcedureId), Trouble> {
    let (number, id) = line.split_once(' ').ok_or("a line without an id")?;
    Ok((number.parse()?, id.parse()?))
}

async fn write(place: &Path) -> Tested {
    let executor = kinds(&Lab::default(), Executor::builder(place)).start().await?;
    let mut out = std::io::stdout();
    for number in 0.. {
        let handle = executor
            .submit(work(number))
            .key(number.to_string())
            .into_future()
            .await?;
        writeln!(out, "acknowledged: {number} {}", handle.id())?;
        out.flush()?;
    }
    Ok(())
}

#[test]
fn works_in_another_process() -> Tested {
    let Some(place) = std::env::var_os(PLACE) else {
        return Ok(());
    };
    let place = Path::new(&place);
    let role = std::env::var(ROLE)?;
    actix_rt::System::new().block_on(async {
        if role == "write" {
            return write(place).await;
        }
        let opened = kinds(&Lab::default(), Executor::builder(place)).start().await;
        let said = opened
            .err()
            .map_or_else(|| "opened".to_owned(), |error| error.to_string());
        let mut out = std::io::stdout();
        writeln!(out, "said: {said}")?;
        out.flush()?;
        Ok(())
    })
}
