//! Opening and creating the embedded store: keyspace options, the checks that nothing committed is missing, and
//! fjall's errors as sentences.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};

use fjall::compaction::Leveled;
use fjall::config::FilterPolicy;
use fjall::{Database, Error, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode};
use procession_kernel::{Epoch, Key, NUMBER_MAX};

use super::chain::{CHAIN_KEY, Newest, encode_number};
use super::checkpoint::Checkpoints;
use super::commit_queue::CommitQueue;
use super::committed::Committed;
use super::directory::{self, Directory};
use super::locks::StoreLock;
use super::log::{self, LogProblem, NewestLog};
use super::opened::Opened;
use super::remedy::advise;
use super::watch::LogWatch;
use super::write::Writer;
use super::{FjallStore, SyncMode, Table};
use crate::error::StoreError;
use crate::journal::keys::Space;
use crate::journal::layout::{EPOCH_KEY, FORMAT, FORMAT_KEY, SEQ_KEY, SPACE_PREFIX};
use crate::journal::recent::{self, PARTS, part_of};
use crate::telemetry::SyncSeconds;

/// Size at which a keyspace's memory table goes to disk, for writes that bypass `recent`. A larger table saves
/// writing values that are soon overwritten. But a commit that meets a change of tables waits in proportion to its
/// size. On two cores 16 MiB was as fast as 32 or 64, with half and a quarter of their longest commit.
const MEMTABLE_BYTES: u64 = 16 * 1024 * 1024;
/// Size of closed logs at which the oldest is made superfluous. A restart replays them and the open log; fjall allows
/// no less. The open log is closed when a memory table is written out after it has reached 64 MB, so it may grow by a
/// table of `recent`.
const LOG_BYTES: u64 = 64 * 1024 * 1024;
/// Cache of table blocks. Only woken values and history come from tables; newer data is in memory.
const CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// Size at which the memory table of `recent` goes to disk, if it was not [written out
/// before](super::checkpoint::RECENT_EMPTIED).
pub(super) const RECENT_BYTES: u64 = 48 * 1024 * 1024;
/// Table size of the keyspaces written by checkpoints. Procedures' writes arrive in the order of their numbers, so a
/// merge meets and rewrites only the last table of the next level. With fjall's 64 MiB that was more than the new data
/// of all keyspaces but `history`.
const TABLE_BYTES: u64 = 16 * 1024 * 1024;
/// Keyspace of the commits that are not in tables yet: number (8 bytes, big-endian) → record.
pub(super) const RECENT: &str = "recent";
/// Threads that write out and merge tables. The first one only writes out, so that commits need not wait. With each
/// table written out fjall requests as many merges as there are threads, and the first thread passes them on until
/// another is free. With one other thread, the first spun without pause during its merges, which took a twentieth of
/// a busy engine's processor time.
const WORKERS: usize = 3;

/// Opens the journal, and creates it if there is none.
pub(super) fn open(place: &Path, sync: SyncMode) -> Result<Opened, StoreError> {
    let (directory, lock) = Directory::take(place)?;
    let database = if directory.is_vacant()? {
        create(&directory, lock)?
    } else {
        recover(&directory, lock)?
    };
    let watch =
        LogWatch::new(&directory.store()).map_err(|error| directory.refused("its log cannot be watched", &error))?;
    let spaces = open_keyspaces(&database, &directory)?;
    let mut writer = read_writer(&spaces, &directory)?;
    let recent = open_recent(&database, &spaces, &directory)?;
    let found = read_recent(&recent, &directory)?;
    begin_records(&mut writer, found.numbers(), &directory)?;
    let parts: Option<Vec<Keyspace>> = PARTS.iter().map(|space| spaces.get(space).cloned()).collect();
    let parts = parts.ok_or_else(|| directory.damaged("a keyspace of its own is missing"))?;
    let checkpoints = Checkpoints::start(found, &database, recent.clone(), parts, FjallStore::CHECKPOINT_BYTES)
        .map_err(|error| directory.refused("the thread of its checkpoints cannot be started", &error))?;
    if sync != SyncMode::None {
        directory.set_mark(writer.epoch, writer.seq);
        // Once on stable storage it is overwritten in place, and a power cut leaves it readable.
        directory
            .sync_mark()
            .map_err(|error| directory.refused("its watermark cannot be synced", &error))?;
    }
    Ok(Opened {
        checkpoints,
        spaces: RwLock::new(spaces),
        recent,
        committed: Committed::new(&database),
        is_plain: false,
        database,
        commit_queue: CommitQueue::new(writer),
        sync,
        memory_bytes: FjallStore::MEMORY_BYTES,
        sync_seconds: SyncSeconds::new(),
        watch: Mutex::new(watch),
        directory,
    })
}

