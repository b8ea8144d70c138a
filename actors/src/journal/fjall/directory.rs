//! The directory around the store: its holder, whether it is a journal at all, and the newest acknowledged commit.
//! Nothing in it is written before its locks are held.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use procession_kernel::{Epoch, Seq};
use xxhash_rust::xxh3::xxh3_64;

use super::locks::{Locks, StoreLock};
use super::remedy::advise;
use super::unfinished::holds_commits;
use crate::error::StoreError;
use crate::journal::store::DiskRoom;

/// Locked by the owner while the journal is open; its text names the owner.
pub(super) const OWNER: &str = "owner";
/// The newest acknowledged commit.
const WATERMARK: &str = "watermark";
/// The files of the LSM store.
pub(super) const STORE: &str = "store";
/// Exists while the store is being created, when nothing in it was acknowledged yet.
const UNFINISHED: &str = "store.unfinished";
/// A folder that a fresh file system may hold.
const HARMLESS: &str = "lost+found";

/// A locked journal directory.
#[derive(Debug)]
pub(super) struct Directory {
    place: PathBuf,
    watermark: File,
    // Released last.
    locks: Locks,
}

/// Returns the free room around a directory, if the system tells.
pub(crate) fn room_of(place: &Path) -> Option<DiskRoom> {
    let stats = fs4::statvfs(place).ok()?;
    Some(DiskRoom {
        free: stats.available_space(),
        whole: stats.total_space(),
    })
}

impl Directory {
    /// Creates the directory if necessary, and locks it. The lock of its store must be kept until fjall takes it.
    pub(super) fn take(place: &Path) -> Result<(Self, StoreLock), StoreError> {
        fs::create_dir_all(place).map_err(|error| refused(place, "it cannot be made", &error))?;
        refuse_foreign(place)?;
        let (locks, store) = Locks::take(place)?;
        let directory = Self {
            place: place.to_owned(),
            watermark: open_watermark(place)?,
            locks,
        };
        // The text is only for people, so a failure to write it is ignored.
        directory.write_owner().ok();
        Ok((directory, store))
    }

    /// Returns the free room around the directory, if the system tells.
    pub(super) fn room(&self) -> Option<DiskRoom> {
        room_of(&self.place)
    }

    /// Returns the path of the LSM store.
    pub(super) fn store(&self) -> PathBuf {
        self.place.join(STORE)
    }

    /// Returns `true` if a store must still be created; leftovers of an interrupted attempt are removed. A store with
    /// a commit is never such a leftover, whatever the attempt's mark says. If names are not synced in order, a power
    /// cut may restore that mark.
    pub(super) fn is_vacant(&self) -> Result<bool, StoreError> {
        let refused = |error: io::Error| refused(&self.place, "it cannot be read", &error);
        let exists = self.store().try_exists().map_err(refused)?;
        match (exists, self.mark()) {
            (true, None) if self.place.join(UNFINISHED).try_exists().map_err(refused)? => {
                if holds_commits(&self.store()).map_err(refused)? {
                    return Ok(false);
                }
                fs::remove_dir_all(self.store()).map_err(refused)?;
                Ok(true)
            }
            (true, _) => Ok(false),
            (false, None) => Ok(true),
            (false, Some((epoch, seq))) => Err(self.damaged(format!(
                "commits up to {seq} of epoch {epoch} were acknowledged, and the folder \"{STORE}\" is missing"
            ))),
        }
    }

