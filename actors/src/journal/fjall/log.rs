//! Checks the write-ahead log before the LSM store opens it.
//!
//! On recovery fjall cuts its log at the first entry that it cannot parse, as if everything behind it were the torn
//! tail of a crash. After a flipped byte in the middle, that would silently and permanently drop committed batches.
//! Each batch is synced before the next is written, so the two cases can be told apart. Behind a torn tail there is
//! nothing; behind damage there is a whole batch. This file only reads, except for [`TornTail::cut`],
//! [`NewestLog::copy`], [`LogEnd::remove_superfluous`] and [`LogEnd::name_earlier`].
//!
//! fjall takes the logs that it finds for complete. Commits name their predecessor, so each log must continue where
//! the previous one ended, and the first log where tables reach: see [`follow`].

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::directory::sync_directory;
use super::keyspace_tables::KeyspaceTables;
use super::log_files::{numbered, read};
use super::manifest::{self, Manifest};
use super::versions::VERSIONS_KEY;
use batches::{Commit, holds_batch, read_batch};

mod batches;
mod follow;

/// Why the store cannot be opened.
#[derive(Debug)]
pub(super) enum LogProblem {
    /// The system refused to read.
    Unreadable(PathBuf, io::Error),
    /// Committed data is missing or broken.
    Damaged(String),
    /// fjall cannot read a file.
    Unfit(PathBuf, fjall::Error),
}

/// Bytes at the end of the newest log that are no whole batch.
#[derive(Debug)]
pub(super) struct TornTail {
    path: PathBuf,
    at: u64,
}

impl TornTail {
    /// Cuts the tail off, for the cases in which fjall takes it for damage: all of a batch's bytes exist, but some of
    /// its pages were not written.
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
pub(super) struct NewestLog {
    path: PathBuf,
    bytes: Vec<u8>,
    /// Key and value of the last write.
    last: Entry,
}

impl NewestLog {
    /// Returns `true` if the last write was to this key, of a value that begins so.
    pub(super) fn ends_with(&self, key: &[u8], begin: &[u8]) -> bool {
        self.last.0 == key && self.last.1.starts_with(begin)
    }

    /// Replaces the log with a copy, on stable storage.
    ///
    /// When a sync fails, the system may mark the pages as clean. They can then still be read, but no later sync
    /// writes them, and they are lost with the machine's memory. Writing the same bytes once more is not enough: ext4
    /// may still consider the blocks unwritten. Only a new file is free of this.
    pub(super) fn copy(&self) -> io::Result<()> {
        let copy = self.path.with_extension("copy");
        let mut file = File::create(&copy)?;
        file.write_all(&self.bytes)?;
        file.sync_all()?;
        fs::rename(&copy, &self.path)?;
        sync_directory(self.path.parent().unwrap_or(Path::new(".")))
    }
}

/// The end of the log.
#[derive(Debug, Default)]
pub(super) struct LogEnd {
    /// `None` if the newest log has no batch yet.
    pub(super) newest: Option<NewestLog>,
    pub(super) torn: Option<TornTail>,
    /// Old logs that exist although tables hold all of their contents.
    superfluous: Vec<PathBuf>,
    /// Versions of tables whose next one was cut short while it was being written.
    earlier: Vec<Manifest>,
}

impl LogEnd {
    /// Removes old logs whose contents are in tables. fjall removed them before without syncing their names, so a
    /// power cut restored some. fjall would replay them, without the logs between them, over data that has been
    /// deleted since.
    pub(super) fn remove_superfluous(&self) -> io::Result<()> {
        let Some(folder) = self.superfluous.first().and_then(|path| path.parent()) else {
            return Ok(());
        };
        for path in &self.superfluous {
            tracing::info!(log = %path.display(), "an old log has reappeared; tables hold its contents");
            fs::remove_file(path)?;
        }
        sync_directory(folder)
    }

