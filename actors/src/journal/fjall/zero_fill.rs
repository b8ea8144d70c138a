//! Fills the log with zeros ahead of its end, so that commits overwrite blocks that the disk already has.
//!
//! fjall creates a log as a hole of 64 MiB. If a commit is the first to use a block of it, its sync must also commit the
//! file system's own journal, which makes a commit of 4 KB on ext4 take 140 us instead of 87. PostgreSQL fills its log
//! for the same reason (`wal_init_zero`). `fallocate` does not help: its blocks count as unwritten until their first
//! use.
//!
//! Zeros in a hole do not change what a file contains, so readers, a crash and a log that fjall has finished meanwhile
//! are unaffected. They may only not meet a write of fjall's to the same bytes: callers hold the lock of the commit
//! queue, without which nothing is written to the log.

use std::fs::File;
use std::io;

/// Bytes that are filled at a time. The next sync writes them too, and takes some 150 us longer. If commits are small
/// that is less often than once in a hundred.
const FILL: u64 = 256 << 10;
/// The largest commits for which the log is filled. For larger ones the file system's journal is a small part of their
/// sync, and to write everything twice costs more.
const LARGEST: u64 = 64 << 10;

/// The filled part of one log.
#[derive(Debug, Default)]
pub(super) struct ZeroFill {
    /// Number of the log.
    log: Option<u64>,
    /// Where the filled part ends.
    end: u64,
    /// Filled bytes that no commit has used.
    left: u64,
    /// This log is not filled: its file system is not known to gain from it, its end is reached, or the system refused.
    is_off: bool,
}

impl ZeroFill {
    /// Fills the log if the commits to come would soon need it.
    ///
    /// `number` and `log` are the newest log, and `commit_bytes` are those of the commit that was written last. Failing
    /// to fill is no error: commits then take longer, as they do without.
    pub(super) fn keep_ahead(&mut self, number: u64, log: &File, commit_bytes: u64) {
        if self.log != Some(number) {
            *self = Self {
                log: Some(number),
                is_off: !gains(log),
                ..Self::default()
            };
        }
        self.left = self.left.saturating_sub(commit_bytes);
        if self.is_off || commit_bytes > LARGEST || self.left > 2 * commit_bytes {
            return;
        }
        match self.fill(log) {
            Ok(filled) => self.is_off = filled == 0,
            Err(error) => {
                tracing::debug!(%error, "the log is not filled ahead");
                self.is_off = true;
            }
        }
    }

    /// Fills the first hole behind the filled part, and returns how many bytes. It begins behind fjall's position,
    /// since fjall leaves no hole.
    fn fill(&mut self, log: &File) -> io::Result<u64> {
        let room = log.metadata()?.len();
        // Behind the end of a file the system finds no hole, and says so by an error.
        if self.end >= room {
            return Ok(0);
        }
        let begin = next_hole(log, self.end)?;
        let end = (begin + FILL).min(room);
        write_zeros(log, begin, end)?;
        let filled = end.saturating_sub(begin);
        (self.end, self.left) = (end, self.left + filled);
        Ok(filled)
    }
}