/// Opens a keyspace, or creates it. fjall's lz4 is not compiled in, since values are too small to benefit. A new
/// keyspace is made durable first: without its folder, fjall would skip the log's writes to it.
pub(super) fn make_keyspace(database: &Database, directory: &Directory, space: &Space) -> Result<Keyspace, StoreError> {
    let options = KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
    let options = match part_of(space) {
        Some(_) => {
            let merging = Leveled::default().with_l0_threshold(merged_at(space));
            options.compaction_strategy(Arc::new(merging.with_table_target_size(TABLE_BYTES)))
        }
        None => options,
    };
    let options = if is_looked_up(space) {
        options
    } else {
        options.filter_policy(FilterPolicy::disabled())
    };
    make_named(database, directory, &space.name(), options)
}

/// Returns the number of tables at which a keyspace written by checkpoints merges them. Each checkpoint adds one to each
/// keyspace, and each merge rewrites the tables that it meets on the next level. The numbers differ, so that the
/// keyspaces do not merge all at once: while a merge waits for a free thread, fjall's first thread passes its request
/// on without pause. A keyspace keeps the value it was created with; in older stores that is 12 for each, or fjall's 4.
const fn merged_at(space: &Space) -> u8 {
    match space {
        Space::Procedures => 10,
        Space::Payloads => 11,
        Space::Live => 13,
        Space::Finished => 14,
        Space::History
        | Space::Signals
        | Space::Keys
        | Space::Meta
        | Space::Audit
        | Space::Archive
        | Space::User(_) => 12,
    }
}

/// Returns `true` if single keys of a keyspace are read. Other keyspaces are read by ranges, for which a filter is
/// useless, and each table would be written with one. In `finished` only the export of a family looks up a single
/// key.
const fn is_looked_up(space: &Space) -> bool {
    match space {
        Space::History | Space::Live | Space::Finished => false,
        Space::Procedures
        | Space::Payloads
        | Space::Signals
        | Space::Keys
        | Space::Meta
        | Space::Audit
        | Space::Archive
        | Space::User(_) => true,
    }
}

fn make_recent(database: &Database, directory: &Directory) -> Result<Keyspace, StoreError> {
    let options = KeyspaceCreateOptions::default().max_memtable_size(RECENT_BYTES);
    make_named(database, directory, RECENT, options)
}

fn make_named(
    database: &Database,
    directory: &Directory,
    name: &str,
    options: KeyspaceCreateOptions,
) -> Result<Keyspace, StoreError> {
    let is_new = !database.keyspace_exists(name);
    let keyspace = database
        .keyspace(name, || options)
        .map_err(|error| translate(directory, &format!("keyspace \"{name}\""), &error))?;
    if is_new {
        directory::sync_directory(&directory.store().join("keyspaces"))
            .map_err(|error| directory.refused("a new keyspace cannot be synced", &error))?;
    }
    Ok(keyspace)
}

pub(super) fn space_key(space: &Space) -> Vec<u8> {
    [SPACE_PREFIX, space.name().as_bytes()].concat()
}

fn create(directory: &Directory, lock: StoreLock) -> Result<Database, StoreError> {
    directory.begin_store()?;
    drop(lock);
    let database = start(directory)?;
    let refused = |error: Error| translate(directory, "the new store", &error);
    let mut batch = database.batch().durability(Some(PersistMode::SyncAll));
    let meta = make_keyspace(&database, directory, &Space::Meta)?;
    batch.insert(&meta, FORMAT_KEY, FORMAT.to_be_bytes());
    for space in Space::ENGINE {
        make_keyspace(&database, directory, &space)?;
        batch.insert(&meta, space_key(&space), []);
    }
    batch.commit().map_err(refused)?;
    directory.finish_store()?;
    Ok(database)
}

