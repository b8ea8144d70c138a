//! `procession history`: what was executed, attempt by attempt.

use clap::Args;

use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::place::Place;
use super::super::source::Source;
use super::super::{moment, print};
use super::{Items, ROWS};
use procession::ProcedureId;
use procession::views::{AttemptLogView, ChangeView, DifferenceView, HistoryView, LogsView};
use serde::Deserialize;
use serde_json::Value;

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
    /// What its attempts logged, as far as the running engine still has it.
    #[arg(long, conflicts_with = "family")]
    logs: bool,
    /// The value behind this entry; 0 is before the first.
    #[arg(long, value_name = "ENTRY", conflicts_with_all = ["family", "logs"])]
    value: Option<u32>,
    /// What differs between the values behind two entries.
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], conflicts_with_all = ["family", "logs", "value"])]
    diff: Vec<u32>,
    /// How many entries to show at most.
    #[arg(long, value_name = "N", default_value_t = ROWS)]
    limit: usize,
}

pub(super) async fn run(source: &Source, args: &HistoryArgs) -> Result<Exit, Failure> {
    let id = source.resolve(&args.id).await?;
    if args.logs {
        return logs(source, id, args).await;
    }
    if let [from, to] = args.diff.as_slice() {
        return value(source, id, args, *to, Some(*from)).await;
    }
    if let Some(entry) = args.value {
        return value(source, id, args, entry, None).await;
    }
    let history = source.history(id, args.family, args.limit).await?;
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

/// The value behind an entry, as either source tells it.
#[derive(Deserialize)]
struct Behind {
    entry: u32,
    left_by: Option<u32>,
    too_large: Option<u64>,
    value: Option<Value>,
}

impl Behind {
    /// Returns the value as it is shown.
    fn shown(&self) -> Result<&Value, Failure> {
        let entry = self.entry;
        let why = match (&self.value, self.too_large, self.left_by) {
            (Some(value), ..) if value.get("redacted").is_some() => {
                format!("the dashboard's host shows no values: that behind entry {entry} is redacted")
            }
            (Some(value), ..) => return Ok(value.get("value").unwrap_or(value)),
            (None, Some(size), _) => format!("the value behind entry {entry} has {size} bytes, more than is kept"),
            (None, None, _) => format!(
                "the value behind entry {entry} is not kept; a kind keeps values if it says so, with KEEP_VALUES"
            ),
        };
        Err(Failure::new(why))
    }
}

/// Prints the value behind an entry, or what differs from another.
async fn value(
    source: &Source,
    id: ProcedureId,
    args: &HistoryArgs,
    entry: u32,
    from: Option<u32>,
) -> Result<Exit, Failure> {
    let document = source.values(id, entry, from).await?;
    if args.place.prints(&document)? {
        return Ok(Exit::Done);
    }
    let Values { to, from, difference } = document.read::<Values>()?;
    let Some(from) = from else {
        print::line(&serde_json::to_string_pretty(to.shown()?)?);
        return Ok(Exit::Done);
    };
    from.shown()?;
    to.shown()?;
    let difference = difference.ok_or_else(|| Failure::new("these values cannot be compared: they are no JSON"))?;
    for change in &difference.items {
        print::line(&changed(change));
    }
    if difference.truncated {
        print::notice("there are more changes than are told");
    }
    print::notice(&print::counted(difference.items.len(), "change", "changes"));
    Ok(Exit::Done)
}

#[derive(Deserialize)]
struct Values {
    to: Behind,
    from: Option<Behind>,
    difference: Option<DifferenceView>,
}

fn changed(change: &ChangeView) -> String {
    let text = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
    let place = if change.path.is_empty() { "(all)" } else { &change.path };
    match (&change.from, &change.to) {
        (Some(_), Some(_)) => format!("~ {place}: {} -> {}", text(&change.from), text(&change.to)),
        (Some(_), None) => format!("- {place}: {}", text(&change.from)),
        (None, _) => format!("+ {place}: {}", text(&change.to)),
    }
}

/// Prints what attempts logged, each under its stage.
async fn logs(source: &Source, id: ProcedureId, args: &HistoryArgs) -> Result<Exit, Failure> {
    let document = source.logs(id, args.limit).await?;
    if args.place.prints(&document)? {
        return Ok(Exit::Done);
    }
    let logs = document.read::<LogsView>()?;
    if !logs.kept {
        print::notice(
            "its host keeps no logs: add procession::dashboard::StageLogs to its subscriber and its dashboard",
        );
        return Ok(Exit::Done);
    }
    for attempt in &logs.items {
        print::line(&heading(attempt));
        for event in &attempt.events {
            print::line(&format!(
                "  {} {:5} {}: {}",
                event.time,
                event.level,
                event.target,
                event.line()
            ));
        }
    }
    print::notice(&print::counted(logs.items.len(), "attempt", "attempts"));
    if logs.more > 0 {
        print::notice(&format!(
            "{} older attempts are left out; raise --limit for more",
            logs.more
        ));
    }
    Ok(Exit::Done)
}

fn heading(attempt: &AttemptLogView) -> String {
    let AttemptLogView {
        call,
        stage,
        visit,
        attempt: number,
        left_out,
        ..
    } = attempt;
    let older = match left_out {
        0 => String::new(),
        some => format!(", {some} older events are not kept"),
    };
    let undo = if call == "undo" { "undo of " } else { "" };
    format!("{undo}{stage}, visit {visit}, attempt {number}{older}")
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
