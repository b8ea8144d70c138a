//! A private copy of a journal: what opening does to a store, be it the cut of a torn
//! tail, is done to the copy. Links would not do: the store appends to its newest log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::directory::{Looked, refused};
use crate::error::StoreError;

/// Copies a journal that nobody holds into an empty directory.
pub(super) fn copy(place: &Path, to: &Path) -> Result<(), StoreError> {
    let looked = Looked::hold(place)?;
    let unread = |error: io::Error| refused(place, "it cannot be read", &error);
    let files = looked.files().map_err(unread)?;
    let mut bytes = 0;
    for (from, _) in &files {
        bytes += fs::metadata(from).map_err(unread)?.len();
    }
    let copied = files
        .iter()
        .try_for_each(|(from, name)| copy_file(from, &to.join(name)));
    copied.map_err(|(path, error)| {
        let what = format!(
            "a private copy of {bytes} bytes cannot be made of {}: {}",
            place.display(),
            path.display()
        );
        refused(to, &what, &error)
    })
}

fn copy_file(from: &Path, to: &Path) -> Result<(), (PathBuf, io::Error)> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(|error| (folder.to_owned(), error))?;
    fs::copy(from, to).map_err(|error| (from.to_owned(), error))?;
    Ok(())
}
