//! The locks of a journal's directory: one engine, or any number of readers.
//!
//! Three files are locked, in this order, and nothing in the directory is written before the last is locked:
//! - the directory itself, which cannot be removed from under its lock while it holds files;
//! - `owner`, the only file that older releases lock; but anybody can remove it, and then another file is locked;
//! - the lock of fjall's store, for an engine of an older release whose `owner` was removed. fjall takes it itself
//!   when it opens the store, so it is released just before; the directory's lock keeps others out meanwhile.
//!
//! Once locked, each file is compared with the file of that name: a file that was replaced meanwhile guards nothing.
//! Some file systems, such as NFS, cannot lock a directory. There `owner` and fjall's lock must suffice, and a
//! removed `owner` lets the next engine in as far as fjall's lock. An engine still notices when its log is replaced.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use super::directory::{OWNER, STORE, refused};
use crate::error::StoreError;

/// How often an engine looks whether readers are done, or the engine before it, which was killed. For an ordinary journal, the copy made by `ls` or `doctor`
/// takes less than a second. If a reader takes longer, the error names it, and the program that supervises the engine
/// tries again.
const LOOKS: u32 = 100;
const LOOK: Duration = Duration::from_millis(10);
/// How often locking is restarted when a locked file is not the one of that name. Only a program that does nothing
/// but replace files could outpace this.
const TRIES: u32 = 8;
/// Longest text of `owner` that is read: a process and the name of its program.
const TEXT_BYTES: u64 = 300;

/// The locks of a directory's holder, released in the reverse order.
#[derive(Debug)]
pub(super) struct Locks {
    store: Option<Locked>,
    owner: Option<Locked>,
    _folder: Option<Locked>,
}

/// A locked file. Closing it would not release it, since a process that is being forked also has the file open.
#[derive(Debug)]
struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        self.0.unlock().ok();
    }
}

/// fjall's own lock, kept until fjall takes it.
#[derive(Debug)]
pub(super) struct StoreLock {
    _file: Option<Locked>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Engine,
    Reader,
}

/// Why a file is not locked.
enum Refusal {
    Io(io::Error),
    /// By an engine, as far as one can tell.
    Held,
    /// By readers.
    Read,
}

impl Locks {
    /// Locks the directory as an engine does.
    pub(super) fn take(place: &Path) -> Result<(Self, StoreLock), StoreError> {
        let mut locks = lock(place, Mode::Engine)?;
        let store = StoreLock {
            _file: locks.store.take(),
        };
        Ok((locks, store))
    }

    /// Locks the directory as a reader does, beside other readers; creates and writes nothing.
    pub(super) fn share(place: &Path) -> Result<Self, StoreError> {
        lock(place, Mode::Reader)
    }

    /// Returns the file that names the holder; an engine's always exists.
    pub(super) fn owner(&self) -> Option<&File> {
        self.owner.as_ref().map(|locked| &locked.0)
    }
}

fn lock(place: &Path, mode: Mode) -> Result<Locks, StoreError> {
    for _ in 0..TRIES {
        let folder = lock_folder(place, mode)?;
        let owner = lock_file(place, &place.join(OWNER), mode)?;
        let store = lock_file(place, &place.join(STORE).join("lock"), mode)?;
        let are_named = is_named(folder.as_ref(), place)
            && is_named(owner.as_ref(), &place.join(OWNER))
            && is_named(store.as_ref(), &place.join(STORE).join("lock"));
        if are_named {
            return Ok(Locks {
                store,
                owner,
                _folder: folder,
            });
        }
    }
    let error = io::Error::other("its files are replaced again and again");
    Err(refused(place, "it cannot be locked", &error))
}

/// Returns `None` if a directory cannot be locked here.
fn lock_folder(place: &Path, mode: Mode) -> Result<Option<Locked>, StoreError> {
    // Other systems cannot open a directory.
    let Some(folder) = File::open(place).ok().filter(|_| cfg!(unix)) else {
        return Ok(None);
    };
    match lock_as(&folder, mode) {
        Ok(()) => Ok(Some(Locked(folder))),
        Err(Refusal::Io(error)) => {
            tracing::warn!(
                place = %place.display(), %error,
                "the journal's directory cannot be locked here; its file 'owner' alone guards it"
            );
            Ok(None)
        }
        Err(refusal) => Err(told(place, &folder, refusal)),
    }
}

