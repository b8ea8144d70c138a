//! An engine that is killed with SIGKILL, in a process of its own, and copies of what it left.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::common::unusable;
use super::report::say;
use super::{BenchError, machine};

/// A process that does not outlive its owner.
struct Killed(Child);

impl Killed {
    fn kill(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        // It may have gone already; then there is nothing to be done.
        drop(self.kill());
    }
}

/// Has a process build a state in this directory, and kills it once the state is there. Returns the memory that it had
/// then; none where the system does not tell.
pub(super) async fn build(command: &str, engine: &Path, numbers: &[(&str, u64)]) -> Result<Option<u64>, BenchError> {
    let failed = |why: std::io::Error| BenchError::Child(format!("cannot be run: {why}"));
    let mut process = Command::new(std::env::current_exe().map_err(failed)?);
    process.args(["bench", command, "--engine"]).arg(engine);
    for (name, value) in numbers {
        process.arg(name).arg(value.to_string());
    }
    // Its input ends with this process, and so does it.
    process.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = Killed(process.spawn().map_err(failed)?);
    let output = child.0.stdout.take();
    let said = actix_rt::task::spawn_blocking(move || output.and_then(|output| BufReader::new(output).lines().next()));
    let said = said.await.ok().flatten().and_then(Result::ok);
    if said.as_deref() != Some("ready") {
        return Err(BenchError::Child("ended before the state was there".to_owned()));
    }
    let memory = machine::resident_bytes_of(child.0.id());
    child.kill().map_err(failed)?;
    Ok(memory)
}

/// Is what the process does once its state is there: says so, and waits to be killed, or for the end of its input.
pub(super) async fn wait_to_be_killed() {
    say("ready");
    // However the input ends, whoever started this is gone.
    drop(actix_rt::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await);
}

/// Tables are never written again, so they are linked. Copies of them would be memory that nobody has touched: on a
/// virtual machine that gives free memory back to its host, what is touched first in the start takes several times as
/// long then, and more so the more has finished.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), BenchError> {
    std::fs::create_dir_all(to).map_err(|why| unusable(to, why))?;
    let are_tables = from.file_name().is_some_and(|name| name == "tables");
    for entry in std::fs::read_dir(from).map_err(|why| unusable(from, why))? {
        let entry = entry.map_err(|why| unusable(from, why))?;
        let target = to.join(entry.file_name());
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            copy(&entry.path(), &target)?;
        } else if !are_tables || std::fs::hard_link(entry.path(), &target).is_err() {
            std::fs::copy(entry.path(), &target).map_err(|why| unusable(&target, why))?;
        }
    }
    Ok(())
}

/// What a killed engine had in its store.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldBytes {
    /// Without the zeros at the end of each file of the log, which is made large at once.
    pub(super) log: u64,
    pub(super) tables: u64,
}

/// Returns how large the store is.
pub(super) fn held_bytes(engine: &Path) -> Result<HeldBytes, BenchError> {
    let mut held = HeldBytes { log: 0, tables: 0 };
    let mut folders = vec![engine.join("store")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).map_err(|why| unusable(&folder, why))? {
            let entry = entry.map_err(|why| unusable(&folder, why))?;
            let path = entry.path();
            let data = entry.metadata().map_err(|why| unusable(&path, why))?;
            if data.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jnl") {
                let log = std::fs::read(&path).map_err(|why| unusable(&path, why))?;
                let last = log.iter().rposition(|byte| *byte != 0);
                held.log += last.map_or(0, |last| last as u64 + 1);
            } else {
                held.tables += data.len();
            }
        }
    }
    Ok(held)
}
