//! `procession audit`: what operators did, newest first.

use clap::Args;
use procession::filter::AuditFilter;
use procession::views::AuditView;

use super::super::exit::{Exit, Failure};
use super::super::place::Place;
use super::super::source::Source;
use super::super::{moment, print};
use super::Items;

#[derive(Debug, Clone, Args)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(super) place: Place,
    /// What to show, for instance: who:ann verb:abort target:42; bare text is looked for in what was done and why.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// How many to show at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    limit: u16,
    /// Show older entries alone: those before this number.
    #[arg(long, value_name = "NUMBER")]
    before: Option<u64>,
}

impl AuditArgs {
    /// Reads the filter: one that makes no sense is refused before anything is looked at.
    pub(super) fn filter(&self) -> Result<AuditFilter, Failure> {
        self.filter.join(" ").parse().map_err(Failure::usage)
    }
}

pub(super) async fn run(source: &Source, args: &AuditArgs, filter: &AuditFilter) -> Result<Exit, Failure> {
    let text = args.filter.join(" ");
    let audit = source
        .audit((&text, filter), args.before, usize::from(args.limit))
        .await?;
    if args.place.prints(&audit)? {
        return Ok(Exit::Done);
    }
    let Items { items } = audit.read::<Items<AuditView>>()?;
    print::table(["#", "AT", "WHO", "DID", "CHANGED", "WHY"], items.iter().map(row));
    let mut text = print::counted(items.len(), "entry", "entries");
    if let Some(cursor) = audit.get("cursor").as_str() {
        text.push_str(&format!("; there are older ones: go on with --before {cursor}"));
    }
    print::notice(&text);
    Ok(Exit::Done)
}

fn row(entry: &AuditView) -> [String; 6] {
    let submitted = entry.submitted.as_ref().map(|id| format!(", as {id}"));
    [
        entry.number.clone(),
        moment::when(&entry.at),
        entry.who.clone(),
        format!("{}{}", entry.verb, submitted.unwrap_or_default()),
        entry.changed.to_string(),
        print::or_dash(Some(entry.why.as_str()).filter(|why| !why.is_empty())),
    ]
}
