//! Looks at a world from outside: reads the meta table and the files, and compares
//! both with what must be there. Shares no code with the procedures.

mod cover;
mod disk;
mod engine;

use std::collections::BTreeMap;
use std::fmt;

use serde::de::DeserializeOwned;

use super::input::{Input, Share};
use super::meta::{self, QuotaRow, TableRow, TableState, TabletRow, TabletState, UserRow};
use super::workload::Expected;
use crate::demo::error::DemoError;
use crate::demo::files::Files;
use procession::Executor;

pub use engine::settle;

/// What is wrong, by the rule it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Every row of every live table is present exactly once.
    Rows,
    /// The tablets of a table cover the key space without gap or overlap.
    Cover,
    /// Files and meta table agree, and both are as the workload left them.
    Meta,
    /// No file is left over.
    Orphans,
    /// No lock and no permit is held, and no procedure is unfinished.
    Unfinished,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Rows, Self::Cover, Self::Meta, Self::Orphans, Self::Unfinished];
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rows => "every row of every live table is there exactly once",
            Self::Cover => "tablets cover the key space without gap or overlap",
            Self::Meta => "files and meta table agree, and are as the operations left them",
            Self::Orphans => "no file is left over",
            Self::Unfinished => "no lock and no permit is held, no procedure is unfinished",
        })
    }
}

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Rows that must be there.
    pub rows_expected: u64,
    /// Rows that are there.
    pub rows_found: u64,
    /// Rows that must be there and are not.
    pub missing: u64,
    /// Rows that are there more often than they must.
    pub duplicated: u64,
    /// Files that nothing names.
    pub orphan_files: u64,
    /// Tables that are there.
    pub tables: usize,
    /// Tablets that are there.
    pub tablets: usize,
    /// What is wrong, in words.
    pub findings: Vec<(Rule, String)>,
}

impl Verdict {
    /// Notes something wrong.
    pub(crate) fn find(&mut self, rule: Rule, text: impl Into<String>) {
        self.findings.push((rule, text.into()));
    }

    /// Tells whether nothing is wrong.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.findings.is_empty()
    }
}

/// The meta table, as read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct World {
    /// The tables.
    pub tables: Vec<TableRow>,
    /// The tablets, in the order of tables and keys.
    pub tablets: Vec<TabletRow>,
    /// The quotas, by table.
    pub quotas: Vec<(String, QuotaRow)>,
    /// The users.
    pub users: Vec<UserRow>,
}

impl World {
    /// Reads the meta table of a running engine.
    ///
    /// # Errors
    ///
    /// [`DemoError::Read`] if it cannot be read.
    pub async fn read(executor: &Executor) -> Result<Self, DemoError> {
        let quotas: Vec<(Vec<u8>, QuotaRow)> = executor.scan(meta::QUOTAS, "").await?;
        let mut tablets: Vec<TabletRow> = all(executor, meta::TABLETS).await?;
        tablets.sort_by(|a, b| (&a.table, &a.start).cmp(&(&b.table, &b.start)));
        Ok(Self {
            tables: all(executor, meta::TABLES).await?,
            tablets,
            quotas: quotas
                .into_iter()
                .map(|(table, quota)| (String::from_utf8_lossy(&table).into_owned(), quota))
                .collect(),
            users: all(executor, meta::USERS).await?,
        })
    }

    /// Returns the tablets of one table.
    pub fn tablets_of<'a>(&'a self, table: &'a str) -> impl Iterator<Item = &'a TabletRow> {
        self.tablets.iter().filter(move |tablet| tablet.table == table)
    }
}

