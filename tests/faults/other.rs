//! The other process: this test binary once more, watched through its lines.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use crate::Outcome;
use crate::work::Task;

/// How long a line may take at most.
const DEADLINE: Duration = Duration::from_secs(30);

/// Returns what runs a task in this test binary, or in a copy of it.
pub(crate) fn task(binary: &Path, task: &Task) -> Command {
    under(Command::new(binary), task)
}

/// Returns what runs a task within a shell that was prepared by a script.
pub(crate) fn task_after(script: &str, given: &Task) -> Outcome<Command> {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{script} && exec \"$0\" \"$@\"")]);
    command.arg(std::env::current_exe()?);
    Ok(under(command, given))
}

/// Adds to a command that takes the binary's arguments those of a task.
pub(crate) fn under(mut command: Command, task: &Task) -> Command {
    command
        .args(["--exact", "work::works_in_another_process", "--nocapture", "--quiet"])
        .envs(task.variables());
    command
}

/// A process that runs; killed when it goes out of scope.
pub(crate) struct Other {
    child: Child,
    said: Receiver<String>,
    /// The last lines that were read.
    read: Vec<String>,
}

impl Other {
    pub(crate) fn start(mut command: Command) -> Outcome<Self> {
        let spawned = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = spawned.spawn()?;
        let stdout = child.stdout.take().ok_or("its output is not there")?;
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            child,
            said,
            read: Vec::new(),
        })
    }

    /// Starts one for a task, with nothing in its way.
    pub(crate) fn plainly(given: &Task) -> Outcome<Self> {
        Self::start(task(&std::env::current_exe()?, given))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Reads one line; none at the end.
    pub(crate) fn line(&mut self) -> Outcome<Option<String>> {
        match self.said.recv_timeout(DEADLINE) {
            Ok(line) => {
                self.read.push(line.clone());
                Ok(Some(line))
            }
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("it said nothing for {DEADLINE:?} after {}", self.last()).into())
            }
        }
    }

    fn last(&self) -> String {
        let lines = self.read.iter().rev().take(5).rev();
        lines.map(String::as_str).collect::<Vec<_>>().join(" | ")
    }

    /// Reads on until this many lines begin so.
    pub(crate) fn until(&mut self, beginning: &str, times: usize) -> Outcome {
        for _ in 0..times {
            loop {
                let line = self.line()?;
                let line = line.ok_or_else(|| format!("it ended before it said \"{beginning}\": {}", self.last()))?;
                if line.starts_with(beginning) {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns how many lines began so, of those that were read and of those that have come since.
    pub(crate) fn count(&mut self, beginning: &str) -> usize {
        self.read.extend(self.said.try_iter());
        self.read.iter().filter(|line| line.starts_with(beginning)).count()
    }

    /// Waits until it ends by itself; gives how, and all it said.
    pub(crate) fn end(mut self) -> Outcome<(ExitStatus, Vec<String>)> {
        while self.line()?.is_some() {}
        Ok((self.child.wait()?, std::mem::take(&mut self.read)))
    }

    /// Waits until it has drained.
    pub(crate) fn drained(self) -> Outcome {
        let (status, lines) = self.end()?;
        if status.success() && lines.iter().any(|line| line == "drained") {
            return Ok(());
        }
        Err(format!("{status}: {}", lines.join(" | ")).into())
    }

    /// Kills it as `kill -9` does; tells whether it still ran.
    pub(crate) fn kill(mut self) -> Outcome<bool> {
        self.child.kill()?;
        Ok(self.child.wait()?.code().is_none())
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, name: &str) -> Outcome {
        shell(
            "kill -s \"$1\" \"$2\"",
            &[name.as_ref(), self.id().to_string().as_ref()],
        )
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        // It may have been waited for already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Lets this long pass: a random instant, or the time between two looks at a condition.
pub(crate) fn pass(time: Duration) {
    let (_kept, never) = channel::<()>();
    never.recv_timeout(time).ok();
}

/// Runs a script with these arguments, from `$1` on.
pub(crate) fn shell(script: &str, arguments: &[&std::ffi::OsStr]) -> Outcome {
    let output = Command::new("sh")
        .args(["-euc", script, "sh"])
        .args(arguments)
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{script}: {}", String::from_utf8_lossy(&output.stderr)).into())
}
