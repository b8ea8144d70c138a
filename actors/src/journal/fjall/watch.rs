//! Notices when the newest log is no longer the file of that name: removed, renamed, overwritten by a copy, or moved
//! with its whole directory. No start would find what is written to it from then on.

mod alarm;

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use self::alarm::Alarm;
use super::locks::{identity, identity_of_name};
use super::log_files::{named, numbered};

/// Commits between two checks for a newer log. Meanwhile the old log is watched, which exists as long as it is
/// needed. The new log could be removed for this many commits before that is noticed.
const COMMITS: u32 = 64;

/// The log that is watched.
pub(super) struct LogWatch {
    store: PathBuf,
    number: u64,
    path: PathBuf,
    /// The file and its identity, which no other file can get while it is open.
    held: (File, Option<(u64, u64)>),
    /// Set for `path`; where there is none, each commit walks the path.
    alarm: Option<Alarm>,
    commits: u32,
}

impl LogWatch {
    /// Watches the newest log of an open store.
    pub(super) fn new(store: &Path) -> io::Result<Self> {
        // The host may change its working directory.
        let store = std::path::absolute(store)?;
        let (number, path) = newest(&store)?;
        let alarm = Alarm::set(&path);
        Ok(Self {
            held: hold(&path)?,
            store,
            number,
            path,
            alarm,
            commits: 0,
        })
    }

    /// Returns the number of the watched log, and the file: up to 64 commits behind the newest log.
    pub(super) const fn log(&self) -> (u64, &File) {
        (self.number, &self.held.0)
    }

    /// Checks the log after each commit, before it is acknowledged. It costs one system call.
    ///
    /// # Errors
    ///
    /// Returns a text that names the file that was replaced.
    pub(super) fn check(&mut self) -> Result<(), String> {
        if !self.is_followed() && self.is_silent() {
            return Ok(());
        }
        // fjall removes a log once tables hold its contents; by then there is a newer log.
        if self.is_named() || (self.follow() && self.is_named()) {
            return Ok(());
        }
        Err(format!(
            "{} is no longer the log that this engine writes to: it was removed, renamed or replaced. Keep \
             others out of the directory, and start again",
            self.path.display()
        ))
    }

    /// Looks for a newer log now and then, and returns `true` if it is watched from now on. The directory is listed only
    /// if the next log exists: numbers follow each other, and a log is not removed before the older ones, whose end
    /// rings the alarm.
    fn is_followed(&mut self) -> bool {
        self.commits += 1;
        if self.commits < COMMITS {
            return false;
        }
        self.commits = 0;
        let next = named(&self.store, self.number + 1);
        !matches!(next.try_exists(), Ok(false)) && self.follow()
    }

    /// Returns `true` if the path leads where it led. An alarm that has rung is set anew, for the directories that
    /// are above the log now, before the path is walked.
    fn is_silent(&mut self) -> bool {
        let is_silent = self.alarm.as_ref().is_some_and(Alarm::is_silent);
        if !is_silent && self.alarm.is_some() {
            self.alarm = Alarm::set(&self.path);
        }
        is_silent
    }

    fn is_named(&self) -> bool {
        !cfg!(unix) || identity_of_name(&self.path) == self.held.1
    }

    /// Switches to a newer log of this process, and returns `true` if there was one. If the search fails it is
    /// repeated later; until then the old log decides.
    fn follow(&mut self) -> bool {
        let Ok((number, path)) = newest(&self.store) else {
            return false;
        };
        if number <= self.number || !is_open_here(&path) {
            return false;
        }
        let Ok(held) = hold(&path) else { return false };
        (self.alarm, self.number, self.path, self.held) = (Alarm::set(&path), number, path, held);
        true
    }
}

fn hold(path: &Path) -> io::Result<(File, Option<(u64, u64)>)> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let identity = identity(file.metadata());
    Ok((file, identity))
}

fn newest(store: &Path) -> io::Result<(u64, PathBuf)> {
    let logs = numbered(store)?;
    logs.into_iter()
        .max()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no log"))
}

/// A log that another process created does not belong to this engine. Only Linux can tell; elsewhere every new log
/// counts.
fn is_open_here(path: &Path) -> bool {
    let Ok(files) = std::fs::read_dir("/proc/self/fd") else {
        return true;
    };
    let wanted = identity(path.metadata());
    wanted.is_some() && files.flatten().any(|file| identity(file.path().metadata()) == wanted)
}
