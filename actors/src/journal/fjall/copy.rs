//! A private copy of a journal. Opening may change a store, for example by cutting a torn tail, and then changes only
//! the copy. Hard links would not do: the store appends to its newest log.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::directory::{Looked, refused, room_of};
use crate::error::StoreError;
use crate::journal::store::DiskRoom;

/// Copies a journal that no engine holds into an empty directory.
pub(super) fn copy(place: &Path, to: &Path) -> Result<(), StoreError> {
    let looked = Looked::hold(place)?;
    let unread = |error: io::Error| refused(place, "it cannot be read", &error);
    let files = looked.files().map_err(unread)?;
    let mut bytes = 0_u64;
    for (from, _) in &files {
        bytes = bytes.saturating_add(fs::metadata(from).map_err(unread)?.len());
    }
    let no_copy = |path: &Path, error: &io::Error| {
        let what = format!(
            "a private copy of {bytes} bytes cannot be made of {}: {}",
            place.display(),
            path.display()
        );
        refused(to, &what, error)
    };
    // Checked before the disk is full, since other programs may need the rest of it.
    has_room(bytes, room_of(to)).map_err(|error| no_copy(to, &error))?;
    let copied = files
        .iter()
        .try_for_each(|(from, name)| copy_file(from, &to.join(name)));
    copied.map_err(|(path, error)| no_copy(&path, &error))
}

fn has_room(bytes: u64, room: Option<DiskRoom>) -> io::Result<()> {
    match room.filter(|room| room.free < bytes) {
        Some(room) => Err(io::Error::new(
            io::ErrorKind::StorageFull,
            format!("{} bytes are free there", room.free),
        )),
        None => Ok(()),
    }
}

fn copy_file(from: &Path, to: &Path) -> Result<(), (PathBuf, io::Error)> {
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(|error| (folder.to_owned(), error))?;
    fs::copy(from, to).map_err(|error| (from.to_owned(), error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_does_not_fit_is_refused_before_it_is_begun() {
        let room = |free| Some(DiskRoom { free, whole: 100 });
        assert!(has_room(7, None).is_ok());
        assert!(has_room(7, room(7)).is_ok());
        let refused = has_room(8, room(7)).map_err(|error| super::super::remedy::advise(&error));
        assert_eq!(refused, Err("7 bytes are free there; make room".to_owned()));
    }

    #[test]
    fn the_room_of_a_real_directory_is_told() {
        let room = room_of(&std::env::temp_dir()).expect("the system tells");
        assert!(room.free > 0 && room.free <= room.whole, "{room:?}");
    }
}
