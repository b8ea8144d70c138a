//! From files and services to what can run: every problem of every file at once.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use procession_saga_language::definition::{self, Callees, Files, Parsed, Problems};
use procession_saga_language::{DefinitionErrors, Problem, Severity, Source, refuse_errors};

use super::sagas::SagasBuilder;
use super::service::Services;
use super::shared::{MachineSettings, Named, Registered};

/// Files of a directory that are looked at. As many cannot be registered, and that is told.
const FILES_MAX: usize = 10_000;

/// Reads and checks everything that a builder was given.
pub(super) fn build(builder: SagasBuilder) -> Result<Registered, DefinitionErrors> {
    let SagasBuilder {
        services,
        settings,
        files,
        is_strict,
    } = builder;
    let mut problems = in_code(services.mistakes().into_iter());
    let files = files.into_parsed();
    let is_whole = files.iter().all(|file| file.definition.is_some());
    let mut machines = Machines::default();
    for file in files {
        machines.add(file, &mut problems);
    }
    // A file that is refused may be the one that has a machine.
    if is_whole {
        machines.find_callees(&services, &mut problems);
        problems.extend(unused(&settings, &machines));
    }
    refuse_errors(problems, is_strict)?;
    Ok(Registered {
        services,
        settings,
        machines: machines.by_name,
    })
}

/// Adds the definitions of a directory.
pub(super) fn add_directory(files: &mut Files, directory: &Path) {
    match listed(directory) {
        Ok(paths) => paths.iter().for_each(|path| files.add_file(path)),
        Err(why) => files.add_refused(&directory.display().to_string(), &why, "check its path and its rights"),
    }
}

/// Returns the definition files of a directory, by name.
fn listed(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let read = || -> io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(directory)?;
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        let is_definition = |path: &PathBuf| path.extension().is_some_and(|end| end == "json") && path.is_file();
        paths
            .filter(|path| path.as_ref().map_or(true, is_definition))
            .take(FILES_MAX)
            .collect()
    };
    let mut paths = read().map_err(|error| format!("the directory cannot be read: {error}"))?;
    paths.sort_unstable();
    Ok(paths)
}

/// The machines of all files.
#[derive(Default)]
struct Machines {
    by_name: BTreeMap<Named, Arc<Source>>,
    /// With the names of their files.
    all: Vec<(String, Arc<Source>)>,
}

impl Machines {
    /// Adds the machine of a file. Of several with one name the last one is started, unless a version is asked for.
    fn add(&mut self, file: Parsed, problems: &mut Vec<Problem>) {
        problems.extend(file.problems);
        let Some(definition) = file.definition else { return };
        let source = Arc::new(Source::new(definition, file.text));
        let (name, version) = (source.definition.name.clone(), source.definition.version.clone());
        let known = self.by_name.get(&(name.clone(), version.clone()));
        if known.is_some_and(|known| known.definition.version == version && known.digest != source.digest) {
            problems.push(definition::given_twice(&file.name, &source.definition, Severity::Error));
        }
        self.by_name.insert((name.clone(), None), Arc::clone(&source));
        if version.is_some() {
            self.by_name.insert((name, version), Arc::clone(&source));
        }
        self.all.push((file.name, source));
    }

    fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(&(name.to_owned(), None))
    }

    fn find_callees(&self, services: &Services, problems: &mut Vec<Problem>) {
        let callees = Registry {
            services,
            machines: self,
        };
        for (file, source) in &self.all {
            problems.extend(definition::find_callees(file, &source.definition, &callees));
        }
    }
}

/// What a builder has, as definitions look it up.
struct Registry<'a> {
    services: &'a Services,
    machines: &'a Machines,
}

impl Callees for Registry<'_> {
    fn missing(&self, service: &str, method: &str, problems: &mut Problems) -> Option<(String, String)> {
        let missing = self.services.find(service, method).err()?;
        let hint = missing.hint(|word, names, otherwise| problems.nearest(word, names, otherwise));
        Some((missing.to_string(), hint))
    }

    fn has_script(&self, machine: &str, state: &str) -> bool {
        self.services.has_script(machine, state)
    }

    fn machines(&self) -> Vec<&str> {
        self.machines.by_name.keys().map(|(name, _)| name.as_str()).collect()
    }

    fn has_machine(&self, machine: &str) -> bool {
        self.machines.has(machine)
    }

    fn knows_class(&self, class: &str) -> bool {
        self.services.knows_class(class)
    }
}

/// Warns of settings for machines that are not there.
fn unused(settings: &BTreeMap<String, MachineSettings>, machines: &Machines) -> Vec<Problem> {
    let unused = settings.keys().filter(|name| !machines.has(name));
    in_code(unused.map(|name| format!("machine [{name}] has settings and no definition; add its file")))
}

/// What the host's own code says wrongly: each a sentence and a hint.
fn in_code(texts: impl Iterator<Item = String>) -> Vec<Problem> {
    let mut problems = Problems::new("Sagas::builder()");
    for text in texts {
        let (text, hint) = text
            .split_once("; ")
            .unwrap_or((&text, "mend the code that registers it"));
        problems.error("", text, hint);
    }
    problems.into_found()
}
