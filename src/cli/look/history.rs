//! `procession history`: what was executed, attempt by attempt.

use clap::Args;

use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::place::Place;
use super::super::source::Source;
use super::super::{moment, print};
use super::{Items, ROWS};
use procession::views::HistoryView;

#[derive(Debug, Clone, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(super) place: Place,
    /// Whose.
    #[arg(value_name = "ID")]
    id: Named,
    /// That of all its family.
    #[arg(long)]
    family: bool,
    /// How many entries to show at most.
    #[arg(long, value_name = "N", default_value_t = ROWS)]
    limit: usize,
}

pub(super) async fn run(source: &Source, args: &HistoryArgs) -> Result<Exit, Failure> {
    let history = source
        .history(source.resolve(&args.id).await?, args.family, args.limit)
        .await?;
    if args.place.prints(&history)? {
        return Ok(Exit::Done);
    }
    let Items { items } = history.read::<Items<HistoryView>>()?;
    let [number, id, stage, attempt, ending, begun, waited, took, stands, error] = [
        "#", "ID", "STAGE", "ATTEMPT", "ENDING", "BEGUN", "WAITED", "TOOK", "STANDS", "ERROR",
    ];
    if items.iter().any(|entry| entry.note.is_some()) {
        let headings = [
            number, id, stage, attempt, ending, begun, waited, took, stands, error, "NOTE",
        ];
        print::table(headings, items.iter().map(row_with_note));
    } else {
        let headings = [number, id, stage, attempt, ending, begun, waited, took, stands, error];
        print::table(headings, items.iter().map(row));
    }
    print::notice(&print::counted(items.len(), "entry", "entries"));
    Ok(Exit::Done)
}

fn row_with_note(view: &HistoryView) -> [String; 11] {
    let [number, id, stage, attempt, ending, begun, waited, took, stands, error] = row(view);
    let note = print::or_dash(view.note_text().as_deref());
    [
        number, id, stage, attempt, ending, begun, waited, took, stands, error, note,
    ]
}

fn row(entry: &HistoryView) -> [String; 10] {
    [
        entry.number.to_string(),
        entry.id.clone(),
        print::plain(&entry.stage),
        entry.attempt.to_string(),
        entry.ending.to_string(),
        moment::when(&entry.begun),
        moment::took(entry.waited_ms),
        moment::took(entry.took_ms),
        if entry.stands { "yes" } else { "-" }.to_owned(),
        print::or_dash(entry.error.as_deref()),
    ]
}
