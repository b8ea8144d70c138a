//! Are the tablets' files what the meta table says, and are there no others?

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{Rule, Verdict, World};
use crate::demo::files::{Files, SERVERS, SHARED};
use crate::demo::meta::TabletRow;
use crate::demo::rows;

/// Reads all files that the meta table names; gives the rows of each table.
pub(super) fn read(world: &World, files: &Files, verdict: &mut Verdict) -> BTreeMap<String, Vec<String>> {
    let mut named = BTreeSet::new();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for tablet in &world.tablets {
        let path = files.place_of(tablet);
        match fs::read(&path)
            .map_err(|error| error.to_string())
            .and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()))
        {
            Ok(text) => {
                check(tablet, &path, &text, verdict);
                found
                    .entry(tablet.table.clone())
                    .or_default()
                    .extend(text.lines().map(str::to_owned));
            }
            Err(why) => verdict.find(
                Rule::Meta,
                format!(
                    "the file {} of tablet {} cannot be read: {why}",
                    path.display(),
                    tablet.id
                ),
            ),
        }
        named.insert(path);
    }
    let mut there = Vec::new();
    for directory in [SERVERS, SHARED] {
        list(&files.root().join(directory), &mut there, verdict);
    }
    for path in there.iter().filter(|path| !named.contains(*path)) {
        verdict.orphan_files += 1;
        verdict.find(Rule::Orphans, format!("the file {} is named nowhere", path.display()));
    }
    found
}

/// Checks one file against its row in the meta table.
fn check(tablet: &TabletRow, path: &Path, text: &str, verdict: &mut Verdict) {
    let path = path.display();
    let lines: Vec<&str> = text.lines().collect();
    let after_last = |line: &&&str| {
        tablet
            .end
            .as_deref()
            .is_some_and(|end| end <= **line || end <= rows::key_of(line))
    };
    let before_first = |line: &&&str| **line < tablet.start.as_str() || rows::key_of(line) < tablet.start.as_str();
    if !lines.iter().zip(lines.iter().skip(1)).all(|(a, b)| a <= b) {
        verdict.find(Rule::Meta, format!("the file {path} is not sorted"));
    }
    if let Some(line) = lines.iter().find(|line| before_first(line) || after_last(line)) {
        verdict.find(
            Rule::Cover,
            format!(
                "the file {path} has the row \"{}\", which is outside tablet {}",
                rows::key_of(line),
                tablet.id
            ),
        );
    }
    if u64::try_from(lines.len()) != Ok(tablet.rows) {
        verdict.find(
            Rule::Meta,
            format!(
                "the file {path} has {} rows, and the meta table says {}",
                lines.len(),
                tablet.rows
            ),
        );
    } else if rows::digest(text.as_bytes()) != tablet.digest {
        verdict.find(Rule::Meta, format!("the file {path} has changed since it was written"));
    }
}

/// Lists all files at and below a directory.
fn list(directory: &Path, files: &mut Vec<PathBuf>, verdict: &mut Verdict) {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return verdict.find(Rule::Meta, format!("{} cannot be listed: {error}", directory.display())),
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            list(&path, files, verdict);
        } else {
            files.push(path);
        }
    }
}