/// Returns `None` if the file is missing, so that nobody can hold it; an engine creates `owner`.
fn lock_file(place: &Path, path: &Path, mode: Mode) -> Result<Option<Locked>, StoreError> {
    let is_owner = path.ends_with(OWNER);
    let makes = mode == Mode::Engine && is_owner;
    let opened = OpenOptions::new()
        .read(true)
        .write(mode == Mode::Engine)
        .create(makes)
        .truncate(false)
        .open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) && !makes => {
            return Ok(None);
        }
        Err(error) => return Err(refused(place, &format!("{} cannot be opened", path.display()), &error)),
    };
    match lock_as(&file, mode) {
        Ok(()) => Ok(Some(Locked(file))),
        Err(refusal) => Err(told(place, &file, refusal)),
    }
}

/// Waits briefly for readers, and for an engine that was killed: the system releases the locks of a process last, behind
/// a sync that is under way. An engine that runs is not waited for.
fn lock_as(file: &File, mode: Mode) -> Result<(), Refusal> {
    let mut last = Refusal::Held;
    for _ in 0..LOOKS {
        last = match try_lock_as(file, mode) {
            Ok(()) => return Ok(()),
            Err(Refusal::Held) if !is_held_by_the_living(file) => Refusal::Held,
            Err(Refusal::Read) => Refusal::Read,
            Err(refusal @ (Refusal::Held | Refusal::Io(_))) => return Err(refusal),
        };
        sleep(LOOK);
    }
    Err(last)
}

fn try_lock_as(file: &File, mode: Mode) -> Result<(), Refusal> {
    let locked = match mode {
        Mode::Reader => file.try_lock_shared(),
        Mode::Engine => file.try_lock(),
    };
    match locked {
        Ok(()) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(Refusal::Io(error)),
        Err(TryLockError::WouldBlock) if mode == Mode::Reader => return Err(Refusal::Held),
        Err(TryLockError::WouldBlock) => {}
    }
    // A shared lock succeeds only beside readers.
    match file.try_lock_shared() {
        Ok(()) => file
            .unlock()
            .map_or_else(|error| Err(Refusal::Io(error)), |()| Err(Refusal::Read)),
        Err(TryLockError::Error(error)) => Err(Refusal::Io(error)),
        Err(TryLockError::WouldBlock) => Err(Refusal::Held),
    }
}

/// Returns `true` if a locked file is still the file of that name. Without a locked file, the name must not exist.
fn is_named(locked: Option<&Locked>, path: &Path) -> bool {
    match locked {
        Some(Locked(file)) => identity(file.metadata()) == identity(path.metadata()),
        None => true,
    }
}

/// Returns the identity of a file whatever its name; `None` if it is gone, or if the system does not tell.
#[cfg(unix)]
pub(super) fn identity(metadata: io::Result<std::fs::Metadata>) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    metadata.ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(super) fn identity(_: io::Result<std::fs::Metadata>) -> Option<(u64, u64)> {
    None
}

/// Returns the identity of the file that has this name now, without asking for its times. After its times were read,
/// Linux gives a file a new time with the next write, and each sync then writes the inode as well. Reading them once
/// per commit made commits 1.4 times as long (Linux 6.18, ext4).
#[cfg(target_os = "linux")]
pub(super) fn identity_of_name(path: &Path) -> Option<(u64, u64)> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};

    match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
        Ok(found) => Some((makedev(found.stx_dev_major, found.stx_dev_minor), found.stx_ino)),
        // A system without this call has no such times.
        Err(_) => identity(path.metadata()),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn identity_of_name(path: &Path) -> Option<(u64, u64)> {
    identity(path.metadata())
}

fn told(place: &Path, file: &File, refusal: Refusal) -> StoreError {
    let place_text = place.display().to_string();
    match refusal {
        Refusal::Io(error) => refused(place, "it cannot be locked", &error),
        Refusal::Held => StoreError::Held {
            place: place_text,
            holder: holder(place, file),
        },
        Refusal::Read => StoreError::BeingRead {
            place: place_text,
            reader: holder_by_system(file).unwrap_or_default(),
        },
    }
}

