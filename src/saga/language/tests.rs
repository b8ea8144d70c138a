//! Whole files: which are refused, with what text and where, which are warned of, and how a machine is drawn. Names of tests
//! carry the number of their scenario; those of sagas that run stand in `tests/saga/` of the repository.

mod designed;
mod drawn;
mod files;
mod graphs;
mod refused;
mod size;
mod warned;

use std::path::{Path, PathBuf};

use super::{CheckedDefinitions, DefinitionErrors, Definitions, Severity};

type Tested = Result<(), Box<dyn std::error::Error>>;

/// Returns the folder of Seata's own files.
fn seata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cli/saga/demo/data/seata")
}

/// Checks one text alone.
fn check(text: &str) -> Result<CheckedDefinitions, DefinitionErrors> {
    Definitions::new().json("m.json", text).check()
}

/// Returns the texts of the errors of a definition, without places and hints.
fn errors(text: &str) -> Vec<String> {
    match check(text) {
        Ok(_) => Vec::new(),
        Err(errors) => {
            let problems = errors.problems().iter();
            let errors = problems.filter(|problem| problem.severity() == Severity::Error);
            errors.map(|problem| problem.text().to_owned()).collect()
        }
    }
}

/// Returns the whole lines of the errors of a definition.
fn lines(text: &str) -> Vec<String> {
    let errors = check(text).err();
    errors
        .map(|errors| errors.to_string().lines().map(str::to_owned).collect())
        .unwrap_or_default()
}

/// Returns the lines of the warnings of a definition that has no error.
fn warnings(text: &str) -> Vec<String> {
    let checked = check(text).ok();
    let lines = |checked: CheckedDefinitions| checked.warnings().iter().map(ToString::to_string).collect();
    checked.map(lines).unwrap_or_default()
}

/// Returns a machine of these states, each a name and its attributes; the first one is the start.
fn machine(states: &[(&str, &str)]) -> String {
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
fn task(next: &str) -> String {
    let next = match next {
        "" => String::new(),
        next => format!(r#", "Next": "{next}""#),
    };
    format!(r#""Type": "ServiceTask", "ServiceName": "svc", "ServiceMethod": "m"{next}"#)
}
