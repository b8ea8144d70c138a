//! The file of the figures: read whole, and replaced whole, so that a crash leaves the old one or the new one.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::saved::{BYTES_MAX, Saved, Unreadable};

/// What a file was found to be.
pub(super) enum Found {
    /// There is none.
    Nothing,
    Figures(Box<Saved>),
    /// It was moved there, because it cannot be read.
    SetAside(PathBuf, Unreadable),
}

/// Reads the figures of this store. A file that holds none is moved out of the way.
pub(super) fn read(path: &Path, store: u64) -> io::Result<Found> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    // One byte more than may be there: whatever is longer is not ours.
    file.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    let read = match bytes.len() > BYTES_MAX {
        true => Err(Unreadable::Foreign),
        false => Saved::of_bytes(&bytes, store),
    };
    match read {
        Ok(saved) => Ok(Found::Figures(Box::new(saved))),
        Err(why) => {
            let aside = beside(path, ".unreadable");
            fs::rename(path, &aside)?;
            Ok(Found::SetAside(aside, why))
        }
    }
}

/// Replaces the file. It is synced before it gets its name; a file that was not written whole is removed, since the disk
/// may be full.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = beside(path, ".new");
    let written = File::create(&new)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_data()
        })
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        // It may not be there; why it was not written is what counts.
        fs::remove_file(&new).ok();
    }
    written
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
