//! Recent commits and tables are read as one, at any stage of a checkpoint.

use std::collections::BTreeMap;

use fjall::AbstractTree;
use futures::executor::block_on;
use tempfile::TempDir;

use super::recent::PARTS;
use super::*;
use crate::journal::layout::{FORMAT, FORMAT_KEY};
use crate::journal::store::RECENT_BYTES;
use procession_kernel::Seq;

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Model = BTreeMap<(Space, Vec<u8>), Vec<u8>>;

/// Pseudo-random numbers, the same on every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// Returns a key of up to 17 bytes, one more than may pass through `recent`. There are so few that they are
    /// overwritten.
    fn key(&mut self) -> Vec<u8> {
        let length = [1, 2, 8, 12, 13, 16, 17][usize::try_from(self.below(7)).unwrap_or_default()];
        let mut key = vec![0; length];
        key[length - 1] = u8::try_from(self.below(12)).unwrap_or_default();
        key[0] |= u8::try_from(self.below(3)).unwrap_or_default();
        key
    }

    fn space(&mut self) -> Space {
        let direct = [Space::Keys, Space::Signals];
        let spaces: Vec<Space> = PARTS.into_iter().chain(direct).collect();
        spaces[usize::try_from(self.below(7)).unwrap_or_default()].clone()
    }
}

fn write(batch: &mut Batch, model: &mut Model, chance: &mut Chance) {
    let (space, key) = (chance.space(), chance.key());
    if chance.below(4) == 0 {
        batch.delete(space.clone(), &key);
        model.remove(&(space, key));
    } else {
        let length = usize::try_from(chance.below(40)).unwrap_or_default();
        let value = vec![u8::try_from(chance.below(256)).unwrap_or_default(); length];
        batch.put(space.clone(), &key, &value);
        model.insert((space, key), value);
    }
}

fn compare(store: &FjallStore, model: &Model, chance: &mut Chance) -> Outcome {
    for _ in 0..20 {
        let (space, key) = (chance.space(), chance.key());
        let found = block_on(store.get(space.clone(), key.clone()))?;
        assert_eq!(found.as_ref(), model.get(&(space, key)));
    }
    for space in PARTS.into_iter().chain([Space::Keys]) {
        let from = if chance.below(2) == 0 { chance.key() } else { Vec::new() };
        let to = (chance.below(2) == 0).then(|| chance.key());
        let limit = [0, 1, 3, 7, usize::MAX][usize::try_from(chance.below(5)).unwrap_or_default()];
        let of_space = model.iter().filter(|((each, _), _)| *each == space);
        let wanted: Entries = of_space
            .map(|((_, key), value)| (key.clone(), value.clone()))
            .filter(|(key, _)| *key >= from && to.as_ref().is_none_or(|to| key < to))
            .take(limit)
            .collect();
        let scan = Scan { space, from, to, limit };
        assert_eq!(block_on(store.scan(scan.clone()))?, wanted, "{scan:?}");
        compare_recent(store, model, &scan);
    }
    Ok(())
}

/// What is in memory is the newest, deletes included; what is in tables alone is missing.
fn compare_recent(store: &FjallStore, model: &Model, scan: &Scan) {
    let recent = store.recent_writes(scan).unwrap_or_default();
    assert!(recent.len() <= scan.limit);
    assert!(recent.is_sorted_by(|(one, _), (next, _)| one < next));
    for (key, value) in recent {
        assert!(key >= scan.from && scan.to.as_ref().is_none_or(|to| key < *to));
        let found = model.get(&(scan.space.clone(), key));
        assert_eq!(value.as_ref(), found, "{scan:?}");
    }
}

fn in_memory(store: &FjallStore, space: Space) -> Option<usize> {
    let (from, to, limit) = (Vec::new(), None, usize::MAX);
    let writes = store.recent_writes(&Scan { space, from, to, limit });
    Some(writes?.len())
}

