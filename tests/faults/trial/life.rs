//! One life of an engine in another process: it starts on what is there, works,
//! notes what it is told, and drains or dies.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use futures::future::join_all;
use procession::{Executor, Handle};
use serde::{Deserialize, Serialize};

use super::world::{GO, Piece, Role, Seen, engine, role_of, told};
use crate::Outcome;

/// Clients that submit side by side.
const CLIENTS: u64 = 4;
/// How long an end may take; a failed engine answers at once.
const DEADLINE: Duration = Duration::from_secs(20);
const TASK: &str = "TRIAL_TASK";

/// What a life has to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) journal: PathBuf,
    pub(crate) ledger: PathBuf,
    /// Number of the first submission.
    pub(crate) from: u64,
    pub(crate) count: u64,
    /// Bytes of each.
    pub(crate) filler: usize,
    /// Bytes of commits at which there is a checkpoint.
    pub(crate) checkpoint: usize,
    /// It drains in the end, or dies without a word.
    pub(crate) drains: bool,
}

impl Task {
    /// Returns what runs it: this test binary once more.
    pub(crate) fn command(&self) -> Outcome<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args([
                "--exact",
                "trial::life::lives_in_another_process",
                "--nocapture",
                "--quiet",
            ])
            .env(TASK, serde_json::to_string(self)?);
        Ok(command)
    }
}

/// The ledger of the clients: a line is written before anything goes on.
struct Ledger(RefCell<File>);

impl Ledger {
    fn note(&self, line: &str) -> Result<(), String> {
        let noted = self.0.borrow_mut().write_all(format!("{line}\n").as_bytes());
        noted.map_err(|error| format!("the ledger: {error}"))
    }
}

fn say(line: &str) -> Outcome {
    let mut out = std::io::stdout();
    writeln!(out, "{}", line.replace('\n', " "))?;
    Ok(out.flush()?)
}

async fn submit(executor: &Executor, ledger: &Ledger, task: &Task, number: u64) -> Result<Handle<Piece>, String> {
    let piece = Piece::new(number, task.filler);
    let handle = executor.submit(piece).key(number.to_string()).await;
    let handle = handle.map_err(|error| error.to_string())?;
    ledger.note(&format!("acknowledged {number} {}", handle.id()))?;
    if role_of(number) == Role::Waiter {
        let sent = executor.signal(handle.id(), GO, &number).key("first").await;
        sent.map_err(|error| error.to_string())?;
        ledger.note(&format!("signalled {number}"))?;
    }
    Ok(handle)
}

async fn end(handle: &Handle<Piece>, ledger: &Ledger, number: u64) -> Result<(), String> {
    let end = told(handle.wait_for(DEADLINE).await)?;
    ledger.note(&format!("ended {number} {end}"))
}

/// Submits its share, and waits for the end of each only when the next is submitted.
async fn client(executor: &Executor, ledger: &Ledger, task: &Task, first: u64) -> Result<(), String> {
    let mut before = None;
    let mut number = task.from + first;
    while number < task.from + task.count {
        let handle = submit(executor, ledger, task, number).await?;
        if let Some((number, before)) = before.replace((number, handle)) {
            end(&before, ledger, number).await?;
        }
        number += CLIENTS;
    }
    match before {
        Some((number, before)) => end(&before, ledger, number).await,
        None => Ok(()),
    }
}

async fn live(task: Task) -> Outcome {
    let seen = Seen::in_ledger(&task.ledger)?;
    let builder = engine(&task.journal, seen).checkpoint_at(task.checkpoint);
    let executor = match builder.start().await {
        Ok(executor) => executor,
        Err(error) => return say(&format!("refused {error}")),
    };
    let ledger = File::options().create(true).append(true).open(&task.ledger)?;
    let ledger = Ledger(RefCell::new(ledger));
    let clients = (0..CLIENTS).map(|first| client(&executor, &ledger, &task, first));
    for failure in join_all(clients).await.into_iter().filter_map(Result::err) {
        say(&format!("failed {failure}"))?;
    }
    if !task.drains {
        say("dies")?;
        std::process::abort();
    }
    match executor.drain(Duration::from_secs(5)).await {
        Ok(_) => say("drained"),
        Err(error) => say(&format!("not drained: {error}")),
    }
}

/// Does nothing unless another test started it with a task.
#[test]
fn lives_in_another_process() -> Outcome {
    match std::env::var(TASK) {
        Ok(task) => actix_rt::System::new().block_on(live(serde_json::from_str(&task)?)),
        Err(_) => Ok(()),
    }
}

/// Copies a journal, holes as holes.
pub(crate) fn copy(from: &Path, to: &Path) -> Outcome {
    fs::create_dir_all(to.parent().ok_or("a place without a directory")?)?;
    let copied = Command::new("cp")
        .args(["-r", "--sparse=always"])
        .args([from, to])
        .output()?;
    if copied.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&copied.stderr).into_owned().into())
}
