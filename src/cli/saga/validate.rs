//! `procession saga validate`: everything that is wrong with definition files.

use std::path::PathBuf;

use clap::Args;
use procession::saga::{Definitions, Severity};

use super::super::exit::{Exit, Failure};
use super::super::print;
use super::{services, tell};

#[derive(Args)]
pub(super) struct ValidateArgs {
    /// Definition files, checked together: a sub machine may be in any of them.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Refuse what is only a warning, too.
    #[arg(long)]
    strict: bool,
    /// A services file: each task must call a service that it names. Nothing is called, and no ${NAME} is looked up.
    #[arg(long, value_name = "FILE")]
    services: Option<PathBuf>,
}

pub(super) fn run(args: &ValidateArgs) -> Result<Exit, Failure> {
    let mut definitions = Definitions::new().strict(args.strict);
    if let Some(file) = &args.services {
        definitions = definitions.services(services::names(file)?);
    }
    let files = args.files.iter();
    let definitions = files.fold(definitions, |definitions, file| definitions.file(file));
    match definitions.check() {
        Ok(checked) => {
            checked.warnings().iter().for_each(tell);
            for machine in checked.machines() {
                let version = machine
                    .version()
                    .map(|version| format!(" {version}"))
                    .unwrap_or_default();
                let states = match machine.states() {
                    1 => "1 state".to_owned(),
                    states => format!("{states} states"),
                };
                let line = format!("{}: machine [{}]{version}, {states}", machine.file(), machine.name());
                print::line(&print::plain(&line));
            }
            Ok(Exit::Done)
        }
        Err(errors) => {
            errors.problems().iter().for_each(tell);
            let problems = errors.problems().iter();
            let count = problems.filter(|problem| problem.severity() == Severity::Error).count();
            let count = match count {
                1 => "1 error".to_owned(),
                count => format!("{count} errors"),
            };
            Err(Failure::new(format!(
                "{count}: mend the definitions, then validate them again"
            )))
        }
    }
}
