//! `procession limits`: permits that are out, and who waits.

use clap::Args;

use super::super::exit::{Exit, Failure};
use super::super::place::Place;
use super::super::source::Source;
use super::super::watch::Watch;
use super::super::{moment, print};
use super::Items;
use procession::views::{LimitView, RateView};

#[derive(Debug, Clone, Args)]
pub(crate) struct LimitsArgs {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) watch: Watch,
}

pub(super) async fn run(source: &Source, args: &LimitsArgs) -> Result<Exit, Failure> {
    let limits = source.limits().await?;
    if args.place.prints(&limits)? {
        return Ok(Exit::Done);
    }
    let Items { items } = limits.read::<Items<LimitView>>()?;
    // An engine that runs knows them all: one without a capacity has none.
    let none = if source.is_running() { "-" } else { "?" };
    print::table(
        ["LIMIT", "USED", "OF", "WAITING", "HAD TO WAIT", "HELD BY", "NEXT"],
        items.iter().map(|limit| row(limit, none)),
    );
    for (limit, rate) in items.iter().filter_map(|limit| Some((limit, limit.rate.as_ref()?))) {
        print::line(&format!(
            "{}: {} have begun, and {}",
            print::plain(&limit.key),
            of_rate(rate),
            free_again(rate)
        ));
    }
    print::notice(&print::counted(items.len(), "limit", "limits"));
    if !source.is_running() && items.iter().any(|limit| limit.limit.is_none()) {
        print::notice("a capacity that the program sets when it starts is not in the journal: \"?\"");
    }
    if !source.is_running() && !items.is_empty() {
        print::notice("how many had to wait is counted while an engine runs: \"?\"");
    }
    Ok(Exit::Done)
}

/// Returns how much of a rate is used up, as `7 of 10 in 1 s`.
pub(super) fn of_rate(rate: &RateView) -> String {
    let RateView {
        begun, begins, per_ms, ..
    } = rate;
    let period = match (per_ms / 1_000, per_ms % 1_000) {
        (seconds, 0) => format!("{seconds} s"),
        (_, _) => format!("{per_ms} ms"),
    };
    format!("{begun} of {begins} in {period}")
}

/// Returns when the next may begin.
pub(super) fn free_again(rate: &RateView) -> String {
    match &rate.free_at {
        Some(at) => format!("the next may begin at {at}"),
        None if rate.begins == 0 => "none may begin".to_owned(),
        None => "the next may begin now".to_owned(),
    }
}

fn row(limit: &LimitView, none: &str) -> [String; 7] {
    let next = limit.waiters.first().map(|waiter| {
        let since = waiter.since.as_deref().map(moment::since).unwrap_or_default();
        format!("{}{since}", waiter.id)
    });
    [
        print::plain(&limit.key),
        limit.used.to_string(),
        limit.limit.map_or_else(|| none.to_owned(), |limit| limit.to_string()),
        limit.waiting.to_string(),
        limit
            .had_to_wait
            .map_or_else(|| "?".to_owned(), |count| count.to_string()),
        print::named(limit.holders.clone()),
        next.unwrap_or_else(|| "-".to_owned()),
    ]
}
