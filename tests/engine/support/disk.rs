//! What is on the disk, read as the engine writes it.

use procession::provider::Space;
use procession::testkit::{MemoryDisk, Trouble};
use procession_actors::testkit::format;
use procession_kernel::Row;

/// Returns all rows that are on the disk, by id.
pub(crate) fn rows(disk: &MemoryDisk) -> Result<Vec<Row>, Trouble> {
    Ok(format::rows(&disk.dump(&Space::Procedures))?)
}
