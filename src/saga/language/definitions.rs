//! Definition files, checked together without the services that they name.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

use crate::definition::problem::{Problem, Severity};
use crate::definition::{self, Call, Definition, Files};
use crate::digest::Digest;
use crate::draw;

/// Files of definitions that are to be checked, in the order in which they are given.
///
/// Each file is read when it is given, at most 1,000 of them and 16 MiB in all. Nothing is refused before
/// [`check`](Self::check).
#[derive(Default)]
pub struct Definitions {
    files: Files,
    services: Option<HashSet<String>>,
    is_strict: bool,
}

impl fmt::Debug for Definitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definitions")
            .field("files", &self.files)
            .field("services", &self.services)
            .field("strict", &self.is_strict)
            .finish()
    }
}

impl Definitions {
    /// Begins without a file.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the text of a definition, at most 512 KiB. Problems name the file as it is named here.
    #[must_use]
    pub fn json(mut self, name: &str, text: impl AsRef<[u8]>) -> Self {
        self.files.add_text(name, text.as_ref());
        self
    }

    /// Adds a file, at most 512 KiB. One that cannot be read is a problem like others.
    #[must_use]
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.files.add_file(path.as_ref());
        self
    }

    /// Names services that there are. Without this no service is looked for; with it, each task that calls another one is
    /// an error. Methods are not looked for: a service behind HTTP may have any.
    #[must_use]
    pub fn services<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        let services = self.services.get_or_insert_default();
        services.extend(names.into_iter().map(Into::into));
        self
    }

    /// Makes each warning an error. By default warnings refuse nothing, because Seata's own files have some.
    #[must_use]
    pub fn strict(mut self, is_strict: bool) -> Self {
        self.is_strict = is_strict;
        self
    }

    /// Returns the machines of all files, with what may be wrong with them.
    ///
    /// A sub machine that is in none of the files is a warning here: another directory may bring it.
    ///
    /// # Errors
    ///
    /// [`DefinitionErrors`] if any file has an error. It has every problem of every file.
    pub fn check(self) -> Result<CheckedDefinitions, DefinitionErrors> {
        let files = self.files.into_parsed();
        let definitions = files.iter().filter_map(|file| file.definition.as_ref());
        let names: HashSet<String> = definitions.map(|definition| definition.name.clone()).collect();
        // A file that is refused may be the one of a sub machine.
        let is_whole = files.iter().all(|file| file.definition.is_some());
        let mut problems = Vec::new();
        let mut machines = Vec::new();
        let mut digests = HashMap::new();
        for file in files {
            problems.extend(file.problems);
            let Some(parsed) = file.definition else { continue };
            let digest = Digest::of(file.text.as_bytes());
            let known = digests.insert((parsed.name.clone(), parsed.version.clone()), digest);
            if known.is_some_and(|known| known != digest) {
                // They are refused where both are registered. Here they may be of two hosts.
                problems.push(definition::given_twice(&file.name, &parsed, Severity::Warning));
            }
            if let Some(services) = &self.services {
                problems.extend(definition::missing_services(&file.name, &parsed, services));
            }
            if is_whole {
                problems.extend(missing_machines(&file.name, &parsed, &names));
            }
            machines.push(MachineOutline {
                file: file.name,
                definition: parsed,
            });
        }
        let warnings = refuse_errors(problems, self.is_strict)?;
        Ok(CheckedDefinitions { machines, warnings })
    }
}

/// Returns the problems of all files if they are warnings alone, and warnings are not to be errors.
///
/// # Errors
///
/// [`DefinitionErrors`] with all of them, if one is an error.
pub fn refuse_errors(mut problems: Vec<Problem>, is_strict: bool) -> Result<Vec<Problem>, DefinitionErrors> {
    if is_strict {
        problems = problems.into_iter().map(Problem::into_error).collect();
    }
    match problems.iter().any(|problem| problem.severity() == Severity::Error) {
        true => Err(DefinitionErrors { problems }),
        false => Ok(problems),
    }
}

/// Warns of sub machines that no file has.
fn missing_machines(file: &str, definition: &Definition, names: &HashSet<String>) -> Vec<Problem> {
    let calls = definition.states.iter().filter_map(|state| match &state.task()?.call {
        Call::Machine { machine } => Some((state, machine)),
        Call::Service { .. } | Call::Script { .. } | Call::CompensateMachine => None,
    });
    let missing = calls.filter(|(_, machine)| !names.contains(*machine));
    definition::missing_machines(file, missing.map(|(state, machine)| (state, machine.as_str())), names)
}

/// Definitions without an error.
#[derive(Debug)]
pub struct CheckedDefinitions {
    machines: Vec<MachineOutline>,
    warnings: Vec<Problem>,
}

impl CheckedDefinitions {
    /// Returns the machines, in the order of their files.
    pub fn machines(&self) -> impl Iterator<Item = &MachineOutline> {
        self.machines.iter()
    }

    /// Returns what may be wrong.
    #[must_use]
    pub fn warnings(&self) -> &[Problem] {
        &self.warnings
    }
}

/// A machine as its file defines it: its name and its picture.
#[derive(Debug)]
pub struct MachineOutline {
    file: String,
    definition: Definition,
}

impl MachineOutline {
    /// Returns the name of its file, as it was given.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns its `Name`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.definition.name
    }

    /// Returns its `Version`.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.definition.version.as_deref()
    }

    /// Returns its `Comment`.
    #[must_use]
    pub fn comment(&self) -> Option<&str> {
        self.definition.comment.as_deref()
    }

    /// Returns the number of its states, compensators included.
    #[must_use]
    pub fn states(&self) -> usize {
        self.definition.states.len()
    }

    /// Draws it as a flowchart of Mermaid: states, links with what they are taken for, a frame for each branch.
    #[must_use]
    pub fn mermaid(&self) -> String {
        draw::mermaid(&self.definition)
    }

    /// Draws the same for Graphviz.
    #[must_use]
    pub fn dot(&self) -> String {
        draw::dot(&self.definition)
    }
}

/// Why definitions are refused: every problem of every file.
///
/// Its text has a line for each error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionErrors {
    problems: Vec<Problem>,
}

impl DefinitionErrors {
    /// Returns all problems in the order of the files, warnings included.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for DefinitionErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut errors = self
            .problems
            .iter()
            .filter(|problem| problem.severity() == Severity::Error);
        if let Some(first) = errors.next() {
            first.fmt(f)?;
        }
        errors.try_for_each(|error| write!(f, "\n{error}"))
    }
}

impl std::error::Error for DefinitionErrors {}