#[test]
fn writes_are_in_memory_until_a_checkpoint_and_only_a_few_are_returned() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?.checkpoint_at(1 << 30);
    let epoch = block_on(store.acquire())?;
    put(&store, epoch, 1, 1, Some(b"old"))?;
    put(&store, epoch, 2, 2, Some(b"old"))?;
    put(&store, epoch, 3, 1, None)?;
    assert_eq!(in_memory(&store, Space::Procedures), Some(2), "a delete is a write");
    assert_eq!(in_memory(&store, Space::History), Some(0));
    assert_eq!(in_memory(&store, Space::Keys), None, "it does not pass through memory");
    let room = RECENT_BYTES - 3 * 16 - b"old".len();
    put(&store, epoch, 4, 3, Some(&vec![0; room]))?;
    assert_eq!(in_memory(&store, Space::Procedures), Some(3));
    put(&store, epoch, 5, 3, Some(&vec![0; room + 1]))?;
    assert_eq!(in_memory(&store, Space::Procedures), None, "that is a byte too many");
    Ok(())
}

#[test]
fn reads_are_as_if_there_were_no_checkpoints() -> Outcome {
    for seed in 1..=6 {
        let place = TempDir::new()?;
        let mut chance = Chance(seed);
        let mut model = Model::new();
        for _ in 0..6 {
            let due_at = [1, 300, 3_000, 1 << 30][usize::try_from(chance.below(4)).unwrap_or_default()];
            let store = FjallStore::open(place.path(), SyncMode::None)?.checkpoint_at(due_at);
            compare(&store, &model, &mut chance)?;
            let epoch = block_on(store.acquire())?;
            for number in 1..=25 {
                let mut batch = Batch::new(epoch);
                batch.advance_to(Seq(number));
                for _ in 0..chance.below(12) {
                    write(&mut batch, &mut model, &mut chance);
                }
                block_on(store.append(batch))?;
                compare(&store, &model, &mut chance)?;
            }
        }
    }
    Ok(())
}

fn put(store: &FjallStore, epoch: Epoch, number: u64, key: u8, value: Option<&[u8]>) -> Outcome {
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(number));
    match value {
        Some(value) => batch.put(Space::Procedures, &[key; 12], value),
        None => batch.delete(Space::Procedures, &[key; 12]),
    }
    block_on(store.append(batch))?;
    Ok(())
}

fn all(store: &FjallStore) -> Result<Entries, StoreError> {
    block_on(store.scan(Scan {
        space: Space::Procedures,
        from: Vec::new(),
        to: None,
        limit: usize::MAX,
    }))
}

/// A crash within a checkpoint: tables hold the newest writes, and all records still exist.
#[test]
fn half_a_checkpoint_is_not_seen() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    put(&store, epoch, 1, 1, Some(b"old"))?;
    put(&store, epoch, 2, 2, Some(b"old"))?;
    put(&store, epoch, 3, 1, Some(b"new"))?;
    put(&store, epoch, 4, 2, None)?;
    let before = all(&store)?;
    let rows = store.keyspace(&Space::Procedures).ok_or("no keyspace")?;
    let mut ingestion = rows.start_ingestion()?;
    ingestion.write([1; 12], b"new")?;
    ingestion.write_tombstone([2; 12])?;
    ingestion.finish()?;
    assert_eq!(all(&store)?, before);
    drop((rows, store));
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    assert_eq!(all(&store)?, before);
    assert_eq!(before, [(vec![1; 12], b"new".to_vec())]);
    Ok(())
}

#[test]
fn records_are_taken_out_once_they_are_in_tables() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?.checkpoint_at(1);
    let epoch = block_on(store.acquire())?;
    for number in 1..=40 {
        put(&store, epoch, number, u8::try_from(number)?, Some(&[7; 100]))?;
    }
    let left = store.recent().len()?;
    // Each append waits for the second-last checkpoint, so only a few records are left.
    assert!(left <= 4, "{left} records are left");
    drop(store);
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    assert_eq!(all(&store)?.len(), 40);
    Ok(())
}

