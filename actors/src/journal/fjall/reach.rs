//! How far the tables of a store reach, found out before fjall opens it.
//!
//! fjall removes a log when every keyspace that was written in it has been written out, and each commit writes to
//! `meta`. So what comes before the first log that there is must be in the tables of `meta`, and the newest record
//! before it in those of `recent`: a memory table is written out as a whole, after those before it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use procession_kernel::{Epoch, Seq};

use super::chain::{CHAIN_KEY, Link};
use super::log::LogProblem;
use super::manifest;
use super::open::{RECENT, decode_seq};
use super::tables::Tables;
use super::versions::{self, VERSIONS_KEY};
use crate::journal::keys::Space;
use crate::journal::layout::SEQ_KEY;

/// The newest commit that tables hold, and what it says of the one before.
type Newest = ((Epoch, Seq), Option<Link>);

/// Keyspaces by their names, as fjall numbers them.
pub(super) struct Reach {
    keyspaces: PathBuf,
    numbers: BTreeMap<String, u64>,
}

impl Reach {
    /// Reads the names of the keyspaces, which fjall keeps in tables of its own.
    pub(super) fn look(store: &Path) -> Result<Self, LogProblem> {
        let keyspaces = store.join("keyspaces");
        let names = Tables::look(&keyspaces.join("0"))?;
        let unreadable = |error| LogProblem::Unreadable(keyspaces.clone(), error);
        let mut numbers = BTreeMap::new();
        for entry in fs::read_dir(&keyspaces).map_err(unreadable)? {
            let name = entry.map_err(unreadable)?.file_name();
            let Some(number) = name.to_str().and_then(|name| name.parse::<u64>().ok()) else {
                continue;
            };
            let mut key = vec![b'n'];
            key.extend(number.to_be_bytes());
            match names.get(&key)? {
                Some(name) => {
                    numbers.insert(String::from_utf8_lossy(&name).into_owned(), number);
                }
                // fjall would remove it. One whose making was interrupted has no tables yet.
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
        Ok(Self { keyspaces, numbers })
    }

    /// Gives the number of the keyspace of records.
    pub(super) fn recent(&self) -> Option<u64> {
        self.numbers.get(RECENT).copied()
    }

    fn tables(&self, name: &str) -> Result<Option<Tables>, LogProblem> {
        let number = self.numbers.get(name);
        number
            .map(|number| Tables::look(&self.keyspaces.join(number.to_string())))
            .transpose()
    }

    /// Checks that the tables of each keyspace are as new as a commit found them. `noted` is what the newest commit
    /// in the logs says of that; where none does, tables have it.
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
            let found = manifest::version(&path)?;
            if found.is_some_and(|found| found >= noted) {
                continue;
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

    /// Says how far tables reach, if that is not up to this commit.
    pub(super) fn lack(&self, commit: (Epoch, Seq)) -> Result<Option<String>, LogProblem> {
        let (epoch, seq) = self.newest()?.map_or_else(Default::default, |(newest, _)| newest);
        let lack = || format!("the tables reach commit {seq} of epoch {epoch} only");
        Ok(((epoch, seq) < commit).then(lack))
    }

    /// Gives the newest commit that is in the tables of `meta`, and what it says of the one before.
    fn newest(&self) -> Result<Option<Newest>, LogProblem> {
        let Some(meta) = self.tables(&Space::Meta.name())? else {
            return Ok(None);
        };
        let Some(newest) = meta.get(SEQ_KEY)?.and_then(|bytes| decode_seq(&bytes)) else {
            return Ok(None);
        };
        let link = meta.get(CHAIN_KEY)?.and_then(|bytes| Link::decode(&bytes, newest));
        Ok(Some((newest, link)))
    }

    /// Says which record of `recent` is neither in the logs, of which these runs are, nor in a table. The newest
    /// commit of the logs says which there must be, or where they have none, the newest in tables.
    pub(super) fn lacks_record(
        &self,
        newest: Option<Option<Link>>,
        runs: &[(u64, u64)],
    ) -> Result<Option<String>, LogProblem> {
        let link = match newest {
            Some(link) => link,
            None => self.newest()?.and_then(|(_, link)| link),
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
