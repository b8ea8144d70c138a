//! Detects that a path may lead elsewhere by now, without walking it: one system call that looks at nothing but a
//! queue.
//!
//! Linux queues an event before a rename, a removal or a mount returns to its caller. So a walk after the alarm was
//! set, and silence since, say as much as a walk now.

use std::path::Path;

#[cfg(target_os = "linux")]
pub(super) use linux::Alarm;

/// An alarm that is set nowhere: other systems walk the path each time.
#[cfg(not(target_os = "linux"))]
pub(super) enum Alarm {}

#[cfg(not(target_os = "linux"))]
impl Alarm {
    pub(super) fn set(_: &Path) -> Option<Self> {
        None
    }

    pub(super) fn is_silent(&self) -> bool {
        match *self {}
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, OwnedFd};

    use rustix::event::{Timespec, epoll};
    use rustix::fs::{FsWord, inotify, statfs};
    use rustix::io;

    use super::Path;

    /// What happens to the log: it loses a name, or gets another one.
    const OF_LOG: inotify::WatchFlags = inotify::WatchFlags::MOVE_SELF
        .union(inotify::WatchFlags::DELETE_SELF)
        .union(inotify::WatchFlags::ATTRIB)
        .union(inotify::WatchFlags::DONT_FOLLOW);
    /// What happens to a directory above the log. None can be removed while the log is in it.
    const OF_FOLDER: inotify::WatchFlags = inotify::WatchFlags::MOVE_SELF
        .union(inotify::WatchFlags::DELETE_SELF)
        .union(inotify::WatchFlags::DONT_FOLLOW);

    /// File systems whose changes all pass through this system, one file at a time: ext2 to ext4, XFS, tmpfs and
    /// overlayfs. Others reach a disk that another machine changes too, or remove a whole tree silently (btrfs).
    const TELLING: [FsWord; 4] = [0xef53, 0x5846_5342, 0x0102_1994, 0x794c_7630];

    /// Watches a file and all directories above it.
    pub(crate) struct Alarm {
        ready: OwnedFd,
        _changes: OwnedFd,
        _mounts: File,
    }

    impl Alarm {
        /// Sets the alarm for an absolute path. The path is to be walked afterwards: what happened before is not
        /// told. Returns `None` where the system cannot tell of all changes: behind a symbolic link, on file systems
        /// of other machines, or if the user's limit of watches is reached.
        pub(crate) fn set(log: &Path) -> Option<Self> {
            let alarm = Self::watching(log).ok()?;
            // A link that replaces a directory from here on removes or moves one that is watched.
            let is_plain = log.canonicalize().is_ok_and(|real| real == log);
            is_plain.then_some(alarm)
        }

        fn watching(log: &Path) -> io::Result<Self> {
            let changes = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
            for place in log.ancestors() {
                if !TELLING.contains(&statfs(place)?.f_type) {
                    return Err(io::Errno::NOTSUP);
                }
                let mask = if place == log { OF_LOG } else { OF_FOLDER };
                inotify::add_watch(&changes, place, mask)?;
            }
            let mounts = File::open("/proc/self/mountinfo").map_err(|_| io::Errno::NOTSUP)?;
            let ready = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            tell_of(&ready, &changes, epoll::EventFlags::IN)?;
            // The system marks a change of mounts in this way.
            tell_of(&ready, &mounts, epoll::EventFlags::PRI)?;
            Ok(Self {
                ready,
                _changes: changes,
                _mounts: mounts,
            })
        }

        /// Returns `true` if nothing has happened since the alarm was set. Ask once: a mount is told once.
        pub(crate) fn is_silent(&self) -> bool {
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let mut events = [MaybeUninit::uninit(); 1];
            epoll::wait(&self.ready, &mut events, Some(&at_once)).is_ok_and(|(events, _)| events.is_empty())
        }
    }

    fn tell_of(ready: &OwnedFd, source: impl AsFd, flags: epoll::EventFlags) -> io::Result<()> {
        epoll::add(ready, source, epoll::EventData::new_u64(0), flags)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs;
    use std::io::Write;

    use tempfile::TempDir;

    use super::Alarm;

    type Harm = fn(&std::path::Path) -> std::io::Result<()>;

    #[test]
    fn it_is_silent_while_the_file_is_written_and_rings_once_its_path_may_lead_elsewhere()
    -> Result<(), Box<dyn std::error::Error>> {
        let harms: [Harm; 5] = [
            |place| fs::remove_file(place.join("a/b/log")),
            |place| fs::rename(place.join("a/b/log"), place.join("a/b/old")),
            |place| fs::rename(place.join("a/b/other"), place.join("a/b/log")),
            |place| fs::rename(place.join("a"), place.join("old")),
            |place| fs::hard_link(place.join("a/b/log"), place.join("backup")),
        ];
        for harm in harms {
            let place = TempDir::new()?;
            let place = place.path().canonicalize()?;
            fs::create_dir_all(place.join("a/b"))?;
            let log = place.join("a/b/log");
            let mut file = fs::File::create(&log)?;
            let alarm = Alarm::set(&log).ok_or("this file system is not known to tell of changes")?;
            file.write_all(b"more")?;
            file.sync_all()?;
            file.set_len(2)?;
            fs::write(place.join("a/b/other"), "beside it")?;
            assert!(alarm.is_silent());
            harm(&place)?;
            assert!(!alarm.is_silent() && !alarm.is_silent());
        }
        Ok(())
    }

    #[test]
    fn it_is_not_set_behind_a_link_or_for_what_is_not_there() -> Result<(), Box<dyn std::error::Error>> {
        let place = TempDir::new()?;
        let place = place.path().canonicalize()?;
        fs::create_dir(place.join("real"))?;
        fs::write(place.join("real/log"), "")?;
        std::os::unix::fs::symlink(place.join("real"), place.join("link"))?;
        assert!(Alarm::set(&place.join("link/log")).is_none());
        assert!(Alarm::set(&place.join("real/none")).is_none());
        Ok(())
    }
}
