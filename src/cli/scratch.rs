//! The directory for private copies of journals. It is removed at the end, and on the signals that end the program; what
//! a killed program left is removed at the next run.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::exit::Failure;
use super::signals;

/// How directories with copies are called. None has this name before its lock is held.
const PREFIX: &str = "procession-copy.";
/// How they are called before.
const NEW: &str = "procession-new.";
/// The file that is locked as long as the program lives.
const LOCK: &str = "lock";
/// How often a removal is tried that another thread disturbs, which still copies into the directory.
const TRIES: u32 = 50;
const TRY_AGAIN: Duration = Duration::from_millis(10);

/// A directory for copies, which goes with this value.
pub(super) struct Scratch {
    directory: PathBuf,
    _lock: File,
}

impl Scratch {
    /// Creates the directory, and removes those of programs that were killed.
    pub(super) fn begin() -> Result<Self, Failure> {
        let parent = std::env::temp_dir();
        let made = Self::make(&parent).map_err(|error| {
            Failure::new(format!(
                "no private copy of the journal can be made in {}: {error}; set TMPDIR to a directory with room",
                parent.display()
            ))
        })?;
        // Whatever cannot be removed takes room, and harms nothing.
        drop(remove_leftovers(&parent, &made.directory));
        Ok(made)
    }

    fn make(parent: &Path) -> io::Result<Self> {
        let new = private(parent)?;
        let lock = File::create(new.path().join(LOCK))?;
        lock.lock()?;
        // Another program takes an unlocked directory of the final name for a leftover.
        let name = new
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let directory = parent.join(name.replacen(NEW, PREFIX, 1));
        std::fs::rename(new.path(), &directory)?;
        // It has another name by now, and goes with this value.
        drop(new.keep());
        let doomed = directory.clone();
        signals::before_the_end(move || remove(&doomed))?;
        Ok(Self { directory, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

fn private(parent: &Path) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(NEW);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.tempdir_in(parent)
}

fn remove(directory: &Path) {
    for _ in 0..TRIES {
        match std::fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::sleep(TRY_AGAIN),
            Ok(()) | Err(_) => return,
        }
    }
}

/// Removes the directories whose lock nobody holds: their programs have ended without removing them.
fn remove_leftovers(parent: &Path, own: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(parent)? {
        let entry = entry?;
        let is_copy = entry.file_name().to_string_lossy().starts_with(PREFIX) && entry.file_type()?.is_dir();
        if is_copy && entry.path() != own && has_same_owner(&entry.path(), own) {
            remove_if_left(&entry.path());
        }
    }
    Ok(())
}

/// Where the lock cannot be opened or asked, somebody may still need the directory.
fn remove_if_left(directory: &Path) {
    let Ok(lock) = File::open(directory.join(LOCK)) else {
        return;
    };
    match lock.try_lock() {
        Ok(()) => remove(directory),
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
    }
}

#[cfg(unix)]
fn has_same_owner(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = |path: &Path| std::fs::symlink_metadata(path).map(|metadata| metadata.uid()).ok();
    owner(one).is_some() && owner(one) == owner(other)
}

#[cfg(not(unix))]
const fn has_same_owner(_: &Path, _: &Path) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_program_left_is_removed_and_what_one_uses_stays() {
        let parent = tempfile::tempdir().unwrap();
        let in_use = Scratch::make(parent.path()).unwrap();
        let left = parent.path().join("procession-copy.left");
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join(LOCK), "").unwrap();
        let other = parent.path().join("procession-copy.other");
        std::fs::create_dir(&other).unwrap();
        let own = Scratch::make(parent.path()).unwrap();
        remove_leftovers(parent.path(), own.path()).unwrap();
        assert!(in_use.path().is_dir() && own.path().is_dir() && !left.exists());
        assert!(other.is_dir(), "nothing says that it is a leftover");
        let path = own.path().to_owned();
        drop(own);
        assert!(!path.exists());
    }
}
