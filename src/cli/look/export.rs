//! `procession export`: families as JSON lines, one document for each row, executed stage and signal.

use clap::Args;
use procession_actors::FamilyExport;
use procession_actors::journal::{Space, keys};
use procession_actors::offline::Offline;
use procession_kernel::ProcedureId;
use serde::Serialize;

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::{Place, unknown};
use crate::views::{HistoryView, ProcedureView, SignalView};

/// Rows that are looked through at once for roots.
const PAGE: usize = 1_000;

#[derive(Debug, Clone, Args)]
#[group(id = "what", required = true, multiple = false, args = ["id", "all"])]
pub(in crate::cli) struct ExportArgs {
    #[command(flatten)]
    place: Place,
    /// A procedure: its whole family is printed.
    #[arg(value_name = "ID")]
    id: Option<ProcedureId>,
    /// Print every family, finished ones too.
    #[arg(long)]
    all: bool,
    /// Print also each family as it is stored, payloads, outputs and signals included: what
    /// the test kit replays. Treat it as you treat the data itself.
    #[arg(long)]
    payload: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line<'a> {
    Procedure(Box<ProcedureView>),
    History(HistoryView),
    Signal(SignalView),
    /// A payload or an output: whose, and how large.
    Value {
        id: String,
        part: &'static str,
        bytes: usize,
    },
    /// What cannot be read.
    Unreadable {
        family: u64,
        why: &'a str,
    },
    /// All of a family, raw.
    Family(&'a FamilyExport),
}

pub(super) async fn run(args: ExportArgs) -> Result<Exit, Failure> {
    let journal = args.place.open().await?;
    match args.id {
        Some(id) => {
            let export = journal.export(id).await?.ok_or_else(|| unknown(id))?;
            print_family(&journal, &export, args.payload).await?;
        }
        None => all(&journal, args.payload).await?,
    }
    Ok(Exit::Done)
}

/// One family after the other, so that but one is in memory.
async fn all(journal: &Offline, payload: bool) -> Result<(), Failure> {
    let mut cursor: Option<ProcedureId> = None;
    let mut printed: Option<u64> = None;
    loop {
        let page = journal.list(cursor, PAGE, |_| true).await?;
        let ids = page.items.iter().map(|status| status.id).chain(page.unreadable);
        let mut families: Vec<u64> = ids.map(|id| id.family).collect();
        families.sort_unstable();
        families.dedup();
        // A page may begin within the family that the last one ended with.
        families.retain(|family| printed.is_none_or(|last| *family > last));
        for family in families {
            if let Some(export) = journal.export(ProcedureId::root(family)).await? {
                print_family(journal, &export, payload).await?;
            }
            printed = Some(family);
        }
        match page.next {
            Some(next) => cursor = Some(next),
            None => return Ok(()),
        }
    }
}

async fn print_family(journal: &Offline, export: &FamilyExport, payload: bool) -> Result<(), Failure> {
    for status in export.statuses() {
        print::json(&Line::Procedure(Box::new(ProcedureView::from(&status))))?;
    }
    for entry in export.history() {
        print::json(&Line::History(HistoryView::from(&entry)))?;
    }
    match journal.signals(ProcedureId::root(export.family)).await {
        Ok(signals) => {
            for (id, number, entry) in signals {
                print::json(&Line::Signal(SignalView::new(id, number, &entry)))?;
            }
        }
        Err(error) => print::json(&Line::Unreadable {
            family: export.family,
            why: &error.to_string(),
        })?,
    }
    print_values(export)?;
    for why in &export.unreadable {
        print::json(&Line::Unreadable {
            family: export.family,
            why,
        })?;
    }
    if payload {
        print::json(&Line::Family(export))?;
    }
    Ok(())
}

fn print_values(export: &FamilyExport) -> Result<(), Failure> {
    let space = Space::Payloads.name();
    for entry in export.entries.iter().filter(|entry| entry.space == space) {
        let key = entry.key.as_slice();
        let Some(id) = keys::parse_procedure(key) else { continue };
        let part = if key.last() == Some(&keys::OUTPUT) {
            "output"
        } else {
            "payload"
        };
        print::json(&Line::Value {
            id: id.to_string(),
            part,
            bytes: entry.value.len(),
        })?;
    }
    Ok(())
}