    /// Marks the store as being created, so that leftovers of a crash can be removed. All names on the path to it
    /// must be made durable as well, since this start or an interrupted one may have created each of them.
    pub(super) fn begin_store(&self) -> Result<(), StoreError> {
        let written = |error: io::Error| refused(&self.place, "it cannot be written", &error);
        File::create(self.place.join(UNFINISHED))
            .and_then(|file| file.sync_all())
            .and_then(|()| sync_directory(&self.place))
            .map_err(written)?;
        let place = std::path::absolute(&self.place).map_err(written)?;
        for folder in place.ancestors().skip(1) {
            match sync_directory(folder) {
                // Whoever creates a folder may read it, so this folder existed before.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                synced => synced.map_err(|error| {
                    refused(
                        &self.place,
                        &format!("the name of {} cannot be synced", folder.display()),
                        &error,
                    )
                })?,
            }
        }
        Ok(())
    }

    /// Puts the names in an existing store on stable storage, before anything depends on them. An earlier owner may
    /// have been killed, or refused by the disk, between a change of names and its sync. This precedes fjall's
    /// opening, which removes files that an older state of the names still needs.
    pub(super) fn sync_names(&self) -> Result<(), StoreError> {
        let names = self
            .names()
            .map_err(|error| refused(&self.place, "it cannot be read", &error))?;
        for folder in names {
            sync_directory(&folder)
                .map_err(|error| refused(&self.place, &format!("{} cannot be synced", folder.display()), &error))?;
        }
        Ok(())
    }

    /// Returns the directory and its parent, the folders of the store, and those of each keyspace.
    pub(super) fn names(&self) -> io::Result<Vec<PathBuf>> {
        let keyspaces = self.store().join("keyspaces");
        let mut folders = vec![self.place.clone(), self.store(), keyspaces.clone()];
        let place = std::path::absolute(&self.place)?;
        folders.extend(place.parent().map(Path::to_owned));
        for entry in fs::read_dir(keyspaces)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
        Ok(folders)
    }

    /// Removes the mark of creation, if a power cut has restored it.
    pub(super) fn forget_making(&self) -> Result<(), StoreError> {
        match fs::remove_file(self.place.join(UNFINISHED)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed
                .and_then(|()| sync_directory(&self.place))
                .map_err(|error| refused(&self.place, "it cannot be written", &error)),
        }
    }

    /// Marks the store as created; no commit may be acknowledged before.
    pub(super) fn finish_store(&self) -> Result<(), StoreError> {
        sync_directory(&self.store())
            .and_then(|()| fs::remove_file(self.place.join(UNFINISHED)))
            .and_then(|()| sync_directory(&self.place))
            .map_err(|error| refused(&self.place, "it cannot be written", &error))
    }

    /// Returns the newest commit that is known to have been acknowledged.
    ///
    /// An unreadable mark counts as no mark. The store itself is the authority; the mark only tells when some of it
    /// is missing.
    pub(super) fn mark(&self) -> Option<(Epoch, Seq)> {
        let mut bytes = [0; 24];
        let mut file = &self.watermark;
        file.seek(SeekFrom::Start(0)).ok()?;
        file.read_exact(&mut bytes).ok()?;
        let number = |index: usize| -> Option<u64> {
            Some(u64::from_be_bytes(
                bytes.get(index * 8..index * 8 + 8)?.try_into().ok()?,
            ))
        };
        (xxh3_64(bytes.get(..16)?) == number(2)?).then_some((Epoch(number(0)?), Seq(number(1)?)))
    }

    /// Records an acknowledged commit, without a sync. The write goes out after the commit's own, so a power cut can
    /// leave the mark behind, but never ahead.
    pub(super) fn set_mark(&self, epoch: Epoch, seq: Seq) {
        let mut bytes = [0; 24];
        let numbers = [epoch.0, seq.0];
        for (to, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_be_bytes());
        }
        let sum = xxh3_64(bytes.get(..16).unwrap_or_default());
        for to in bytes.chunks_exact_mut(8).skip(2) {
            to.copy_from_slice(&sum.to_be_bytes());
        }
        // An old mark is still a true one, so a failure here loses nothing.
        write_at_start(&self.watermark, &bytes).ok();
    }

    /// Puts the mark on stable storage when an owner leaves in order.
    pub(super) fn sync_mark(&self) -> io::Result<()> {
        self.watermark.sync_data()
    }

    pub(super) fn damaged(&self, why: impl Into<String>) -> StoreError {
        StoreError::Damaged {
            place: self.place.display().to_string(),
            why: why.into(),
        }
    }

    pub(super) fn refused(&self, what: &str, error: &io::Error) -> StoreError {
        refused(&self.place, what, error)
    }

    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    fn write_owner(&self) -> io::Result<()> {
        let program = std::env::current_exe()
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .unwrap_or_default();
        let Some(mut file) = self.locks.owner() else {
            return Ok(());
        };
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(
            format!("process {} {program}", std::process::id())
                .trim_end()
                .as_bytes(),
        )
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // The next process that finds the lock taken must not read the name of this owner.
        if let Some(owner) = self.locks.owner() {
            owner.set_len(0).ok();
        }
    }
}

