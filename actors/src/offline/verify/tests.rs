//! Verifying a journal finds any damage in it.

use std::fs;
use std::path::{Path, PathBuf};

use futures::executor::block_on;
use procession_kernel::{ProcedureId, Seq};
use tempfile::TempDir;

use super::*;
use crate::journal::{Batch, EmbeddedStore, JournalStore, SyncMode};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Creates a journal with payloads and history in tables, which a start does not read.
fn journal(place: &Path) -> Outcome {
    let store = EmbeddedStore::open(place, SyncMode::Data)?.checkpoint_at(1);
    let epoch = block_on(store.acquire())?;
    for number in 1..=8 {
        let mut batch = Batch::new(epoch);
        batch.advance_to(Seq(number));
        let id = ProcedureId::new(number, 0);
        batch.put(Space::Payloads, &keys::payload(id, keys::PAYLOAD), &[7; 500]);
        batch.put(Space::History, &keys::history(number, 1), &[1, 0x80]);
        block_on(store.append(batch))?;
    }
    Ok(())
}

fn damages(place: &Path) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let offline = Offline::open_copy(place)?;
    // Reads that may block are handed to a runtime.
    Ok(actix_rt::System::new().block_on(offline.verify())?.damages)
}

/// Returns the tables that the manifests name, except those of fjall's own keyspace.
fn tables(place: &Path) -> Result<Vec<PathBuf>, Box<dyn std::error::Error>> {
    let mut tables = Vec::new();
    for keyspace in fs::read_dir(place.join("store/keyspaces"))? {
        let keyspace = keyspace?;
        if keyspace.file_name() == "0" {
            continue;
        }
        for table in fs::read_dir(keyspace.path().join("tables"))? {
            tables.push(table?.path());
        }
    }
    Ok(tables)
}

/// What is said of a copy that cannot be opened, or read.
fn refusal(place: &Path) -> String {
    let read =
        |offline: Offline| actix_rt::System::new().block_on(async move { offline.find("nobody").await.map(drop) });
    match Offline::open_copy(place) {
        Ok(offline) => read(offline).err().map_or_else(String::new, |error| error.to_string()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_journal_that_cannot_be_opened_is_told_by_its_own_files() -> Outcome {
    let place = TempDir::new()?;
    journal(place.path())?;
    let own = place.path().join("store/keyspaces/0");
    let tables: Vec<PathBuf> = fs::read_dir(own.join("tables"))?
        .map(|table| table.map(|table| table.path()))
        .collect::<Result<_, _>>()?;
    let table = tables.first().ok_or("the store has a table of its own")?;
    let mut bytes = fs::read(table)?;
    let middle = bytes.len() / 4;
    bytes[middle] ^= 8;
    fs::write(table, bytes)?;
    let said = refusal(place.path());
    let rest = said.replace(&place.path().display().to_string(), "");
    assert!(said.contains("is damaged") && !rest.contains("procession-"), "{said}");
    Ok(())
}

#[test]
fn a_flipped_bit_of_a_table_that_no_start_reads_is_named() -> Outcome {
    let place = TempDir::new()?;
    journal(place.path())?;
    let before = damages(place.path())?;
    assert!(before.iter().all(|damage| damage.contains("history")), "{before:?}");
    let tables = tables(place.path())?;
    assert!(tables.len() >= 2, "{tables:?}");
    for table in tables {
        let whole = fs::read(&table)?;
        let mut changed = whole.clone();
        // In the first block, behind its header: opening a table reads only its end.
        changed[60] ^= 8;
        fs::write(&table, &changed)?;
        let found = damages(place.path())?;
        // The file of the user, not that of the private copy.
        let path = table.display().to_string();
        assert!(
            found.iter().any(|damage| damage.contains(&path)),
            "{}: {found:?}",
            table.display()
        );
        fs::write(&table, &whole)?;
    }
    Ok(())
}

#[test]
fn an_entry_that_cannot_be_read_is_named_in_every_keyspace() -> Outcome {
    let place = TempDir::new()?;
    let store = EmbeddedStore::open(place.path(), SyncMode::Data)?;
    let epoch = block_on(store.acquire())?;
    let mut batch = Batch::new(epoch);
    batch.advance_to(Seq(1));
    let user = Space::User(Key::from("orders"));
    let read = [
        Space::Procedures,
        Space::History,
        Space::Signals,
        Space::Keys,
        Space::Audit,
        Space::Archive,
        user.clone(),
    ];
    for space in &read {
        batch.put(
            space.clone(),
            &[0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1],
            &[0xc1],
        );
    }
    for space in [Space::Live, Space::Finished, Space::Payloads] {
        batch.put(space, b"no key", b"");
    }
    block_on(store.append(batch))?;
    drop(store);
    let found = damages(place.path())?;
    for space in read.into_iter().chain([Space::Live, Space::Finished, Space::Payloads]) {
        let name = format!("\"{}\"", space.name());
        assert!(found.iter().any(|damage| damage.contains(&name)), "{name}: {found:?}");
    }
    assert_eq!(found.len(), 10, "{found:?}");
    Ok(())
}
