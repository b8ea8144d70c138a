//! Notices when the newest log is no longer the file that has its name: removed, renamed, copied over, or with
//! its whole directory put elsewhere. What is written to it from then on, no start would find.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::locks::{identity, identity_of_name};
use super::log_files::numbered;

/// Commits after which a change of logs is looked for. Until then the old log is watched, which stays for as long
/// as it is needed; the new one could be taken away for so many commits before that is noticed.
const COMMITS: u32 = 64;

/// The log that is watched.
pub(super) struct LogWatch {
    store: PathBuf,
    number: u64,
    path: PathBuf,
    /// The file and its identity, which no other can get while it is open.
    held: (File, Option<(u64, u64)>),
    commits: u32,
}

impl LogWatch {
    /// Watches the newest log of a store that is open.
    pub(super) fn new(store: &Path) -> io::Result<Self> {
        // Whoever uses it may change its working directory.
        let store = std::path::absolute(store)?;
        let (number, path) = newest(&store)?;
        Ok(Self {
            held: hold(&path)?,
            store,
            number,
            path,
            commits: 0,
        })
    }

    /// Is asked behind each commit, before it is acknowledged: one question to the system.
    ///
    /// # Errors
    ///
    /// Says which file is another.
    pub(super) fn check(&mut self) -> Result<(), String> {
        self.commits += 1;
        if self.commits >= COMMITS {
            self.commits = 0;
            self.follow();
        }
        // fjall removes a log once tables hold what is in it; by then there is a newer one.
        if self.is_named() || (self.follow() && self.is_named()) {
            return Ok(());
        }
        Err(format!(
            "{} is not the log any more that this engine writes to: it was removed, renamed or replaced. Keep \
             others out of the directory, and start again",
            self.path.display()
        ))
    }

    fn is_named(&self) -> bool {
        !cfg!(unix) || identity_of_name(&self.path) == self.held.1
    }

    /// Goes on with a newer log of this process, and tells whether there was one. One that cannot be looked for now
    /// is looked for again; it is the old one that decides.
    fn follow(&mut self) -> bool {
        let Ok((number, path)) = newest(&self.store) else {
            return false;
        };
        if number <= self.number || !is_open_here(&path) {
            return false;
        }
        let Ok(held) = hold(&path) else { return false };
        (self.number, self.path, self.held) = (number, path, held);
        true
    }
}

fn hold(path: &Path) -> io::Result<(File, Option<(u64, u64)>)> {
    let file = File::open(path)?;
    let identity = identity(file.metadata());
    Ok((file, identity))
}

fn newest(store: &Path) -> io::Result<(u64, PathBuf)> {
    let logs = numbered(store)?;
    logs.into_iter()
        .max()
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no log"))
}

/// A log that another process has begun is none of this engine. Only Linux tells; elsewhere each new one counts.
fn is_open_here(path: &Path) -> bool {
    let Ok(files) = std::fs::read_dir("/proc/self/fd") else {
        return true;
    };
    let wanted = identity(path.metadata());
    wanted.is_some() && files.flatten().any(|file| identity(file.path().metadata()) == wanted)
}
