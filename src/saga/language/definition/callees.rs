//! What a definition calls, looked up among what is registered: the second half of checking.

use super::form::{Call, Definition, Kind, State, Task};
use super::problem::{Problem, Problems, shown};

/// What is registered, as definitions look it up.
pub trait Callees {
    /// Returns what is missing of a method, and what to do about it.
    fn missing(&self, service: &str, method: &str, problems: &mut Problems) -> Option<(String, String)>;
    /// Returns `true` if there is code for a script.
    fn has_script(&self, machine: &str, state: &str) -> bool;
    /// Returns the names of all machines.
    fn machines(&self) -> Vec<&str>;
    /// Returns `true` if there is a machine with this name.
    fn has_machine(&self, machine: &str) -> bool;
    /// Returns `true` if a fault can have this class.
    fn knows_class(&self, class: &str) -> bool;
}

/// Finds what a definition calls and nothing registers.
pub fn find(file: &str, definition: &Definition, callees: &dyn Callees) -> Vec<Problem> {
    let mut problems = Problems::new(file);
    for state in &definition.states {
        if let Kind::Task(task) = &state.kind {
            find_callee(definition, state, task, callees, &mut problems);
            find_classes(state, task, callees, &mut problems);
        }
    }
    problems.into_found()
}

fn find_callee(definition: &Definition, state: &State, task: &Task, callees: &dyn Callees, problems: &mut Problems) {
    let (key, text, hint) = match &task.call {
        Call::Service { service, method, .. } => {
            let Some((text, hint)) = callees.missing(service, method, problems) else {
                return;
            };
            ("ServiceMethod", text, hint)
        }
        Call::Script { .. } if callees.has_script(&definition.name, &state.name) => return,
        Call::Script { language, .. } => {
            let language = language.as_deref().unwrap_or("groovy");
            let text = format!("ScriptType \"{}\" cannot run here", shown(language));
            let [machine, name] = [&definition.name, &state.name].map(|name| shown(name));
            (
                "ScriptType",
                text,
                format!("register .script(\"{machine}\", \"{name}\", ..)"),
            )
        }
        Call::Machine { machine } if callees.has_machine(machine) => return,
        Call::Machine { machine } => {
            let hint = problems.nearest(machine, callees.machines().into_iter(), "add its file");
            (
                "StateMachineName",
                format!("machine [{}] is not registered", shown(machine)),
                hint,
            )
        }
        Call::CompensateMachine => return,
    };
    problems.error_in(Some(&state.name), &format!("{}/{key}", state.at), text, hint);
}

/// Warns of classes that no fault can have.
fn find_classes(state: &State, task: &Task, callees: &dyn Callees, problems: &mut Problems) {
    let catches = task
        .catches
        .iter()
        .enumerate()
        .map(|(number, entry)| ("Catch", number, &entry.exceptions));
    let retries = task.retry.iter().enumerate();
    let retries = retries.filter_map(|(number, entry)| Some(("Retry", number, entry.exceptions.as_ref()?)));
    for (key, number, classes) in catches.chain(retries) {
        for (place, class) in classes
            .iter()
            .enumerate()
            .filter(|(_, class)| !callees.knows_class(class))
        {
            let at = format!("{}/{key}/{number}/Exceptions/{place}", state.at);
            let text = format!("no fault is registered with class [{}]", shown(class));
            let hint = "register it with .fault(..), or return faults of this class";
            problems.warn_in(Some(&state.name), &at, text, hint);
        }
    }
}
