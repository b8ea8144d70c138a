//! `procession tree`: a procedure and all below it.

use clap::Args;

use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::place::Place;
use super::super::source::Source;
use super::super::watch::Watch;
use super::super::{moment, print};
use super::{Items, ROWS, why};
use procession::views::TreeNodeView;

/// Levels that are shown by indenting; what lies deeper stands below each other.
const INDENTED: u32 = 32;

#[derive(Debug, Clone, Args)]
pub(crate) struct TreeArgs {
    #[command(flatten)]
    pub(super) place: Place,
    #[command(flatten)]
    pub(super) watch: Watch,
    /// The top: a root for the whole family, or any member.
    #[arg(value_name = "ID")]
    id: Named,
    /// How many to show at most.
    #[arg(long, value_name = "N", default_value_t = ROWS)]
    limit: usize,
}

pub(super) async fn run(source: &Source, args: &TreeArgs) -> Result<Exit, Failure> {
    let mut tree = source.tree(source.resolve(&args.id).await?).await?;
    tree.cut(args.limit);
    if args.place.prints(&tree)? {
        return Ok(Exit::Done);
    }
    let nodes: Items<TreeNodeView> = tree.read()?;
    print::table(
        ["ID", "KIND", "STATE", "SINCE", "CHILDREN", "WHY", "NEXT"],
        nodes.items.iter().map(row),
    );
    if tree.get("truncated").as_bool().unwrap_or_default() {
        print::notice("the family is larger than the dashboard shows");
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
        match &procedure.name {
            Some(name) => format!("{indent}{} {}", procedure.id, print::plain(name)),
            None => format!("{indent}{}", procedure.id),
        },
        print::plain(&procedure.kind),
        print::standing(procedure),
        moment::when(&procedure.since),
        children,
        print::or_dash(why(procedure).as_deref()),
        print::plain(&procedure.next),
    ]
}
