//! A family as a tree, in the order in which it is printed: each node behind its
//! parent, with its depth. It is a list, so that no depth of a family is too deep.

use std::collections::BTreeMap;

use procession_actors::view::Status;
use procession_kernel::ProcedureId;
use serde::{Deserialize, Serialize};

use super::ProcedureView;

/// One procedure of a family, and where in its tree it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TreeNodeView {
    /// How many are above it within this tree: 0 for the first.
    pub depth: u32,
    /// How many children it has.
    pub children: usize,
    /// How many of them have ended.
    pub ended_children: usize,
    /// The procedure.
    #[serde(flatten)]
    pub procedure: ProcedureView,
}

/// Returns the tree below one member of a family, itself first and children by number;
/// empty if it is not among them.
#[must_use]
pub fn tree_of(top: ProcedureId, family: &[Status]) -> Vec<TreeNodeView> {
    let mut below: BTreeMap<ProcedureId, Vec<&Status>> = BTreeMap::new();
    for status in family {
        if let Some(parent) = status.parent {
            below.entry(parent).or_default().push(status);
        }
    }
    let mut nodes = Vec::new();
    let first = family.iter().find(|status| status.id == top);
    let mut next: Vec<(u32, &Status)> = first.map(|status| (0, status)).into_iter().collect();
    while let Some((depth, status)) = next.pop() {
        // Taken out: a damaged tree may lead in a circle.
        let children = below.remove(&status.id).unwrap_or_default();
        nodes.push(TreeNodeView {
            depth,
            children: children.len(),
            ended_children: children.iter().filter(|child| child.ended.is_some()).count(),
            procedure: ProcedureView::from(status),
        });
        next.extend(children.into_iter().rev().map(|child| (depth + 1, child)));
    }
    nodes
}
