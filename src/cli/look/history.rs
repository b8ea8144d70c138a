//! `procession history`: what was executed, attempt by attempt.

use clap::Args;
use procession_kernel::ProcedureId;
use serde::Serialize;

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::{Place, ROWS, cut, reply, unknown};
use crate::views::HistoryView;

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct HistoryArgs {
    #[command(flatten)]
    place: Place,
    /// Whose.
    #[arg(value_name = "ID")]
    id: ProcedureId,
    /// That of all its family.
    #[arg(long)]
    family: bool,
    /// How many entries to show at most.
    #[arg(long, value_name = "N", default_value_t = ROWS)]
    limit: usize,
}

#[derive(Serialize)]
struct Entries {
    items: Vec<HistoryView>,
}

pub(super) async fn run(args: HistoryArgs) -> Result<Exit, Failure> {
    let journal = args.place.open().await?;
    journal.status(args.id).await?.ok_or_else(|| unknown(args.id))?;
    let entries = journal.history(args.id).await?;
    let wanted = entries
        .iter()
        .filter(|entry| args.family || entry.member == args.id.member);
    let items = cut(wanted.map(HistoryView::from).collect(), args.limit);
    if args.place.json {
        print::json(&reply(&journal, Entries { items }))?;
        return Ok(Exit::Done);
    }
    let headings = [
        "#", "ID", "STAGE", "ATTEMPT", "ENDING", "BEGUN", "WAITED", "TOOK", "STANDS", "ERROR",
    ];
    print::table(headings, items.iter().map(row));
    print::notice(&print::counted(items.len(), "entry", "entries"));
    Ok(Exit::Done)
}

fn row(entry: &HistoryView) -> [String; 10] {
    [
        entry.number.to_string(),
        entry.id.clone(),
        print::plain(&entry.stage),
        entry.attempt.to_string(),
        entry.ending.to_owned(),
        entry.begun.clone(),
        format!("{} ms", entry.waited_ms),
        format!("{} ms", entry.took_ms),
        if entry.stands { "yes" } else { "-" }.to_owned(),
        print::or_dash(entry.error.as_deref()),
    ]
}
