//! `procession ls`: which procedures there are, as far as a filter admits them.

use clap::Args;
use procession::ProcedureId;

use super::super::exit::{Exit, Failure};
use super::super::place::Place;
use super::super::source::{Source, Wanted};
use super::super::watch::Watch;
use super::super::{kinds, moment, print};
use procession::views::{PageView, ProcedureView};

#[derive(Debug, Clone, Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) watch: Watch,
    /// What to show, for instance: state:waiting reason:lock kind:create_table key:req-
    /// label:customer=4711 age:>10m attempts:>3 err:timeout root:42 rule:retry_storm; bare text is the beginning
    /// of an id or a key. Without a state those that have not ended are shown.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Show also those that have ended.
    #[arg(long)]
    all: bool,
    /// How many to show at most.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Where to go on: the id that the last page named. The newest come first.
    #[arg(long, value_name = "ID")]
    after: Option<ProcedureId>,
}

/// Places of columns that only some lists have.
const AFTER_KIND: usize = 2;
const AFTER_KEY: usize = 6;

impl LsArgs {
    /// Reads the filter: one that makes no sense is refused before anything is looked at.
    pub(super) fn wanted(&self) -> Result<Wanted, Failure> {
        Ok(Wanted {
            filter: self.filter.join(" ").parse().map_err(Failure::usage)?,
            all: self.all,
            limit: usize::try_from(self.limit).unwrap_or(usize::MAX),
            after: self.after,
        })
    }
}

pub(super) async fn run(source: &Source, wanted: &Wanted, place: &Place) -> Result<Exit, Failure> {
    let page = source.list(wanted).await?;
    if !place.prints(&page)? {
        let page: PageView = page.read()?;
        show(&page, wanted.shows_ended());
        if page.items.is_empty()
            && let Source::Site(site) = source
            && let Some(said) = kinds::unknown(site, &wanted.filter.kinds()).await?
        {
            print::notice(&said);
        }
    }
    Ok(Exit::Done)
}

fn show(page: &PageView, shows_ended: bool) {
    let headings = ["ID", "KIND", "STATE", "SINCE", "STAGE", "KEY", "WHY", "NEXT"];
    let mut table = vec![headings.map(str::to_owned).to_vec()];
    table.extend(page.items.iter().map(|procedure| row(procedure).to_vec()));
    // From the right: what is put in moves what stands behind it.
    if page.items.iter().any(|procedure| !procedure.labels.is_empty()) {
        put_in(&mut table, AFTER_KEY, "LABELS", page.items.iter().map(labels));
    }
    if page.items.iter().any(|procedure| procedure.name.is_some()) {
        let names = page
            .items
            .iter()
            .map(|procedure| print::or_dash(procedure.name.as_deref()));
        put_in(&mut table, AFTER_KIND, "NAME", names);
    }
    print::rows_of(&table);
    for id in &page.unreadable {
        print::notice(&format!("the row of {id} cannot be read; see \"procession doctor\""));
    }
    let shown = print::counted(page.items.len(), "procedure", "procedures");
    let read = print::counted(page.scanned, "row", "rows");
    let mut text = format!("{shown}; {read} read");
    if page.truncated {
        text.push_str(", which is as many as one list may read");
    }
    if let Some(cursor) = &page.cursor {
        text.push_str(&format!("; there are more rows: go on with --after {cursor}"));
    }
    if page.items.is_empty() && !shows_ended {
        text.push_str("; those that have ended are left out: --all shows them, too");
    }
    print::notice(&text);
}

fn row(procedure: &ProcedureView) -> [String; 8] {
    [
        procedure.id.clone(),
        print::plain(&procedure.kind),
        print::standing(procedure),
        moment::when(&procedure.since),
        print::plain(&procedure.stage),
        print::or_dash(procedure.key.as_deref()),
        print::or_dash(why(procedure).as_deref()),
        print::plain(&procedure.next),
    ]
}

/// Puts a column into a table, in front of the one that has this place.
fn put_in(table: &mut [Vec<String>], place: usize, heading: &str, cells: impl Iterator<Item = String>) {
    let cells = std::iter::once(heading.to_owned()).chain(cells);
    for (row, cell) in table.iter_mut().zip(cells) {
        row.insert(place.min(row.len()), cell);
    }
}

fn labels(procedure: &ProcedureView) -> String {
    let labels: Vec<String> = procedure.labels.iter().map(ToString::to_string).collect();
    print::or_dash(Some(labels.join(" ").as_str()).filter(|labels| !labels.is_empty()))
}

/// What it waits for, or why it failed.
pub(crate) fn why(procedure: &ProcedureView) -> Option<String> {
    let cause = procedure.cause.as_ref().map(|cause| cause.text.clone());
    match (&procedure.waits, cause) {
        (Some(waits), Some(cause)) => Some(format!("{waits}; {cause}")),
        (waits, cause) => waits.clone().or(cause),
    }
}
