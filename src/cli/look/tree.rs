//! `procession tree`: a procedure and all below it.

use clap::Args;
use procession_kernel::ProcedureId;
use serde::Serialize;

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::{Place, ROWS, cut, family_of, ls, reply};
use crate::views::{TreeNodeView, tree_of};

/// Levels that are shown by indenting; what lies deeper stands below each other.
const INDENTED: u32 = 32;

#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct TreeArgs {
    #[command(flatten)]
    place: Place,
    /// The top: a root for the whole family, or any member.
    #[arg(value_name = "ID")]
    id: ProcedureId,
    /// How many to show at most.
    #[arg(long, value_name = "N", default_value_t = ROWS)]
    limit: usize,
}

#[derive(Serialize)]
struct Tree {
    items: Vec<TreeNodeView>,
}

pub(super) async fn run(args: TreeArgs) -> Result<Exit, Failure> {
    let journal = args.place.open().await?;
    let family = family_of(&journal, &journal.standing().await?, args.id).await?;
    let items = cut(tree_of(args.id, &family), args.limit);
    if args.place.json {
        print::json(&reply(&journal, Tree { items }))?;
    } else {
        print::table(
            ["ID", "KIND", "STATE", "SINCE", "CHILDREN", "WHY", "NEXT"],
            items.iter().map(row),
        );
    }
    Ok(Exit::Done)
}

fn row(node: &TreeNodeView) -> [String; 7] {
    let procedure = &node.procedure;
    let indent = "  ".repeat(usize::try_from(node.depth.min(INDENTED)).unwrap_or_default());
    let children = match node.children {
        0 => "-".to_owned(),
        count => format!("{} of {count} ended", node.ended_children),
    };
    [
        format!("{indent}{}", procedure.id),
        print::plain(&procedure.kind),
        print::state(&procedure.state),
        print::seconds(&procedure.since),
        children,
        print::or_dash(ls::why(procedure).as_deref()),
        print::plain(&procedure.next),
    ]
}
