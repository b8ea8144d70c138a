//! Checks the manifest of a keyspace before the LSM store opens it, and finds the version with which a start goes on.
//!
//! The file "current" names the current version file and holds its checksum, which fjall writes but does not compare.
//! fjall trusts some counts of a damaged file and asserts others. A failed assertion ends the process, because it
//! happens under a lock that the clean-up takes as well.

use std::fs::{self, File};
use std::io::{self, Cursor, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_128;

use super::directory::sync_directory;
use super::log::LogProblem;

/// Largest manifest in bytes: a table takes about 50, so this is enough for a million tables.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A version of a keyspace's tables, whose file is whole.
#[derive(Debug)]
pub(super) struct Manifest {
    keyspace: PathBuf,
    number: u64,
    sum: u128,
    /// The version that "current" names: this one, or the one after it, whose file is cut short.
    named: u64,
}

impl Manifest {
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// Whether "current" names the version after this one.
    pub(super) const fn is_earlier(&self) -> bool {
        self.number < self.named
    }

    pub(super) fn path(&self) -> PathBuf {
        version_file(&self.keyspace, self.number)
    }

    pub(super) fn keyspace(&self) -> &Path {
        &self.keyspace
    }

    /// Returns what is wrong with the version that "current" names, if this is an earlier one.
    pub(super) fn damage(&self) -> LogProblem {
        mismatch(&version_file(&self.keyspace, self.named))
    }

    /// Names this version in "current", on stable storage.
    pub(super) fn adopt(&self) -> io::Result<()> {
        let path = self.keyspace.join("current");
        let new = path.with_extension("new");
        let mut file = File::create(&new)?;
        file.write_all(&self.number.to_le_bytes())?;
        file.write_all(&self.sum.to_le_bytes())?;
        file.write_all(&[0])?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        sync_directory(&self.keyspace)
    }
}

/// Returns the version of a keyspace's tables with which a start goes on; `None` if the keyspace has none yet.
///
/// That is the version that "current" names. If its file is cut short, it is the one before. lsm-tree makes a version
/// durable before it takes effect, and never writes to a file again after that. So a file that "current" names and
/// that is cut short never took effect: the disk failed after "current" was renamed, and a second change of the tables
/// wrote to the same file. Whether the earlier version suffices is shown by its tables ([`Tables::check`]) and by
/// what commits noted ([`KeyspaceTables::check_versions`]).
///
/// [`Tables::check`]: super::tables::Tables::check
/// [`KeyspaceTables::check_versions`]: super::keyspace_tables::KeyspaceTables::check_versions
pub(super) fn look(keyspace: &Path) -> Result<Option<Manifest>, LogProblem> {
    let path = keyspace.join("current");
    let Some(current) = read(&path)? else { return Ok(None) };
    let Some((named, sum)) = parse(&current) else {
        return Err(LogProblem::Damaged(format!("{} has no known shape", path.display())));
    };
    let manifest = |number, sum| Manifest {
        keyspace: keyspace.to_owned(),
        number,
        sum,
        named,
    };
    let path = version_file(keyspace, named);
    let Some(bytes) = read(&path)? else {
        return Err(LogProblem::Damaged(format!("{} is missing", path.display())));
    };
    if xxh3_128(&bytes) == sum {
        return Ok(Some(manifest(named, sum)));
    }
    let before = named.checked_sub(1).filter(|_| !is_ended(&bytes));
    let earlier = match before {
        Some(before) => read(&version_file(keyspace, before))?.map(|bytes| (before, bytes)),
        None => None,
    };
    match earlier {
        Some((before, bytes)) if is_ended(&bytes) => Ok(Some(manifest(before, xxh3_128(&bytes)))),
        Some(_) | None => Err(mismatch(&path)),
    }
}

/// Checks the manifest of a keyspace for which no commit notes a version, so that an earlier one must not do.
pub(super) fn check(keyspace: &Path) -> Result<(), LogProblem> {
    match look(keyspace)? {
        Some(manifest) if manifest.is_earlier() => Err(manifest.damage()),
        Some(_) | None => Ok(()),
    }
}

fn mismatch(path: &Path) -> LogProblem {
    LogProblem::Damaged(format!(
        "{} does not have the checksum that \"current\" beside it names",
        path.display()
    ))
}

fn version_file(keyspace: &Path, number: u64) -> PathBuf {
    keyspace.join(format!("v{number}"))
}

/// Returns `true` if a version file has its end, with the checksum of its list of sections.
fn is_ended(bytes: &[u8]) -> bool {
    sfa::Reader::from_reader(&mut Cursor::new(bytes)).is_ok()
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
