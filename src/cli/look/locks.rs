//! `procession locks`: every lock that is held or wanted.

use clap::Args;
use serde::Serialize;

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::{Place, ROWS, cut, reply};
use crate::views::LockUseView;

/// Waiters of one lock that a table names; the rest is counted.
const NAMED: usize = 8;

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct LocksArgs {
    #[command(flatten)]
    place: Place,
    /// How many to show at most.
    #[arg(long, value_name = "N", default_value_t = ROWS)]
    limit: usize,
}

#[derive(Serialize)]
struct Locks {
    items: Vec<LockUseView>,
}

pub(super) async fn run(args: LocksArgs) -> Result<Exit, Failure> {
    let journal = args.place.open().await?;
    let standing = journal.standing().await?;
    let items = cut(standing.locks().iter().map(LockUseView::from).collect(), args.limit);
    if args.place.json {
        print::json(&reply(&journal, Locks { items }))?;
        return Ok(Exit::Done);
    }
    print::table(["LOCK", "HELD BY", "WAITING"], items.iter().map(row));
    print::notice(&print::counted(items.len(), "lock", "locks"));
    Ok(Exit::Done)
}

fn row(lock: &LockUseView) -> [String; 3] {
    let holders = lock
        .holders
        .iter()
        .map(|holder| format!("{} {}", holder.id, holder.mode));
    [
        print::plain(&lock.path),
        named(holders.collect()),
        named(lock.waiting.clone()),
    ]
}

fn named(mut names: Vec<String>) -> String {
    let more = names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    match (names.is_empty(), more) {
        (true, _) => "-".to_owned(),
        (false, 0) => names.join(", "),
        (false, more) => format!("{}, and {more} more", names.join(", ")),
    }
}
