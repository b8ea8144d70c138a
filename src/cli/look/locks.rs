//! `procession locks`: every lock that is held or wanted.

use clap::Args;

use super::super::exit::{Exit, Failure};
use super::super::place::Place;
use super::super::source::Source;
use super::super::watch::Watch;
use super::super::{moment, print};
use super::{Items, ROWS};
use procession::views::LockUseView;

#[derive(Debug, Clone, Args)]
pub(crate) struct LocksArgs {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) watch: Watch,
    /// How many to show at most.
    #[arg(long, value_name = "N", default_value_t = ROWS)]
    limit: usize,
}

pub(super) async fn run(source: &Source, args: &LocksArgs) -> Result<Exit, Failure> {
    let mut locks = source.locks().await?;
    locks.cut(args.limit);
    if args.place.prints(&locks)? {
        return Ok(Exit::Done);
    }
    let Items { items } = locks.read::<Items<LockUseView>>()?;
    print::table(["LOCK", "HELD BY", "WAITING"], items.iter().map(row));
    print::notice(&print::counted(items.len(), "lock", "locks"));
    Ok(Exit::Done)
}

fn row(lock: &LockUseView) -> [String; 3] {
    let holders = lock.holders.iter().map(|holder| {
        let since = holder.since.as_deref().map(moment::since).unwrap_or_default();
        format!("{} {}{since}", holder.id, holder.mode)
    });
    // An older dashboard tells no more of those who wait than their ids.
    let ids = lock.waiting.iter().skip(lock.waiters.len()).cloned();
    let waiting = lock.waiters.iter().map(|waiter| {
        let since = waiter.since.as_deref().map(moment::since).unwrap_or_default();
        format!("{} {}{since}", waiter.id, waiter.mode)
    });
    [
        print::plain(&lock.path),
        print::named(holders.collect()),
        print::named(waiting.chain(ids).collect()),
    ]
}
