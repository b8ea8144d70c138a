//! Who may use the journal's directory: nobody without its locks, even after a file was removed.

use std::fs::{self, File, OpenOptions};
use std::sync::mpsc;
use std::thread;

use futures::executor::block_on;
use procession_kernel::Key;
use tempfile::TempDir;

use super::directory::{Directory, Looked};
use super::*;
use procession_kernel::Seq;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn batch(epoch: Epoch, number: u64, bytes: usize) -> Batch {
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(number));
    batch.put(Space::Keys, &number.to_be_bytes(), &vec![7; bytes]);
    batch
}

/// Commits the numbers of this range.
fn write(store: &FjallStore, numbers: std::ops::Range<u64>) -> Result<Epoch, Box<dyn std::error::Error>> {
    let epoch = block_on(store.acquire())?;
    for number in numbers {
        block_on(store.append(batch(epoch, number, 100)))?;
    }
    Ok(epoch)
}

fn count(store: &FjallStore) -> Result<usize, StoreError> {
    let all = Scan {
        space: Space::Keys,
        from: Vec::new(),
        to: None,
        limit: 10_000,
    };
    Ok(block_on(store.scan(all))?.len())
}

fn me() -> String {
    format!("process {}", std::process::id())
}

fn refused_by_an_engine(opened: Result<FjallStore, StoreError>) -> String {
    match opened {
        Err(StoreError::Held { holder, .. }) => holder,
        other => panic!("it was not refused because of an engine: {other:?}"),
    }
}

