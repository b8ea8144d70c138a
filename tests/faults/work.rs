//! What the other process does: it starts the engine, lets several clients
//! submit, and notes in the ledger what it was told, before it goes on.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use procession::{Builder, Executor, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::Outcome;

/// Keyspace in which each stage counts how often it was committed.
pub(crate) const COUNTS: &str = "counts";
/// Stages of each procedure.
pub(crate) const STAGES: usize = 3;
/// Clients that submit side by side.
const CLIENTS: u64 = 8;
/// How often a failed engine is asked again.
const AFTERWARDS: u64 = 3;

/// Three stages, each of which counts itself within its own commit.
#[derive(Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) number: u64,
    /// Takes up room.
    pub(crate) filler: String,
}

impl Tally {
    /// One that takes up no room of its own.
    pub(crate) fn plain(number: u64) -> Self {
        let filler = String::new();
        Self { number, filler }
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Stage {
    First,
    Second,
    Third,
}

impl Procedure for Tally {
    const KIND: &'static str = "tally";
    type Stage = Stage;
    type Env = ();
    type Output = u64;

    fn first(&self) -> Stage {
        Stage::First
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let key = format!("{}/{stage:?}", self.number);
        let before: Option<u32> = cx.get(COUNTS, &key).await?;
        cx.put(COUNTS, &key, &(before.unwrap_or(0) + 1))?;
        Ok(match stage {
            Stage::First => Step::Next(Stage::Second),
            Stage::Second => Step::Next(Stage::Third),
            Stage::Third => Step::Done(self.number),
        })
    }
}

/// Bytes of some dozens of commits.
const SOON: usize = 16 * 1024;

/// The engine as each process sets it up.
pub(crate) fn engine(journal: &Path) -> Builder {
    Executor::builder(journal).register::<Tally>(())
}

/// What another process has to do; it goes there as variables.
pub(crate) struct Task {
    pub(crate) journal: PathBuf,
    pub(crate) ledger: PathBuf,
    /// Number of the first submission.
    pub(crate) from: u64,
    /// How many submissions; then it drains.
    pub(crate) count: u64,
    /// Bytes of each.
    pub(crate) filler: usize,
    /// There is a checkpoint every few commits.
    pub(crate) checkpoints: bool,
}

const JOURNAL: &str = "FAULTS_JOURNAL";
const LEDGER: &str = "FAULTS_LEDGER";
const FROM: &str = "FAULTS_FROM";
const COUNT: &str = "FAULTS_COUNT";
const FILLER: &str = "FAULTS_FILLER";
const CHECKPOINTS: &str = "FAULTS_CHECKPOINTS";

impl Task {
    /// The same, with a checkpoint every few commits.
    pub(crate) fn with_checkpoints(self) -> Self {
        let checkpoints = true;
        Self { checkpoints, ..self }
    }

    pub(crate) fn variables(&self) -> [(&'static str, OsString); 6] {
        [
            (JOURNAL, self.journal.clone().into()),
            (LEDGER, self.ledger.clone().into()),
            (FROM, self.from.to_string().into()),
            (COUNT, self.count.to_string().into()),
            (FILLER, self.filler.to_string().into()),
            (CHECKPOINTS, self.checkpoints.to_string().into()),
        ]
    }

    fn given() -> Outcome<Option<Self>> {
        let Some(journal) = std::env::var_os(JOURNAL) else {
            return Ok(None);
        };
        Ok(Some(Self {
            journal: journal.into(),
            ledger: std::env::var_os(LEDGER).ok_or("no ledger")?.into(),
            from: std::env::var(FROM)?.parse()?,
            count: std::env::var(COUNT)?.parse()?,
            filler: std::env::var(FILLER)?.parse()?,
            checkpoints: std::env::var(CHECKPOINTS)?.parse()?,
        }))
    }
}

/// Where the process notes what it was told, one line each, on disk before it goes on.
struct Ledger(RefCell<File>);

impl Ledger {
    fn open(path: &Path) -> Outcome<Self> {
        Ok(Self(RefCell::new(
            OpenOptions::new().create(true).append(true).open(path)?,
        )))
    }

    fn note(&self, line: &str) -> Result<(), String> {
        let noted = || -> std::io::Result<()> {
            let mut file = self.0.borrow_mut();
            file.write_all(format!("{line}\n").as_bytes())?;
            file.sync_data()
        };
        noted().map_err(|error| format!("the ledger: {error}"))?;
        say(line)
    }
}

fn say(line: &str) -> Result<(), String> {
    let mut out = std::io::stdout();
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(|error| error.to_string())
}

async fn submit(
    executor: &Executor,
    ledger: &Ledger,
    number: u64,
    filler: usize,
) -> Result<procession::Handle<Tally>, String> {
    let tally = Tally {
        number,
        filler: "x".repeat(filler),
    };
    let handle = executor.submit(tally).key(number.to_string()).await;
    let handle = handle.map_err(|error| error.to_string())?;
    ledger.note(&format!("acknowledged {number} {}", handle.id()))?;
    Ok(handle)
}

/// Submits its share, and waits for the end of each only when the next is submitted.
async fn client(executor: &Executor, ledger: &Ledger, task: &Task, first: u64) -> Result<(), String> {
    let mut before = None;
    let mut number = first;
    while number < task.from.saturating_add(task.count) {
        let handle = submit(executor, ledger, number, task.filler).await?;
        if let Some((number, before)) = before.replace((number, handle)) {
            ended(&before, ledger, number).await?;
        }
        number += CLIENTS;
    }
    Ok(())
}

async fn ended(handle: &procession::Handle<Tally>, ledger: &Ledger, number: u64) -> Result<(), String> {
    let output = handle.outcome().await.map_err(|error| error.to_string())?;
    if output != number {
        return Err(format!("{number} gave {output}"));
    }
    ledger.note(&format!("ended {number} {}", handle.id()))
}

async fn work(task: Task) -> Outcome {
    let mut builder = engine(&task.journal);
    if task.checkpoints {
        builder = builder.checkpoint_at(SOON);
    }
    let executor = match builder.start().await {
        Ok(executor) => executor,
        Err(error) => return Ok(say(&format!("refused {error}"))?),
    };
    say("started")?;
    let ledger = Ledger::open(&task.ledger)?;
    let clients = (0..CLIENTS).map(|client_number| client(&executor, &ledger, &task, task.from + client_number));
    let failures: Vec<String> = join_all(clients).await.into_iter().filter_map(Result::err).collect();
    for failure in &failures {
        say(&format!("failed {failure}"))?;
    }
    if failures.is_empty() {
        executor.drain(Duration::from_secs(5)).await?;
        return Ok(say("drained")?);
    }
    // It must have stopped for good, and say so to whoever asks.
    for number in 0..AFTERWARDS {
        let late = submit(&executor, &ledger, u64::MAX - number, 0).await;
        let answer = late.map_or_else(|error| format!("late {error}"), |_| "late acknowledged".to_owned());
        say(&answer)?;
    }
    let poisoned = executor.snapshot().await?.poisoned.unwrap_or_default();
    Ok(say(&format!("poisoned {poisoned}"))?)
}

/// Does nothing unless another test started it with a task.
#[test]
fn works_in_another_process() -> Outcome {
    match Task::given()? {
        Some(task) => actix_rt::System::new().block_on(work(task)),
        None => Ok(()),
    }
}
