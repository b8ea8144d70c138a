//! The graphs that the shapes are made of.

use procession::flow::{BuildError, Node, NodeRef, Set, SetBuilder};

use crate::bench::node::Work;

fn builder(title: &str, nodes: u32) -> SetBuilder {
    let mut set = Set::builder(title);
    set.max_children(usize::try_from(nodes).unwrap_or(usize::MAX));
    set
}

fn named(place: u32, work: Work) -> Node {
    Node::new(place.to_string(), work)
}

/// One node behind the other.
pub(super) fn chain(nodes: u32, payload: &str) -> Result<Set, BuildError> {
    let mut set = builder("chain", nodes);
    let mut before: Option<NodeRef> = None;
    for place in 0..nodes {
        before = Some(set.add(named(place, Work::hop(payload)).after(before)));
    }
    set.build()
}

/// One node, all others but one behind it, and one behind all of these.
pub(super) fn wide(nodes: u32, payload: &str) -> Result<Set, BuildError> {
    let mut set = builder("wide", nodes);
    let first = set.add(named(0, Work::pass(payload)));
    let between: Vec<NodeRef> = (1..nodes.saturating_sub(1))
        .map(|place| set.add(named(place, Work::pass(payload)).after([first])))
        .collect();
    if nodes > 1 {
        let parents = if between.is_empty() { vec![first] } else { between };
        set.add(named(nodes - 1, Work::pass(payload)).after(parents));
    }
    set.build()
}

/// Diamonds in a row, the last node of one being the first of the next.
pub(super) fn lattice(nodes: u32, payload: &str) -> Result<Set, BuildError> {
    let mut set = builder("lattice", nodes);
    let mut top = set.add(named(0, Work::pass(payload)));
    let mut sides = Vec::new();
    for place in 1..nodes {
        if place % 3 == 0 {
            top = set.add(named(place, Work::pass(payload)).after(std::mem::take(&mut sides)));
        } else {
            sides.push(set.add(named(place, Work::pass(payload)).after([top])));
        }
    }
    set.build()
}

/// One node that waits at the gate, and all others behind it.
pub(super) fn held(nodes: u32, payload: &str) -> Result<Set, BuildError> {
    let mut set = builder("held", nodes);
    let first = set.add(Node::new(FIRST, Work::hold(payload)));
    for place in 1..nodes {
        set.add(named(place, Work::pass(payload)).after([first]));
    }
    set.build()
}

/// Name of the node that waits at the gate.
pub(super) const FIRST: &str = "first";

/// Each node behind the three before it.
pub(super) fn dense(nodes: u32, payload: &str) -> Result<Set, BuildError> {
    let mut set = builder("dense", nodes);
    let mut before: Vec<NodeRef> = Vec::new();
    for place in 0..nodes {
        let parents = before.iter().rev().take(3).copied().collect::<Vec<_>>();
        before.push(set.add(named(place, Work::pass(payload)).after(parents)));
    }
    set.build()
}
