//! A file or folder from an older copy of the store is refused, or makes no difference.

use std::fs;
use std::path::{Path, PathBuf};

use fjall::AbstractTree;
use futures::executor::block_on;
use procession_kernel::Key;
use tempfile::TempDir;

use super::recent::PARTS;
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

/// Name of the version file that a keyspace uses, and its number.
fn version_of(keyspace: &Path) -> Result<(u64, PathBuf), Box<dyn std::error::Error>> {
    let current = fs::read(keyspace.join("current"))?;
    let number = u64::from_le_bytes(current.get(..8).ok_or("it is short")?.try_into()?);
    Ok((number, keyspace.join(format!("v{number}"))))
}

/// Adds a commit, and waits until a checkpoint has put it into tables, but not until a later commit notes that.
fn commit_and_checkpoint(place: &Path, number: u64) -> Outcome {
    let store = FjallStore::open(place, SyncMode::Data)?.checkpoint_at(1);
    let parts: Vec<_> = PARTS.iter().filter_map(|space| store.keyspace(space)).collect();
    assert_eq!(parts.len(), PARTS.len());
    let versions = || {
        parts
            .iter()
            .map(|part| part.tree.current_version().id())
            .collect::<Vec<_>>()
    };
    let before = versions();
    let epoch = block_on(store.acquire())?;
    block_on(store.append(batch(epoch, number)))?;
    while versions().iter().zip(&before).any(|(now, before)| now == before) {
        std::thread::yield_now();
    }
    Ok(())
}

/// Copies a journal, and cuts a keyspace's version file as a second writer of it does that fails.
fn interrupted(
    (older, newer): (&Path, &Path),
    keyspaces: &[PathBuf],
    left: impl Fn(Vec<u8>) -> Vec<u8>,
) -> Result<TempDir, Box<dyn std::error::Error>> {
    let place = TempDir::new()?;
    copy(newer, place.path())?;
    for keyspace in keyspaces {
        let (_, file) = version_of(&place.path().join(keyspace))?;
        fs::write(&file, left(fs::read(&file)?))?;
        let (_, before) = version_of(&older.join(keyspace))?;
        let name = before.file_name().ok_or("it has a name")?;
        fs::copy(&before, place.path().join(keyspace).join(name))?;
    }
    Ok(place)
}

/// See `docs/internals/lsm-version-rewritten.md`.
#[test]
fn a_version_of_tables_that_was_cut_before_it_took_effect_gives_way_to_the_one_before() -> Outcome {
    let (older, newer, later) = (TempDir::new()?, TempDir::new()?, TempDir::new()?);
    go_on(newer.path(), 1..=2)?;
    copy(newer.path(), older.path())?;
    commit_and_checkpoint(newer.path(), 100)?;
    copy(newer.path(), later.path())?;
    {
        let store = FjallStore::open(later.path(), SyncMode::Data)?;
        let mut empty = Batch::new(block_on(store.acquire())?);
        empty.advance_to(Seq(101));
        block_on(store.append(empty))?;
    }
    let whole = TempDir::new()?;
    copy(newer.path(), whole.path())?;
    let truth = contents(whole.path())?;

    let mut changed = Vec::new();
    for entry in fs::read_dir(newer.path().join("store/keyspaces"))? {
        let keyspace = PathBuf::from("store/keyspaces").join(entry?.file_name());
        let (before, _) = version_of(&older.path().join(&keyspace))?;
        if version_of(&newer.path().join(&keyspace))?.0 == before + 1 {
            changed.push(keyspace);
        }
    }
    assert!(!changed.is_empty(), "no keyspace changed exactly once");
    let from = (older.path(), newer.path());
    let half = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() / 2);
        bytes
    };
    let flip = |mut bytes: Vec<u8>| {
        bytes.iter_mut().take(1).for_each(|byte| *byte ^= 1);
        bytes
    };
    for keyspace in changed.iter().map(std::slice::from_ref).chain([&changed[..]]) {
        for place in [
            interrupted(from, keyspace, |_| Vec::new())?,
            interrupted(from, keyspace, half)?,
        ] {
            assert!(contents(place.path())? == truth, "{keyspace:?}");
            assert!(contents(place.path())? == truth, "{keyspace:?} once more");
        }
        let place = interrupted(from, keyspace, flip)?;
        assert!(judge(&truth, place.path(), "a whole file that was changed"));
        let place = interrupted(from, keyspace, half)?;
        for keyspace in keyspace {
            let (_, before) = version_of(&older.path().join(keyspace))?;
            let name = before.file_name().ok_or("it has a name")?;
            fs::remove_file(place.path().join(keyspace).join(name))?;
        }
        assert!(judge(&truth, place.path(), "no version before"));
    }
    for keyspace in &changed {
        let place = interrupted(from, std::slice::from_ref(keyspace), half)?;
        let mut tables = fs::read_dir(older.path().join(keyspace).join("tables"))?;
        let name = tables.next().ok_or("it has a table")??.file_name();
        let table = place.path().join(keyspace).join("tables").join(name);
        fs::write(&table, flip(fs::read(&table)?))?;
        let error = FjallStore::open(place.path(), SyncMode::Data)
            .err()
            .ok_or("it was opened")?;
        assert!(error.to_string().contains("\"current\" beside it names"), "{error}");
    }
    for keyspace in &changed {
        let from = (older.path(), later.path());
        let place = interrupted(from, std::slice::from_ref(keyspace), half)?;
        assert!(
            judge(&truth, place.path(), "a version that commits noted"),
            "{keyspace:?}"
        );
    }
    Ok(())
}
