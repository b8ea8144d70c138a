//! Sagas: definitions in the state language of Seata. Names of tests carry the number of their scenario.

mod bounds;
mod calls;
mod cases;
mod checked;
mod counted;
mod decisions;
mod designed;
mod drawn;
mod files;
mod graphs;
mod http;
mod kit;
mod lists;
mod orders;
mod pinned;
mod random;
mod refused;
mod runner;
mod server;
mod size;
mod warned;

use procession::saga::{CheckedDefinitions, DefinitionErrors, Definitions};

/// The folder of the repository.
pub(crate) const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

pub(crate) type Tested = Result<(), Box<dyn std::error::Error>>;

/// Checks one text alone.
pub(crate) fn check(text: &str) -> Result<CheckedDefinitions, DefinitionErrors> {
    Definitions::new().json("m.json", text).check()
}

/// Returns the texts of the errors of a definition, without places and hints.
pub(crate) fn errors(text: &str) -> Vec<String> {
    match check(text) {
        Ok(_) => Vec::new(),
        Err(errors) => {
            let problems = errors.problems().iter();
            let errors = problems.filter(|problem| problem.severity() == procession::saga::Severity::Error);
            errors.map(|problem| problem.text().to_owned()).collect()
        }
    }
}

/// Returns the whole lines of the errors of a definition.
pub(crate) fn lines(text: &str) -> Vec<String> {
    let errors = check(text).err();
    errors
        .map(|errors| errors.to_string().lines().map(str::to_owned).collect())
        .unwrap_or_default()
}

/// Returns the lines of the warnings of a definition that has no error.
pub(crate) fn warnings(text: &str) -> Vec<String> {
    let checked = check(text).ok();
    let lines = |checked: CheckedDefinitions| checked.warnings().iter().map(ToString::to_string).collect();
    checked.map(lines).unwrap_or_default()
}

/// Returns a machine of these states, each a name and its attributes; the first one is the start.
pub(crate) fn machine(states: &[(&str, &str)]) -> String {
    let start = states.first().map_or("", |(name, _)| name);
    let states: Vec<String> = states
        .iter()
        .map(|(name, state)| format!("\"{name}\": {{{state}}}"))
        .collect();
    format!(
        r#"{{"Name": "m", "StartState": "{start}", "States": {{{}}}}}"#,
        states.join(",\n")
    )
}

/// Returns the attributes of a task that leads on as this says; nothing to let it end.
pub(crate) fn task(next: &str) -> String {
    let next = match next {
        "" => String::new(),
        next => format!(r#", "Next": "{next}""#),
    };
    format!(r#""Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "m"{next}"#)
}
