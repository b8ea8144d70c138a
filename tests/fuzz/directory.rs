//! Random damage to one file of a real journal: it opens with all that was
//! acknowledged, or says what is damaged; what is read later is right or refused.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use futures::executor::block_on;
use procession::provider::{Batch, Entries, JournalStore, Scan, Space};
use procession_actors::journal::{EmbeddedStore, SyncMode};
use procession_kernel::Seq;

use crate::mutate::Mutator;
use crate::{Tested, say, seed, time_left};

/// The files of a journal by their path in it: bytes without the zeros at the end, and length.
type Files = BTreeMap<PathBuf, (Vec<u8>, u64)>;

/// What was acknowledged.
type Content = Vec<(Space, Entries)>;

#[test]
fn a_journal_with_a_damaged_file_opens_whole_or_says_what_is_damaged() -> Tested {
    let made = tempfile::tempdir()?;
    write(made.path(), 1)?;
    write(made.path(), 2)?;
    let content = read(&EmbeddedStore::open(made.path(), SyncMode::Data)?)?;
    let files = take(made.path(), made.path())?;
    assert!(content.iter().any(|(_, entries)| !entries.is_empty()) && files.len() > 10);
    let seed = seed();
    let mut mutator = Mutator::new(seed, files.values().map(|(bytes, _)| bytes.clone()).collect());
    let (mut begun, mut opened, mut refused) = (None, 0, 0);
    while time_left(&mut begun) {
        let place = tempfile::tempdir()?;
        let damage = damaged(&files, place.path(), &mut mutator)?;
        match outcome(place.path(), &content) {
            Ok(true) => opened += 1,
            Ok(false) => refused += 1,
            Err(why) => return Err(format!("FUZZ_SEED={seed}: {damage}: {why}").into()),
        }
    }
    say(&format!(
        "damaged files: FUZZ_SEED={seed}, {opened} opened, {refused} refused"
    ));
    Ok(())
}

/// Commits some batches as the next owner.
fn write(place: &Path, owner: u8) -> Tested {
    let store = EmbeddedStore::open(place, SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    for commit in 1..=4_u64 {
        let mut batch = Batch::new(epoch);
        batch.advance_to(Seq(commit));
        for space in [Space::Procedures, Space::History, Space::User("rows".into())] {
            batch.put(space, &[owner, commit.to_le_bytes()[0]], &[owner; 40]);
        }
        block_on(store.append(batch))?;
    }
    block_on(store.release(epoch))?;
    Ok(())
}

fn read(store: &EmbeddedStore) -> Result<Content, procession::errors::StoreError> {
    let spaces = Space::ENGINE.into_iter().chain([Space::User("rows".into())]);
    let of = |space: Space| {
        let scan = Scan {
            space: space.clone(),
            from: Vec::new(),
            to: None,
            limit: 100,
        };
        Ok((space, block_on(store.scan(scan))?))
    };
    spaces.map(of).collect()
}

/// Tells whether it opened; what it then gives must be what was acknowledged, or an error.
fn outcome(place: &Path, content: &Content) -> Result<bool, String> {
    let named = |text: &str| text.contains(&place.display().to_string()) || text.contains("keyspace");
    let store = match EmbeddedStore::open(place, SyncMode::Data) {
        Ok(store) => store,
        Err(error) if named(&error.to_string()) => return Ok(false),
        Err(error) => return Err(format!("the error names nothing: {error}")),
    };
    match read(&store) {
        Ok(found) if found == *content => Ok(true),
        Ok(_) => Err("it opened, and something is missing or wrong".to_owned()),
        Err(error) if named(&error.to_string()) => Ok(false),
        Err(error) => Err(format!("the error names nothing: {error}")),
    }
}

fn take(root: &Path, folder: &Path) -> Result<Files, std::io::Error> {
    let mut files = Files::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(take(root, &path)?);
            continue;
        }
        let mut bytes = fs::read(&path)?;
        let length = bytes.len() as u64;
        let zeros = bytes.iter().rev().take_while(|byte| **byte == 0).count();
        bytes.truncate(bytes.len() - zeros);
        let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
        files.insert(name, (bytes, length));
    }
    Ok(files)
}

/// Puts the files back, one of them damaged; says how.
fn damaged(files: &Files, place: &Path, mutator: &mut Mutator) -> Result<String, std::io::Error> {
    let chosen = mutator.below(files.len());
    let mut damage = String::new();
    for (at, (name, (bytes, length))) in files.iter().enumerate() {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap_or(place))?;
        let (mut bytes, mut length) = (bytes.clone(), *length);
        if at == chosen {
            if mutator.below(8) == 0 {
                damage = format!("{} is missing", name.display());
                continue;
            }
            let before = bytes.clone();
            mutator.change(&mut bytes);
            length = (bytes.len() as u64).max(if mutator.below(2) == 0 { length } else { 0 });
            let first = before.iter().zip(&bytes).position(|(one, other)| one != other);
            damage = format!("{} differs from byte {first:?} on, {length} bytes long", name.display());
        }
        fs::write(&path, bytes)?;
        OpenOptions::new().write(true).open(&path)?.set_len(length)?;
    }
    Ok(damage)
}