/// Returns `true` if a store was created in the directory. A store with a commit was, whatever the mark of creation
/// says.
pub(super) fn holds_store(place: &Path) -> bool {
    let store = place.join(STORE);
    let is_made = || !place.join(UNFINISHED).exists() || holds_commits(&store).unwrap_or(true);
    store.is_dir() && is_made()
}

/// Returns the name of the engine that holds the directory, if any does.
pub(super) fn holder(place: &Path) -> Result<Option<String>, StoreError> {
    if !place.exists() {
        return Ok(None);
    }
    match Locks::share(place) {
        Ok(_) => Ok(None),
        Err(StoreError::Held { holder, .. }) => Ok(Some(holder.trim().to_owned())),
        Err(error) => Err(error),
    }
}

/// A journal locked for reading, beside other readers. Nothing in its directory is written.
pub(super) struct Looked<'a> {
    place: &'a Path,
    _locks: Locks,
}

impl<'a> Looked<'a> {
    pub(super) fn hold(place: &'a Path) -> Result<Self, StoreError> {
        if !holds_store(place) {
            return Err(StoreError::Io {
                place: place.display().to_string(),
                why: "there is no journal in it".to_owned(),
            });
        }
        let locks = Locks::share(place)?;
        Ok(Self { place, _locks: locks })
    }

    /// Returns the files that a copy needs, each with its name in the copy: the mark, and the files of the store.
    pub(super) fn files(&self) -> io::Result<Vec<(PathBuf, PathBuf)>> {
        let mut files = Vec::new();
        if self.place.join(WATERMARK).try_exists()? {
            files.push((self.place.join(WATERMARK), PathBuf::from(WATERMARK)));
        }
        let mut folders = vec![PathBuf::from(STORE)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(self.place.join(&folder))? {
                let entry = entry?;
                let name = folder.join(entry.file_name());
                if entry.file_type()?.is_dir() {
                    folders.push(name);
                } else {
                    files.push((entry.path(), name));
                }
            }
        }
        files.sort_unstable();
        Ok(files)
    }
}

/// Puts the names in a directory on stable storage.
pub(super) fn sync_directory(path: &Path) -> io::Result<()> {
    // Other systems cannot open a directory, and write names through.
    if cfg!(unix) {
        File::open(path)?.sync_all()
    } else {
        Ok(())
    }
}

pub(super) fn refused(place: &Path, what: &str, error: &io::Error) -> StoreError {
    StoreError::Io {
        place: place.display().to_string(),
        why: format!("{what}: {}", advise(error)),
    }
}

/// A new mark is synced to make the file durable; its name is synced with the directory's other names.
/// One system call, where the system has one for it: each commit makes this.
#[cfg(unix)]
fn write_at_start(file: &File, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, 0)
}

#[cfg(not(unix))]
fn write_at_start(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(bytes)
}

fn open_watermark(place: &Path) -> Result<File, StoreError> {
    let opened = OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(place.join(WATERMARK));
    let synced = opened.and_then(|file| {
        if file.metadata()?.len() == 0 {
            file.sync_all()?;
        }
        Ok(file)
    });
    synced.map_err(|error| refused(place, &format!("its file \"{WATERMARK}\" cannot be opened"), &error))
}

/// Refuses a directory with other files: a mistyped path must not turn somebody's files into a journal. Any one of
/// the journal's own names identifies it, since a power cut during its creation may leave any of them alone.
fn refuse_foreign(place: &Path) -> Result<(), StoreError> {
    let refused = |error: io::Error| refused(place, "it cannot be read", &error);
    let mut foreign = None;
    for entry in fs::read_dir(place).map_err(refused)? {
        let name = entry.map_err(refused)?.file_name();
        if [OWNER, WATERMARK, STORE, UNFINISHED].iter().any(|own| name == *own) {
            return Ok(());
        }
        if name != HARMLESS {
            foreign = Some(name);
        }
    }
    foreign.map_or(Ok(()), |name| {
        Err(StoreError::Io {
            place: place.display().to_string(),
            why: format!(
                "it holds other files, {} among them, and no journal; choose an empty directory",
                name.display()
            ),
        })
    })
}
