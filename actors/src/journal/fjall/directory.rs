//! The directory around the store: who holds it, whether it is a journal at
//! all, and the newest commit that was acknowledged. It never looks into the
//! files of the store itself.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use procession_kernel::{Epoch, Seq};
use xxhash_rust::xxh3::xxh3_64;

use super::remedy::advise;
use crate::error::StoreError;
use crate::journal::store::DiskRoom;

/// Locked by the owner while the journal is open; its text says who that is.
const OWNER: &str = "owner";
/// The newest acknowledged commit.
const WATERMARK: &str = "watermark";
/// The files of the LSM store.
const STORE: &str = "store";
/// There while the store is being made, when nothing in it was acknowledged yet.
const UNFINISHED: &str = "store.unfinished";
/// What a fresh file system may hold.
const HARMLESS: &str = "lost+found";

/// A locked journal directory.
#[derive(Debug)]
pub(super) struct Directory {
    place: PathBuf,
    owner: File,
    watermark: File,
}

/// Gives the room that is left around a directory, if the system tells.
pub(crate) fn room_of(place: &Path) -> Option<DiskRoom> {
    let stats = fs4::statvfs(place).ok()?;
    Some(DiskRoom {
        free: stats.available_space(),
        whole: stats.total_space(),
    })
}

impl Directory {
    /// Makes the directory if need be, and locks it.
    pub(super) fn take(place: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(place).map_err(|error| refused(place, "it cannot be made", &error))?;
        refuse_foreign(place)?;
        let mut owner = open_file(place, OWNER)?;
        lock(place, &mut owner)?;
        let watermark = open_file(place, WATERMARK)?;
        let directory = Self {
            place: place.to_owned(),
            owner,
            watermark,
        };
        // The text is for people only: not worth a refusal.
        directory.write_owner().ok();
        Ok(directory)
    }

    /// Gives the room that is left around it, if the system tells.
    pub(super) fn room(&self) -> Option<DiskRoom> {
        room_of(&self.place)
    }

    /// Gives the path of the LSM store.
    pub(super) fn store(&self) -> PathBuf {
        self.place.join(STORE)
    }

    /// Tells whether a store has still to be made; what an interrupted attempt left is removed.
    pub(super) fn is_vacant(&self) -> Result<bool, StoreError> {
        let refused = |error: io::Error| refused(&self.place, "it cannot be read", &error);
        let exists = self.store().try_exists().map_err(refused)?;
        match (exists, self.mark()) {
            (true, None) if self.place.join(UNFINISHED).try_exists().map_err(refused)? => {
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

    /// Says that the store is being made, and that what a crash leaves of it is worth nothing.
    pub(super) fn begin_store(&self) -> Result<(), StoreError> {
        let made = File::create(self.place.join(UNFINISHED)).and_then(|file| file.sync_all());
        // The directory may be new itself; that its name lasts matters as much.
        let parent = self
            .place
            .parent()
            .filter(|path| !path.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        made.and_then(|()| sync_directory(&self.place))
            .and_then(|()| sync_directory(parent))
            .map_err(|error| refused(&self.place, "it cannot be written", &error))
    }

    /// Says that the store is made; only from now on may a commit be acknowledged.
    pub(super) fn finish_store(&self) -> Result<(), StoreError> {
        sync_directory(&self.store())
            .and_then(|()| fs::remove_file(self.place.join(UNFINISHED)))
            .and_then(|()| sync_directory(&self.place))
            .map_err(|error| refused(&self.place, "it cannot be written", &error))
    }

    /// Gives the newest commit that is known to have been acknowledged.
    ///
    /// A mark that cannot be read is as good as none: the store itself is the
    /// authority, the mark only tells when some of it is gone.
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

    /// Notes an acknowledged commit, without a sync. The write goes out after
    /// that of the commit, so a power cut can leave the mark behind, never ahead.
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
        let mut file = &self.watermark;
        // An old mark is still a true one, so a failure here loses nothing.
        file.seek(SeekFrom::Start(0)).and_then(|_| file.write_all(&bytes)).ok();
    }

    /// Puts the mark on stable storage, where an owner leaves in order.
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
        let mut file = &self.owner;
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
        // The next one who finds the lock taken shall not read of this owner.
        self.owner.set_len(0).ok();
    }
}

/// Tells whether a store was made in the directory.
pub(super) fn holds_store(place: &Path) -> bool {
    place.join(STORE).is_dir() && !place.join(UNFINISHED).exists()
}

/// Says who holds the directory, if anybody does.
pub(super) fn holder(place: &Path) -> Result<Option<String>, StoreError> {
    let path = place.join(OWNER);
    let mut owner = match OpenOptions::new().read(true).write(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(place, "it cannot be read", &error)),
    };
    match lock(place, &mut owner) {
        Ok(()) => Ok(None),
        Err(StoreError::Held { holder, .. }) => Ok(Some(holder.trim().to_owned())),
        Err(error) => Err(error),
    }
}

/// A journal that is looked at, and held meanwhile. Nothing in its directory is written.
pub(super) struct Looked<'a> {
    place: &'a Path,
    /// None if the file of its owner is missing: no engine can hold it then.
    _owner: Option<File>,
}

impl<'a> Looked<'a> {
    pub(super) fn hold(place: &'a Path) -> Result<Self, StoreError> {
        if !holds_store(place) {
            return Err(StoreError::Io {
                place: place.display().to_string(),
                why: "there is no journal in it".to_owned(),
            });
        }
        let owner = match File::open(place.join(OWNER)) {
            Ok(mut file) => lock(place, &mut file).map(|()| Some(file))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(refused(place, "its file \"owner\" cannot be read", &error)),
        };
        Ok(Self { place, _owner: owner })
    }

    /// Gives what a copy must have, each with its name there: the mark, and the files of the store.
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
    // Other systems cannot open a directory, and write its names through.
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

fn open_file(place: &Path, name: &str) -> Result<File, StoreError> {
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(place.join(name))
        .map_err(|error| refused(place, &format!("its file \"{name}\" cannot be opened"), &error))
}

fn lock(place: &Path, owner: &mut File) -> Result<(), StoreError> {
    match owner.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::Error(error)) => Err(refused(place, "it cannot be locked", &error)),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // Where the lock also keeps readers out, the name stays unknown.
            owner.read_to_string(&mut text).ok();
            let holder = if text.is_empty() { text } else { format!(" ({text})") };
            Err(StoreError::Held {
                place: place.display().to_string(),
                holder,
            })
        }
    }
}

/// A mistyped path must not turn somebody's files into a journal.
fn refuse_foreign(place: &Path) -> Result<(), StoreError> {
    let refused = |error: io::Error| refused(place, "it cannot be read", &error);
    let mut foreign = None;
    for entry in fs::read_dir(place).map_err(refused)? {
        let name = entry.map_err(refused)?.file_name();
        if name == OWNER || name == WATERMARK || name == STORE {
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
