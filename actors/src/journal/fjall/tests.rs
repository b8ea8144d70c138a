//! Checks at the opening of the embedded store: crashes are survived, losses are reported.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use futures::executor::block_on;
use procession_kernel::{Key, Seq};
use tempfile::TempDir;

use super::*;
use crate::journal::batch::Write;
use crate::journal::layout::{FORMAT, FORMAT_KEY};

impl FjallStore {
    pub(super) fn keyspace(&self, space: &Space) -> Option<fjall::Keyspace> {
        self.with(|opened| opened.keyspace(space)).flatten()
    }

    pub(super) fn recent(&self) -> fjall::Keyspace {
        self.with(|opened| opened.recent.clone()).expect("it is open")
    }

    /// Returns all of its keyspaces, including that of records.
    pub(super) fn keyspaces(&self) -> Vec<fjall::Keyspace> {
        let all = |opened: &Opened| {
            let spaces = opened.spaces.read().unwrap_or_else(PoisonError::into_inner);
            spaces.values().chain([&opened.recent]).cloned().collect()
        };
        self.with(all).expect("it is open")
    }

    pub(super) fn database(&self) -> fjall::Database {
        self.with(|opened| opened.database.clone()).expect("it is open")
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn batch(epoch: Epoch, number: u64) -> Batch {
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(number));
    batch.put(Space::Keys, &number.to_be_bytes(), &[7; 100]);
    batch.put(Space::Payloads, &number.to_be_bytes(), &[8; 50]);
    batch
}

/// Creates a journal with commits up to `last`; returns its log and where each commit ends in it.
fn journal(place: &Path, last: u64) -> Result<(PathBuf, Vec<usize>), Box<dyn std::error::Error>> {
    let store = FjallStore::open(place, SyncMode::None)?;
    let epoch = block_on(store.acquire())?;
    let log = place.join("store/0.jnl");
    let mut ends = Vec::new();
    for number in 0..=last {
        block_on(store.append(batch(epoch, number)))?;
        ends.push(log_files::read(&log)?.len());
    }
    Ok((log, ends))
}

fn count(place: &Path) -> Result<usize, StoreError> {
    let store = FjallStore::open(place, SyncMode::Data)?;
    Ok(block_on(store.scan(Scan {
        space: Space::Keys,
        from: vec![],
        to: None,
        limit: 1000,
    }))?
    .len())
}

fn damage(place: &Path) -> String {
    match count(place) {
        Err(error @ StoreError::Damaged { .. }) => error.to_string(),
        other => panic!("no damage was found: {other:?}"),
    }
}

#[test]
fn readers_see_a_direct_write_with_its_commit_and_keep_old_versions_for_64_kib() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?;
    let epoch = block_on(store.acquire())?;
    let mut shown = Vec::new();
    for number in 0..200_u64 {
        let mut batch = Batch::new(epoch);
        batch.advance_to(Seq(number));
        batch.put(Space::Payloads, &number.to_be_bytes(), &[8; 1016]);
        let is_direct = [3, 4, 100].contains(&number);
        if is_direct {
            batch.put(Space::Audit, &number.to_be_bytes(), &[7]);
        }
        block_on(store.append(batch))?;
        let scan = |space| Scan {
            space,
            from: number.to_be_bytes().to_vec(),
            to: None,
            limit: 1,
        };
        assert_eq!(block_on(store.scan(scan(Space::Payloads)))?.len(), 1, "{number}");
        let found = block_on(store.scan(scan(Space::Audit)))?.len();
        assert_eq!(found, usize::from(is_direct), "{number}");
        let instant = store.with(|opened| opened.committed.snapshot().seqno());
        if shown.last().is_none_or(|(_, last)| *last != instant) {
            shown.push((number, instant));
        }
    }
    let shown: Vec<u64> = shown.into_iter().map(|(number, _)| number).collect();
    assert_eq!(shown, [0, 3, 4, 68, 100, 164]);
    Ok(())
}

#[test]
fn a_torn_tail_is_dropped_wherever_it_is_cut() -> Outcome {
    let master = TempDir::new()?;
    let (log, ends) = journal(master.path(), 5)?;
    let whole = fs::read(&log)?;
    for cut in (ends[4]..ends[5]).step_by(7) {
        fs::write(&log, &whole[..cut])?;
        assert_eq!(count(master.path())?, 5, "cut at {cut} of {ends:?}");
        // Without the watermark of later openings each round starts alike.
        fs::remove_file(master.path().join("watermark"))?;
    }
    Ok(())
}

