//! What a `CompensateState` may name: a task that is called to undo, and of a sub machine also that it is undone as a whole.

use super::form::{Call, Kind, State};
use super::problem::{Problems, shown};

/// Reports states whose `CompensateState` could never undo them.
pub(super) fn find_unfit(states: &[State], problems: &mut Problems) {
    for state in states {
        let Some(task) = state.task() else { continue };
        let Some(link) = &task.compensate else { continue };
        let Some(compensator) = link.to.and_then(|to| states.get(to.0)) else {
            continue;
        };
        let is_machine = matches!(task.call, Call::Machine { .. });
        if undoes(compensator, is_machine) {
            continue;
        }
        let [to, from] = [&link.name, &state.name].map(|name| shown(name));
        let text = format!("CompensateState [{to}] of [{from}] is a {}", compensator.word());
        let hint = match is_machine {
            true => "name a ServiceTask, a ScriptTask or a CompensateSubMachine",
            false => "name a ServiceTask or a ScriptTask",
        };
        problems.error_if_new(&link.at, text, hint);
    }
}

fn undoes(compensator: &State, is_machine: bool) -> bool {
    match &compensator.kind {
        Kind::Task(task) => match task.call {
            Call::Service { .. } | Call::Script { .. } => true,
            Call::CompensateMachine => is_machine,
            Call::Machine { .. } => false,
        },
        Kind::Choice { .. } | Kind::Trigger | Kind::Fork(_) | Kind::Join | Kind::Succeed | Kind::Fail { .. } => false,
        // Its type is an error of its own.
        Kind::Unsupported => true,
    }
}
