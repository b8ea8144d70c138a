//! Cycles in a directed graph, without recursion: a graph of a hundred thousand waiters must not overflow the stack.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Assigns each node the name of its strongly connected component: two nodes share a component if each can be reached
/// from the other. The algorithm is Kosaraju's.
pub(super) fn components<N: Copy + Ord>(edges: &BTreeMap<N, Vec<N>>) -> BTreeMap<N, N> {
    let mut back: BTreeMap<N, Vec<N>> = BTreeMap::new();
    for (from, tos) in edges {
        for to in tos {
            back.entry(*to).or_default().push(*from);
        }
    }
    let mut components = BTreeMap::new();
    for name in by_finish(edges).into_iter().rev() {
        let mut reached = vec![name];
        while let Some(id) = reached.pop() {
            if let Entry::Vacant(component) = components.entry(id) {
                component.insert(name);
                reached.extend(back.get(&id).into_iter().flatten());
            }
        }
    }
    components
}

/// Returns the nodes in the order in which a depth-first search leaves them.
fn by_finish<N: Copy + Ord>(edges: &BTreeMap<N, Vec<N>>) -> Vec<N> {
    let targets = |id: N| edges.get(&id).into_iter().flatten().copied();
    let mut finished = Vec::new();
    let mut seen = BTreeSet::new();
    for start in edges.keys().copied() {
        if !seen.insert(start) {
            continue;
        }
        let mut path = vec![(start, targets(start))];
        while let Some((id, rest)) = path.last_mut() {
            match rest.find(|to| seen.insert(*to)) {
                Some(to) => path.push((to, targets(to))),
                None => {
                    finished.push(*id);
                    path.pop();
                }
            }
        }
    }
    finished
}

/// Returns the cycles of a graph with at most one edge from each node. Each cycle begins at its smallest member, and
/// the cycles are sorted by it.
pub(super) fn of_single_edges<N: Copy + Ord>(edges: &BTreeMap<N, N>) -> Vec<Vec<N>> {
    let mut cycles = Vec::new();
    let mut seen = BTreeSet::new();
    for start in edges.keys() {
        let mut walked = Vec::new();
        let mut next = Some(*start);
        while let Some(id) = next.filter(|id| seen.insert(*id)) {
            walked.push(id);
            next = edges.get(&id).copied();
        }
        // A walk that ends at a node of an earlier walk has no cycle of its own.
        let begin = walked.iter().position(|id| Some(*id) == next);
        let mut cycle = begin.map_or_else(Vec::new, |begin| walked.split_off(begin));
        let smallest = cycle.iter().enumerate().min_by_key(|(_, id)| **id);
        if let Some((index, _)) = smallest {
            cycle.rotate_left(index);
            cycles.push(cycle);
        }
    }
    cycles.sort_unstable();
    cycles
}
