//! A look at the write-ahead log before the LSM store opens it.
//!
//! On recovery fjall cuts its log at the first entry that it cannot parse, as
//! if all behind it were the torn tail of a crash. After a flipped byte in the
//! middle that would drop committed batches without a word, and for good. Each
//! batch is synced before the next is written, so the two cases can be told
//! apart: behind a torn tail there is nothing, behind damage there is a whole
//! batch. This file only reads, save for [`TornTail::cut`] and [`Newest::copy`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use super::directory::sync_directory;
use super::log_files::{numbered, read};
use super::manifest;

/// Ends every batch, behind its checksum.
const TRAILER: &[u8] = b"FJL\x03";
const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;

/// What stops the store from being opened.
#[derive(Debug)]
pub(super) enum Finding {
    /// The system refused to read.
    Unreadable(PathBuf, io::Error),
    /// Committed data is missing or broken.
    Damaged(String),
}

/// Bytes at the end of the newest log that are no whole batch.
#[derive(Debug)]
pub(super) struct TornTail {
    path: PathBuf,
    at: u64,
}

impl TornTail {
    /// Cuts the tail off, for the cases in which fjall takes it for damage: all
    /// of a batch's bytes are there, but some of its pages were not written.
    pub(super) fn cut(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(&self.path)?;
        file.set_len(self.at)?;
        file.sync_all()
    }
}

/// A key and its value.
type Entry = (Vec<u8>, Vec<u8>);

/// The whole batches of the newest log.
#[derive(Debug)]
pub(super) struct Newest {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Key and value that were written last.
    last: Entry,
}

impl Newest {
    /// Tells whether this is what was written last.
    pub(super) fn ends_with(&self, key: &[u8], value: &[u8]) -> bool {
        self.last.0 == key && self.last.1 == value
    }

    /// Puts a copy in its place, on stable storage.
    ///
    /// When a sync fails, the system may take the pages for clean: they are read
    /// as if all were well, no later sync writes them, and they are gone with its
    /// memory. To write the same bytes once more is not enough: ext4 may still
    /// hold the blocks for unwritten. Only a new file has none of that.
    pub(super) fn copy(&self) -> io::Result<()> {
        let copy = self.path.with_extension("copy");
        let mut file = File::create(&copy)?;
        file.write_all(&self.bytes)?;
        file.sync_all()?;
        fs::rename(&copy, &self.path)?;
        sync_directory(self.path.parent().unwrap_or(Path::new(".")))
    }
}

/// What the log ends with.
#[derive(Debug, Default)]
pub(super) struct LogEnd {
    /// None if the newest log has no batch yet.
    pub(super) newest: Option<Newest>,
    pub(super) torn: Option<TornTail>,
}

/// Checks the files without which fjall would begin anew or panic, and each batch of the log.
pub(super) fn check(store: &Path) -> Result<LogEnd, Finding> {
    check_files(store)?;
    let logs = logs(store)?;
    let mut end = LogEnd::default();
    let mut last_seqno = None;
    let newest = logs.last().map(|(number, _)| *number);
    for (number, path) in logs {
        let mut bytes = read(&path).map_err(|error| Finding::Unreadable(path.clone(), error))?;
        let (at, last) = whole_batches(&bytes, &mut last_seqno);
        let rest = bytes.get(at..).unwrap_or_default();
        if !rest.is_empty() && (newest != Some(number) || holds_batch(rest)) {
            return Err(Finding::Damaged(format!(
                "{} is broken at byte {at}, with committed data behind it",
                path.display()
            )));
        }
        if newest == Some(number) {
            let torn = TornTail {
                path: path.clone(),
                at: at as u64,
            };
            end.torn = (!rest.is_empty()).then_some(torn);
            end.newest = last.map(|last| {
                bytes.truncate(at);
                Newest { path, bytes, last }
            });
        }
    }
    Ok(end)
}

/// Each of these makes fjall start an empty store, delete a keyspace or panic when it is missing.
fn check_files(store: &Path) -> Result<(), Finding> {
    for name in ["version", "lock", "keyspaces", "keyspaces/0/current"] {
        require(&store.join(name))?;
    }
    let keyspaces = store.join("keyspaces");
    for path in list(&keyspaces)? {
        let is_number = name_of(&path).parse::<u64>().is_ok();
        if !path.is_dir() || !is_number {
            return Err(Finding::Damaged(format!("{} is no part of it", path.display())));
        }
        // A keyspace whose making was interrupted has no tables yet; fjall removes it.
        let tables = path.join("tables");
        if tables.is_dir() && !list(&tables)?.is_empty() {
            require(&path.join("current"))?;
        }
        manifest::check(&path)?;
    }
    Ok(())
}

