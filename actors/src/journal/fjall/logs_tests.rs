//! Each log must continue where the previous one ended, or where tables reach; a missing log is named.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use futures::executor::block_on;
use tempfile::TempDir;

use super::*;
use crate::journal::layout::{FORMAT, FORMAT_KEY, SEQ_KEY};
use procession_kernel::Seq;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Commits in the log of [`journal`].
const COMMITS: u64 = 12;
/// Length at which fjall creates a log; the part behind its batches is zeros.
const MADE_BYTES: u64 = 64 * 1024 * 1024;

/// Creates a batch with writes that pass through `recent` and a write that goes directly into a keyspace.
fn batch(epoch: Epoch, number: u64) -> Batch {
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(number));
    batch.put(Space::Keys, &number.to_be_bytes(), &[7; 30]);
    batch.put(Space::Payloads, &number.to_be_bytes(), &[8; 50]);
    batch
}

fn log(place: &Path, number: u64) -> PathBuf {
    place.join(format!("store/{number}.jnl"))
}

/// Creates a journal whose log is closed after each of these commits, as fjall closes a log: its batches and zeros.
fn journal(place: &Path, closed: &[u64]) -> Outcome {
    let store = FjallStore::open(place, SyncMode::None)?;
    let epoch = block_on(store.acquire())?;
    let mut ends = Vec::new();
    for number in 1..=COMMITS {
        block_on(store.append(batch(epoch, number)))?;
        ends.push((number, log_files::read(&log(place, 0))?.len()));
    }
    drop(store);
    split(place, &ends, closed)
}

fn split(place: &Path, ends: &[(u64, usize)], closed: &[u64]) -> Outcome {
    let whole = log_files::read(&log(place, 0))?;
    let mut from = 0;
    for (number, last) in (0..).zip(closed.iter().copied().chain([COMMITS])) {
        let (_, to) = ends.iter().find(|(end, _)| *end == last).ok_or("no such commit")?;
        fs::write(log(place, number), &whole[from..*to])?;
        OpenOptions::new()
            .write(true)
            .open(log(place, number))?
            .set_len(MADE_BYTES)?;
        from = *to;
    }
    Ok(())
}

/// Returns how many commits are found; checks that a refused journal is left unchanged.
fn count(place: &Path) -> Result<usize, StoreError> {
    let store = FjallStore::open(place, SyncMode::Data)?;
    let all = |space| Scan {
        space,
        from: vec![],
        to: None,
        limit: 1000,
    };
    let keys = block_on(store.scan(all(Space::Keys)))?.len();
    let payloads = block_on(store.scan(all(Space::Payloads)))?.len();
    assert_eq!(keys, payloads, "half of a commit is there");
    Ok(keys)
}

fn refused(place: &Path, what: &str) -> String {
    match count(place) {
        Err(error @ StoreError::Damaged { .. }) => error.to_string(),
        other => panic!("{what}: no damage was found: {other:?}"),
    }
}

/// Puts everything committed so far into tables.
fn flush(store: &FjallStore) -> Outcome {
    for keyspace in store.keyspaces() {
        keyspace.rotate_memtable_and_wait()?;
    }
    Ok(())
}

#[test]
fn logs_that_follow_each_other_are_read() -> Outcome {
    let place = TempDir::new()?;
    journal(place.path(), &[4, 8])?;
    assert_eq!(count(place.path())?, 12);
    Ok(())
}

#[test]
fn an_older_log_that_is_removed_emptied_zeroed_or_shortened_is_refused_by_its_name() -> Outcome {
    for harm in ["removed", "emptied", "zeroed", "shortened", "an older copy"] {
        let place = TempDir::new()?;
        journal(place.path(), &[7])?;
        let older = log(place.path(), 0);
        match harm {
            "removed" => fs::remove_file(&older)?,
            "emptied" => fs::write(&older, [])?,
            "zeroed" => fs::write(&older, vec![0; 4096])?,
            _ => {
                let whole = TempDir::new()?;
                journal(whole.path(), &[3])?;
                let shorter = log_files::read(&log(whole.path(), 0))?;
                fs::write(&older, &shorter)?;
                if harm == "shortened" {
                    OpenOptions::new().write(true).open(&older)?.set_len(MADE_BYTES)?;
                }
            }
        }
        let newer = fs::read(log(place.path(), 1))?;
        let text = refused(place.path(), harm);
        assert!(text.contains("0.jnl"), "{harm}: {text}");
        assert_eq!(
            fs::read(log(place.path(), 1))?,
            newer,
            "{harm}: what is left stays as it was"
        );
    }
    Ok(())
}

#[test]
fn logs_in_each_others_place_are_refused() -> Outcome {
    let place = TempDir::new()?;
    journal(place.path(), &[4, 8])?;
    let (first, second) = (fs::read(log(place.path(), 0))?, fs::read(log(place.path(), 1))?);
    fs::write(log(place.path(), 0), &second)?;
    fs::write(log(place.path(), 1), &first)?;
    assert!(refused(place.path(), "swapped").contains(".jnl"));
    // The middle log exists under its name, but has another log's contents.
    fs::write(log(place.path(), 0), &first)?;
    fs::write(log(place.path(), 1), &first)?;
    assert!(refused(place.path(), "twice").contains(".jnl"));
    Ok(())
}

