//! Determines, before fjall opens a store, how far its tables reach.
//!
//! fjall removes a log once every keyspace written in it has been written out, and each commit writes to `meta`. So
//! everything before the first existing log must be in the tables of `meta`, and the newest record before it in those
//! of `recent`. This holds because a memory table is written out as a whole, after those before it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use procession_kernel::{Epoch, Seq};

use super::chain::{CHAIN_KEY, Link, Newest};
use super::log::LogProblem;
use super::manifest::{self, Manifest};
use super::open::RECENT;
use super::tables::Tables;
use super::versions::{self, VERSIONS_KEY};
use crate::journal::keys::Space;
use crate::journal::layout::SEQ_KEY;

/// The tables of all keyspaces, by the keyspaces' names.
pub(super) struct KeyspaceTables {
    keyspaces: PathBuf,
    numbers: BTreeMap<String, u64>,
    /// Versions of tables that an opening uses instead of those that were being written.
    earlier: Vec<Manifest>,
}

impl KeyspaceTables {
    /// Reads the names of the keyspaces from fjall's own tables, and checks the manifest of each that has a name.
    ///
    /// A folder without a name is left over from an interrupted creation, and fjall removes it. A power cut during
    /// that may have removed its files in any order.
    pub(super) fn look(store: &Path) -> Result<Self, LogProblem> {
        let keyspaces = store.join("keyspaces");
        let names = Tables::look(&keyspaces.join("0"))?;
        let unreadable = |error| LogProblem::Unreadable(keyspaces.clone(), error);
        let (mut numbers, mut earlier) = (BTreeMap::new(), Vec::new());
        for entry in fs::read_dir(&keyspaces).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            let Some(number) = name.to_str().and_then(|name| name.parse::<u64>().ok()) else {
                continue;
            };
            let mut key = vec![b'n'];
            key.extend(number.to_be_bytes());
            match names.get(&key)? {
                Some(name) => {
                    let manifest = manifest::look(&keyspaces.join(number.to_string()))?;
                    earlier.extend(manifest.filter(Manifest::is_earlier));
                    numbers.insert(String::from_utf8_lossy(&name).into_owned(), number);
                }
                // fjall would remove the folder. A keyspace whose creation was interrupted has no tables yet.
                None if number != 0 && has_tables(&keyspaces.join(number.to_string())) => {
                    return Err(LogProblem::Damaged(format!(
                        "{} has tables, and no name in {}; one of them is of another copy",
                        keyspaces.join(number.to_string()).display(),
                        keyspaces.join("0").display()
                    )));
                }
                None => {}
            }
        }
        for manifest in &earlier {
            // Its checksum is not known from elsewhere, but those of the tables are.
            Tables::check(manifest).map_err(|_| manifest.damage())?;
        }
        Ok(Self {
            keyspaces,
            numbers,
            earlier,
        })
    }

    /// Takes the versions of tables that an opening must name in "current".
    pub(super) fn into_earlier(self) -> Vec<Manifest> {
        self.earlier
    }

    /// Returns the number of the keyspace of records.
    pub(super) fn recent(&self) -> Option<u64> {
        self.numbers.get(RECENT).copied()
    }

    fn tables(&self, name: &str) -> Result<Option<Tables>, LogProblem> {
        let number = self.numbers.get(name);
        number
            .map(|number| Tables::look(&self.keyspaces.join(number.to_string())))
            .transpose()
    }

    /// Checks that the tables of each keyspace are at least as new as a commit noted them. `noted` is the row of the
    /// newest commit in the logs; without one, the row in tables counts.
    pub(super) fn check_versions(&self, noted: Option<&[u8]>) -> Result<(), LogProblem> {
        let noted = match noted {
            Some(noted) => versions::decode(noted),
            None => match self.tables(&Space::Meta.name())? {
                Some(meta) => meta
                    .get(VERSIONS_KEY)?
                    .map_or_else(BTreeMap::new, |row| versions::decode(&row)),
                None => BTreeMap::new(),
            },
        };
        for (keyspace, noted) in noted {
            let path = self.keyspaces.join(keyspace.to_string());
            let manifest = manifest::look(&path)?;
            let found = manifest.as_ref().map(Manifest::number);
            if found.is_some_and(|found| found >= noted) {
                continue;
            }
            if let Some(manifest) = manifest.filter(Manifest::is_earlier) {
                return Err(manifest.damage());
            }
            let name = self.numbers.iter().find(|(_, number)| **number == keyspace);
            let name = name.map_or_else(|| "?".to_owned(), |(name, _)| name.clone());
            return Err(LogProblem::Damaged(match found {
                Some(found) => format!(
                    "keyspace \"{name}\" in {} is an older copy: its tables are of version {found}, and commits were \
                     made on version {noted}; put the newer one back",
                    path.display()
                ),
                None => format!("keyspace \"{name}\" is missing: {} has no manifest", path.display()),
            }));
        }
        Ok(())
    }

    /// Returns how far tables reach, if not up to this commit.
    pub(super) fn lack(&self, commit: (Epoch, Seq)) -> Result<Option<String>, LogProblem> {
        let (epoch, seq) = self.newest()?.map(|newest| newest.number).unwrap_or_default();
        let lack = || format!("the tables reach commit {seq} of epoch {epoch} only");
        Ok(((epoch, seq) < commit).then(lack))
    }

    /// Returns the newest commit in the tables of `meta`, and what it says about its predecessor.
    fn newest(&self) -> Result<Option<Newest>, LogProblem> {
        let Some(meta) = self.tables(&Space::Meta.name())? else {
            return Ok(None);
        };
        let (row, chain) = (meta.get(SEQ_KEY)?, meta.get(CHAIN_KEY)?);
        Ok(row.and_then(|row| Newest::decode(&row, chain.as_deref())))
    }

    /// Returns the record of `recent` that is neither in the logs, whose runs are given, nor in a table. The newest
    /// commit of the logs says which records must exist, or else the newest in tables.
    pub(super) fn lacks_record(
        &self,
        newest: Option<Option<Link>>,
        runs: &[(u64, u64)],
    ) -> Result<Option<String>, LogProblem> {
        let link = match newest {
            Some(link) => link,
            None => self.newest()?.and_then(|newest| newest.link),
        };
        let Some(link) = link.filter(|link| link.oldest <= link.newest) else {
            return Ok(None);
        };
        let run = runs
            .iter()
            .rev()
            .find(|(from, to)| (*from..=*to).contains(&link.newest));
        let wanted = match run {
            Some((from, _)) => from.checked_sub(1).filter(|number| *number >= link.oldest),
            None => Some(link.newest),
        };
        let Some(wanted) = wanted else { return Ok(None) };
        let found = match self.tables(RECENT)? {
            Some(recent) => recent.get(&wanted.to_be_bytes())?,
            None => None,
        };
        let lack = || format!("record {wanted} of the newest commits is in no table");
        Ok(found.is_none().then(lack))
    }
}

fn has_tables(keyspace: &Path) -> bool {
    fs::read_dir(keyspace.join("tables")).is_ok_and(|mut tables| tables.next().is_some())
}
