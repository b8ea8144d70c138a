//! A file or folder from an older copy of the store is refused, or makes no difference.

use std::fs;
use std::path::{Path, PathBuf};

use futures::executor::block_on;
use procession_kernel::Key;
use tempfile::TempDir;

use super::*;
use procession_kernel::Seq;

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Contents = Vec<(Space, Entries)>;

fn spaces() -> impl Iterator<Item = Space> {
    Space::ENGINE
        .into_iter()
        .filter(|space| *space != Space::Meta)
        .chain([Space::User(Key::from("orders"))])
}

/// Writes to every keyspace, to existing keys and new ones.
fn batch(epoch: Epoch, number: u64) -> Batch {
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(number));
    for space in spaces() {
        batch.put(space.clone(), &number.to_be_bytes(), &number.to_be_bytes());
        batch.put(space, b"newest", &number.to_be_bytes());
    }
    batch
}

/// Continues with these commits, and puts all of their writes into tables.
fn go_on(place: &Path, numbers: std::ops::RangeInclusive<u64>) -> Outcome {
    let store = FjallStore::open(place, SyncMode::Data)?.checkpoint_at(1);
    let epoch = block_on(store.acquire())?;
    let last = *numbers.end();
    for number in numbers {
        block_on(store.append(batch(epoch, number)))?;
    }
    // A commit removes the records that the previous checkpoint has put into tables.
    for number in last + 1.. {
        if store.recent().len()? == 0 {
            break;
        }
        let mut empty = Batch::new(epoch);
        empty.advance_to(Seq(number));
        block_on(store.append(empty))?;
    }
    for keyspace in store.keyspaces() {
        keyspace.rotate_memtable_and_wait()?;
    }
    Ok(())
}

/// Creates a journal and an older copy of it. Its log begins after both, as if fjall had removed the earlier logs.
fn journal(older: &Path, newer: &Path) -> Outcome {
    go_on(newer, 1..=12)?;
    copy(newer, older)?;
    go_on(newer, 13..=24)?;
    let log = newer.join("store/0.jnl");
    let from = log_files::read(&log)?.len();
    go_on(newer, 25..=25)?;
    let bytes = log_files::read(&log)?;
    fs::write(newer.join("store/1.jnl"), &bytes[from..])?;
    fs::remove_file(log)?;
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Outcome {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to)?;
        } else if entry.file_name() == "0.jnl" {
            // Without the zeros at its end, which are most of the file.
            fs::write(to, log_files::read(&entry.path())?)?;
        } else {
            fs::copy(entry.path(), to)?;
        }
    }
    Ok(())
}

fn contents(place: &Path) -> Result<Contents, StoreError> {
    let store = FjallStore::open(place, SyncMode::Data)?;
    let all = |space: Space| Scan {
        space,
        from: vec![],
        to: None,
        limit: usize::MAX,
    };
    spaces()
        .map(|space| Ok((space.clone(), block_on(store.scan(all(space)))?)))
        .collect()
}

/// Collects the paths of files that exist in both folders and differ.
fn differing(older: &Path, newer: &Path, below: &Path, found: &mut Vec<PathBuf>) -> Outcome {
    for entry in fs::read_dir(older.join(below))? {
        let path = below.join(entry?.file_name());
        if older.join(&path).is_dir() {
            differing(older, newer, &path, found)?;
        } else if newer.join(&path).exists() && fs::read(older.join(&path))? != fs::read(newer.join(&path))? {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns `true` if the journal was refused; otherwise checks that its contents are unharmed.
fn judge(truth: &Contents, place: &Path, what: &str) -> bool {
    match contents(place) {
        Ok(found) => {
            assert!(
                found == *truth,
                "{what}: what is there is not what was written, and nothing says so"
            );
            false
        }
        Err(StoreError::Damaged { .. }) => true,
        Err(error) => panic!("{what}: {error}"),
    }
}

#[test]
fn a_keyspace_or_a_file_from_an_older_copy_is_refused_or_makes_no_difference() -> Outcome {
    let (older, newer) = (TempDir::new()?, TempDir::new()?);
    journal(older.path(), newer.path())?;
    let whole = TempDir::new()?;
    copy(newer.path(), whole.path())?;
    let truth = contents(whole.path())?;
    assert!(
        truth.iter().all(|(_, entries)| entries.len() == 26),
        "all of it is there"
    );

    let keyspaces = PathBuf::from("store/keyspaces");
    let mut refused = Vec::new();
    for entry in fs::read_dir(older.path().join(&keyspaces))? {
        let keyspace = keyspaces.join(entry?.file_name());
        // First the whole folder, then only its files over the existing ones, as after a lost rename.
        for replaced in [true, false] {
            let place = TempDir::new()?;
            copy(newer.path(), place.path())?;
            if replaced {
                fs::remove_dir_all(place.path().join(&keyspace))?;
            }
            copy(&older.path().join(&keyspace), &place.path().join(&keyspace))?;
            if judge(
                &truth,
                place.path(),
                &format!("{} replaced: {replaced}", keyspace.display()),
            ) {
                refused.push(keyspace.clone());
            }
        }
    }
    assert!(refused.len() >= 20, "only these were refused: {refused:?}");

    let mut files = Vec::new();
    differing(older.path(), newer.path(), Path::new("store"), &mut files)?;
    assert!(files.len() > 10, "few files differ: {files:?}");
    for file in files {
        let place = TempDir::new()?;
        copy(newer.path(), place.path())?;
        fs::copy(older.path().join(&file), place.path().join(&file))?;
        judge(&truth, place.path(), &file.display().to_string());
    }
    Ok(())
}

/// A refused journal may be repaired by hand, if it was left unchanged.
#[test]
fn an_older_keyspace_that_is_refused_is_named_and_left_as_it_was() -> Outcome {
    let (older, newer) = (TempDir::new()?, TempDir::new()?);
    journal(older.path(), newer.path())?;
    let store = FjallStore::open(older.path(), SyncMode::Data)?;
    let rows = store.keyspace(&Space::Procedures).ok_or("no keyspace")?;
    let keyspace = PathBuf::from(format!("store/keyspaces/{}", rows.id()));
    drop((rows, store));
    let place = TempDir::new()?;
    copy(newer.path(), place.path())?;
    copy(&older.path().join(&keyspace), &place.path().join(&keyspace))?;
    let error = FjallStore::open(place.path(), SyncMode::Data)
        .err()
        .ok_or("it was opened")?;
    assert!(error.to_string().contains("\"procedures\""), "{error}");
    let truth = contents(newer.path())?;
    copy(&newer.path().join(&keyspace), &place.path().join(&keyspace))?;
    assert_eq!(contents(place.path())?, truth);
    Ok(())
}
