//! Where a trial works, in memory if there is room, and what a run is told by variables.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use tempfile::TempDir;

use super::cuts::Cuts;
use super::library::{Between, Fault};
use super::life::Task;
use crate::Outcome;
use crate::other::Other;

/// File system in memory that most systems have.
const MEMORY: &str = "/dev/shm";
/// Room that the trial takes there at most, in bytes.
const ROOM: u64 = 1 << 30;

/// A directory for one trial: a watched one with the journal, and beside it ledger and record.
pub(crate) struct Place {
    directory: TempDir,
    /// The journal's directory below the watched one.
    journal: PathBuf,
}

impl Place {
    pub(crate) fn new(journal: &str) -> Outcome<Self> {
        let room = rustix::fs::statvfs(MEMORY).map(|stats| stats.f_bavail * stats.f_frsize);
        let directory = if room.is_ok_and(|room| room > ROOM) {
            tempfile::Builder::new().prefix("trial").tempdir_in(MEMORY)?
        } else {
            TempDir::new()?
        };
        let place = Self {
            directory,
            journal: journal.into(),
        };
        std::fs::create_dir(place.root())?;
        Ok(place)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The directory that is watched.
    pub(crate) fn root(&self) -> PathBuf {
        self.path().join("disk")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.root().join(&self.journal)
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.path().join("ledger")
    }

    pub(crate) fn record(&self) -> PathBuf {
        self.path().join("record")
    }

    /// So many submissions from this number on.
    pub(crate) fn task(&self, from: u64, count: u64) -> Task {
        Task {
            journal: self.journal(),
            ledger: self.ledger(),
            from,
            count,
            filler: 0,
            checkpoint: 6_000,
            drains: true,
        }
    }

    /// Lives once, on record; gives how it ended, and what it said.
    pub(crate) fn live(&self, task: &Task, fault: Option<&Fault>) -> Outcome<(ExitStatus, Vec<String>)> {
        let mut command = task.command()?;
        self.watch(&mut command, fault)?;
        Other::start(command)?.end()
    }

    fn watch(&self, command: &mut Command, fault: Option<&Fault>) -> Outcome {
        let (root, ledger, record) = (self.root(), self.ledger(), self.record());
        let between = Between {
            below: &root,
            ledger: Some(&ledger),
            record: Some(&record),
            list: None,
            fault,
        };
        between.stand(command)
    }

    /// Lives once, on record, and works to the end of its task.
    pub(crate) fn live_well(&self, task: &Task) -> Outcome {
        let (status, lines) = self.live(task, None)?;
        let last = if task.drains { "drained" } else { "dies" };
        if lines.last().is_some_and(|line| line.ends_with(last)) || lines.iter().any(|line| line == last) {
            return Ok(());
        }
        Err(format!("it should have {last}: {status}: {}", lines.join(" | ")).into())
    }

    /// Power cuts over what was recorded so far. A record that misses something is an error.
    pub(crate) fn cuts(&self) -> Outcome<Cuts> {
        let cuts = Cuts::new(&self.record(), &self.root(), &self.journal);
        cuts.is_complete()?;
        Ok(cuts)
    }
}

/// Returns the seed of this run: another one each time, unless `TRIAL_SEED` says which.
pub(crate) fn seed() -> u64 {
    let given = std::env::var("TRIAL_SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| u64::from(std::process::id()))
}

/// Returns how many of something are tried: so many thousandths of `TRIAL_STATES`, or so many if that says nothing.
pub(crate) fn states(share: usize, otherwise: usize) -> usize {
    let given: Option<usize> = std::env::var("TRIAL_STATES").ok().and_then(|text| text.parse().ok());
    given.map_or(otherwise, |states| (states * share).div_ceil(1_000))
}