fn recover(directory: &Directory, lock: StoreLock) -> Result<Database, StoreError> {
    let end = guarded(directory, || log::check(&directory.store()))?.map_err(|finding| match finding {
        LogProblem::Damaged(why) => directory.damaged(why),
        LogProblem::Unreadable(path, error) => directory.refused(&format!("{} cannot be read", path.display()), &error),
        LogProblem::Unfit(path, error) => translate(directory, &path.display().to_string(), &error),
    })?;
    end.name_earlier()
        .map_err(|error| directory.refused("the version of its tables cannot be named", &error))?;
    end.remove_superfluous()
        .map_err(|error| directory.refused("an old log cannot be removed", &error))?;
    if let Some(newest) = end.newest.filter(|newest| !is_marked(newest, directory)) {
        newest
            .copy()
            .map_err(|error| directory.refused("its log cannot be copied", &error))?;
    }
    directory.sync_names()?;
    drop(lock);
    let opened = start(directory);
    let opened = match (opened, end.torn) {
        // No whole batch lies behind the position at which fjall stopped, so it is a torn tail after all.
        (Err(StoreError::Damaged { .. }), Some(tail)) => {
            tail.cut()
                .map_err(|error| directory.refused("the torn tail of its log cannot be cut", &error))?;
            start(directory)
        }
        (opened, _) => opened,
    };
    let database = opened?;
    directory.forget_making()?;
    Ok(database)
}

/// Returns `true` if the last batch of the log, which ends with its number, was certainly synced. New
/// acknowledgements depend on it, and after a failed sync it may exist in memory only.
fn is_marked(newest: &NewestLog, directory: &Directory) -> bool {
    let mark = directory.mark();
    mark.is_some_and(|(epoch, seq)| newest.ends_with(SEQ_KEY, &encode_number(epoch, seq)))
}

/// Catches panics: fjall asserts some of what it reads, and a damaged file must be an error.
fn guarded<T>(directory: &Directory, read: impl FnOnce() -> T) -> Result<T, StoreError> {
    catch_unwind(AssertUnwindSafe(read))
        .map_err(|_| directory.damaged(format!("a check of {} failed", directory.store().display())))
}

/// Starts fjall.
fn start(directory: &Directory) -> Result<Database, StoreError> {
    let open = || {
        Database::builder(directory.store())
            .cache_size(CACHE_BYTES)
            .max_journaling_size(LOG_BYTES)
            .worker_threads(WORKERS)
            .open()
    };
    guarded(directory, open)?.map_err(|error| translate(directory, &directory.store().display().to_string(), &error))
}

/// Opens the keyspaces that are recorded as in use, and creates those that an older release did not have.
fn open_keyspaces(database: &Database, directory: &Directory) -> Result<BTreeMap<Space, Keyspace>, StoreError> {
    let refused = |error: Error| translate(directory, "keyspace \"meta\"", &error);
    require(database, directory, "meta")?;
    let meta = make_keyspace(database, directory, &Space::Meta)?;
    check_format(&meta, directory)?;
    let mut spaces = BTreeMap::new();
    for row in meta.prefix(SPACE_PREFIX) {
        let key = row.key().map_err(refused)?;
        let name = String::from_utf8_lossy(key.get(SPACE_PREFIX.len()..).unwrap_or_default()).into_owned();
        require(database, directory, &name)?;
        if let Some(space) = parse_space(&name) {
            let keyspace = make_keyspace(database, directory, &space)?;
            spaces.insert(space, keyspace);
        }
    }
    for space in Space::ENGINE
        .into_iter()
        .filter(|space| !spaces.contains_key(space))
        .collect::<Vec<_>>()
    {
        let keyspace = make_keyspace(database, directory, &space)?;
        let mut batch = database.batch().durability(Some(PersistMode::SyncAll));
        batch.insert(&meta, space_key(&space), []);
        batch.commit().map_err(refused)?;
        spaces.insert(space, keyspace);
    }
    Ok(spaces)
}

