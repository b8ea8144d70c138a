//! What is on the disk, read as the engine writes it.

use procession::provider::Space;
use procession::testkit::{MemoryDisk, Trouble};
use procession_actors::journal::{codec, keys};
use procession_kernel::Row;

/// Returns all rows that are on the disk, by id.
pub(crate) fn rows(disk: &MemoryDisk) -> Result<Vec<Row>, Trouble> {
    let mut rows = Vec::new();
    for (key, value) in disk.dump(&Space::Procedures) {
        let mut row: Row = codec::decode(&value)?;
        row.id = keys::parse_procedure(&key).ok_or("a row has a key of its own")?;
        rows.push(row);
    }
    Ok(rows)
}
