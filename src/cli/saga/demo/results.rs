//! What cases have come to, in a file of lines: a demo that is started again does not run them again.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::super::exit::Failure;
use super::Named;

/// What a case has come to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Verdict {
    pub(super) case: String,
    pub(super) file: String,
    pub(super) expected: String,
    pub(super) found: String,
    /// None of a case whose files are refused, and of one that was killed: nobody knows them all.
    pub(super) commits: Option<u64>,
    /// Whether a process was killed while it ran.
    pub(super) was_killed: bool,
    /// In what it differs from what was expected.
    pub(super) differs: Option<String>,
}

pub(super) struct Results {
    file: File,
    known: BTreeMap<String, Verdict>,
}

impl Results {
    pub(super) fn open(root: &Path) -> Result<Self, Failure> {
        let path = root.join("results.jsonl");
        let failed = |error: std::io::Error| {
            Failure::new(format!(
                "{} cannot be written: {error}; give a directory with --data that can be",
                path.display()
            ))
        };
        fs::create_dir_all(root).map_err(failed)?;
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(&path)
            .map_err(failed)?;
        let mut known = BTreeMap::new();
        for line in BufReader::new(&file).split(b'\n') {
            // The last line may have been cut off.
            if let Ok(verdict) = serde_json::from_slice::<Verdict>(&line.map_err(failed)?) {
                known.insert(verdict.case.clone(), verdict);
            }
        }
        Ok(Self { file, known })
    }

    pub(super) fn get(&self, case: &str) -> Option<&Verdict> {
        self.known.get(case)
    }

    pub(super) fn add(&mut self, verdict: &Verdict) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(verdict)?;
        line.push(b'\n');
        self.file
            .write_all(&line)
            .map_err(|error| Failure::new(format!("the results cannot be written: {error}")))?;
        self.known.insert(verdict.case.clone(), verdict.clone());
        Ok(())
    }

    /// Returns how many of these cases differ from what was expected.
    pub(super) fn wrong(&self, cases: &[Named]) -> usize {
        let verdicts = cases.iter().filter_map(|named| self.get(&named.name));
        verdicts.filter(|verdict| verdict.differs.is_some()).count()
    }
}
