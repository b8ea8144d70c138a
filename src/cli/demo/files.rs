//! The tablets' files: where they are, and how they are written and moved.
//!
//! Stages run at least once, so each of these may run again after it had its
//! effect, and then does nothing. A file is never seen half written: it is
//! written beside its place, synced, and renamed.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::error::DemoError;
use super::meta::{TabletRow, TabletState};

/// Name of the directory of the servers.
pub const SERVERS: &str = "servers";
/// Name of the directory of the files that no server has loaded.
pub const SHARED: &str = "shared";
/// Ending of a file that is being written.
pub const UNFINISHED: &str = ".tmp";

/// The directories of one world.
#[derive(Debug, Clone)]
pub struct Files {
    root: PathBuf,
    servers: Vec<String>,
}

impl Files {
    /// Makes the directories of `servers` servers below `root`, where they are missing.
    ///
    /// # Errors
    ///
    /// [`DemoError::File`] if one cannot be made.
    pub fn open(root: &Path, servers: u32) -> Result<Self, DemoError> {
        let servers: Vec<String> = (1..=servers).map(|number| format!("s{number}")).collect();
        let shared = root.join(SHARED);
        let directories = servers.iter().map(|server| root.join(SERVERS).join(server));
        for directory in directories.chain([shared]) {
            fs::create_dir_all(&directory).map_err(|error| DemoError::file(&directory, &error))?;
        }
        Ok(Self {
            root: root.to_owned(),
            servers,
        })
    }

    /// Returns the directory of the world.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the names of the servers.
    #[must_use]
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// Returns a server's place of a file.
    #[must_use]
    pub fn on_server(&self, server: &str, file: &str) -> PathBuf {
        self.root.join(SERVERS).join(server).join(file)
    }

    /// Returns a file's place while no server has it.
    #[must_use]
    pub fn in_shared(&self, file: &str) -> PathBuf {
        self.root.join(SHARED).join(file)
    }

    /// Returns the place where a tablet's file belongs.
    #[must_use]
    pub fn place_of(&self, tablet: &TabletRow) -> PathBuf {
        match tablet.state {
            TabletState::Loaded => self.on_server(&tablet.server, &tablet.file()),
            TabletState::Offline => self.in_shared(&tablet.file()),
        }
    }

    /// Writes a new file into the shared directory; what was there is replaced.
    ///
    /// # Errors
    ///
    /// Whatever the system says, with the name of the file.
    pub fn write_shared(&self, file: &str, text: &str) -> io::Result<()> {
        let place = self.in_shared(file);
        let unfinished = self.in_shared(&format!("{file}{UNFINISHED}"));
        write_synced(&unfinished, text).map_err(|error| named(&unfinished, &error))?;
        fs::rename(&unfinished, &place).map_err(|error| named(&place, &error))?;
        sync_directory(&place)
    }

    /// Reads a file of the shared directory.
    ///
    /// # Errors
    ///
    /// Whatever the system says, with the name of the file.
    pub fn read_shared(&self, file: &str) -> io::Result<String> {
        let place = self.in_shared(file);
        fs::read_to_string(&place).map_err(|error| named(&place, &error))
    }

    /// Removes a file of the shared directory, finished or not, if it is there.
    ///
    /// # Errors
    ///
    /// Whatever the system says, with the name of the file.
    pub fn remove_shared(&self, file: &str) -> io::Result<()> {
        for place in [self.in_shared(&format!("{file}{UNFINISHED}")), self.in_shared(file)] {
            match fs::remove_file(&place) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(named(&place, &error)),
                Ok(()) | Err(_) => {}
            }
        }
        sync_directory(&self.in_shared(file))
    }

    /// Gives a server a file of the shared directory.
    ///
    /// # Errors
    ///
    /// Whatever the system says; `NotFound` if the file is in neither place.
    pub fn hand_over(&self, file: &str, server: &str) -> io::Result<()> {
        shift(&self.in_shared(file), &self.on_server(server, file))
    }

    /// Takes a file back from a server.
    ///
    /// # Errors
    ///
    /// Whatever the system says; `NotFound` if the file is in neither place.
    pub fn take_back(&self, file: &str, server: &str) -> io::Result<()> {
        shift(&self.on_server(server, file), &self.in_shared(file))
    }
}

/// Puts a text into a file and onto the disk.
pub(crate) fn write_synced(path: &Path, text: &str) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Moves a file, unless an earlier run of the same stage did.
fn shift(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound && to.exists() => {}
        Err(error) => return Err(named(from, &error)),
    }
    sync_directory(to)?;
    sync_directory(from)
}

/// Makes a rename in the directory of this path outlive a loss of power.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    let Some(directory) = path.parent() else { return Ok(()) };
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| named(directory, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
