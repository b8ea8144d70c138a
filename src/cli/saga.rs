//! `procession saga`: definitions of sagas, checked and drawn.

mod draw;
mod services;
mod validate;

use clap::{Args, Subcommand};

use super::exit::{Exit, Failure};

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
}

pub(super) fn run(args: &SagaArgs) -> Result<Exit, Failure> {
    match &args.verb {
        Verb::Validate(args) => validate::run(args),
        Verb::Draw(args) => draw::run(args),
    }
}
