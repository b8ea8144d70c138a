//! Definitions: a file of Seata's state language is read, checked, and becomes the parsed form that machines run by.
//! It knows no service: whoever has the services says through [`Callees`] which there are.

mod advice;
mod attributes;
mod callees;
mod compensators;
mod designer;
mod files;
mod form;
mod json;
mod links;
mod loops;
mod machine;
mod nearest;
mod path;
pub(crate) mod problem;
mod regions;
mod state;
mod template;
mod texts;

use std::collections::HashSet;

pub use callees::{Callees, find as find_callees};
pub use files::{Files, Parsed};
pub use form::{
    Call, Catch, Choice, Definition, Fork, Kind, Link, RecoverStrategy, Rectangle, Repeat, Retry, State, StateIndex,
    Status, Task, Updates,
};
pub use problem::{Problems, shown};
pub use regions::{Branch, RegionIndex, Regions};
pub use template::Template;

use form::Places;
use problem::{Problem, Severity};

fn checked(bytes: &[u8], problems: &mut Problems) -> Option<Definition> {
    let json = json::read(bytes, problems)?;
    let mut draft = machine::read(&json, problems)?;
    links::resolve(&mut draft, problems);
    compensators::find_unfit(&draft.states, problems);
    loops::find_endless(&draft.states, problems);
    let regions = regions::find(&draft, problems);
    advice::find(&draft, problems);
    // What leads where is known only once every link is right.
    if problems.errors() == 0 {
        loops::find_unreached(&draft, problems);
        find_calls_of_nothing(&draft, problems);
    }
    Some(Definition {
        start: draft.start.as_ref()?.to?,
        name: draft.name,
        version: draft.version,
        comment: draft.comment,
        recover: draft.recover,
        updates: draft.updates,
        places: Places::of(&draft.states),
        states: draft.states,
        regions,
    })
}

#[cfg(test)]
mod tests;

/// Reports tasks that do not name what they call.
fn find_calls_of_nothing(draft: &machine::Draft, problems: &mut Problems) {
    for state in &draft.states {
        let empty: &[&str] = match state.task().map(|task| &task.call) {
            Some(Call::Service { service, method, .. }) => match (service.is_empty(), method.is_empty()) {
                (true, true) => &["ServiceName", "ServiceMethod"],
                (true, false) => &["ServiceName"],
                (false, true) => &["ServiceMethod"],
                (false, false) => &[],
            },
            Some(Call::Machine { machine }) if machine.is_empty() => &["StateMachineName"],
            Some(Call::Machine { .. } | Call::Script { .. } | Call::CompensateMachine) | None => &[],
        };
        for key in empty {
            let at = format!("{}/{key}", state.at);
            let hint = format!("say what [{}] calls", shown(&state.name));
            problems.error_in(Some(&state.name), &at, format!("{key} is empty"), hint);
        }
    }
}

/// Reports tasks that call services which are not there.
pub(crate) fn missing_services(file: &str, definition: &Definition, names: &HashSet<String>) -> Vec<Problem> {
    let mut problems = Problems::new(file);
    for state in &definition.states {
        let Some(Call::Service { service, .. }) = state.task().map(|task| &task.call) else {
            continue;
        };
        if !names.contains(service) {
            let mut known: Vec<&str> = names.iter().map(String::as_str).collect();
            // Of two that are equally near, the same one each time.
            known.sort_unstable();
            let hint = problems.nearest(service, known.into_iter(), "add it to the services");
            let text = format!("service [{}] is not registered", shown(service));
            problems.error_in(Some(&state.name), &format!("{}/ServiceName", state.at), text, hint);
        }
    }
    problems.into_found()
}

/// Warns of sub machines, each with the state that runs it, that are in none of the files that are checked together.
pub(crate) fn missing_machines<'a>(
    file: &str,
    missing: impl Iterator<Item = (&'a State, &'a str)>,
    names: &HashSet<String>,
) -> Vec<Problem> {
    let mut problems = Problems::new(file);
    for (state, machine) in missing {
        let hint = problems.nearest(machine, names.iter().map(String::as_str), "add its file");
        let text = format!("machine [{}] is in none of these files", shown(machine));
        problems.warn_in(Some(&state.name), &format!("{}/StateMachineName", state.at), text, hint);
    }
    problems.into_found()
}

/// Returns the problem of a file whose machine stands in another file too, in the same version and with another text.
#[must_use]
pub fn given_twice(file: &str, definition: &Definition, severity: Severity) -> Problem {
    let mut problems = Problems::new(file);
    let name = shown(&definition.name);
    let text = match &definition.version {
        Some(version) => format!("two files have machine [{name}] of version {}", shown(version)),
        None => format!("two files have machine [{name}], and neither has a Version"),
    };
    let hint = "give each a Version of its own, or remove one";
    match severity {
        Severity::Error => problems.error("/Version", text, hint),
        Severity::Warning => problems.warn("/Version", text, hint),
    }
    problems.into_found().swap_remove(0)
}
