//! The commands of the `procession` program, and the demo's procedures. It is a library for that program and its tests
//! alone: what others build upon is the package `procession`.

mod account;
mod act;
mod bench;
pub mod demo;
mod document;
mod exit;
mod fields;
mod import;
mod kinds;
mod login;
mod look;
mod manual;
mod moment;
mod named;
mod nearest;
mod pager;
mod place;
mod print;
pub mod saga;
mod scratch;
mod signals;
mod site;
mod source;
mod tail;
mod tips;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use exit::{Exit, Failure};

/// Durable procedures: a look into the journal of an engine that is stopped, or at one that runs
/// through its dashboard; the verbs of operators; a demo that can be killed at any time, and a
/// benchmark.
#[derive(Parser)]
#[command(name = "procession", version, about, arg_required_else_help = true)]
struct Arguments {
    /// Print instants in UTC on a terminal, too, and not how long ago they were.
    #[arg(long, global = true)]
    utc: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    #[command(flatten)]
    Look(look::Look),
    /// Follow what changes, line by line, as a dashboard tells of it.
    Tail(tail::TailArgs),
    #[command(flatten)]
    Act(act::Act),
    /// Put a family that was exported into a closed journal, paused. Exit code 5 if something
    /// there is in its way.
    Import(import::ImportArgs),
    /// Check, draw and run definitions of sagas, in the state language of Seata; show sagas, and decide about those that
    /// rest.
    Saga(saga::SagaArgs),
    /// Run a shop on the engine, which can be killed at any time and goes on: orders, stock, payments, shipping. With
    /// `--trouble` everything is the matter; `demo tablets` is a tablet master.
    Demo(demo::command::DemoArgs),
    /// Measure the engine against the raw store on this machine.
    Bench(bench::BenchArgs),
    /// Print what completes the verbs and options of this program in a shell.
    Completion(manual::CompletionArgs),
    /// Write the manual pages of this program into a directory.
    Man(manual::ManArgs),
}

/// Reads the arguments, carries the verb out, and gives the exit code: 0 done, 1 failed, 2 usage,
/// 3 something needs you, 4 a circle, 5 refused.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::try_parse().unwrap_or_else(|error| {
        let said: Vec<String> = std::env::args_os()
            .map(|said| said.to_string_lossy().into_owned())
            .collect();
        tips::explain(error, Arguments::command(), &said).exit()
    });
    moment::show_instants(arguments.utc);
    let outcome = actix_rt::System::new().block_on(async move {
        match arguments.verb {
            Verb::Look(look) => look.run().await,
            Verb::Tail(arguments) => tail::run(arguments).await,
            Verb::Act(act) => act.run().await,
            Verb::Import(arguments) => import::run(arguments).await,
            Verb::Saga(arguments) => saga::run(arguments).await,
            Verb::Demo(arguments) => demo::command::run(arguments)
                .await
                .map(|()| Exit::Done)
                .map_err(Failure::from),
            Verb::Bench(arguments) => done(bench::run(arguments).await),
            Verb::Completion(arguments) => manual::complete(&arguments, Arguments::command()),
            Verb::Man(arguments) => manual::write(&arguments, Arguments::command()),
        }
    });
    match outcome.and_then(|exit| print::must_be_written().map(|()| exit)) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            complain(&failure.text);
            failure.exit.into()
        }
    }
}

fn done<E: std::fmt::Display>(outcome: Result<(), E>) -> Result<Exit, Failure> {
    outcome.map(|()| Exit::Done).map_err(Failure::new)
}

#[expect(clippy::print_stderr, reason = "the one place where a command says why it failed")]
fn complain(error: &str) {
    eprintln!("procession: {error}");
}