#[test]
fn a_tail_with_pages_missing_in_its_middle_is_dropped() -> Outcome {
    let place = TempDir::new()?;
    let (log, ends) = journal(place.path(), 5)?;
    let store = FjallStore::open(place.path(), SyncMode::None)?;
    let epoch = block_on(store.acquire())?;
    let mut large = Batch::new(epoch);
    large.put(Space::Keys, b"large", &[9; 20_000]);
    block_on(store.append(large))?;
    drop(store);
    let mut bytes = fs::read(&log)?;
    bytes[ends[5] + 8000..ends[5] + 12_000].fill(0);
    fs::write(&log, &bytes)?;
    assert_eq!(count(place.path())?, 6);
    Ok(())
}

#[test]
fn a_flipped_byte_in_committed_data_is_an_error_that_names_the_file() -> Outcome {
    let place = TempDir::new()?;
    let (log, ends) = journal(place.path(), 5)?;
    let whole = fs::read(&log)?[..ends[5]].to_vec();
    for at in ends[2]..ends[3] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&log, &bytes)?;
        let text = damage(place.path());
        assert!(text.contains("0.jnl"), "byte {at}: {text}");
    }
    fs::write(&log, &whole)?;
    assert_eq!(count(place.path())?, 6, "the refusals left the file as it was");
    Ok(())
}

#[test]
fn a_log_shorter_than_what_was_acknowledged_is_an_error() -> Outcome {
    let place = TempDir::new()?;
    let (log, ends) = journal(place.path(), 5)?;
    assert_eq!(count(place.path())?, 6, "this opening notes the watermark");
    let file = OpenOptions::new().write(true).open(&log)?;
    file.set_len(ends[4] as u64)?;
    let text = damage(place.path());
    assert!(text.contains("commit 5") && text.contains(".jnl"), "{text}");
    Ok(())
}

/// Callers need not wait for the watermark, but it never falls behind by more than the newest commit.
#[test]
fn the_watermark_is_written_when_the_owner_has_time() -> Outcome {
    let place = TempDir::new()?;
    let mark = || -> Result<u64, Box<dyn std::error::Error>> {
        let bytes = fs::read(place.path().join("watermark"))?;
        Ok(bytes
            .get(8..16)
            .map_or(Ok(0), |number| number.try_into().map(u64::from_be_bytes))?)
    };
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    for (number, noted) in [(1, 0), (2, 1), (3, 2)] {
        block_on(store.append(batch(epoch, number)))?;
        assert_eq!(mark()?, noted, "the next append makes up for a call that is missing");
    }
    store.settle();
    assert_eq!(mark()?, 3);
    block_on(store.append(batch(epoch, 4)))?;
    block_on(store.release(epoch))?;
    assert_eq!(mark()?, 4);
    block_on(store.append(batch(epoch, 5)))?;
    drop(store);
    assert_eq!(mark()?, 5);
    Ok(())
}

#[test]
fn each_missing_file_is_named() -> Outcome {
    let names = [
        "0.jnl",
        "version",
        "lock",
        "keyspaces/0/current",
        "keyspaces/2/current",
        "keyspaces/3",
        "keyspaces/0",
        "keyspaces",
    ];
    for name in names {
        let place = TempDir::new()?;
        journal(place.path(), 2)?;
        let path = place.path().join("store").join(name);
        if path.is_dir() {
            fs::remove_dir_all(&path)?
        } else {
            fs::remove_file(&path)?
        }
        let text = damage(place.path());
        let folder = name.split('/').next().unwrap_or_default();
        assert!(text.contains(folder) || text.contains("jnl"), "{name}: {text}");
    }
    Ok(())
}

#[test]
fn a_missing_store_is_an_error_once_it_was_used() -> Outcome {
    let place = TempDir::new()?;
    journal(place.path(), 2)?;
    count(place.path())?;
    fs::remove_dir_all(place.path().join("store"))?;
    assert!(damage(place.path()).contains("store"));
    Ok(())
}