/// Returns the process that holds a lock: as the system tells, or else as `owner` says, if that process lives.
fn holder(place: &Path, file: &File) -> String {
    holder_by_system(file)
        .or_else(|| holder_by_text(place))
        .unwrap_or_default()
}

fn holder_by_text(place: &Path) -> Option<String> {
    let mut text = String::new();
    // Where the lock also keeps readers out, the name stays unknown.
    let file = File::open(place.join(OWNER)).ok()?;
    file.take(TEXT_BYTES).read_to_string(&mut text).ok()?;
    let text = text.trim();
    let (number, program) = text.strip_prefix("process ")?.split_once(' ')?;
    // The number may belong to another process by now, and on other systems there is no way to tell.
    let lives = program_of(number.parse().ok()?).map_or(!cfg!(target_os = "linux"), |name| name == program);
    lives.then(|| format!(" ({text})"))
}

/// Finds the holder in Linux's list of all locks, which has the device and number of each file.
fn holder_by_system(file: &File) -> Option<String> {
    // A process that is gone is not named, though the system may still list its lock.
    let process = process_by_system(file).filter(|process| Path::new(&format!("/proc/{process}")).exists())?;
    let program = program_of(process).map_or_else(String::new, |name| format!(" {name}"));
    Some(format!(" (process {process}{program})"))
}

fn process_by_system(file: &File) -> Option<u32> {
    let (device, number) = identity(file.metadata())?;
    let list = std::fs::read_to_string("/proc/locks").ok()?;
    list.lines().find_map(|line| holder_in(line, device, number))
}

/// Returns `false` as well where the system does not tell. A process that is ending has no program any more.
fn is_held_by_the_living(file: &File) -> bool {
    process_by_system(file).and_then(program_of).is_some()
}

/// A line is `1: FLOCK  ADVISORY  WRITE 4711 fe:00:10346594 0 EOF`; a waiting process has `->` behind its number.
fn holder_in(line: &str, device: u64, number: u64) -> Option<u32> {
    let mut words = line.split_whitespace().skip(1);
    let kind = words.next()?;
    let process = words.nth(2)?.parse().ok().filter(|process| *process > 0)?;
    let mut file = words.next()?.split(':');
    let major = u64::from_str_radix(file.next()?, 16).ok()?;
    let minor = u64::from_str_radix(file.next()?, 16).ok()?;
    let found: u64 = file.next()?.parse().ok()?;
    let is_same = kind == "FLOCK" && found == number && (major, minor) == parts_of(device);
    is_same.then_some(process)
}

/// Splits a device's number as Linux does.
const fn parts_of(device: u64) -> (u64, u64) {
    let major = ((device >> 8) & 0xfff) | ((device >> 32) & 0xffff_f000);
    let minor = (device & 0xff) | ((device >> 12) & 0xffff_ff00);
    (major, minor)
}

/// Returns the program name of a living process, where the system tells.
fn program_of(process: u32) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/{process}/exe")).ok()?;
    let name = path.file_name()?.to_string_lossy().into_owned();
    // Linux marks a program that was reinstalled since.
    Some(name.trim_end_matches(" (deleted)").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_systems_list_names_the_process_that_holds_a_file() {
        let line = "1: FLOCK  ADVISORY  WRITE 4711 fe:02:10346594 0 EOF";
        let device = 0xfe02;
        assert_eq!(holder_in(line, device, 10_346_594), Some(4711));
        assert_eq!(holder_in(line, device + 1, 10_346_594), None);
        assert_eq!(holder_in(line, device, 10_346_595), None);
        let others = [
            "1: -> FLOCK  ADVISORY  WRITE 4711 fe:02:10346594 0 EOF",
            "1: POSIX  ADVISORY  WRITE 4711 fe:02:10346594 0 EOF",
            "1: FLOCK  ADVISORY  WRITE 0 fe:02:10346594 0 EOF",
            "1: FLOCK  ADVISORY  WRITE 4711 <none>:0 0 EOF",
            "",
        ];
        for line in others {
            assert_eq!(holder_in(line, device, 10_346_594), None, "{line}");
        }
        // A minor number beyond a byte is stored above the major number.
        assert_eq!(parts_of(0x0010_fe34), (0xfe, 0x134));
    }
}