/// Opens `recent`, which a store of format 2 does not have.
fn open_recent(
    database: &Database,
    spaces: &BTreeMap<Space, Keyspace>,
    directory: &Directory,
) -> Result<Keyspace, StoreError> {
    let refused = |error: Error| translate(directory, "keyspace \"meta\"", &error);
    let meta = spaces
        .get(&Space::Meta)
        .ok_or_else(|| directory.damaged("keyspace \"meta\" is missing"))?;
    let name = [SPACE_PREFIX, RECENT.as_bytes()].concat();
    if meta.contains_key(&name).map_err(refused)? {
        require(database, directory, RECENT)?;
        return make_recent(database, directory);
    }
    let recent = make_recent(database, directory)?;
    let mut batch = database.batch().durability(Some(PersistMode::SyncAll));
    batch.insert(meta, name, []);
    batch.commit().map_err(refused)?;
    Ok(recent)
}

/// Reads the commits that are not in tables yet, in order.
fn read_recent(recent: &Keyspace, directory: &Directory) -> Result<Table, StoreError> {
    let unread = |error: Error| translate(directory, "keyspace \"recent\"", &error);
    let mut table = Table::default();
    for row in recent.iter() {
        let (key, value) = row.into_inner().map_err(unread)?;
        let number = key.get(..).and_then(|key| key.try_into().ok()).map(u64::from_be_bytes);
        let (Some(number), Some(record)) = (number, recent::decode(value)) else {
            return Err(directory.damaged("a record in keyspace \"recent\" has no known shape"));
        };
        table.add(number, &record);
    }
    Ok(table)
}

/// Sets the record number at which the writer continues, and compares the records found with the newest commit.
fn begin_records(writer: &mut Writer, found: &[u64], directory: &Directory) -> Result<(), StoreError> {
    match writer.link {
        Some(link) => {
            if !(link.oldest..=link.newest).eq(found.iter().copied()) {
                return Err(directory.damaged(format!(
                    "commit {} of epoch {} left records {} to {} in keyspace \"recent\", and not all are found",
                    writer.seq, writer.epoch, link.oldest, link.newest
                )));
            }
            (writer.oldest, writer.record) = (link.oldest, link.newest);
        }
        None => {
            writer.record = found.last().copied().unwrap_or_default();
            writer.oldest = found.first().copied().unwrap_or(writer.record + 1);
        }
    }
    Ok(())
}

fn require(database: &Database, directory: &Directory, name: &str) -> Result<(), StoreError> {
    if database.keyspace_exists(name) {
        return Ok(());
    }
    let folder = directory.store().join("keyspaces");
    Err(directory.damaged(format!("keyspace \"{name}\" is missing from {}", folder.display())))
}

/// Parses a keyspace's name. Keyspaces that this release does not know are left alone.
fn parse_space(name: &str) -> Option<Space> {
    match name.strip_prefix("user.") {
        Some(name) => Some(Space::User(Key::from(name))),
        None => Space::ENGINE.into_iter().find(|space| space.name() == name),
    }
}

fn check_format(meta: &Keyspace, directory: &Directory) -> Result<(), StoreError> {
    let bytes = meta
        .get(FORMAT_KEY)
        .map_err(|error| translate(directory, "keyspace \"meta\"", &error))?;
    let found = bytes.and_then(|bytes| Some(u32::from_be_bytes(bytes.get(..)?.try_into().ok()?)));
    match found {
        None => Err(directory.damaged("its format is not written in keyspace \"meta\"")),
        Some(found) => admit_format(directory.place(), found, FORMAT),
    }
}

/// A release reads every format up to the newest that it knows, and refuses newer ones.
pub(super) fn admit_format(place: &Path, found: u32, known: u32) -> Result<(), StoreError> {
    if found > known {
        return Err(StoreError::Newer {
            place: place.display().to_string(),
            found,
            known,
        });
    }
    Ok(())
}

