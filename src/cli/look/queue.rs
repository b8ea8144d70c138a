//! `procession queue`: what a stream does.

use clap::Args;

use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::place::Place;
use super::super::source::Source;
use super::super::watch::Watch;
use super::super::{moment, print};
use procession::flow::StreamName;
use procession::views::{QueueView, QueuedView, RecordView};

/// How the keys of streams begin.
const KEYS: &str = "procession.stream/";

#[derive(Debug, Clone, Args)]
pub(crate) struct QueueArgs {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) watch: Watch,
    /// Which stream: its id, for instance 42.0, or its name, such as invoices:customer-17.
    #[arg(value_name = "ID")]
    id: Named,
    /// How many records to show at most.
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    /// Where to go on with the records: the number that the last page ended with.
    #[arg(long, value_name = "NUMBER")]
    before: Option<u32>,
}

pub(super) async fn run(source: &Source, args: &QueueArgs) -> Result<Exit, Failure> {
    let id = source.resolve(&of_stream(&args.id)).await?;
    let queue = source.queue(id, args.before, usize::from(args.limit)).await?;
    if !args.place.prints(&queue)? {
        show(&queue.read()?);
    }
    Ok(Exit::Done)
}

/// Puts the key of a stream in the place of its name.
fn of_stream(named: &Named) -> Named {
    let Named::Key(text) = named else { return named.clone() };
    let parts = text.split_once(':').filter(|_| !text.starts_with(KEYS));
    let name = parts.and_then(|(scene, group)| StreamName::new(scene, group).ok());
    name.map_or_else(|| named.clone(), |name| Named::Key(name.key()))
}

fn show(queue: &QueueView) {
    let name = queue.name.as_deref().unwrap_or(&queue.id);
    let since = queue.since.as_deref().map_or_else(String::new, moment::since);
    let mut text = format!("{name} {}{since}: {} done", queue.state, queue.done);
    if let Some(rate) = queue.per_minute {
        text.push_str(&format!(", {rate} a minute"));
    }
    text.push_str(&format!(", {} waiting", queue.waiting));
    if let Some(oldest) = &queue.oldest {
        text.push_str(&format!(", the oldest{}", moment::since(oldest)));
    }
    if queue.sealed {
        text.push_str(", and nothing more is taken");
    }
    print::line(&text);
    let queued = queue.in_hand.iter().chain(&queue.next).map(queued);
    print::table(["PLACE", "NAME", "KIND", "STATE", "SINCE", "WHY"], queued);
    print::table(
        ["PLACE", "NAME", "KIND", "STATE", "ENDED", "ATTEMPTS", "NOTE", "CAUSE"],
        queue.records.iter().map(record),
    );
    if let Some(before) = queue.before {
        print::notice(&format!("there are older records: go on with --before {before}"));
    }
}

fn queued(node: &QueuedView) -> [String; 6] {
    [
        node.place.to_string(),
        print::or_dash(node.name.as_deref()),
        print::plain(&node.kind),
        node.state.clone(),
        moment::when(&node.since),
        print::or_dash(node.question.as_deref().or(node.reason.as_deref())),
    ]
}

fn record(record: &RecordView) -> [String; 8] {
    let note = record
        .note
        .as_ref()
        .map(|note| match (note.get("value"), note.get("size")) {
            (Some(value), _) => value.to_string(),
            (None, Some(size)) => format!("{size} bytes"),
            (None, None) => "(redacted)".to_owned(),
        });
    [
        record.place.to_string(),
        print::or_dash(record.name.as_deref()),
        print::plain(&record.kind),
        record.state.clone(),
        moment::when(&record.ended),
        record.attempts.to_string(),
        print::or_dash(note.as_deref()),
        print::or_dash(record.cause.as_deref()),
    ]
}
