//! Warnings: what runs, and does something that its author may not mean. Seata's own files have such things, so they
//! refuse nothing unless a caller is strict.

use std::collections::HashSet;

use super::form::{Call, State, StateIndex, Task};
use super::machine::Draft;
use super::problem::{Problems, shown};

pub(super) fn find(draft: &Draft, problems: &mut Problems) {
    let compensators: HashSet<StateIndex> = draft
        .states
        .iter()
        .filter_map(|state| state.task()?.compensate.as_ref()?.to)
        .collect();
    for (index, state) in draft.states.iter().enumerate() {
        let Some(task) = state.task() else { continue };
        let is_compensator = task.is_for_compensation || compensators.contains(&StateIndex(index));
        find_compensators(state, task, is_compensator, draft, problems);
        if is_compensator && !task.retry.is_empty() {
            let text = "Retry of a compensator has no effect";
            let hint = "compensation_tries of the machine says how often it is tried";
            problems.warn_in(Some(&state.name), &format!("{}/Retry", state.at), text, hint);
        }
    }
}

fn find_compensators(state: &State, task: &Task, is_compensator: bool, draft: &Draft, problems: &mut Problems) {
    match &task.compensate {
        Some(link) if link.to.is_none() => {
            let names = draft.states.iter().map(|state| state.name.as_str());
            let hint = problems.nearest(
                &link.name,
                names,
                "add it to States; without it compensation will rest there",
            );
            let [to, from] = [&link.name, &state.name].map(|name| shown(name));
            problems.warn(
                &link.at,
                format!("CompensateState [{to}] of [{from}] does not exist"),
                hint,
            );
        }
        None if task.is_for_update && !is_compensator && !matches!(task.call, Call::Machine { .. }) => {
            let text = "IsForUpdate without a CompensateState: compensation will rest there";
            let hint = "name a CompensateState, or undo it by hand and skip it";
            problems.warn_in(Some(&state.name), &format!("{}/IsForUpdate", state.at), text, hint);
        }
        Some(_) | None => {}
    }
}