async fn all<T: DeserializeOwned>(executor: &Executor, space: &str) -> Result<Vec<T>, DemoError> {
    let rows: Vec<(Vec<u8>, T)> = executor.scan(space, "").await?;
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// Verifies a world whose engine has nothing left to do.
///
/// # Errors
///
/// [`DemoError`] if the engine does not answer; what is wrong with the world is
/// in the verdict.
pub async fn verify(
    executor: &Executor,
    files: &Files,
    input: &Input,
    expected: &Expected,
) -> Result<Verdict, DemoError> {
    let world = World::read(executor).await?;
    let mut verdict = Verdict {
        tables: world.tables.len(),
        tablets: world.tablets.len(),
        ..Verdict::default()
    };
    agree(&world, expected, &mut verdict);
    cover::cover(&world, &mut verdict);
    let mut found = disk::read(&world, files, &mut verdict);
    for (name, table) in &expected.tables {
        let rows = found.remove(name).unwrap_or_default();
        count(name, table.share, input, rows, &mut verdict);
    }
    for (name, rows) in found {
        verdict.rows_found += u64::try_from(rows.len()).unwrap_or(u64::MAX);
        if !rows.is_empty() {
            verdict.find(
                Rule::Rows,
                format!("{} rows belong to table {name}, which should not be there", rows.len()),
            );
        }
    }
    engine::idle(executor, &mut verdict).await?;
    Ok(verdict)
}

/// Compares the meta table with what the operations must have left.
fn agree(world: &World, expected: &Expected, verdict: &mut Verdict) {
    let there: BTreeMap<&str, &TableRow> = world.tables.iter().map(|row| (row.name.as_str(), row)).collect();
    for name in there.keys().filter(|name| !expected.tables.contains_key(**name)) {
        verdict.find(Rule::Meta, format!("table {name} is there, and should not be"));
    }
    for (name, wanted) in &expected.tables {
        let Some(table) = there.get(name.as_str()) else {
            verdict.find(Rule::Meta, format!("table {name} is missing"));
            continue;
        };
        if (table.state, table.schema, &table.properties) != (wanted.state, wanted.schema, &wanted.properties) {
            let (is, should) = (table.state.word(), wanted.state.word());
            let (schema, schema_wanted) = (table.schema, wanted.schema);
            verdict.find(Rule::Meta, format!("table {name} is {is} at schema {schema}, and should be {should} at schema {schema_wanted} with its properties"));
        }
        let loaded = world
            .tablets_of(name)
            .filter(|tablet| tablet.state == TabletState::Loaded)
            .count();
        let offline = world.tablets_of(name).count() - loaded;
        let fits = if wanted.state == TableState::Enabled {
            offline == wanted.offline
        } else {
            loaded == 0
        };
        if !fits {
            verdict.find(
                Rule::Meta,
                format!(
                    "table {name} is {}, and has {loaded} tablets loaded and {offline} offline",
                    table.state.word()
                ),
            );
        }
        let quota = world
            .quotas
            .iter()
            .find(|(table, _)| table == name)
            .map(|(_, quota)| *quota);
        if quota != wanted.quota {
            verdict.find(
                Rule::Meta,
                format!("the quota of table {name} is not the one that was set last"),
            );
        }
    }
    for (table, _) in world
        .quotas
        .iter()
        .filter(|(table, _)| !expected.tables.contains_key(table))
    {
        verdict.find(
            Rule::Meta,
            format!("there is a quota of table {table}, which should not be there"),
        );
    }
    let users: BTreeMap<String, String> = world
        .users
        .iter()
        .map(|user| (user.name.clone(), user.role.clone()))
        .collect();
    if users != expected.users {
        verdict.find(Rule::Meta, "the users and their roles are not those that were set last");
    }
}

/// Counts the rows of one table against its share of the input.
fn count(name: &str, share: Share, input: &Input, mut found: Vec<String>, verdict: &mut Verdict) {
    let expected = input.share(share);
    found.sort_unstable();
    let mut balance: BTreeMap<&str, i64> = BTreeMap::new();
    for line in &expected {
        *balance.entry(line).or_default() -= 1;
    }
    let known = balance.len();
    for line in &found {
        *balance.entry(line).or_default() += 1;
    }
    let foreign = balance.len() - known;
    let missing: u64 = balance
        .values()
        .filter(|left| **left < 0)
        .map(|left| left.unsigned_abs())
        .sum();
    let over: u64 = balance
        .values()
        .filter(|left| **left > 0)
        .map(|left| left.unsigned_abs())
        .sum();
    verdict.rows_expected += u64::try_from(expected.len()).unwrap_or(u64::MAX);
    verdict.rows_found += u64::try_from(found.len()).unwrap_or(u64::MAX);
    verdict.missing += missing;
    verdict.duplicated += over.saturating_sub(u64::try_from(foreign).unwrap_or(0));
    for (line, left) in balance.iter().filter(|(_, left)| **left != 0).take(NAMED_MAX) {
        let what = if *left < 0 {
            "is missing"
        } else {
            "is there too often, or should not be there at all"
        };
        verdict.find(Rule::Rows, format!("table {name}: the row {} {what}", shorten(line)));
    }
}

/// How many rows of one table are named; the counts are of all.
const NAMED_MAX: usize = 5;

fn shorten(line: &str) -> String {
    let end = line.floor_char_boundary(60);
    match line.get(..end) {
        Some(start) if end < line.len() => format!("\"{start}…\""),
        Some(_) | None => format!("\"{line}\""),
    }
}
