//! Prints the tablets of a closed directory, one JSON line each.

use std::path::Path;

use serde::Serialize;

use super::console;
use super::engine::journal_of;
use super::error::DemoError;
use super::files::Files;
use super::meta::{self, TabletRow, TabletState};
use super::record::Record;
use super::story::Story;
use procession::Executor;

/// One line: where a tablet is, and what it holds.
#[derive(Debug, Serialize)]
struct Line<'a> {
    table: &'a str,
    state: &'static str,
    start: &'a str,
    end: Option<&'a str>,
    server: Option<&'a str>,
    path: String,
    rows: u64,
}

/// Prints one line for each tablet.
///
/// # Errors
///
/// [`DemoError`] if the directory holds no demo, or is in use.
pub async fn dump(root: &Path) -> Result<(), DemoError> {
    let record = Record::read(root)?.ok_or_else(|| DemoError::Absent {
        path: root.to_owned(),
        begin: Story::Tablets.command_in(root),
    })?;
    let files = Files::open(root, record.servers)?;
    let journal = Executor::builder(journal_of(root)).offline().await?;
    let rows: Vec<(Vec<u8>, TabletRow)> = journal.scan(meta::TABLETS, "").await?;
    let mut tablets: Vec<TabletRow> = rows.into_iter().map(|(_, tablet)| tablet).collect();
    tablets.sort_by(|a, b| (&a.table, &a.start).cmp(&(&b.table, &b.start)));
    for tablet in &tablets {
        let line = Line {
            table: &tablet.table,
            state: tablet.state.word(),
            start: &tablet.start,
            end: tablet.end.as_deref(),
            server: (tablet.state == TabletState::Loaded).then_some(tablet.server.as_str()),
            path: files.place_of(tablet).display().to_string(),
            rows: tablet.rows,
        };
        let text = serde_json::to_string(&line).map_err(|error| DemoError::file(root, &error.into()))?;
        console::result(&text);
    }
    Ok(())
}