fn require(path: &Path) -> Result<(), Finding> {
    match path.try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => Err(Finding::Damaged(format!("{} is missing", path.display()))),
        Err(error) => Err(Finding::Unreadable(path.to_owned(), error)),
    }
}

/// Gives the log files in their order. The oldest are removed once their data
/// is in tables, so a gap is a loss; a missing newest one shows in the watermark.
fn logs(store: &Path) -> Result<Vec<(u64, PathBuf)>, Finding> {
    let mut logs = numbered(store).map_err(|error| Finding::Unreadable(store.to_owned(), error))?;
    logs.sort();
    let Some((first, _)) = logs.first() else {
        return Err(Finding::Damaged(format!(
            "{} has no log: each file *.jnl is missing",
            store.display()
        )));
    };
    for ((number, _), expected) in logs.iter().zip(*first..) {
        if *number != expected {
            return Err(Finding::Damaged(format!(
                "{} is missing",
                store.join(format!("{expected}.jnl")).display()
            )));
        }
    }
    Ok(logs)
}

/// Gives the last key of each whole batch, also of those behind something that is none.
pub(super) fn ends_of_batches(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
            match read_batch(rest) {
                Some(batch) => {
                    at += batch.length;
                    return Some(batch.last.0);
                }
                None => at += 1,
            }
        }
    })
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, Finding> {
    let unreadable = |error| Finding::Unreadable(folder.to_owned(), error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Gives where the whole batches end, and the key and value that come last in
/// them. The checksum leaves out fjall's own sequence number, which only grows:
/// one that does not is damage too.
fn whole_batches(bytes: &[u8], last_seqno: &mut Option<u64>) -> (usize, Option<Entry>) {
    let (mut at, mut last) = (0, None);
    while let Some(batch) = bytes.get(at..).and_then(read_batch) {
        if last_seqno.is_some_and(|last| batch.seqno <= last) {
            break;
        }
        *last_seqno = Some(batch.seqno);
        at += batch.length;
        last = Some(batch.last);
    }
    (at, last.map(|(key, value)| (key.to_vec(), value.to_vec())))
}

/// Gives how many bytes are whole batches, and whether another follows what is none.
#[cfg(feature = "testkit")]
pub(super) fn look(bytes: &[u8]) -> (usize, bool) {
    let (at, _) = whole_batches(bytes, &mut None);
    (at, bytes.get(at..).is_some_and(holds_batch))
}

/// The checksum makes it as good as impossible that chance looks like a batch.
fn holds_batch(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .enumerate()
        .any(|(at, byte)| *byte == START && bytes.get(at..).and_then(read_batch).is_some())
}

/// A whole batch of the log.
struct Found<'a> {
    length: usize,
    seqno: u64,
    /// The last key and value; empty where the batch clears a keyspace.
    last: (&'a [u8], &'a [u8]),
}

/// Gives the batch with which the bytes begin, if it is whole.
fn read_batch(bytes: &[u8]) -> Option<Found<'_>> {
    let mut cursor = Cursor { bytes, at: 0 };
    if cursor.byte()? != START {
        return None;
    }
    let items = cursor.number::<4>()?;
    let seqno = cursor.number::<8>()?;
    let from = cursor.at;
    let mut last = (&[][..], &[][..]);
    for _ in 0..items {
        last = read_item(&mut cursor)?;
    }
    let sum = xxh3_64(bytes.get(from..cursor.at)?);
    if cursor.byte()? != END || cursor.number::<8>()? != sum {
        return None;
    }
    let is_whole = cursor.take(TRAILER.len())? == TRAILER;
    is_whole.then_some(Found {
        length: cursor.at,
        seqno,
        last,
    })
}

/// Passes over tag, value type, compression, keyspace and three lengths; gives key and value.
fn read_item<'a>(cursor: &mut Cursor<'a>) -> Option<(&'a [u8], &'a [u8])> {
    match cursor.byte()? {
        ITEM => {
            cursor.skip(10)?;
            let key = usize::try_from(cursor.number::<2>()?).ok()?;
            cursor.skip(4)?;
            let value = usize::try_from(cursor.number::<4>()?).ok()?;
            Some((cursor.take(key)?, cursor.take(value)?))
        }
        CLEAR => cursor.skip(8).map(|()| (&[][..], &[][..])),
        _ => None,
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(length)?;
        let bytes = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(bytes)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn skip(&mut self, length: u64) -> Option<()> {
        self.take(usize::try_from(length).ok()?).map(|_| ())
    }

    /// Reads a little-endian number of so many bytes.
    fn number<const BYTES: usize>(&mut self) -> Option<u64> {
        let bytes = self.take(BYTES)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0, |number, byte| (number << 8) | u64::from(*byte)),
        )
    }
}
