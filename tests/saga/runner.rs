//! Cases, as `procession saga demo` runs them, here with crashes: a case is run on the test's clock, and then crashed at every
//! commit.

mod crashes;

use std::fs;
use std::path::{Path, PathBuf};

use procession::saga::Sagas;
use procession::testkit::Trouble;
use procession_cli::saga::cases;

pub(crate) use crashes::Enumerated;
pub(crate) use procession_cli::saga::cases::{Case, Double};

/// Where the definitions of Seata are, and those that the tests have written.
const DIRECTORIES: [&str; 2] = ["src/cli/saga/demo/data/seata", "tests/saga/machines"];
/// Where the cases are: those about definitions of Seata's alone, which the program brings, and the others.
const CASES: [&str; 2] = ["src/cli/saga/demo/cases", "tests/saga/cases"];

/// Returns the files of all cases, by name.
pub(crate) fn files() -> Result<Vec<PathBuf>, Trouble> {
    let mut files = Vec::new();
    for directory in CASES {
        for entry in fs::read_dir(Path::new(crate::ROOT).join(directory))? {
            files.push(entry?.path());
        }
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort_unstable_by(|one, other| one.file_name().cmp(&other.file_name()));
    Ok(files)
}

/// Reads a case.
pub(crate) fn read(file: &Path) -> Result<Case, Trouble> {
    Case::parse(&fs::read(file)?)
}

/// Runs the cases whose files begin so. All that fail are told.
pub(crate) fn run_all(beginning: &str, run: impl Fn(&Case) -> Result<(), Trouble>) -> Result<(), Trouble> {
    let begins = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with(beginning)
    };
    let files: Vec<PathBuf> = files()?.into_iter().filter(begins).collect();
    if files.is_empty() {
        return Err(format!("no case begins with {beginning}").into());
    }
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let ran = read(&file).and_then(|case| run(&case).map_err(|why| format!("{}: {why}", case.name).into()));
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
        Some(refused) => cases::refuse(case, refused, &text_of),
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
        Some(refused) => cases::refuse(case, refused, &text_of),
        None => crashes::plain(case),
    }
}

/// Registers the files of a case, with the double for all that they call.
pub(crate) fn sagas(case: &Case, double: &Double) -> Result<Sagas, Trouble> {
    cases::sagas(case, double, &text_of)
}

/// Reads a definition by the name of its file.
pub(crate) fn text_of(name: &str) -> Result<Vec<u8>, Trouble> {
    let root = Path::new(crate::ROOT);
    let mut paths = DIRECTORIES.iter().map(|directory| root.join(directory).join(name));
    let path = paths.find(|path| path.is_file());
    let path = path.ok_or_else(|| format!("there is no definition {name}"))?;
    Ok(fs::read(path)?)
}
