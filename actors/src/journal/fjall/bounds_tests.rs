//! The bounds of the store's memory, and its errors when it cannot continue.

use std::panic::{AssertUnwindSafe, catch_unwind};

use fjall::AbstractTree;
use futures::executor::block_on;
use procession_kernel::{Key, Seq};
use tempfile::TempDir;

use super::open::RECENT_BYTES;
use super::*;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn batch(epoch: Epoch, number: u64) -> Batch {
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(number));
    batch.put(Space::Keys, &number.to_be_bytes(), &[7; 100]);
    batch
}

/// Returns the size of all memory tables that commits go to, in bytes.
fn held(store: &FjallStore) -> u64 {
    let keyspaces = store.keyspaces();
    keyspaces
        .iter()
        .map(|keyspace| keyspace.tree.active_memtable().size())
        .sum()
}

/// fjall panics after the sync of its log: the batch is on disk, but its writer does not know.
#[test]
fn a_panic_within_a_commit_is_final() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    block_on(store.append(batch(epoch, 1)))?;
    let database = store.database();
    let keyspaces = &database.supervisor.keyspaces;
    catch_unwind(AssertUnwindSafe(|| {
        let _held = keyspaces.write();
        panic!("as planned");
    }))
    .err()
    .ok_or("nothing panicked")?;
    let first = catch_unwind(AssertUnwindSafe(|| block_on(store.append(batch(epoch, 2)))));
    assert!(matches!(first, Ok(Err(AppendError::Unknown(_)))), "{first:?}");
    keyspaces.clear_poison();
    let next = block_on(store.append(batch(epoch, 2)));
    assert!(
        matches!(next, Err(AppendError::Failed(_) | AppendError::Unknown(_))),
        "{next:?}"
    );
    assert!(block_on(store.head()).is_err());
    drop(database);
    drop(store);
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    assert_eq!(
        block_on(store.head())?.map(|head| head.seq),
        Some(Seq(2)),
        "its batch was in the log"
    );
    Ok(())
}

#[test]
fn memory_tables_of_many_keyspaces_have_one_bound() -> Outcome {
    const BOUND: u64 = 256 * 1024;
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?.memory_at(BOUND);
    let epoch = block_on(store.acquire())?;
    let mut most = 0;
    for number in 1..=320 {
        let mut batch = Batch::new(epoch);
        batch.advance_to(Seq(number));
        for tenant in 0..11 {
            let space = Space::User(Key::from(format!("tenant-{tenant}")));
            batch.put(space, &number.to_be_bytes(), &[7; 1000]);
        }
        block_on(store.append(batch))?;
        most = most.max(held(&store));
    }
    // A commit has eleven writes, and sixteen commits pass between two checks.
    assert!(most < BOUND + 16 * 11 * 1500, "{most} bytes of {BOUND}");
    assert!(most > BOUND / 2, "the bound was not met: {most}");
    Ok(())
}

/// When fjall writes out the memory table of `recent` by itself, the table is full of records that the next checkpoint
/// deletes.
#[test]
fn recent_is_written_out_once_a_checkpoint_has_emptied_it() -> Outcome {
    const EACH: usize = 8 * 1024;
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?.checkpoint_at(1024 * 1024);
    let epoch = block_on(store.acquire())?;
    let recent = store.recent();
    let (mut commits, mut held) = (0, 0);
    while recent.tree.active_memtable().size() >= held {
        held = recent.tree.active_memtable().size();
        assert!(
            held < RECENT_BYTES - RECENT_BYTES / 4,
            "{held} bytes, and not written out"
        );
        commits += 1;
        let mut batch = Batch::new(epoch);
        batch.advance_to(Seq(commits));
        batch.put(Space::Procedures, &commits.to_be_bytes(), &[7; EACH]);
        block_on(store.append(batch))?;
    }
    while recent.table_count() == 0 {
        // It says so if the threads that write the table out have failed.
        store.database().persist(fjall::PersistMode::Buffer)?;
        std::thread::yield_now();
    }
    let table = recent.disk_space();
    assert!(table < held / 4, "{table} of {held} bytes were still needed");
    Ok(())
}

/// Returns the resident memory of this process in bytes, where the system tells.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Commits between two measurements of the memory.
const LOOK: u64 = 200;

/// Runs for as long as `PROCESSION_SOAK_SECONDS` says and prints the memory used. In a release build it should stay
/// within 5 % over the second half. Without the variable it measures twenty times.
#[test]
#[expect(
    clippy::print_stdout,
    reason = "whoever asks for the long form wants to read its figures"
)]
fn memory_is_flat_while_eleven_keyspaces_are_written() -> Outcome {
    let seconds = std::env::var("PROCESSION_SOAK_SECONDS").ok();
    let seconds: u64 = seconds.map(|seconds| seconds.parse()).transpose()?.unwrap_or_default();
    let (looks, bytes) = if seconds == 0 { (20, 200) } else { (u64::MAX, 2_000) };
    let bound = if seconds == 0 {
        512 * 1024
    } else {
        FjallStore::MEMORY_BYTES
    };
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?.memory_at(bound);
    let epoch = block_on(store.acquire())?;
    let begun = crate::clock::machine_now();
    let mut taken: Vec<u64> = Vec::new();
    for look in 0..looks {
        for commit in 0..LOOK {
            let number = look * LOOK + commit + 1;
            let mut batch = Batch::new(epoch);
            batch.advance_to(Seq(number));
            for tenant in 0..11_u64 {
                // Each tenant writes at its own pace, so that tables fill slowly and at different times.
                if number.is_multiple_of(tenant + 1) {
                    let space = Space::User(Key::from(format!("tenant-{tenant}")));
                    batch.put(space, &(number % 20_000).to_be_bytes(), &vec![7; bytes]);
                }
            }
            batch.put(Space::Procedures, &(number % 20_000).to_be_bytes(), &[7; 300]);
            block_on(store.append(batch))?;
        }
        taken.extend(resident());
        let elapsed = begun.elapsed().as_secs();
        if seconds > 0 {
            println!(
                "{elapsed} s, {} commits, {:?} bytes resident",
                (look + 1) * LOOK,
                taken.last()
            );
        }
        if seconds > 0 && elapsed >= seconds {
            break;
        }
    }
    let (first, second) = taken.split_at(taken.len() / 2);
    let most = |half: &[u64]| half.iter().max().copied().unwrap_or_default();
    println!("most in the first half {}, in the second {}", most(first), most(second));
    let held = held(&store);
    assert!(
        held <= bound + 16 * 12 * (bytes as u64 + 400),
        "{held} bytes of {bound}"
    );
    Ok(())
}

#[test]
fn a_failure_in_the_background_is_told_by_what_is_wrong_now() -> Outcome {
    let place = TempDir::new()?;
    let said = remedy::background(place.path());
    assert!(
        said.contains("can be written again") || said.contains("make room"),
        "{said}"
    );
    let gone = place.path().join("gone");
    let said = remedy::background(&gone);
    assert!(said.contains("No such file or directory"), "{said}");
    assert_eq!(std::fs::read_dir(place.path())?.count(), 0, "the probe is gone");
    Ok(())
}
