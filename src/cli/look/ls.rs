//! `procession ls`: which procedures there are, as far as a filter admits them.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use procession_actors::clock::{Clock, SystemClock};
use procession_actors::offline::{Offline, Standing};
use procession_actors::view::{Page, Rule, Status};
use procession_kernel::ProcedureId;

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::{Place, reply};
use crate::filter::{Beside, Filter};
use crate::views::{PageView, ProcedureView};

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct LsArgs {
    #[command(flatten)]
    place: Place,
    /// What to show, for instance: state:waiting reason:lock kind:create_table key:req-
    /// age:>10m attempts:>3 err:timeout root:42 rule:retry_storm; bare text is the beginning
    /// of an id or a key. Without a state those that have not ended are shown.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// Show also those that have ended.
    #[arg(long)]
    all: bool,
    /// How many to show at most.
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=1000))]
    limit: u16,
    /// Where to go on: the id that the last page ended with.
    #[arg(long, value_name = "ID")]
    after: Option<ProcedureId>,
}

impl LsArgs {
    /// Without a word on states, a list is of those that have not ended.
    fn shows_ended(&self, filter: &Filter) -> bool {
        self.all || filter.names_states()
    }
}

pub(super) async fn run(args: LsArgs) -> Result<Exit, Failure> {
    let filter: Filter = args.filter.join(" ").parse().map_err(Failure::usage)?;
    let journal = args.place.open().await?;
    let page = page(&journal, &filter, &args).await?;
    if args.place.json {
        print::json(&reply(&journal, PageView::from(&page)))?;
    } else {
        show(&PageView::from(&page), args.shows_ended(&filter));
    }
    Ok(Exit::Done)
}

async fn page(journal: &Offline, filter: &Filter, args: &LsArgs) -> Result<Page, Failure> {
    let standing = match filter.names_rules() || filter.names_reasons() {
        true => Some(journal.standing().await?),
        false => None,
    };
    let rules = standing.as_ref().map(rules_of).unwrap_or_default();
    let now = SystemClock.now();
    let shows_ended = args.shows_ended(filter);
    let families = filter.families();
    let first = families.as_ref().and_then(|families| families.first().copied());
    let from = args.after.or(first.map(ProcedureId::root));
    let admits = |status: &Status| {
        let shown = standing.as_ref().map(|standing| standing.shown(Status::clone(status)));
        let status = shown.as_ref().unwrap_or(status);
        let beside = Beside {
            now,
            rules: rules.get(&status.id).cloned().unwrap_or_default(),
        };
        (shows_ended || status.ended.is_none()) && filter.admits(status, &beside)
    };
    let mut page = journal.list(from, usize::from(args.limit), admits).await?;
    if let Some(standing) = &standing {
        page.items = page.items.into_iter().map(|status| standing.shown(status)).collect();
    }
    Ok(page)
}

fn rules_of(standing: &Standing) -> BTreeMap<ProcedureId, BTreeSet<Rule>> {
    let mut rules: BTreeMap<ProcedureId, BTreeSet<Rule>> = BTreeMap::new();
    for verdict in standing.verdicts() {
        if let Some(id) = verdict.procedure {
            rules.entry(id).or_default().insert(verdict.rule);
        }
    }
    rules
}

fn show(page: &PageView, shows_ended: bool) {
    let headings = ["ID", "KIND", "STATE", "SINCE", "STAGE", "KEY", "WHY", "NEXT"];
    print::table(headings, page.items.iter().map(row));
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
        print::state(&procedure.state),
        print::seconds(&procedure.since),
        print::plain(&procedure.stage),
        print::or_dash(procedure.key.as_deref()),
        print::or_dash(why(procedure).as_deref()),
        print::plain(&procedure.next),
    ]
}

/// What it waits for, or why it failed.
pub(super) fn why(procedure: &ProcedureView) -> Option<String> {
    let cause = procedure.cause.as_ref().map(|cause| cause.text.clone());
    match (&procedure.waits, cause) {
        (Some(waits), Some(cause)) => Some(format!("{waits}; {cause}")),
        (waits, cause) => waits.clone().or(cause),
    }
}
