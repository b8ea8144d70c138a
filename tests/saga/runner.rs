//! The runner of cases: a case is one JSON document, of the files of a machine, what is done to its saga, what the services
//! answer meanwhile, and what is expected. It is run on the test's clock, and then crashed at every commit.

mod calls;
mod case;
mod crashes;
mod double;
mod expect;
mod found;
mod life;

use std::fs;
use std::path::{Path, PathBuf};

use procession::saga::{DefinitionErrors, Sagas, Severity};
use procession::testkit::Trouble;

pub(crate) use case::Case;
pub(crate) use crashes::Enumerated;
pub(crate) use double::Double;

/// Where the definitions of Seata are, and those that the tests have written.
const DIRECTORIES: [&str; 2] = ["src/cli/saga/demo/data/seata", "tests/saga/machines"];

/// Returns the files of all cases, by name.
pub(crate) fn files() -> Result<Vec<PathBuf>, Trouble> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/saga/cases");
    let entries = fs::read_dir(directory)?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>, std::io::Error>>()?;
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort_unstable();
    Ok(files)
}

/// Runs the cases whose files begin so. All that fail are told.
pub(crate) fn run_all(beginning: &str, run: impl Fn(&Case) -> Result<(), Trouble>) -> Result<(), Trouble> {
    let begins = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with(beginning)
    };
    let files: Vec<PathBuf> = files()?.into_iter().filter(begins).collect();
    if files.is_empty() {
        return Err(format!("no case of tests/saga/cases begins with {beginning}").into());
    }
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let ran = Case::read(&file).and_then(|case| run(&case).map_err(|why| format!("{}: {why}", case.name).into()));
        wrong.extend(ran.err().map(|why| format!("{name}: {why}")));
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(wrong.join("\n").into()),
    }
}

/// Runs one case plainly, then crashed.
pub(crate) fn run(case: &Case) -> Result<(), Trouble> {
    match &case.refused {
        Some(refused) => refuse(case, refused),
        None => crashes::enumerate(case),
    }
}

/// Runs one case plainly, and crashed once at each commit.
pub(crate) fn run_crashed_once(case: &Case) -> Result<Enumerated, Trouble> {
    crashes::enumerate_once(case)
}

/// Runs one case plainly, which takes a fraction of the time.
pub(crate) fn run_plainly(case: &Case) -> Result<(), Trouble> {
    match &case.refused {
        Some(refused) => refuse(case, refused),
        None => crashes::plain(case),
    }
}

/// A case of files that are refused: these are all their errors.
fn refuse(case: &Case, refused: &[String]) -> Result<(), Trouble> {
    let found = match sagas(case, &Double::default()) {
        Ok(_) => return Err("its files are accepted".into()),
        Err(errors) => errors_of(errors)?,
    };
    match found == refused {
        true => Ok(()),
        false => Err(format!("its files are refused with other texts: {found:#?}").into()),
    }
}

fn errors_of(errors: Trouble) -> Result<Vec<String>, Trouble> {
    let errors = errors.downcast::<DefinitionErrors>()?;
    let problems = errors.problems().iter();
    let errors = problems.filter(|problem| problem.severity() == Severity::Error);
    Ok(errors.map(|problem| problem.text().to_owned()).collect())
}

/// Registers the files of a case, with the double for all that they call.
pub(crate) fn sagas(case: &Case, double: &Double) -> Result<Sagas, Trouble> {
    let mut builder = Sagas::builder();
    let mut texts = Vec::new();
    for name in &case.files {
        let text = text_of(name)?;
        builder = builder.json(name, &text);
        texts.push(text);
    }
    for (machine, settings) in &case.settings {
        builder = builder.set(machine, settings.of_machine());
    }
    Ok(double.register(builder, &texts).build()?)
}

/// Reads a definition by the name of its file.
pub(crate) fn text_of(name: &str) -> Result<Vec<u8>, Trouble> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = DIRECTORIES.iter().map(|directory| root.join(directory).join(name));
    let path = paths.find(|path| path.is_file());
    let path = path.ok_or_else(|| format!("there is no definition {name}"))?;
    Ok(fs::read(path)?)
}
