//! `procession export`: families as JSON lines, one document for each row, executed stage and signal.

use clap::Args;

use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::super::place::Place;
use super::super::source::{Sink, Source};

#[derive(Debug, Clone, Args)]
#[group(id = "what", required = true, multiple = false, args = ["id", "all"])]
pub(crate) struct ExportArgs {
    #[command(flatten)]
    pub(super) place: Place,
    /// A procedure: its whole family is printed.
    #[arg(value_name = "ID")]
    id: Option<Named>,
    /// Print every family, finished ones too.
    #[arg(long)]
    all: bool,
    /// Print users' data in full: payloads, outputs, payloads of signals and notes as JSON, in
    /// hexadecimal where JSON cannot express them; and each family as it is stored, which is
    /// what an import takes and the test kit replays. Treat it as you treat the data itself.
    #[arg(long)]
    payload: bool,
    /// Why payloads are wanted of an engine that runs: its audit keeps it.
    #[arg(long, value_name = "TEXT", conflicts_with = "data")]
    reason: Option<String>,
}

pub(super) async fn run(source: &Source, args: &ExportArgs) -> Result<Exit, Failure> {
    if source.is_running() && args.payload && args.reason.is_none() {
        return Err(Failure::usage(
            "payloads of an engine that runs are disclosed for a reason, which its audit keeps: give it with --reason",
        ));
    }
    let mut sink = Sink::new(args.payload, args.reason.clone());
    match &args.id {
        Some(named) => source.export(source.resolve(named).await?, &mut sink).await?,
        None => source.export_all(&mut sink).await?,
    }
    Ok(sink.end())
}