/// A store as format 2 left it: everything in tables, and no keyspace `recent`.
#[test]
fn a_store_of_format_2_goes_on_in_this_one() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open_plain(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    put(&store, epoch, 1, 1, Some(b"kept"))?;
    put(&store, epoch, 2, 2, Some(b"written over"))?;
    put(&store, epoch, 3, 3, Some(b"deleted"))?;
    let mut older = Batch::new(epoch);
    older.advance_to(Seq(4));
    older.put(Space::Meta, FORMAT_KEY, &2_u32.to_be_bytes());
    older.delete(Space::Meta, b"space/recent");
    block_on(store.append(older))?;
    drop(store);
    for due_at in [1 << 30, 1] {
        let store = FjallStore::open(place.path(), SyncMode::Data)?.checkpoint_at(due_at);
        let epoch = block_on(store.acquire())?;
        put(&store, epoch, 1, 2, Some(b"new"))?;
        put(&store, epoch, 2, 3, None)?;
        let expected = [(vec![1; 12], b"kept".to_vec()), (vec![2; 12], b"new".to_vec())];
        assert_eq!(all(&store)?, expected);
    }
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    assert_eq!(all(&store)?.len(), 2);
    let format = block_on(store.get(Space::Meta, FORMAT_KEY.to_vec()))?;
    assert_eq!(format, Some(FORMAT.to_be_bytes().to_vec()));
    Ok(())
}

/// The delete is in no log, and merging removes it from the tables, but the log of format 2 still exists.
#[test]
fn what_format_2_left_in_its_log_and_was_deleted_since_stays_deleted() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open_plain(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    put(&store, epoch, 1, 9, Some(b"ended long ago"))?;
    drop(store);
    let store = FjallStore::open(place.path(), SyncMode::Data)?.checkpoint_at(1);
    let epoch = block_on(store.acquire())?;
    put(&store, epoch, 1, 9, None)?;
    for number in 1..=20 {
        let value = (number % 2 == 1).then_some(&[7; 10][..]);
        put(&store, epoch, 1 + number, 1, value)?;
    }
    // Each append removes the records that the previous checkpoint has put into tables.
    let mut number = 22;
    while store.recent().len()? > 0 {
        block_on(store.append(batch_of(epoch, number)))?;
        number += 1;
    }
    let rows = store.keyspace(&Space::Procedures).ok_or("no keyspace")?;
    rows.major_compact()?;
    drop((rows, store));
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    assert_eq!(all(&store)?, []);
    Ok(())
}

/// Creates a batch without writes that pass through `recent`.
fn batch_of(epoch: Epoch, number: u64) -> Batch {
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(number));
    batch.put(Space::Keys, b"key", b"value");
    batch
}

#[test]
fn tables_are_merged_when_checkpoints_come_faster_than_that_is_done() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?.checkpoint_at(1);
    let epoch = block_on(store.acquire())?;
    let rows = store.keyspace(&Space::Procedures).ok_or("no keyspace")?;
    for number in 1..=300 {
        put(&store, epoch, number, u8::try_from(number % 7)?, Some(b"value"))?;
        assert!(rows.l0_table_count() <= 21, "{} tables", rows.l0_table_count());
    }
    drop((rows, store));
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    assert_eq!(all(&store)?.len(), 7);
    Ok(())
}

#[test]
fn tables_of_what_is_read_by_ranges_have_no_filter() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::None)?.checkpoint_at(1);
    let epoch = block_on(store.acquire())?;
    for number in 1..=40 {
        let mut batch = Batch::new(epoch);
        batch.advance_to(Seq(number));
        batch.put(Space::Procedures, &number.to_be_bytes(), b"row");
        batch.put(Space::History, &number.to_be_bytes(), b"entry");
        block_on(store.append(batch))?;
    }
    let keyspace = |space| store.keyspace(&space).ok_or("no keyspace");
    let (rows, history) = (keyspace(Space::Procedures)?, keyspace(Space::History)?);
    assert!(history.tree.table_count() > 0, "nothing was written out");
    assert_eq!(history.tree.filter_size(), 0);
    assert!(rows.tree.filter_size() > 0);
    Ok(())
}

#[test]
fn a_damaged_record_is_named() -> Outcome {
    let place = TempDir::new()?;
    let store = FjallStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    put(&store, epoch, 1, 1, Some(b"value"))?;
    store.recent().insert(7_u64.to_be_bytes(), [9, 9])?;
    drop(store);
    let text = FjallStore::open(place.path(), SyncMode::Data)
        .err()
        .ok_or("it was opened")?
        .to_string();
    assert!(text.contains("recent"), "{text}");
    Ok(())
}
