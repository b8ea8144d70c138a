//! `procession why`: the chain of who waits for whom, in sentences.

use clap::Args;
use serde::Deserialize;

use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::place::Place;
use super::super::source::Source;
use super::super::{moment, print};
use super::PausedBy;
use super::limits::{free_again, of_rate};
use procession::views::{
    ChildrenLeftView, CycleView, ExplanationView, LinkView, LockWantedView, PermitWantedView, SlotWantedView,
};

#[derive(Debug, Clone, Args)]
pub(crate) struct WhyArgs {
    #[command(flatten)]
    pub(super) place: Place,
    /// Which procedure: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
}

pub(super) async fn run(source: &Source, args: &WhyArgs) -> Result<Exit, Failure> {
    let document = source.waits(source.resolve(&args.id).await?).await?;
    let explanation: ExplanationView = document.read()?;
    if !args.place.prints(&document)? {
        show(&explanation, source.is_running());
        for paused in document.read::<Pauses>()?.paused_by {
            print::line(&print::plain(&format!("paused: {paused}")));
        }
    }
    Ok(match explanation.deadlocks.is_empty() {
        true => Exit::Done,
        false => Exit::Cycle,
    })
}

/// The pauses that cover it; a dashboard of an earlier release does not name them.
#[derive(Deserialize)]
struct Pauses {
    #[serde(default)]
    paused_by: Vec<PausedBy>,
}

/// Links, and ends of chains, that are printed at most.
const LINKS: usize = 10;

/// Says how far the children are: those in progress by name, and how many of the others wait for a slot.
fn of_children(children: &ChildrenLeftView) -> String {
    let ChildrenLeftView {
        done,
        total,
        running,
        held,
        named,
        ..
    } = children;
    let mut said = format!("{done} of its {total} children are done");
    if *running > 0 {
        said = format!("{said}; in progress: {}", some_of(named, *running));
    }
    if *held > 0 {
        said = format!("{said}; {held} wait for a slot");
    }
    said
}

/// Names the first of several, and says how many more there are.
fn some_of(named: &[String], all: u32) -> String {
    let names = named.join(", ");
    match usize::try_from(all).unwrap_or(usize::MAX).saturating_sub(named.len()) {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

fn show(explanation: &ExplanationView, is_running: bool) {
    let say = |text: String| print::line(&print::plain(&text));
    say(format!(
        "{} {}{}: {}",
        explanation.id,
        explanation.kind,
        moment::since(&explanation.since),
        explanation.reason
    ));
    if let Some(LockWantedView {
        path, mode, holders, ..
    }) = &explanation.lock
    {
        let held = match holders.is_empty() {
            true => "is kept for those before it".to_owned(),
            false => format!("is held by {}", holders.join(", ")),
        };
        say(format!("  the {mode} lock {path} {held}"));
    }
    if let Some(PermitWantedView {
        key, limit, used, rate, ..
    }) = &explanation.permit
    {
        let of = limit.map(|limit| format!(" of {limit}")).unwrap_or_default();
        say(format!("  {used}{of} permits of {key} are out"));
        if let Some(rate) = rate {
            say(format!("  {} have begun, and {}", of_rate(rate), free_again(rate)));
        }
    }
    if let Some(children) = &explanation.children {
        say(format!("  {}", of_children(children)));
    }
    if let Some(SlotWantedView {
        width, running, named, ..
    }) = &explanation.slot
    {
        let some = some_of(named, *running);
        say(format!(
            "  its parent runs {width} children at once; in progress: {some}"
        ));
    }
    if let Some(place) = &explanation.place {
        say(format!("  it is number {} of {} in the queue", place.place, place.of));
    }
    for LinkView {
        from, to, why, since, ..
    } in explanation.links.iter().take(LINKS)
    {
        say(format!("  {from} waits for {to} ({why}) since {since}"));
    }
    match explanation.links.len().saturating_sub(LINKS) {
        _ if explanation.truncated => say("  and many more waits, which are not shown".to_owned()),
        0 => {}
        more => say(format!("  and {more} more waits; --json has all of them")),
    }
    for end in explanation.ends.iter().take(LINKS) {
        let moves = match (end.until == "on its own", is_running) {
            (true, true) => "will continue on its own".to_owned(),
            (true, false) => "will continue on its own once an engine runs".to_owned(),
            (false, _) => format!("continues {}", end.until),
        };
        say(format!("  {} {moves}", end.id));
    }
    match explanation.behind {
        0 => {}
        1 => say(format!("  1 waits behind {} at gates", explanation.id)),
        1_000.. => say(format!("  1000 or more wait behind {} at gates", explanation.id)),
        several => say(format!("  {several} wait behind {} at gates", explanation.id)),
    }
    for CycleView { cycle, remedy, .. } in &explanation.deadlocks {
        let ids: Vec<&str> = cycle.iter().map(|link| link.from.as_str()).collect();
        say(format!("a deadlock: {} wait for each other; {remedy}", ids.join(", ")));
    }
    say(format!("next: {}", explanation.next));
}
