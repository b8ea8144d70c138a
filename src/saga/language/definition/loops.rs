//! Circles of states that never end, and states that nothing leads to. Linear, without recursion.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use super::form::{State, StateIndex};
use super::machine::Draft;
use super::problem::{Problems, listed, shown};

/// Reports circles that no link leads out of.
pub(super) fn find_endless(states: &[State], problems: &mut Problems) {
    let mut graph = DiGraph::<(), ()>::with_capacity(states.len(), states.len());
    for _ in states {
        graph.add_node(());
    }
    for (from, state) in states.iter().enumerate() {
        for to in state.flow().filter_map(|link| link.to) {
            graph.add_edge(NodeIndex::new(from), NodeIndex::new(to.0), ());
        }
    }
    let components = kosaraju_scc(&graph);
    let mut component_of = vec![0; states.len()];
    for (number, component) in components.iter().enumerate() {
        for node in component {
            if let Some(of) = component_of.get_mut(node.index()) {
                *of = number;
            }
        }
    }
    let is_in = |state: StateIndex, number: usize| component_of.get(state.0) == Some(&number);
    let mut endless = Vec::new();
    for (number, component) in components.iter().enumerate() {
        let mut members: Vec<usize> = component.iter().map(|node| node.index()).collect();
        members.sort_unstable();
        let leads_out = |state: &State| {
            // A link to a state that does not exist is told of; it may be the way out.
            state.is_end() || state.flow().any(|link| link.to.is_none_or(|to| !is_in(to, number)))
        };
        let has_links = |state: &State| state.flow().next().is_some();
        let all = || members.iter().filter_map(|index| states.get(*index));
        if all().all(has_links) && !all().any(leads_out) {
            endless.push(members);
        }
    }
    // The order of the file, whatever the order of the search.
    endless.sort_unstable();
    for members in endless {
        let Some(first) = members.first().and_then(|index| states.get(*index)) else {
            continue;
        };
        let names = listed(
            members
                .iter()
                .filter_map(|index| states.get(*index))
                .map(|state| state.name.as_str()),
        );
        let text = format!("There is an infinite loop {names} without outgoing flow to end");
        problems.error(&first.at, text, "let one of them lead to an end");
    }
}

/// Warns of states that no path from the first one leads to, as a step or as a compensator.
pub(super) fn find_unreached(draft: &Draft, problems: &mut Problems) {
    let Some(start) = draft.start.as_ref().and_then(|link| link.to) else {
        return;
    };
    let mut is_reached = vec![false; draft.states.len()];
    let mut todo = vec![start];
    while let Some(index) = todo.pop() {
        let Some(reached) = is_reached.get_mut(index.0).filter(|reached| !**reached) else {
            continue;
        };
        *reached = true;
        let Some(state) = draft.states.get(index.0) else {
            continue;
        };
        let compensator = state.task().and_then(|task| task.compensate.as_ref());
        todo.extend(state.flow().chain(compensator).filter_map(|link| link.to));
    }
    for (state, _) in draft
        .states
        .iter()
        .zip(is_reached)
        .filter(|(_, is_reached)| !is_reached)
    {
        let text = format!("nothing leads to [{}]", shown(&state.name));
        problems.warn(&state.at, text, "let a state lead to it, or remove it");
    }
}