/// Returns all files of a journal with their identities, except `owner` and files that a look at a lock creates.
#[cfg(unix)]
fn files(place: &Path) -> std::io::Result<Vec<(PathBuf, u64, u64)>> {
    use std::os::unix::fs::MetadataExt;

    let (mut found, mut folders) = (Vec::new(), vec![place.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                folders.push(entry.path());
            } else if entry.file_name() != "owner" {
                found.push((entry.path(), metadata.ino(), metadata.len()));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Anybody can remove the plain file `owner`, but not the journal's protection.
#[cfg(unix)]
#[test]
fn without_its_file_owner_a_journal_in_use_is_left_alone() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?;
    let epoch = write(&store, 0..5)?;
    fs::remove_file(place.path().join("owner"))?;
    let before = files(place.path())?;
    let holder = refused_by_an_engine(FjallStore::open(place.path(), SyncMode::Data));
    assert!(holder.contains(&me()), "{holder}");
    let copy = TempDir::new()?;
    let read = FjallStore::copy(place.path(), copy.path());
    assert!(matches!(read, Err(StoreError::Held { .. })), "{read:?}");
    assert!(FjallStore::holder(place.path())?.is_some());
    assert_eq!(files(place.path())?, before);
    block_on(store.append(batch(epoch, 5, 100)))?;
    drop(store);
    assert_eq!(count(&FjallStore::open(place.path(), SyncMode::Data)?)?, 6);
    Ok(())
}

/// An older release locks `owner` and the file `lock` of its store, and nothing else.
#[cfg(unix)]
#[test]
fn an_engine_of_an_older_release_is_seen_by_the_lock_of_its_store() -> Outcome {
    let place = TempDir::new()?;
    write(&FjallStore::open(place.path(), SyncMode::None)?, 0..5)?;
    fs::write(place.path().join("watermark"), [])?;
    let older = File::open(place.path().join("store/lock"))?;
    older.try_lock()?;
    fs::remove_file(place.path().join("owner"))?;
    let before = files(place.path())?;
    let holder = refused_by_an_engine(FjallStore::open(place.path(), SyncMode::Data));
    if cfg!(target_os = "linux") {
        assert!(holder.contains(&me()), "{holder}");
    }
    let copy = TempDir::new()?;
    let read = FjallStore::copy(place.path(), copy.path());
    assert!(matches!(read, Err(StoreError::Held { .. })), "{read:?}");
    assert_eq!(files(place.path())?, before);
    drop(older);
    assert_eq!(count(&FjallStore::open(place.path(), SyncMode::Data)?)?, 5);
    Ok(())
}

/// A store under construction that an older release uses must not be removed.
#[test]
fn a_store_in_use_is_not_removed_as_unfinished() -> Outcome {
    let place = TempDir::new()?;
    fs::create_dir_all(place.path().join("store"))?;
    fs::write(place.path().join("store.unfinished"), [])?;
    let lock = place.path().join("store/lock");
    fs::write(&lock, [])?;
    let older = File::open(&lock)?;
    older.try_lock()?;
    refused_by_an_engine(FjallStore::open(place.path(), SyncMode::Data));
    assert!(lock.exists());
    Ok(())
}

/// A power cut during the journal's creation may keep a single new name in its directory and lose all others.
#[test]
fn whichever_name_a_power_cut_left_alone_the_journal_is_made() -> Outcome {
    for name in ["owner", "watermark", "store.unfinished"] {
        let place = TempDir::new()?;
        fs::write(place.path().join(name), [])?;
        let store = FjallStore::open(place.path(), SyncMode::Data).map_err(|why| format!("{name}: {why}"))?;
        assert_eq!(count(&store)?, 0);
    }
    Ok(())
}

/// A way to take a log away from a running engine.
#[cfg(unix)]
type Harm = fn(&Path) -> std::io::Result<()>;

#[cfg(unix)]
#[test]
fn an_engine_whose_log_is_another_file_acknowledges_nothing() -> Outcome {
    let harms: [(&str, Harm); 7] = [
        ("removed", |place| fs::remove_file(place.join("store/0.jnl"))),
        ("replaced by a copy of itself", |place| {
            fs::copy(place.join("store/0.jnl"), place.join("store/copy"))?;
            fs::rename(place.join("store/copy"), place.join("store/0.jnl"))
        }),
        ("renamed", |place| {
            fs::rename(place.join("store/0.jnl"), place.join("store/old"))
        }),
        ("in a directory that was renamed", |place| {
            fs::rename(place.join("store"), place.join("elsewhere"))
        }),
        ("in a directory that was renamed and has a copy in its place", |place| {
            fs::rename(place.join("store"), place.join("elsewhere"))?;
            fs::create_dir(place.join("store"))?;
            fs::copy(place.join("elsewhere/0.jnl"), place.join("store/0.jnl")).map(|_| ())
        }),
        ("removed, but for a backup's link to it", |place| {
            fs::hard_link(place.join("store/0.jnl"), place.join("backup"))?;
            fs::remove_file(place.join("store/0.jnl"))
        }),
        ("behind a link to a copy", |place| {
            fs::rename(place.join("store"), place.join("elsewhere"))?;
            fs::create_dir(place.join("copy"))?;
            fs::copy(place.join("elsewhere/0.jnl"), place.join("copy/0.jnl"))?;
            std::os::unix::fs::symlink(place.join("copy"), place.join("store"))
        }),
    ];
    for (how, harm) in harms {
        let place = TempDir::new()?;
        let store = FjallStore::open(place.path(), SyncMode::Data)?;
        let epoch = write(&store, 0..5)?;
        harm(place.path())?;
        let answer = block_on(store.append(batch(epoch, 5, 100)));
        let named = place.path().join("store/0.jnl").display().to_string();
        assert!(
            matches!(&answer, Err(AppendError::Unknown(why)) if why.contains(&named)),
            "{how}: {answer:?}"
        );
        let next = block_on(store.append(batch(epoch, 6, 100)));
        assert!(matches!(next, Err(AppendError::Failed(_))), "{how}: {next:?}");
    }
    Ok(())
}

/// What leaves the log where it was is no harm, however often it happens, and harm after it is seen.
#[cfg(unix)]
#[test]
fn a_log_that_is_back_in_its_place_is_watched_again() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = write(&store, 0..5)?;
    let (log, folder) = (place.path().join("store/0.jnl"), place.path().join("store"));
    let elsewhere = place.path().join("elsewhere");
    for round in 0..3 {
        fs::rename(&folder, &elsewhere)?;
        fs::rename(&elsewhere, &folder)?;
        block_on(store.append(batch(epoch, 5 + 2 * round, 100)))?;
        // Another directory with the same file in it: the one that is watched is above it no longer.
        fs::rename(&folder, &elsewhere)?;
        fs::create_dir(&folder)?;
        fs::hard_link(elsewhere.join("0.jnl"), &log)?;
        block_on(store.append(batch(epoch, 6 + 2 * round, 100)))?;
        fs::remove_file(&log)?;
        fs::remove_dir(&folder)?;
        fs::rename(&elsewhere, &folder)?;
    }
    block_on(store.append(batch(epoch, 11, 100)))?;
    fs::rename(&folder, &elsewhere)?;
    let answer = block_on(store.append(batch(epoch, 12, 100)));
    assert!(matches!(&answer, Err(AppendError::Unknown(_))), "{answer:?}");
    Ok(())
}

/// Behind a symbolic link the system does not tell of each change, and the path is walked.
#[cfg(unix)]
#[test]
fn a_log_behind_a_link_is_watched_too() -> Outcome {
    let place = TempDir::new()?;
    fs::create_dir(place.path().join("real"))?;
    let link = place.path().join("link");
    std::os::unix::fs::symlink(place.path().join("real"), &link)?;
    let store = FjallStore::open(&link, SyncMode::Data)?;
    let epoch = write(&store, 0..5)?;
    fs::remove_file(&link)?;
    let answer = block_on(store.append(batch(epoch, 5, 100)));
    assert!(matches!(&answer, Err(AppendError::Unknown(_))), "{answer:?}");
    Ok(())
}

/// A new log is begun, and the old one is removed once tables hold its contents. This is no damage, and the new log
/// is watched like the old one.
#[cfg(unix)]
#[test]
fn a_change_of_logs_is_no_harm_and_the_new_log_is_watched() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?;
    let epoch = block_on(store.acquire())?;
    let mut numbers = 0..;
    let mut commit = |bytes| {
        let number = numbers.next().unwrap_or_default();
        block_on(store.append(batch(epoch, number, bytes)))
    };
    let (old, new) = (place.path().join("store/0.jnl"), place.path().join("store/1.jnl"));
    // Writing out a table begins a new log when the old one has reached 64 MB.
    while !new.exists() {
        for _ in 0..70 {
            commit(1 << 20)?;
        }
        let keys = store.keyspace(&Space::Keys).ok_or("no keyspace")?;
        keys.rotate_memtable_and_wait()?;
    }
    for _ in 0..200 {
        commit(100)?;
    }
    let spaces = Space::ENGINE.into_iter().filter_map(|space| store.keyspace(&space));
    for space in spaces.chain([store.recent()]) {
        space.rotate_memtable_and_wait()?;
    }
    while old.exists() {
        commit(100)?;
        let keys = store.keyspace(&Space::Keys).ok_or("no keyspace")?;
        keys.rotate_memtable_and_wait()?;
    }
    for _ in 0..200 {
        commit(100)?;
    }
    fs::remove_file(&new)?;
    let answer = commit(100);
    assert!(
        matches!(&answer, Err(AppendError::Unknown(why)) if why.contains("1.jnl")),
        "{answer:?}"
    );
    Ok(())
}