#[test]
fn a_making_that_was_interrupted_begins_again() -> Outcome {
    let place = TempDir::new()?;
    fs::create_dir_all(place.path().join("store/keyspaces/0"))?;
    fs::write(place.path().join("store/0.jnl"), [0; 100])?;
    fs::write(place.path().join("store.unfinished"), [])?;
    fs::write(place.path().join("owner"), "process 1")?;
    assert_eq!(count(place.path())?, 0);
    journal(place.path(), 2)?;
    assert_eq!(count(place.path())?, 3);
    Ok(())
}

#[test]
fn a_second_opener_is_told_who_holds_it() -> Outcome {
    let place = TempDir::new()?;
    assert_eq!(FjallStore::holder(place.path())?, None);
    assert!(!FjallStore::exists(place.path()));
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let process = format!("process {}", std::process::id());
    let refused = FjallStore::open(place.path(), SyncMode::Data);
    assert!(
        matches!(&refused, Err(StoreError::Held { holder, .. }) if holder.contains(&process)),
        "{refused:?}"
    );
    assert!(FjallStore::holder(place.path())?.is_some_and(|holder| holder.contains(&process)));
    let epoch = block_on(store.acquire())?;
    block_on(store.append(batch(epoch, 1)))?;
    drop(store);
    assert!(FjallStore::exists(place.path()));
    assert_eq!(FjallStore::holder(place.path())?, None);
    assert_eq!(count(place.path())?, 1);
    Ok(())
}

#[test]
fn a_directory_of_something_else_is_left_alone() -> Outcome {
    let place = TempDir::new()?;
    fs::write(place.path().join("thesis.txt"), "precious")?;
    let refused = FjallStore::open(place.path(), SyncMode::Data);
    assert!(
        matches!(&refused, Err(StoreError::Io { why, .. }) if why.contains("thesis.txt")),
        "{refused:?}"
    );
    assert_eq!(fs::read_dir(place.path())?.count(), 1);
    let file = place.path().join("thesis.txt");
    assert!(matches!(
        FjallStore::open(&file, SyncMode::Data),
        Err(StoreError::Io { .. })
    ));
    Ok(())
}

#[test]
fn a_newer_format_is_refused_with_both_numbers() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    block_on(store.append(batch(epoch, 1)))?;
    let mut newer = batch(epoch, 2);
    newer.put(Space::Meta, FORMAT_KEY, &(FORMAT + 1).to_be_bytes());
    block_on(store.append(newer))?;
    drop(store);
    let refused = FjallStore::open(place.path(), SyncMode::Data);
    assert!(
        matches!(refused, Err(StoreError::Newer { found: 8, known: 7, .. })),
        "{refused:?}"
    );
    Ok(())
}

fn format_of(store: &FjallStore) -> Result<Option<Vec<u8>>, StoreError> {
    block_on(store.get(Space::Meta, FORMAT_KEY.to_vec()))
}

/// Makes a store look as format 1 left it, without later additions.
fn become_older(place: &Path) -> Outcome {
    let store = FjallStore::open(place, SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    block_on(store.append(batch(epoch, 1)))?;
    let mut older = batch(epoch, 2);
    older.put(Space::Meta, FORMAT_KEY, &1_u32.to_be_bytes());
    for space in [Space::Audit, Space::Archive] {
        older.delete(Space::Meta, &open::space_key(&space));
    }
    block_on(store.append(older))?;
    Ok(())
}

#[test]
fn a_store_of_format_1_becomes_one_of_this_format_with_its_first_commit() -> Outcome {
    let place = TempDir::new()?;
    become_older(place.path())?;
    let one = Some(1_u32.to_be_bytes().to_vec());
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    assert_eq!(
        format_of(&store)?,
        one,
        "to read it changes nothing for the older release"
    );
    for space in [Space::Audit, Space::Archive] {
        let name = block_on(store.get(Space::Meta, open::space_key(&space)))?;
        assert!(name.is_some(), "it has the keyspaces of this release");
    }
    drop(store);
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    let mut commit = batch(epoch, 1);
    commit.put(Space::Audit, b"1", b"entry");
    block_on(store.append(commit))?;
    assert_eq!(format_of(&store)?, Some(FORMAT.to_be_bytes().to_vec()));
    drop(store);
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    assert_eq!(
        block_on(store.get(Space::Audit, b"1".to_vec()))?,
        Some(b"entry".to_vec())
    );
    // The errors of a release that reads up to format 1, and of the one before this format.
    for (found, known) in [(2, 1), (FORMAT, FORMAT - 1)] {
        let refused = open::admit_format(place.path(), found, known);
        let text = refused.err().ok_or("it was admitted")?.to_string();
        let told = [
            format!("format {found}"),
            format!("reads up to {known}"),
            "the release that wrote it".to_owned(),
        ];
        assert!(told.iter().all(|told| text.contains(told)), "{text}");
    }
    assert!(open::admit_format(place.path(), 1, 2).is_ok());
    Ok(())
}

#[test]
fn a_write_that_no_store_takes_is_refused_and_final() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    let mut refused = Batch::new(epoch);
    refused.put(Space::User(Key::from("n".repeat(101))), b"k", b"v");
    let answer = block_on(store.append(refused));
    assert!(
        matches!(&answer, Err(AppendError::Failed(why)) if why.contains("101")),
        "{answer:?}"
    );
    assert!(matches!(
        block_on(store.append(batch(epoch, 1))),
        Err(AppendError::Failed(_))
    ));
    assert!(block_on(store.head()).is_err());
    Ok(())
}

