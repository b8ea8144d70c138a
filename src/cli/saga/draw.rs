//! `procession saga draw`: a machine as text that other programs make a picture of.

use std::path::PathBuf;

use clap::Args;
use procession::saga::{Definitions, Severity};

use super::super::exit::{Exit, Failure};
use super::super::print;

#[derive(Args)]
pub(super) struct DrawArgs {
    /// The definition file.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Draw it for Graphviz: `procession saga draw order.json --dot | dot -Tsvg`.
    #[arg(long)]
    dot: bool,
}

pub(super) fn run(args: &DrawArgs) -> Result<Exit, Failure> {
    let checked = Definitions::new().file(&args.file).check().map_err(|errors| {
        let problems = errors.problems().iter();
        problems
            .filter(|problem| problem.severity() == Severity::Error)
            .for_each(|problem| print::notice(&problem.to_string()));
        Failure::new("the definition has errors, so there is nothing to draw")
    })?;
    for machine in checked.machines() {
        let picture = match args.dot {
            true => machine.dot(),
            false => machine.mermaid(),
        };
        picture.lines().for_each(print::line);
    }
    Ok(Exit::Done)
}
