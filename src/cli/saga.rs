//! `procession saga`: definitions of sagas, checked, drawn and run.

pub mod cases;
mod demo;
mod draw;
mod follow;
mod run;
mod services;
mod validate;

use clap::{Args, Subcommand};
use procession::saga::{Problem, Severity};

use super::exit::{Exit, Failure};
use super::print;

#[derive(Args)]
pub(super) struct SagaArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List everything that is wrong with definition files. Exit code 1 if a file is refused.
    Validate(validate::ValidateArgs),
    /// Draw the machine of a definition file as Mermaid text, or for Graphviz.
    Draw(draw::DrawArgs),
    /// Run a saga, with services over HTTP or as commands. Exit code 0 if every step took effect, 1 if it failed or
    /// was rolled back, 3 if it waits for your decision, 5 if it is refused.
    Run(run::RunArgs),
    /// Run every definition of Seata's against a double of its services, and compare what is found with what is expected.
    Demo(demo::DemoArgs),
}

pub(super) async fn run(args: SagaArgs) -> Result<Exit, Failure> {
    match args.verb {
        Verb::Validate(args) => validate::run(&args),
        Verb::Draw(args) => draw::run(&args),
        Verb::Run(args) => run::run(args).await,
        Verb::Demo(args) => demo::run(args).await,
    }
}

/// Prints a problem of a definition on a line of its own.
fn tell(problem: &Problem) {
    let mark = match problem.severity() == Severity::Warning {
        true => "warning: ",
        false => "",
    };
    print::line(&print::plain(&format!("{mark}{problem}")));
}
