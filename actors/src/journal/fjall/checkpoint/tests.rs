//! How a checkpoint behaves when there are too many tables already.

use std::cell::Cell;
use std::error::Error;

use fjall::compaction::Leveled;
use fjall::{Database, KeyspaceCreateOptions};
use tempfile::TempDir;

use super::*;

/// Returns tables with as many unmerged as allowed, and nobody to merge them.
fn crowded(directory: &TempDir) -> Result<Tables, Box<dyn Error>> {
    let database = Database::builder(directory.path()).open()?;
    let strategy = Arc::new(Leveled::default().with_l0_threshold(u8::MAX));
    let keyspace = database.keyspace("one", || KeyspaceCreateOptions::default().compaction_strategy(strategy))?;
    // fjall moves a single table to the next level unchanged.
    for number in 0..u8::MAX {
        if keyspace.tree.l0_run_count() >= UNMERGED {
            break;
        }
        let mut ingestion = keyspace.start_ingestion()?;
        ingestion.write([number], [])?;
        ingestion.write(LAST, [])?;
        ingestion.finish()?;
    }
    Ok(Tables {
        recent: database.keyspace("recent", KeyspaceCreateOptions::default)?,
        database,
        parts: vec![keyspace],
        in_vain: IN_VAIN,
    })
}

#[test]
fn a_checkpoint_that_nobody_makes_room_for_ends_with_its_store() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let tables = crowded(&directory)?;
    let [keyspace] = &tables.parts[..] else {
        return Err("there is one keyspace".into());
    };
    assert!(keyspace.tree.l0_run_count() >= UNMERGED, "nothing merges them");
    // The store is closed while the checkpoint waits, not before.
    let asked = Cell::new(0);
    let ends = || {
        asked.set(asked.get() + 1);
        asked.get() == 3
    };
    assert!(!tables.has_way(keyspace, &ends)?);
    assert_eq!(asked.get(), 3);

    let mut table = Table::default();
    let mut encoder = super::super::Encoder::default();
    encoder.begin(1, 8);
    let place = crate::journal::recent::ShortKey::of(b"key").ok_or("it is short")?;
    encoder.push(0, place, Some(b"value"));
    for record in encoder.finish() {
        table.add(1, &record);
    }
    assert!(matches!(tables.write(&table, &|| true)?, Written::Left));
    assert_eq!(keyspace.get(b"key")?, None, "nothing of it was written");
    Ok(())
}

/// The strategy of its keyspace finds nothing to merge, however often it is asked.
#[test]
fn merges_that_change_nothing_do_not_hold_a_checkpoint_for_ever() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let mut tables = crowded(&directory)?;
    tables.in_vain = 2;
    let [keyspace] = &tables.parts[..] else {
        return Err("there is one keyspace".into());
    };
    let before = keyspace.len()?;
    assert!(tables.has_way(keyspace, &|| false)?);
    assert!(keyspace.tree.l0_run_count() < UNMERGED, "all of it is merged");
    assert_eq!(keyspace.len()?, before);
    Ok(())
}