#[test]
fn an_append_that_is_dropped_unpolled_keeps_its_place() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    drop(store.append(batch(epoch, 1)));
    block_on(store.append(batch(epoch, 2)))?;
    drop(store);
    assert_eq!(count(place.path())?, 2);
    Ok(())
}

/// Creates a journal whose keyspace `keys` is in a table; returns the table's file.
fn tables(place: &Path) -> Result<PathBuf, Box<dyn std::error::Error>> {
    journal(place, 50)?;
    let store = FjallStore::open(place, SyncMode::Data)?;
    let keys = store.keyspace(&Space::Keys).ok_or("no keyspace")?;
    keys.rotate_memtable_and_wait()?;
    let folder = keys.path().join("tables");
    let table = fs::read_dir(folder)?.next().ok_or("no table")??.path();
    Ok(table)
}

#[test]
fn a_missing_table_is_an_error() -> Outcome {
    let place = TempDir::new()?;
    fs::remove_file(tables(place.path())?)?;
    let text = damage(place.path());
    assert!(text.contains("table") && text.contains("store"), "{text}");
    Ok(())
}

#[test]
fn a_flipped_byte_of_a_table_never_gives_other_rows() -> Outcome {
    let place = TempDir::new()?;
    let table = tables(place.path())?;
    let whole = fs::read(&table)?;
    let mut found = 0;
    for at in (0..whole.len()).step_by(whole.len() / 60 + 1) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&table, &bytes)?;
        match count(place.path()) {
            Ok(rows) => assert_eq!(rows, 51, "byte {at}"),
            Err(StoreError::Damaged { .. }) => found += 1,
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
    assert!(found > 30, "only {found} flips were found");
    Ok(())
}

/// Only a new file guarantees that the log is on disk as it was read.
#[cfg(unix)]
#[test]
fn a_log_whose_last_batch_may_be_in_memory_alone_is_copied() -> Outcome {
    use std::os::unix::fs::MetadataExt;

    let place = TempDir::new()?;
    let (log, _) = journal(place.path(), 5)?;
    let made = fs::metadata(&log)?.ino();
    assert_eq!(count(place.path())?, 6);
    let copied = fs::metadata(&log)?.ino();
    assert_ne!(
        made, copied,
        "the watermark was never written, so the batch may not be synced"
    );
    assert_eq!(count(place.path())?, 6);
    assert_eq!(fs::metadata(&log)?.ino(), copied, "the watermark names the last batch");
    assert!(!log.with_extension("copy").exists());
    Ok(())
}

/// fjall trusts and asserts the contents of a manifest, so a damaged one would end the process.
#[test]
fn a_changed_byte_of_a_manifest_is_named() -> Outcome {
    let master = TempDir::new()?;
    journal(master.path(), 2)?;
    let keyspace = master.path().join("store/keyspaces/1");
    for name in ["current", "v0"] {
        let path = keyspace.join(name);
        let whole = fs::read(&path)?;
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x24;
            fs::write(&path, changed)?;
            let said = damage(master.path());
            assert!(said.contains("keyspaces/1"), "byte {at} of {name}: {said}");
        }
        fs::write(&path, whole)?;
    }
    fs::remove_file(keyspace.join("v0"))?;
    assert!(damage(master.path()).contains("v0 is missing"));
    Ok(())
}

