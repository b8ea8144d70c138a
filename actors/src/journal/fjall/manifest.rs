//! A look at the manifest of a keyspace before the LSM store opens it.
//!
//! The file "current" names the version file that counts, and has its checksum,
//! which fjall writes and does not compare: it believes the counts that stand in
//! a damaged one, asserts others, and such an assertion ends the process, since
//! it comes while a lock is held that the clean-up takes as well.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;

use super::log::LogProblem;

/// Bytes of a manifest at most: some 50 for each table, so enough for a million of them.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Checks the version file of a keyspace that has one.
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

/// Gives the number of the version that counts; none of a keyspace that has none yet.
pub(super) fn version(keyspace: &Path) -> Result<Option<u64>, LogProblem> {
    let current = read(&keyspace.join("current"))?;
    Ok(current.and_then(|bytes| parse(&bytes)).map(|(number, _)| number))
}

/// Number of the version (8), its checksum (16), and the checksum's kind, of which there is one.
fn parse(current: &[u8]) -> Option<(u64, u128)> {
    let (number, rest) = current.split_at_checked(8)?;
    let (sum, kind) = rest.split_at_checked(16)?;
    let is_known = kind == [0];
    is_known.then_some((
        u64::from_le_bytes(number.try_into().ok()?),
        u128::from_le_bytes(sum.try_into().ok()?),
    ))
}

/// Gives none of a file that is not there. No more is read than a manifest can have, whatever its length.
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