#[test]
fn readers_share_and_an_engine_waits_for_them_a_moment() -> Outcome {
    let place = TempDir::new()?;
    write(&FjallStore::open(place.path(), SyncMode::Data)?, 0..5)?;
    // The text of an engine that was killed long ago.
    fs::write(place.path().join("owner"), "process 4194999 gone")?;
    let reader = Looked::hold(place.path())?;
    let other = Looked::hold(place.path())?;
    assert_eq!(FjallStore::holder(place.path())?, None, "readers are no holders");
    drop(other);
    match FjallStore::open(place.path(), SyncMode::Data) {
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("being read") && !text.contains("4194999"), "{text}");
            if cfg!(target_os = "linux") {
                assert!(text.contains(&me()), "{text}");
            }
        }
        other => panic!("an engine has opened what is being read: {other:?}"),
    }
    assert_eq!(count_of_opening(place.path(), || drop(reader))?, 5);
    Ok(())
}

/// Opens the journal on a thread of its own, lets go of it once that has begun, and returns what the opener counts.
fn count_of_opening(place: &Path, let_go: impl FnOnce()) -> Result<usize, Box<dyn std::error::Error>> {
    let begun = mpsc::channel();
    thread::scope(|scope| {
        let opening = scope.spawn(|| {
            begun.0.send(()).ok();
            FjallStore::open(place, SyncMode::Data).and_then(|store| count(&store))
        });
        begun.1.recv().ok();
        let_go();
        Ok(opening.join().map_err(|_| "it panicked")??)
    })
}

/// As after `kill -9`: the process that took the lock is gone from the system's list, and the lock is not released yet.
/// Here another process has inherited the file, and keeps it until its input ends.
#[test]
#[cfg(target_os = "linux")]
fn an_engine_waits_a_moment_for_one_that_was_killed() -> Outcome {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let place = TempDir::new()?;
    write(&FjallStore::open(place.path(), SyncMode::Data)?, 0..5)?;
    let mut keeper = Command::new("sh")
        .args(["-c", "exec 9<.; flock 9; echo locked; exec cat"])
        .current_dir(place.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(keeper.stdout.take().ok_or("it prints nothing")?).read_line(&mut line)?;
    assert_eq!(line, "locked\n");
    let refused = refused_by_an_engine(FjallStore::open(place.path(), SyncMode::Data));
    assert_eq!(refused.find("(process"), None, "nobody alive is named: {refused}");
    let input = keeper.stdin.take();
    assert_eq!(count_of_opening(place.path(), || drop(input))?, 5);
    keeper.wait()?;
    Ok(())
}

#[test]
fn a_dead_process_is_never_named() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    fs::write(place.path().join("owner"), "process 4194999 gone")?;
    let holder = refused_by_an_engine(FjallStore::open(place.path(), SyncMode::Data));
    assert!(!holder.contains("4194999"), "{holder}");
    let held = FjallStore::holder(place.path())?.ok_or("nobody holds it")?;
    assert!(!held.contains("4194999"), "{held}");
    drop(store);
    assert_eq!(FjallStore::holder(place.path())?, None);
    Ok(())
}