    /// Lets keyspaces whose newest version never took effect go on with the one before.
    pub(super) fn name_earlier(&self) -> io::Result<()> {
        for manifest in &self.earlier {
            let (keyspace, version) = (manifest.keyspace().display(), manifest.number());
            tracing::warn!(%keyspace, version, "the tables' next version was cut short before it took effect");
            manifest.adopt()?;
        }
        Ok(())
    }
}

/// A log, and the contents of its whole batches.
#[derive(Debug)]
pub(super) struct Walked {
    number: u64,
    path: PathBuf,
    /// Where its whole batches end, and whether anything but zeros lies behind them.
    at: usize,
    has_rest: bool,
    batches: Batches,
}

/// The contents of consecutive whole batches.
#[derive(Debug, Default)]
struct Batches {
    /// fjall's numbers of the first and the last batch.
    seqnos: Option<(u64, u64)>,
    first: Option<Commit>,
    last: Option<Commit>,
    /// Numbers of the records that were put into `recent`, as inclusive runs.
    records: Vec<(u64, u64)>,
    /// The newest row on how new tables are.
    versions: Option<Vec<u8>>,
    /// Key and value of the last write.
    entry: Entry,
}

/// Checks each batch of the log, and the files without which fjall would start afresh or panic.
pub(super) fn check(store: &Path) -> Result<LogEnd, LogProblem> {
    check_files(store)?;
    let tables = KeyspaceTables::look(store)?;
    let paths = logs(store)?;
    let mut end = LogEnd::default();
    let mut logs = Vec::new();
    for (left, (number, path)) in (0..paths.len()).rev().zip(paths) {
        let mut bytes = read(&path).map_err(|error| LogProblem::Unreadable(path.clone(), error))?;
        let (at, batches) = whole_batches(&bytes, tables.recent());
        let rest = bytes.get(at..).unwrap_or_default();
        let has_rest = !rest.is_empty();
        if left == 0 {
            if holds_batch(rest) {
                return Err(broken(&path, at));
            }
            let torn = TornTail {
                path: path.clone(),
                at: at as u64,
            };
            end.torn = has_rest.then_some(torn);
            bytes.truncate(at);
            end.newest = batches.seqnos.map(|_| NewestLog {
                path: path.clone(),
                bytes,
                last: batches.entry.clone(),
            });
        }
        logs.push(Walked {
            number,
            path,
            at,
            has_rest,
            batches,
        });
    }
    let superfluous = follow::check(store, &logs, &tables)?;
    end.superfluous = superfluous.iter().map(|log| log.path.clone()).collect();
    end.earlier = tables.into_earlier();
    Ok(end)
}

fn broken(path: &Path, at: usize) -> LogProblem {
    LogProblem::Damaged(format!(
        "{} is broken at byte {at}, with committed data behind it",
        path.display()
    ))
}

/// Each of these files, if missing, makes fjall start an empty store, delete a keyspace or panic.
fn check_files(store: &Path) -> Result<(), LogProblem> {
    for name in ["version", "lock", "keyspaces", "keyspaces/0/current"] {
        require(&store.join(name))?;
    }
    let keyspaces = store.join("keyspaces");
    for path in list(&keyspaces)? {
        let is_number = name_of(&path).parse::<u64>().is_ok();
        if !path.is_dir() || !is_number {
            return Err(LogProblem::Damaged(format!(
                "{} does not belong to the store",
                path.display()
            )));
        }
        // A keyspace whose creation was interrupted has no tables yet; fjall removes it.
        let tables = path.join("tables");
        if tables.is_dir() && !list(&tables)?.is_empty() {
            require(&path.join("current"))?;
        }
    }
    manifest::check(&keyspaces.join("0"))
}

fn require(path: &Path) -> Result<(), LogProblem> {
    match path.try_exists() {
        Ok(true) => Ok(()),
        Ok(false) => Err(LogProblem::Damaged(format!("{} is missing", path.display()))),
        Err(error) => Err(LogProblem::Unreadable(path.to_owned(), error)),
    }
}

/// Returns the log files in order.
fn logs(store: &Path) -> Result<Vec<(u64, PathBuf)>, LogProblem> {
    let mut logs = numbered(store).map_err(|error| LogProblem::Unreadable(store.to_owned(), error))?;
    logs.sort();
    if logs.is_empty() {
        return Err(LogProblem::Damaged(format!(
            "{} has no log: each file *.jnl is missing",
            store.display()
        )));
    }
    Ok(logs)
}

/// Returns the last key of each whole batch, including batches behind invalid bytes.
pub(super) fn ends_of_batches(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
            match read_batch(rest) {
                Some(batch) => {
                    at += batch.length;
                    return Some(batch.last().0);
                }
                None => at += 1,
            }
        }
    })
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, LogProblem> {
    let unreadable = |error| LogProblem::Unreadable(folder.to_owned(), error);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns where the whole batches end, and their contents. The checksum does not cover fjall's own sequence number,
/// which must grow; otherwise the log is damaged. So is a log with a commit that does not name its predecessor.
fn whole_batches(bytes: &[u8], recent: Option<u64>) -> (usize, Batches) {
    let (mut at, mut last, mut all) = (0, None, Batches::default());
    while let Some(batch) = bytes.get(at..).and_then(read_batch) {
        let commit = batch.commit();
        if all.seqnos.is_some_and(|(_, last)| batch.seqno <= last) || !continues(all.last.as_ref(), commit.as_ref()) {
            break;
        }
        all.seqnos = Some((all.seqnos.map_or(batch.seqno, |(first, _)| first), batch.seqno));
        all.first = all.first.or(commit);
        all.last = commit.or(all.last);
        for item in batch.items() {
            if Some(item.keyspace) == recent && item.value.is_some() {
                all.add_record(item.key);
            } else if item.key == VERSIONS_KEY && commit.is_some_and(|commit| commit.meta == item.keyspace) {
                all.versions = item.value.map(<[u8]>::to_vec);
            }
        }
        last = Some(batch.last());
        at += batch.length;
    }
    let (key, value) = last.unwrap_or_default();
    all.entry = (key.to_vec(), value.to_vec());
    (at, all)
}

/// Returns `true` unless a commit names a different predecessor.
fn continues(before: Option<&Commit>, commit: Option<&Commit>) -> bool {
    let named = commit.and_then(|commit| commit.link).map(|link| link.before);
    match (before, named) {
        (Some(before), Some(named)) => before.number == named,
        _ => true,
    }
}

impl Batches {
    fn add_record(&mut self, key: &[u8]) {
        let Some(number) = key.try_into().ok().map(u64::from_be_bytes) else {
            return;
        };
        match self.records.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => self.records.push((number, number)),
        }
    }
}

/// Returns how many bytes are whole batches, and whether another whole batch follows an invalid one.
#[cfg(feature = "testkit")]
pub(super) fn look(bytes: &[u8]) -> (usize, bool) {
    let (at, _) = whole_batches(bytes, None);
    (at, bytes.get(at..).is_some_and(holds_batch))
}
