//! `procession why`: the chain of who waits for whom, in sentences.

use clap::Args;

use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::place::Place;
use super::super::source::Source;
use super::super::{moment, print};
use super::limits::{free_again, of_rate};
use procession::views::{ChildrenLeftView, CycleView, ExplanationView, LinkView, LockWantedView, PermitWantedView};

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
    }
    Ok(match explanation.deadlocks.is_empty() {
        true => Exit::Done,
        false => Exit::Cycle,
    })
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
    if let Some(ChildrenLeftView { done, total, .. }) = &explanation.children {
        say(format!("  {done} of its {total} children are done"));
    }
    if let Some(place) = &explanation.place {
        say(format!("  it is number {} of {} in the queue", place.place, place.of));
    }
    for LinkView {
        from, to, why, since, ..
    } in &explanation.links
    {
        say(format!("  {from} waits for {to} ({why}) since {since}"));
    }
    if explanation.truncated {
        say("  and more, which are not shown".to_owned());
    }
    for end in &explanation.ends {
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
