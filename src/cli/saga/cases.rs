//! The runner of cases: a case is one JSON document, of the files of a machine, what is done to its saga, what the services
//! answer meanwhile, and what is expected. It runs on an engine whose time it moves.

mod calls;
mod case;
mod double;
mod expect;
mod found;
mod ground;
mod life;
mod notes;

use procession::saga::{DefinitionErrors, Sagas, Severity};
use procession::testkit::Trouble;

pub use calls::{Called, compare as compare_calls};
pub use case::{Case, Step, What};
pub use double::Double;
pub use found::Found;
pub use ground::Ground;
pub use life::{Compared, Life, Lived};
pub use notes::{Noted, Notes};

/// Reads a definition by the name of its file.
pub type Reader = dyn Fn(&str) -> Result<Vec<u8>, Trouble>;

/// Registers the files of a case, with the double for all that they call.
///
/// # Errors
///
/// What is wrong with the files.
pub fn sagas(case: &Case, double: &Double, read: &Reader) -> Result<Sagas, Trouble> {
    let mut builder = Sagas::builder();
    let mut texts = Vec::new();
    for name in &case.files {
        let text = read(name)?;
        builder = builder.json(name, &text);
        texts.push(text);
    }
    for (machine, settings) in &case.settings {
        builder = builder.set(machine, settings.of_machine());
    }
    Ok(double.register(builder, &texts).build()?)
}

/// Checks a case of files that are refused: these are all their errors.
///
/// # Errors
///
/// The errors that were found, if they are others.
pub fn refuse(case: &Case, refused: &[String], read: &Reader) -> Result<(), Trouble> {
    let found = match sagas(case, &Double::default(), read) {
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
