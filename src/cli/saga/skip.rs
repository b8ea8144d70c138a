//! `procession saga skip`: the states at which a saga rests count as skipped, and it goes on behind them.

use clap::Args;
use serde_json::{Map, Value, json};

use super::super::act::How;
use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::decide::Decision;
use super::object;

#[derive(Debug, Clone, Args)]
pub(super) struct SkipArgs {
    #[command(flatten)]
    how: How,
    /// Which saga, or which of its members alone: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
    /// Variables of the context that what is skipped would have put out, as a JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    results: Map<String, Value>,
}

pub(super) async fn run(args: SkipArgs) -> Result<Exit, Failure> {
    let decision = Decision {
        verb: "skip",
        done: "goes on behind what it rested at",
        body: json!({ "results": args.results }),
    };
    decision.make(&args.how, &args.id).await
}
