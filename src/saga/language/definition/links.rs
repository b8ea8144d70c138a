//! Looks up the names of states, and the rules that a link alone can break.

use std::collections::HashMap;

use super::form::{Call, Kind, State, StateIndex};
use super::machine::Draft;
use super::problem::{Problems, shown};

/// Most states of a machine.
const STATES_MAX: usize = 2_000;

/// Resolves all links, and reports those that lead nowhere or where they must not.
pub(super) fn resolve(draft: &mut Draft, problems: &mut Problems) {
    if draft.states.len() > STATES_MAX {
        let text = format!("the machine has {} states, at most {STATES_MAX}", draft.states.len());
        problems.error("/States", text, "move states into sub machines");
    }
    let names: Vec<String> = draft.states.iter().map(|state| state.name.clone()).collect();
    let mut places = HashMap::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        places.entry(name.as_str()).or_insert(StateIndex(index));
    }
    let candidates = || names.iter().map(String::as_str);
    if let Some(start) = &mut draft.start {
        start.to = places.get(start.name.as_str()).copied();
        if start.to.is_none() {
            let hint = problems.nearest(&start.name, candidates(), "add it to States");
            let text = format!("State [{}] is not defined in state machine", shown(&start.name));
            problems.error_if_new(&start.at, text, hint);
        }
    }
    for state in &mut draft.states {
        state.visit_links(|link| link.to = places.get(link.name.as_str()).copied());
        // Branches have a text of their own.
        let is_fork = matches!(state.kind, Kind::Fork(_));
        for link in state.flow().filter(|link| link.to.is_none() && !is_fork) {
            let hint = problems.nearest(&link.name, candidates(), "add it to States");
            let [to, from] = [&link.name, &state.name].map(|name| shown(name));
            problems.error(
                &link.at,
                format!("Subsequent state [{to}] of [{from}] does not exist"),
                hint,
            );
        }
    }
    find_triggers_that_lead_on(&draft.states, problems);
    find_ways_to_what_undoes_a_machine(draft, problems);
    find_machines_that_call_themselves(draft, problems);
}

fn find_triggers_that_lead_on(states: &[State], problems: &mut Problems) {
    for state in states.iter().filter(|state| matches!(state.kind, Kind::Trigger)) {
        let Some(link) = &state.next else { continue };
        let is_wrong = match link.to.and_then(|to| states.get(to.0)).map(|state| &state.kind) {
            Some(Kind::Succeed | Kind::Fail { .. } | Kind::Unsupported) | None => false,
            Some(Kind::Task(_) | Kind::Choice { .. } | Kind::Trigger | Kind::Fork(_) | Kind::Join) => true,
        };
        if is_wrong {
            let [from, to] = [&state.name, &link.name].map(|name| shown(name));
            let hint = "the machine ends there: let it lead to a Fail, a Succeed or nothing";
            problems.error(&link.at, format!("CompensationTrigger [{from}] leads to [{to}]"), hint);
        }
    }
}

/// A CompensateSubMachine has no machine of its own that it could run. Earlier releases took such a file, and ran the machine
/// that the state belongs to.
fn find_ways_to_what_undoes_a_machine(draft: &Draft, problems: &mut Problems) {
    let undoes = |to: Option<StateIndex>| {
        let task = to.and_then(|to| draft.states.get(to.0)).and_then(State::task);
        task.is_some_and(|task| matches!(task.call, Call::CompensateMachine))
    };
    let hint = "it only undoes: name it as the CompensateState of a SubStateMachine, and lead elsewhere";
    if let Some(start) = draft.start.as_ref().filter(|start| undoes(start.to)) {
        let text = format!("StartState [{}] is a CompensateSubMachine", shown(&start.name));
        problems.error_if_new(&start.at, text, hint);
    }
    for state in &draft.states {
        for link in state.flow().filter(|link| undoes(link.to)) {
            let [from, to] = [&state.name, &link.name].map(|name| shown(name));
            problems.error_if_new(&link.at, format!("[{from}] leads to CompensateSubMachine [{to}]"), hint);
        }
    }
}

fn find_machines_that_call_themselves(draft: &Draft, problems: &mut Problems) {
    for state in &draft.states {
        let Some(Call::Machine { machine }) = state.task().map(|task| &task.call) else {
            continue;
        };
        if *machine == draft.name && !machine.is_empty() {
            let text = format!("SubStateMachine state [{}] call itself", shown(&state.name));
            problems.error(&format!("{}/StateMachineName", state.at), text, "name another machine");
        }
    }
}