/// Records that no checkpoint has put into tables are only in the log, even if `meta` has been written out.
#[test]
fn records_that_only_a_removed_log_held_are_missed() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?;
    let epoch = block_on(store.acquire())?;
    let mut ends = Vec::new();
    for number in 1..=COMMITS {
        block_on(store.append(batch(epoch, number)))?;
        ends.push((number, log_files::read(&log(place.path(), 0))?.len()));
    }
    for space in [Space::Meta, Space::Keys] {
        store
            .keyspace(&space)
            .ok_or("no keyspace")?
            .rotate_memtable_and_wait()?;
    }
    drop(store);
    split(place.path(), &ends, &[6])?;
    fs::remove_file(log(place.path(), 0))?;
    let text = refused(place.path(), "removed");
    assert!(text.contains("0.jnl"), "{text}");
    Ok(())
}

/// fjall removes a log without syncing its name, so after a power cut any of the removed logs may be there again.
#[test]
fn old_logs_that_come_back_stop_no_start() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    let mut ends = Vec::new();
    for number in 1..=COMMITS {
        block_on(store.append(batch(epoch, number)))?;
        ends.push((number, log_files::read(&log(place.path(), 0))?.len()));
        if number == 8 {
            flush(&store)?;
        }
    }
    drop(store);
    split(place.path(), &ends, &[2, 4, 6, 8])?;
    fs::remove_file(place.path().join("watermark"))?;
    let logs: Vec<_> = (0..5)
        .map(|number| fs::read(log(place.path(), number)))
        .collect::<Result<_, _>>()?;
    // Each bit says whether a log has reappeared.
    for back in 0..16_u8 {
        for (number, bytes) in (0_u8..).zip(&logs) {
            let path = log(place.path(), number.into());
            if number == 4 || back >> number & 1 == 1 {
                fs::write(&path, bytes)?;
            } else if path.exists() {
                fs::remove_file(&path)?;
            }
        }
        let copy = TempDir::new()?;
        FjallStore::copy(place.path(), copy.path())?;
        assert_eq!(count(copy.path())?, 12, "logs that are back: {back:04b}");
    }
    Ok(())
}

/// The log was written by a release that did not name the predecessor of a commit.
#[test]
fn commits_that_do_not_name_the_one_before_are_read() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    block_on(store.append(batch(epoch, 1)))?;
    let meta = store.keyspace(&Space::Meta).ok_or("no keyspace")?;
    for number in 2..=4 {
        let mut writes = store.database().batch();
        writes.insert(&meta, SEQ_KEY, chain::encode_number(epoch, Seq(number)));
        writes.commit()?;
    }
    drop((meta, store));
    for rounds in 1..=2 {
        let store = FjallStore::open(place.path(), SyncMode::Data)?;
        let epoch = block_on(store.acquire())?;
        block_on(store.append(batch(epoch, rounds)))?;
    }
    assert_eq!(count(place.path())?, 2);
    Ok(())
}

/// Commits as a release of format 5 wrote them: the link in a row of its own, before the row of the number. The third
/// names this predecessor.
fn commits_of_format_5(place: &Path, third_names: Seq) -> Outcome {
    let store = FjallStore::open(place, SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    block_on(store.append(batch(epoch, 1)))?;
    let meta = store.keyspace(&Space::Meta).ok_or("no keyspace")?;
    for number in 2..=4 {
        let commit = (epoch, Seq(number));
        let before = if number == 3 { third_names } else { Seq(number - 1) };
        let link = chain::Link {
            commit,
            before: (epoch, before),
            oldest: 1,
            newest: 1,
        };
        let mut writes = store.database().batch();
        writes.insert(&meta, FORMAT_KEY, 5_u32.to_be_bytes());
        writes.insert(&meta, chain::CHAIN_KEY, [&[1], link.encode().as_slice()].concat());
        writes.insert(&meta, SEQ_KEY, chain::encode_number(epoch, Seq(number)));
        writes.commit()?;
    }
    Ok(())
}

#[test]
fn commits_of_format_5_are_read_and_those_of_format_6_follow_them() -> Outcome {
    let place = TempDir::new()?;
    commits_of_format_5(place.path(), Seq(2))?;
    for rounds in 1..=2 {
        let store = FjallStore::open(place.path(), SyncMode::Data)?;
        let epoch = block_on(store.acquire())?;
        block_on(store.append(batch(epoch, rounds)))?;
        let meta = store.keyspace(&Space::Meta).ok_or("no keyspace")?;
        assert_eq!(meta.get(FORMAT_KEY)?.as_deref(), Some(FORMAT.to_be_bytes().as_slice()));
        assert!(meta.get(chain::CHAIN_KEY)?.is_none(), "the outdated row is gone");
    }
    assert_eq!(count(place.path())?, 2);
    Ok(())
}

#[test]
fn a_gap_in_commits_of_format_5_is_found() -> Outcome {
    let place = TempDir::new()?;
    commits_of_format_5(place.path(), Seq(1))?;
    assert!(matches!(
        FjallStore::open(place.path(), SyncMode::Data),
        Err(StoreError::Damaged { .. })
    ));
    Ok(())
}