/// If names were not synced, a power cut may restore the name of the unfinished store and lose the watermark.
#[test]
fn a_store_with_a_commit_is_never_removed() -> Outcome {
    for end in ["closed", "in tables"] {
        let place = TempDir::new()?;
        let store = FjallStore::open(place.path(), SyncMode::Data)?;
        write(&store, 0..5)?;
        if end == "in tables" {
            for space in Space::ENGINE.into_iter().filter_map(|space| store.keyspace(&space)) {
                space.rotate_memtable_and_wait()?;
            }
        }
        drop(store);
        fs::write(place.path().join("store.unfinished"), [])?;
        for mark in [Some(&b""[..]), Some(&[0; 24]), None] {
            let path = place.path().join("watermark");
            mark.map_or_else(|| fs::remove_file(&path), |mark| fs::write(&path, mark))?;
            fs::write(place.path().join("store.unfinished"), [])?;
            assert!(FjallStore::exists(place.path()), "{end}: {mark:?}");
            let store = FjallStore::open(place.path(), SyncMode::Data)?;
            assert_eq!(count(&store)?, 5, "{end}: {mark:?}");
            assert!(!place.path().join("store.unfinished").exists());
        }
    }
    Ok(())
}

/// The file is sparse: its length must neither be trusted nor be reserved in memory.
#[test]
fn a_log_that_claims_to_be_huge_is_read_for_what_it_holds() -> Outcome {
    let place = TempDir::new()?;
    write(&FjallStore::open(place.path(), SyncMode::Data)?, 0..5)?;
    let log = OpenOptions::new().write(true).open(place.path().join("store/0.jnl"))?;
    log.set_len(200 << 30)?;
    drop(log);
    match FjallStore::open(place.path(), SyncMode::Data) {
        Ok(store) => assert_eq!(count(&store)?, 5),
        Err(StoreError::Io { why, .. } | StoreError::Damaged { why, .. }) => assert!(why.contains("0.jnl"), "{why}"),
        Err(error) => panic!("{error}"),
    }
    Ok(())
}

#[test]
fn a_manifest_that_claims_to_be_huge_is_damage() -> Outcome {
    for name in ["current", "v0"] {
        let place = TempDir::new()?;
        write(&FjallStore::open(place.path(), SyncMode::Data)?, 0..5)?;
        let path = place.path().join("store/keyspaces/1").join(name);
        OpenOptions::new().write(true).open(&path)?.set_len(200 << 30)?;
        match FjallStore::open(place.path(), SyncMode::Data) {
            Err(StoreError::Damaged { why, .. }) => assert!(why.contains("keyspaces/1"), "{why}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    Ok(())
}

/// A name that was not synced lasts only if the power does.
#[test]
fn an_opening_syncs_each_folder_in_which_a_name_may_be_new() -> Outcome {
    let place = TempDir::new()?;
    let journal = place.path().join("new/journal");
    let store = FjallStore::open(&journal, SyncMode::Data)?;
    let epoch = write(&store, 0..2)?;
    let mut user = Batch::new(epoch);
    user.advance_to(Seq(2));
    user.put(Space::User(Key::from("orders")), b"k", b"v");
    block_on(store.append(user))?;
    drop(store);
    let (directory, _lock) = Directory::take(&journal)?;
    let mut synced = directory.names()?;
    synced.sort();
    let mut expected = vec![
        place.path().join("new"),
        journal.clone(),
        journal.join("store"),
        journal.join("store/keyspaces"),
    ];
    for keyspace in fs::read_dir(journal.join("store/keyspaces"))? {
        expected.push(keyspace?.path());
    }
    expected.sort();
    // fjall's own, those of the engine, `recent`, and the user's.
    assert_eq!(expected.len(), 4 + 1 + Space::ENGINE.len() + 1 + 1);
    assert_eq!(synced, expected);
    Ok(())
}
