//! `procession flows`: which sets and streams there are, how their nodes stand, and what waits in them.

use clap::Args;
use procession::ProcedureId;

use super::super::exit::{Exit, Failure};
use super::super::place::Place;
use super::super::source::{Source, Wanted};
use super::super::watch::Watch;
use super::super::{moment, print};
use procession::flow::Counts;
use procession::views::FlowView;
use serde::Deserialize;

#[derive(Debug, Clone, Args)]
pub(crate) struct FlowsArgs {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) watch: Watch,
    /// What to show, for instance: name:album key:req- label:customer=4711 age:>10m. Without a state those that have
    /// not ended are shown.
    #[arg(value_name = "FILTER")]
    filter: Vec<String>,
    /// How many to show at most.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    /// Where to go on: the id that the last page ended with.
    #[arg(long, value_name = "ID")]
    after: Option<ProcedureId>,
}

/// A page of them.
#[derive(Deserialize)]
struct Page {
    items: Vec<FlowView>,
    cursor: Option<String>,
    truncated: bool,
    unreadable: Vec<String>,
}

impl FlowsArgs {
    /// Reads the filter: one that makes no sense is refused before anything is looked at.
    pub(super) fn wanted(&self) -> Result<Wanted, Failure> {
        Ok(Wanted {
            filter: self.filter.join(" ").parse().map_err(Failure::usage)?,
            all: false,
            limit: usize::from(self.limit),
            after: self.after,
        })
    }
}

pub(super) async fn run(source: &Source, wanted: &Wanted, place: &Place) -> Result<Exit, Failure> {
    let flows = source.flows(wanted).await?;
    if !place.prints(&flows)? {
        show(&flows.read()?, wanted.shows_ended());
    }
    Ok(Exit::Done)
}

fn show(page: &Page, shows_ended: bool) {
    print::table(
        ["ID", "SORT", "NAME", "STATE", "SINCE", "NODES", "PENDING"],
        page.items.iter().map(row),
    );
    for id in &page.unreadable {
        print::notice(&format!("{id} cannot be read; see \"procession doctor\""));
    }
    let mut text = print::counted(page.items.len(), "set or stream", "sets and streams");
    if page.truncated {
        text.push_str("; it stopped early: narrow the filter");
    }
    if let Some(cursor) = &page.cursor {
        text.push_str(&format!("; there are more: go on with --after {cursor}"));
    }
    if page.items.is_empty() && !page.truncated && !shows_ended {
        text.push_str("; those that have ended are left out: state:ended shows them");
    }
    print::notice(&text);
}

fn row(flow: &FlowView) -> [String; 7] {
    [
        flow.id.clone(),
        flow.sort.clone(),
        print::or_dash(flow.name.as_deref()),
        match (&flow.state, flow.set_aside) {
            (_, true) => "quarantined".to_owned(),
            (Some(state), false) => state.clone(),
            (None, false) => "not counted".to_owned(),
        },
        moment::when(&flow.since),
        nodes(flow),
        print::named(flow.pending.clone()),
    ]
}

/// Says what a stream does, or how many nodes of a set are in which state.
fn nodes(flow: &FlowView) -> String {
    let Some(queue) = &flow.queue else {
        return flow.counts.map_or_else(|| "-".to_owned(), counted);
    };
    let mut text = format!("{} waiting, {} done", queue.waiting, queue.done);
    if let Some(node) = &queue.in_hand {
        text = format!("{} in hand, {text}", print::plain(node));
    }
    if let Some(oldest) = &queue.oldest {
        text.push_str(&format!(", the oldest{}", moment::since(oldest)));
    }
    text
}

/// Says how many nodes are in which state, those first that need somebody.
fn counted(counts: Counts) -> String {
    let all = [
        (counts.pending, "pending"),
        (counts.error, "error"),
        (counts.running, "running"),
        (counts.ready, "ready"),
        (counts.wait, "wait"),
        (counts.success, "success"),
        (counts.cancelled, "cancelled"),
    ];
    let there = all.iter().filter(|(count, _)| *count > 0);
    there
        .map(|(count, word)| format!("{count} {word}"))
        .collect::<Vec<String>>()
        .join(", ")
}