/// fjall removes the folder of a keyspace whose creation was interrupted, and a power cut may leave any of its files.
#[test]
fn what_is_left_of_a_folder_that_no_keyspace_has_is_no_damage() -> Outcome {
    let master = TempDir::new()?;
    journal(master.path(), 2)?;
    let keyspaces = master.path().join("store/keyspaces");
    let left = keyspaces.join("99");
    for file in ["current", "v0"] {
        fs::create_dir_all(left.join("tables"))?;
        fs::copy(keyspaces.join("1").join(file), left.join(file))?;
        assert_eq!(count(master.path())?, 3, "only \"{file}\" is left");
        assert!(!left.exists());
    }
    Ok(())
}

#[test]
fn writes_are_sorted_by_keyspace_and_key_and_those_of_one_key_stay_in_turn() {
    let mut batch = Batch::new(Epoch(1));
    let user = || Space::User(Key::from("orders"));
    batch.put(user(), b"a longer key, the second", b"1");
    batch.put(Space::History, &[2; 12], b"2");
    batch.put(Space::Procedures, &[1; 12], b"3");
    batch.put(user(), b"a longer key, the first", b"4");
    batch.delete(Space::Procedures, &[1; 12]);
    batch.put(Space::History, &[1; 12], b"5");
    batch.put(Space::Procedures, &[1; 12], b"6");
    batch.put(user(), b"a", b"7");
    let writes: Vec<Write<'_>> = batch.writes().collect();
    let values: Vec<Option<&[u8]>> = write::in_order(&writes).iter().map(|write| write.value).collect();
    // Keys with a common prefix keep their order.
    let expected =
        ["3", "", "6", "5", "2", "7", "1", "4"].map(|value| Some(value.as_bytes()).filter(|value| !value.is_empty()));
    assert_eq!(values, expected);
}

/// Commits wait for a checkpoint when too much is pending; a close answers them, and ends the thread.
#[test]
fn a_close_in_the_middle_of_commits_and_checkpoints_leaves_nobody_waiting() -> Outcome {
    for round in 0..20 {
        let place = TempDir::new()?;
        let store = FjallStore::open(place.path(), SyncMode::None)?.checkpoint_at(1);
        let epoch = block_on(store.acquire())?;
        let acknowledged = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut last = None;
                for number in 0.. {
                    match block_on(store.append(batch(epoch, number))) {
                        Ok(receipt) => last = Some(receipt.seq()),
                        Err(why) => {
                            assert!(why.to_string().contains("closed"), "{why}");
                            break;
                        }
                    }
                }
                last
            });
            while matches!(block_on(store.head()), Ok(None)) {
                std::thread::yield_now();
            }
            for _ in 0..round {
                std::thread::yield_now();
            }
            block_on(store.close());
            writer.join()
        });
        let last = acknowledged
            .map_err(|_| "the writer panicked")?
            .ok_or("nothing was committed")?;
        let rows = count(place.path())?;
        // The largest number that `count` reads.
        assert!(
            rows as u64 > last.0.min(999),
            "{rows} rows, and commit {last} was acknowledged"
        );
    }
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn a_closed_store_has_no_file_open_however_many_hold_it() -> Outcome {
    let place = TempDir::new()?;
    let open_files = || -> std::io::Result<usize> {
        let mut found = 0;
        for file in fs::read_dir("/proc/self/fd")? {
            let target = fs::read_link(file?.path()).unwrap_or_default();
            found += usize::from(target.starts_with(place.path()));
        }
        Ok(found)
    };
    for fails in [false, true] {
        let store = std::sync::Arc::new(FjallStore::open(place.path(), SyncMode::Data)?);
        let other = std::sync::Arc::clone(&store);
        let epoch = block_on(store.acquire())?;
        block_on(store.append(batch(epoch, 1)))?;
        if fails {
            let mut refused = Batch::new(epoch);
            refused.put(Space::User(Key::from("n".repeat(101))), b"k", b"v");
            assert!(block_on(store.append(refused)).is_err());
        }
        assert!(open_files()? > 3);
        block_on(store.close());
        assert_eq!(open_files()?, 0, "after a failure: {fails}");
        assert_eq!(other.size_bytes(), None);
        assert_eq!(count(place.path())?, 1);
    }
    Ok(())
}
