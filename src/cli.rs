//! The commands of the `procession` binary. Not a library interface.

mod bench;
mod demo;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Durable procedures: a demo that can be killed at any time, and a benchmark.
#[derive(Parser)]
#[command(name = "procession", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a tablet master on the engine: a workload that can be killed at any time, then verified.
    Demo(demo::DemoArgs),
    /// Measure the engine against the raw store on this machine.
    Bench(bench::BenchArgs),
}

/// Reads the arguments, carries the verb out, and gives the exit code: 0 done, 1 failed, 2 usage.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = actix_rt::System::new().block_on(async move {
        match arguments.verb {
            Verb::Demo(arguments) => demo::run(arguments).await.map_err(|error| error.to_string()),
            Verb::Bench(arguments) => bench::run(arguments).await.map_err(|error| error.to_string()),
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stderr, reason = "the one place where a command says why it failed")]
fn complain(error: &str) {
    eprintln!("procession: {error}");
}
