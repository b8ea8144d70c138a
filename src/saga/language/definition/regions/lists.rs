//! The lists of branches: each must be there, once, and none is the Fork itself.

use std::collections::HashSet;

use super::super::form::{Fork, Kind, State, StateIndex};
use super::super::problem::{Problems, shown};
use super::super::state::BRANCHES;
use super::Branches;

/// Checks the list of each Fork, and returns the branches that are right.
pub(super) fn check(states: &[State], problems: &mut Problems) -> Branches {
    let mut branches: Branches = states.iter().map(|_| Vec::new()).collect();
    for ((index, state), of) in states.iter().enumerate().zip(&mut branches) {
        if let Kind::Fork(fork) = &state.kind {
            *of = check_fork(StateIndex(index), state, fork, states, problems);
        }
    }
    branches
}

fn check_fork(
    index: StateIndex,
    state: &State,
    fork: &Fork,
    states: &[State],
    problems: &mut Problems,
) -> Vec<(usize, StateIndex)> {
    let name = shown(&state.name);
    let place = format!("{}/Branches", state.at);
    if fork.branches.is_empty() {
        let hint = "name the first state of each branch";
        problems.error(&place, format!("Fork [{name}]: Branches is empty"), hint);
    }
    if fork.branches.len() > BRANCHES {
        let text = format!(
            "Fork [{name}]: Branches has {} branches, at most {BRANCHES}",
            fork.branches.len()
        );
        problems.error(&place, text, "use a Loop, or Forks in Forks");
        return Vec::new();
    }
    let mut seen = HashSet::with_capacity(fork.branches.len());
    let mut branches = Vec::with_capacity(fork.branches.len());
    for (number, link) in fork.branches.iter().enumerate() {
        let branch = shown(&link.name);
        if !seen.insert(link.name.as_str()) {
            problems.error(
                &link.at,
                format!("Fork [{name}]: branch [{branch}] is listed twice"),
                "remove one",
            );
            continue;
        }
        match link.to {
            None => {
                let names = states.iter().map(|state| state.name.as_str());
                let hint = problems.nearest(&link.name, names, "add it to States");
                problems.error(
                    &link.at,
                    format!("Fork [{name}]: branch [{branch}] does not exist"),
                    hint,
                );
            }
            Some(to) if to == index => {
                let text = format!("Fork [{name}] is contained in its own branch [{branch}]");
                problems.error(&link.at, text, "remove it from its Branches");
            }
            Some(to) => branches.push((number, to)),
        }
    }
    branches
}
