//! `procession saga`: definitions of sagas, checked, drawn and run; sagas of an engine, shown and decided about.

pub mod cases;
mod decide;
mod demo;
mod draw;
mod follow;
mod forward;
mod run;
mod services;
mod show;
mod skip;
mod validate;

use clap::{Args, Subcommand};
use procession::saga::{Problem, Severity};
use serde_json::{Map, Value};

use super::act::value;
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
    /// Show how a saga stands, and what it has come to at each state of its machine.
    Show(show::ShowArgs),
    /// Let what rests of a saga go on where it stopped, with other params.
    Forward(forward::ForwardArgs),
    /// Count the states at which a saga rests as skipped, and let it go on behind them.
    Skip(skip::SkipArgs),
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
        Verb::Show(args) => show::run(&args).await,
        Verb::Forward(args) => forward::run(args).await,
        Verb::Skip(args) => skip::run(args).await,
        Verb::Run(args) => run::run(args).await,
        Verb::Demo(args) => demo::run(args).await,
    }
}

/// Parses the variables in an argument; `@FILE` reads a file, `-` standard input.
fn object(text: &str) -> Result<Map<String, Value>, String> {
    match value::json(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("it is not a JSON object; write for instance '{\"count\": 5}'".to_owned()),
        Err(why) => Err(format!("{why}; write for instance '{{\"count\": 5}}'")),
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
