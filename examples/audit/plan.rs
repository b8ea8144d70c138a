//! The set: a node for each package, behind the nodes of what it depends on.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use procession::flow::{Node, NodeRef, OnError, Set, When};

use crate::dpkg::Installed;
use crate::nodes::{Listed, REPORT, Report, SNAPSHOT, Snapshot, Verify};

/// Plans the audit of these packages. If they are held, a package that was changed waits for a person, and with it all
/// that depends on it.
pub(crate) fn plan(title: String, installed: &Installed, is_held: bool) -> Result<Set, Box<dyn std::error::Error>> {
    let mut set = Set::builder(title);
    let snapshot = Snapshot {
        status: installed.checksum.clone(),
    };
    let snapshot = set.add(Node::new(SNAPSHOT, snapshot).on_error(OnError::Stop));
    let dependencies = installed.dependencies();
    // The node that each package is part of.
    let mut nodes: Vec<Option<NodeRef>> = vec![None; installed.packages.len()];
    let (mut all, mut listed) = (Vec::new(), Vec::new());
    for group in groups(&dependencies) {
        let packages: Vec<Listed> = group
            .iter()
            .filter_map(|place| installed.packages.get(*place))
            .map(Listed::from)
            .collect();
        let needed = group.iter().filter_map(|place| dependencies.get(*place)).flatten();
        let mut after: Vec<NodeRef> = needed
            .filter_map(|place| nodes.get(*place).copied().flatten())
            .collect();
        after.sort_by_key(|node| all.iter().position(|other| other == node));
        after.dedup();
        if after.is_empty() {
            after.push(snapshot);
        }
        let name = name_of(&packages);
        listed.extend(packages.iter().map(|package| (name.clone(), package.clone())));
        let verify = Verify { packages, is_held };
        let when = if is_held { When::AllSucceeded } else { When::AllFinished };
        let node = set.add(Node::new(name, verify).after(after).when(when));
        for place in group {
            if let Some(slot) = nodes.get_mut(place) {
                *slot = Some(node);
            }
        }
        all.push(node);
    }
    let report = Report { packages: listed };
    set.add(Node::new(REPORT, report).after(all).when(When::AllFinished));
    Ok(set.build()?)
}

/// Returns packages that need each other in one group, and groups behind those that they need.
fn groups(dependencies: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut graph = DiGraph::<(), ()>::with_capacity(dependencies.len(), 0);
    for _ in dependencies {
        graph.add_node(());
    }
    for (place, needed) in dependencies.iter().enumerate() {
        for other in needed {
            graph.update_edge(NodeIndex::new(place), NodeIndex::new(*other), ());
        }
    }
    let groups = kosaraju_scc(&graph).into_iter();
    groups
        .map(|group| group.into_iter().map(NodeIndex::index).collect())
        .collect()
}

fn name_of(packages: &[Listed]) -> String {
    match packages {
        [only] => only.name.clone(),
        [first, others @ ..] => format!("{} and {} more", first.name, others.len()),
        [] => String::new(),
    }
}
