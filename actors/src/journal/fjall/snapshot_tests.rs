//! A scan sees whole commits only, whatever fjall does in the background.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use fjall::Keyspace;
use futures::executor::block_on;
use procession_kernel::Key;
use tempfile::TempDir;

use super::*;
use procession_kernel::Seq;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Rows that each commit writes between the two scanned rows, so that inserting them takes a while.
const BETWEEN: u64 = 1000;
/// Number of commits during which every scan must see whole commits.
const COMMITS: u64 = 400;
const SCANS: u64 = 2000;

fn user(name: &str) -> Space {
    Space::User(Key::from(name))
}

/// Writes are inserted in key order, across all user keyspaces.
fn batch(epoch: Epoch, number: u64) -> Batch {
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(number));
    batch.put(user("accounts"), &[0], &number.to_be_bytes());
    for row in 0..BETWEEN {
        batch.put(user("between"), &(1 << 60 | row).to_be_bytes(), &number.to_be_bytes());
    }
    batch.put(user("accounts"), &[0xff], &number.to_be_bytes());
    batch
}

/// Returns `true` if both rows are from the same commit.
fn is_whole(store: &FjallStore) -> Result<bool, StoreError> {
    let all = Scan {
        space: user("accounts"),
        from: vec![],
        to: None,
        limit: usize::MAX,
    };
    let rows = block_on(store.scan(all))?;
    Ok(matches!(&rows[..], [(_, one), (_, other)] if one == other))
}

/// Writes out a keyspace's tables, one after another. Each time fjall raises the number up to which readers see.
fn write_out(keyspace: &Keyspace, ends: &AtomicBool) {
    while !ends.load(Ordering::Relaxed) {
        let inserted = keyspace.insert(b"key", b"value");
        if inserted.and_then(|()| keyspace.rotate_memtable_and_wait()).is_err() {
            return;
        }
    }
}

#[test]
fn a_scan_never_sees_half_of_a_commit() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?;
    let epoch = block_on(store.acquire())?;
    block_on(store.append(batch(epoch, 1)))?;
    let (ends, scans, torn) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let written = thread::scope(|scope| {
        for space in [Space::Audit, Space::Archive, Space::Signals] {
            let keyspace = store.keyspace(&space);
            let ends = &ends;
            scope.spawn(move || keyspace.iter().for_each(|keyspace| write_out(keyspace, ends)));
        }
        for _ in 0..3 {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    let Ok(is_whole) = is_whole(&store) else { return };
                    torn.fetch_add(u64::from(!is_whole), Ordering::Relaxed);
                    scans.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let mut written = Ok(1);
        for number in 2.. {
            let enough = number > COMMITS && scans.load(Ordering::Relaxed) >= SCANS;
            if enough || torn.load(Ordering::Relaxed) > 0 {
                break;
            }
            written = block_on(store.append(batch(epoch, number))).map(|_| number);
            if written.is_err() {
                break;
            }
        }
        ends.store(true, Ordering::Relaxed);
        written
    });
    let (scans, torn) = (scans.into_inner(), torn.into_inner());
    assert_eq!(torn, 0, "of {scans} scans beside {:?} commits", written?);
    assert!(scans >= SCANS, "only {scans} scans");
    Ok(())
}

/// Each commit releases the readers' old snapshot, so that fjall can drop overwritten versions.
#[test]
fn old_versions_are_dropped_while_commits_go_on() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?;
    let epoch = block_on(store.acquire())?;
    for number in 1..=30 {
        block_on(store.append(batch(epoch, number)))?;
        if number % 10 == 0 {
            let rows = store.keyspace(&user("between")).ok_or("no keyspace")?;
            rows.rotate_memtable_and_wait()?;
            rows.major_compact()?;
        }
    }
    let rows = store.keyspace(&user("between")).ok_or("no keyspace")?;
    let kept = rows.approximate_len() as u64;
    // The newest memory table may hold ten versions of each row that could not be dropped.
    assert!(kept <= 11 * BETWEEN, "{kept} versions of {BETWEEN} rows");
    Ok(())
}
