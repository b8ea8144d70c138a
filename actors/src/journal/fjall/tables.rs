//! Reads the tables of a keyspace without opening it.
//!
//! Opening a keyspace removes files that its manifest does not name, and begins to write memory tables out. If files
//! do not fit together, those files may be the only copies, so this is checked before.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fjall::{AbstractTree, Slice, UserKey};
use lsm_tree::{Cache, Checksum, Table};
use xxhash_rust::xxh3::Xxh3;

use super::log::LogProblem;
use super::manifest::{self, Manifest};

/// Cache for blocks of these tables. A few keys are looked up, each once.
const CACHE_BYTES: u64 = 1024 * 1024;
/// Piece size for reading a whole table.
const PIECE_BYTES: usize = 256 * 1024;

/// A table as a manifest names it.
struct Named {
    path: PathBuf,
    checksum: u128,
    seqno: u64,
}

/// The tables of a keyspace.
pub(super) struct Tables {
    keyspace: PathBuf,
    tables: Vec<Table>,
}

impl Tables {
    /// Reads the keyspace in a folder; a keyspace that is not created yet has no tables.
    pub(super) fn look(keyspace: &Path) -> Result<Self, LogProblem> {
        let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
        let mut tables = Vec::new();
        let manifest = manifest::look(keyspace)?;
        for named in manifest.as_ref().map_or_else(|| Ok(Vec::new()), named)? {
            // The process-wide number keeps blocks of different trees apart; this cache is used by this tree alone.
            let table = Table::recover(
                named.path.clone(),
                Checksum::from_raw(named.checksum),
                named.seqno,
                0,
                Arc::clone(&cache),
                None,
                false,
                false,
            );
            tables.push(table.map_err(|error| LogProblem::Unfit(named.path, error.into()))?);
        }
        Ok(Self {
            keyspace: keyspace.to_owned(),
            tables,
        })
    }

    /// Checks that all tables of a version exist, with the checksums that it names.
    pub(super) fn check(manifest: &Manifest) -> Result<(), LogProblem> {
        for table in named(manifest)? {
            let unreadable = |error| LogProblem::Unreadable(table.path.clone(), error);
            let (sum, _) = File::open(&table.path).and_then(sum_of).map_err(unreadable)?;
            if sum != table.checksum {
                return Err(LogProblem::Damaged(mismatch(&table.path)));
            }
        }
        Ok(())
    }

    /// Returns the newest value of a key in the tables, or `None` if it is missing or deleted.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Slice>, LogProblem> {
        let key = UserKey::from(key);
        let mut newest = None;
        for table in &self.tables {
            // The newest version of a key comes first.
            let Some(found) = table.range(key.clone()..=key.clone()).next() else {
                continue;
            };
            let found = found.map_err(|error| LogProblem::Unfit(self.keyspace.clone(), error.into()))?;
            if newest.as_ref().is_none_or(|(seqno, _)| *seqno < found.key.seqno) {
                let is_deleted = found.is_tombstone();
                newest = Some((found.key.seqno, (!is_deleted).then_some(found.value)));
            }
        }
        Ok(newest.and_then(|(_, value)| value))
    }
}

/// Reads each table of an open keyspace, and compares it with the checksum in the manifest. Returns the number of
/// bytes read, and a text for each damaged table. Meanwhile fjall removes none of the tables.
pub(super) fn verify(tree: &impl AbstractTree) -> (u64, Vec<String>) {
    let (version, mut bytes, mut damages) = (tree.current_version(), 0, Vec::new());
    for table in version.iter_tables() {
        match File::open(table.path.as_path()).and_then(sum_of) {
            Ok((sum, length)) => {
                bytes += length;
                if sum != table.checksum().into_u128() {
                    damages.push(mismatch(&table.path));
                }
            }
            Err(error) => damages.push(format!("{} cannot be read: {error}", table.path.display())),
        }
    }
    (bytes, damages)
}

fn mismatch(table: &Path) -> String {
    let path = table.display();
    format!("{path} does not have the checksum that its manifest names")
}

fn sum_of(mut file: File) -> io::Result<(u128, u64)> {
    let mut piece = vec![0; PIECE_BYTES];
    let (mut sum, mut bytes) = (Xxh3::new(), 0);
    loop {
        let length = file.read(&mut piece)?;
        if length == 0 {
            return Ok((sum.digest128(), bytes));
        }
        sum.update(piece.get(..length).unwrap_or_default());
        bytes += length as u64;
    }
}

/// Returns the tables that a version names.
fn named(manifest: &Manifest) -> Result<Vec<Named>, LogProblem> {
    let unreadable = |path: &Path, error| LogProblem::Unreadable(path.to_owned(), error);
    let path = manifest.path();
    let damaged = || LogProblem::Damaged(format!("{} has no known shape", path.display()));
    let sections = sfa::Reader::new(&path).map_err(|_| damaged())?;
    let section = sections.toc().section(b"tables").ok_or_else(damaged)?;
    let mut bytes = Vec::new();
    section
        .buf_reader(&path)
        .and_then(|mut reader| reader.read_to_end(&mut bytes))
        .map_err(|error| unreadable(&path, error))?;
    parse(&bytes, &manifest.keyspace().join("tables")).ok_or_else(damaged)
}

/// Levels, runs in each, and tables in each run: number, kind and value of the checksum, sequence number.
fn parse(bytes: &[u8], folder: &Path) -> Option<Vec<Named>> {
    let mut rest = bytes;
    let mut take = |length: usize| -> Option<&[u8]> {
        let (taken, behind) = rest.split_at_checked(length)?;
        rest = behind;
        Some(taken)
    };
    let mut tables = Vec::new();
    let [levels] = *take(1)? else { return None };
    for _ in 0..levels {
        let [runs] = *take(1)? else { return None };
        for _ in 0..runs {
            let count = u32::from_le_bytes(take(4)?.try_into().ok()?);
            for _ in 0..count {
                let number = u64::from_le_bytes(take(8)?.try_into().ok()?);
                let [0] = *take(1)? else { return None };
                tables.push(Named {
                    path: folder.join(number.to_string()),
                    checksum: u128::from_le_bytes(take(16)?.try_into().ok()?),
                    seqno: u64::from_le_bytes(take(8)?.try_into().ok()?),
                });
            }
        }
    }
    Some(tables)
}