fn write_zeros(log: &File, begin: u64, end: u64) -> io::Result<()> {
    static ZEROS: [u8; 64 << 10] = [0; 64 << 10];
    let mut at = begin;
    while at < end {
        let piece = usize::try_from(end - at).unwrap_or(ZEROS.len());
        let piece = ZEROS.get(..piece).unwrap_or(&ZEROS);
        write_at(log, piece, at)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// Returns `true` on file systems that keep a file's blocks where they are and count those that were never written.
/// tmpfs gains nothing, but tests run on it.
#[cfg(target_os = "linux")]
fn gains(log: &File) -> bool {
    use rustix::fs::{FsWord, fstatfs};

    /// ext2 to ext4, XFS and tmpfs.
    const KNOWN: [FsWord; 3] = [0xef53, 0x5846_5342, 0x0102_1994];
    fstatfs(log).is_ok_and(|system| KNOWN.contains(&system.f_type))
}

#[cfg(target_os = "linux")]
fn next_hole(log: &File, from: u64) -> io::Result<u64> {
    use rustix::fs::{SeekFrom, seek};

    Ok(seek(log, SeekFrom::Hole(from))?)
}

#[cfg(target_os = "linux")]
fn write_at(log: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(log, bytes, at)
}

#[cfg(not(target_os = "linux"))]
fn gains(_: &File) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
fn next_hole(log: &File, _: u64) -> io::Result<u64> {
    Ok(log.metadata()?.len())
}

#[cfg(not(target_os = "linux"))]
fn write_at(_: &File, _: &[u8], _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
    use std::path::Path;

    use futures::executor::block_on;
    use procession_kernel::Seq;
    use proptest::prelude::*;
    use tempfile::{NamedTempFile, TempDir};

    use super::super::log_files::{self, named};
    use super::super::{FjallStore, SyncMode};
    use super::*;
    use crate::journal::batch::Batch;
    use crate::journal::keys::Space;
    use crate::journal::store::{JournalStore, Scan};

    type Outcome = Result<(), Box<dyn std::error::Error>>;

    /// A log as fjall creates it, written through a position of its own.
    struct Log {
        file: NamedTempFile,
        writer: File,
        written: Vec<u8>,
        length: u64,
    }

    impl Log {
        fn new(length: u64) -> io::Result<Self> {
            let file = NamedTempFile::new()?;
            file.as_file().set_len(length)?;
            Ok(Self {
                writer: File::options().write(true).open(file.path())?,
                file,
                written: Vec::new(),
                length,
            })
        }

        fn commit(&mut self, bytes: usize) -> io::Result<()> {
            let bytes = vec![7; bytes];
            self.writer.write_all(&bytes)?;
            self.written.extend(&bytes);
            self.length = self.length.max(self.written.len() as u64);
            Ok(())
        }

        /// Where the first hole begins.
        fn hole(&self) -> io::Result<u64> {
            next_hole(self.file.as_file(), 0)
        }

        fn holds_what_was_written(&self) -> io::Result<bool> {
            let mut all = Vec::new();
            File::open(self.file.path())?.read_to_end(&mut all)?;
            let rest = all.split_off(self.written.len());
            Ok(all == self.written
                && rest.iter().all(|byte| *byte == 0)
                && self.file.as_file().metadata()?.len() == self.length)
        }
    }

    /// The file system is not asked: tests run on any.
    fn filling(number: u64) -> ZeroFill {
        ZeroFill {
            log: Some(number),
            ..ZeroFill::default()
        }
    }

    #[test]
    fn commits_find_blocks_that_were_written_and_not_many_more() -> Outcome {
        const PAGE: u64 = 4_096;
        for bytes in [600, 5_000, 30_000] {
            let mut log = Log::new(4 << 20)?;
            let mut zeros = filling(3);
            // Ten times what is filled at once.
            for _ in 0..2_600_000 / bytes {
                log.commit(bytes)?;
                zeros.keep_ahead(3, log.file.as_file(), bytes as u64);
                let ahead = log.hole()? - log.written.len() as u64;
                let most = FILL + 2 * bytes as u64 + PAGE;
                assert!((bytes as u64..=most).contains(&ahead), "{ahead} for {bytes}");
            }
            assert!(log.holds_what_was_written()?);
        }
        Ok(())
    }

    #[test]
    fn a_log_that_grows_at_its_end_is_left_alone() -> Outcome {
        let mut log = Log::new(0)?;
        let mut zeros = filling(0);
        for _ in 0..20 {
            log.commit(600)?;
            zeros.keep_ahead(0, log.file.as_file(), 700);
        }
        assert!(zeros.is_off && log.holds_what_was_written()?);
        Ok(())
    }

    #[test]
    fn a_log_that_is_filled_to_its_end_is_no_failure() -> Outcome {
        let log = Log::new(FILL + 100)?;
        let mut zeros = filling(0);
        let filled = [0; 3].map(|_| zeros.fill(log.file.as_file()).ok());
        assert_eq!(filled, [Some(FILL), Some(100), Some(0)]);
        Ok(())
    }

    #[test]
    fn large_commits_are_not_filled_for_and_small_ones_behind_them_are() -> Outcome {
        let mut log = Log::new(4 << 20)?;
        let mut zeros = filling(0);
        for _ in 0..5 {
            log.commit(100_000)?;
            zeros.keep_ahead(0, log.file.as_file(), 100_100);
        }
        let ahead = log.hole()? - log.written.len() as u64;
        assert!(ahead < 4_096 * 16, "{ahead} bytes were filled");
        log.commit(500)?;
        zeros.keep_ahead(0, log.file.as_file(), 600);
        assert!(log.hole()? >= log.written.len() as u64 + FILL && log.holds_what_was_written()?);
        Ok(())
    }

    #[test]
    fn a_new_log_is_filled_from_its_own_beginning() -> Outcome {
        let (mut old, mut new) = (Log::new(1 << 20)?, Log::new(1 << 20)?);
        let mut zeros = ZeroFill::default();
        old.commit(600)?;
        zeros.keep_ahead(0, old.file.as_file(), 700);
        new.commit(600)?;
        zeros.keep_ahead(1, new.file.as_file(), 700);
        if gains(old.file.as_file()) {
            assert!(old.hole()? >= FILL && new.hole()? >= FILL);
        }
        assert!(old.holds_what_was_written()? && new.holds_what_was_written()?);
        Ok(())
    }

    #[test]
    fn a_log_that_cannot_be_filled_is_not_tried_again() -> Outcome {
        let mut log = Log::new(1 << 20)?;
        log.commit(600)?;
        let mut zeros = filling(0);
        zeros.keep_ahead(0, &File::open(log.file.path())?, 700);
        assert!(zeros.is_off);
        // The next log may be on a disk with room.
        zeros.keep_ahead(1, log.file.as_file(), 700);
        assert_eq!(zeros.is_off, !gains(log.file.as_file()));
        Ok(())
    }

    /// Commits a few small batches, and returns how many bytes of the log are filled behind them.
    fn filled_by(store: &FjallStore, log: &Path) -> Result<u64, Box<dyn std::error::Error>> {
        let epoch = block_on(store.acquire())?;
        for number in 0..20 {
            let mut batch = Batch::new(epoch);
            batch.advance_to(Seq(number));
            batch.put(
                Space::Keys,
                &[epoch.0.to_be_bytes(), number.to_be_bytes()].concat(),
                &[7; 100],
            );
            block_on(store.append(batch))?;
            store.settle();
        }
        let end = log_files::read(log)?.len() as u64;
        Ok(next_hole(&File::open(log)?, 0)?.saturating_sub(end.next_multiple_of(4_096)))
    }

    #[test]
    fn the_log_of_an_engine_is_filled_and_that_of_fjall_alone_is_not() -> Outcome {
        let place = TempDir::new()?;
        let log = named(&place.path().join("store"), 0);
        let is_known = gains(&File::open(place.path())?);
        let store = FjallStore::open(place.path(), SyncMode::Data)?;
        assert_eq!(filled_by(&store, &log)? > FILL / 2, is_known);
        drop(store);
        // fjall has cut off the zeros, and appends.
        let store = FjallStore::open(place.path(), SyncMode::Data)?;
        assert_eq!(filled_by(&store, &log)?, 0);
        let all = store.scan(Scan {
            space: Space::Keys,
            from: vec![],
            to: None,
            limit: 100,
        });
        assert_eq!(block_on(all)?.len(), 40);
        for (sync, is_plain) in [(SyncMode::Data, true), (SyncMode::None, false)] {
            let place = TempDir::new()?;
            let open = if is_plain {
                FjallStore::open_plain
            } else {
                FjallStore::open
            };
            let store = open(place.path(), sync)?;
            assert_eq!(
                filled_by(&store, &named(&place.path().join("store"), 0))?,
                0,
                "{sync:?}"
            );
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

        /// However wrong the count of a commit's bytes is.
        #[test]
        fn zeros_never_change_what_a_log_holds(
            commits in prop::collection::vec((1_usize..90_000, 0_u64..100_000), 1..40),
            length in 0_u64..2 << 20,
        ) {
            let mut log = Log::new(length)?;
            let mut zeros = filling(0);
            for (bytes, counted) in commits {
                log.commit(bytes)?;
                zeros.keep_ahead(0, log.file.as_file(), counted);
                prop_assert!(log.holds_what_was_written()?);
            }
        }
    }
}
