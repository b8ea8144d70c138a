//! Checks the manifest of a keyspace before the LSM store opens it.
//!
//! The file "current" names the current version file and holds its checksum, which fjall writes but does not compare.
//! fjall trusts some counts of a damaged file and asserts others. A failed assertion ends the process, because it
//! happens under a lock that the clean-up takes as well.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::log::LogProblem;

/// Largest manifest in bytes: a table takes about 50, so this is enough for a million tables.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Checks the version file of a keyspace, if it has one.
pub(super) fn check(keyspace: &Path) -> Result<(), LogProblem> {
    let path = keyspace.join("current");
    let Some(current) = read(&path)? else { return Ok(()) };
    let Some((number, sum)) = parse(&current) else {
        return Err(LogProblem::Damaged(format!("{} has no known shape", path.display())));
    };
    let path = keyspace.join(format!("v{number}"));
    match read(&path)? {
        None => Err(LogProblem::Damaged(format!("{} is missing", path.display()))),
        Some(bytes) if xxh3_128(&bytes) != sum => Err(LogProblem::Damaged(format!(
            "{} does not have the checksum that \"current\" beside it names",
            path.display()
        ))),
        Some(_) => Ok(()),
    }
}

/// Returns the number of the current version; `None` if the keyspace has none yet.
pub(super) fn version(keyspace: &Path) -> Result<Option<u64>, LogProblem> {
    let current = read(&keyspace.join("current"))?;
    Ok(current.and_then(|bytes| parse(&bytes)).map(|(number, _)| number))
}

/// Number of the version (8), its checksum (16), and the kind of the checksum, of which only one exists.
fn parse(current: &[u8]) -> Option<(u64, u128)> {
    let (number, rest) = current.split_at_checked(8)?;
    let (sum, kind) = rest.split_at_checked(16)?;
    let is_known = kind == [0];
    is_known.then_some((
        u64::from_le_bytes(number.try_into().ok()?),
        u128::from_le_bytes(sum.try_into().ok()?),
    ))
}

/// Returns `None` if the file is missing. Never reads more than the largest manifest, whatever the file's length.
fn read(path: &Path) -> Result<Option<Vec<u8>>, LogProblem> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) if bytes.len() as u64 > BYTES_MAX => Err(LogProblem::Damaged(format!(
            "{} has more than {BYTES_MAX} bytes",
            path.display()
        ))),
        Ok(_) => Ok(Some(bytes)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(LogProblem::Unreadable(path.to_owned(), error)),
    }
}

fn is_missing(error: &io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
}
