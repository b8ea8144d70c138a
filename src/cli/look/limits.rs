//! `procession limits`: permits that are out, and who waits.

use clap::Args;
use serde::Serialize;

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::{Place, reply};
use crate::views::LimitView;

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct LimitsArgs {
    #[command(flatten)]
    place: Place,
}

#[derive(Serialize)]
struct Limits {
    items: Vec<LimitView>,
}

pub(super) async fn run(args: LimitsArgs) -> Result<Exit, Failure> {
    let journal = args.place.open().await?;
    let standing = journal.standing().await?;
    let items: Vec<LimitView> = standing.limits().iter().map(LimitView::from).collect();
    if args.place.json {
        print::json(&reply(&journal, Limits { items }))?;
        return Ok(Exit::Done);
    }
    print::table(["LIMIT", "USED", "OF", "WAITING"], items.iter().map(row));
    print::notice(&print::counted(items.len(), "limit", "limits"));
    if items.iter().any(|limit| limit.limit.is_none()) {
        print::notice("a capacity that the program sets when it starts is not in the journal: \"?\"");
    }
    Ok(Exit::Done)
}

fn row(limit: &LimitView) -> [String; 4] {
    [
        print::plain(&limit.key),
        limit.used.to_string(),
        limit.limit.map_or_else(|| "?".to_owned(), |limit| limit.to_string()),
        limit.waiting.to_string(),
    ]
}
