//! Distinguishes a store that was never finished, and may be recreated, from a store that has been used. If names are
//! not synced in order, a power cut may restore the mark of a store under construction.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::log::ends_of_batches;
use super::log_files::{numbered, read};
use crate::journal::layout::SEQ_KEY;

/// Returns `true` if anything was, or may have been, committed to a store. It only reads, whatever it finds.
pub(super) fn holds_commits(store: &Path) -> io::Result<bool> {
    Ok(has_tables(store)? || has_commit(store)?)
}

/// Commits go into tables of a keyspace; number 0 is fjall's own keyspace, for names.
fn has_tables(store: &Path) -> io::Result<bool> {
    for keyspace in entries(&store.join("keyspaces"))? {
        let is_own = keyspace.file_name().is_some_and(|name| name == "0");
        if !is_own && !entries(&keyspace.join("tables"))?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A store under construction has one log, without a commit in it.
fn has_commit(store: &Path) -> io::Result<bool> {
    for (number, path) in numbered(store).or_else(nothing_if_missing)? {
        if number > 0 || ends_of_batches(&read(&path)?).any(|key| key == SEQ_KEY) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    entries.or_else(nothing_if_missing)
}

fn nothing_if_missing<T>(error: io::Error) -> io::Result<Vec<T>> {
    let is_missing = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
    if is_missing { Ok(Vec::new()) } else { Err(error) }
}