/// Reads the position of the journal, and compares it with what was acknowledged.
fn read_writer(spaces: &BTreeMap<Space, Keyspace>, directory: &Directory) -> Result<Writer, StoreError> {
    let Some(meta) = spaces.get(&Space::Meta) else {
        return Err(directory.damaged("keyspace \"meta\" is missing"));
    };
    let read = |key: &[u8]| {
        meta.get(key)
            .map_err(|error| translate(directory, "keyspace \"meta\"", &error))
    };
    let damaged = |key: &[u8]| {
        directory.damaged(format!(
            "\"{}\" in keyspace \"meta\" is no number",
            String::from_utf8_lossy(key)
        ))
    };
    let chain = read(CHAIN_KEY)?;
    let last = read(SEQ_KEY)?.map(|row| Newest::decode(&row, chain.as_deref()).ok_or_else(|| damaged(SEQ_KEY)));
    let last = last.transpose()?;
    let (epoch, seq) = last.map(|last| last.number).unwrap_or_default();
    let newest = match read(EPOCH_KEY)? {
        None => Epoch::default(),
        Some(bytes) => Epoch(u64::from_be_bytes(
            bytes
                .get(..)
                .unwrap_or_default()
                .try_into()
                .map_err(|_| damaged(EPOCH_KEY))?,
        )),
    };
    if epoch.0.max(seq.0) > NUMBER_MAX {
        return Err(damaged(SEQ_KEY));
    }
    if newest != epoch {
        return Err(directory.damaged(format!(
            "keyspace \"meta\" names epoch {newest}, and its last commit is of epoch {epoch}"
        )));
    }
    if let Some((marked, last)) = directory.mark().filter(|mark| *mark > (epoch, seq)) {
        return Err(directory.damaged(format!(
            "commit {last} of epoch {marked} was acknowledged, and the last one found is {seq} of epoch {epoch}; \
             the newest file *.jnl in {} was cut, damaged at its end, or removed",
            directory.store().display()
        )));
    }
    Ok(Writer {
        epoch,
        seq,
        link: last.and_then(|last| last.link),
        granted: epoch,
        ..Writer::default()
    })
}

/// Converts an error of fjall to ours; `what` names what was being read.
pub(super) fn translate(directory: &Directory, what: &str, error: &Error) -> StoreError {
    if is_damage(error) {
        return directory.damaged(format!("{what}: {}", explain(error)));
    }
    StoreError::Io {
        place: directory.place().display().to_string(),
        why: format!("{what}: {}", explain(error)),
    }
}

fn is_damage(error: &Error) -> bool {
    match error {
        Error::Io(error) | Error::Storage(LsmError::Io(error)) => {
            matches!(
                error.kind(),
                ErrorKind::NotFound | ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::AlreadyExists
            )
        }
        Error::Poisoned | Error::KeyspaceDeleted | Error::Locked => false,
        Error::Storage(_)
        | Error::JournalRecovery(_)
        | Error::InvalidVersion(_)
        | Error::Decompress(_)
        | Error::InvalidTrailer
        | Error::InvalidTag(_)
        | Error::Unrecoverable => true,
        _ => false,
    }
}

/// Returns a sentence for an error of fjall.
pub(super) fn explain(error: &Error) -> String {
    let text = match error {
        Error::Io(error) => return advise(error),
        Error::Storage(error) => return explain_table(error),
        Error::JournalRecovery(_) => "a batch of the log does not have its checksum or length",
        Error::InvalidVersion(_) => "the file \"version\" names no layout that this release knows",
        Error::Decompress(_) => "a value cannot be decompressed",
        Error::InvalidTrailer | Error::InvalidTag(_) => "an entry of the log has no known shape",
        Error::Poisoned => "an earlier write failed in the background; see whether the disk is full",
        Error::KeyspaceDeleted => "the keyspace was deleted",
        Error::Locked => "another process holds its lock",
        Error::Unrecoverable => "the tables and the log do not fit together",
        _ => return error.to_string(),
    };
    text.to_owned()
}

fn explain_table(error: &LsmError) -> String {
    let text = match error {
        LsmError::Io(error) => return advise(error),
        LsmError::Decompress(_) => "a block cannot be decompressed",
        LsmError::InvalidVersion(_) => "a table has a layout that this release does not know",
        LsmError::Unrecoverable => "a table file is missing or broken",
        LsmError::ChecksumMismatch { .. } => "a block does not have its checksum",
        LsmError::InvalidTag(_) | LsmError::InvalidTrailer | LsmError::InvalidHeader(_) => "a block has no known shape",
        LsmError::Utf8(_) => "a name is not text",
        _ => return error.to_string(),
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::fjall::checkpoint::UNMERGED;

    #[test]
    fn keyspaces_of_checkpoints_merge_at_different_numbers_of_tables() {
        let mut numbers = PARTS.map(|space| merged_at(&space));
        numbers.sort_unstable();
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        assert!(
            numbers.iter().all(|number| usize::from(*number) < UNMERGED),
            "{numbers:?}"
        );
    }
}
