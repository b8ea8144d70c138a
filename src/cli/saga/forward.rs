//! `procession saga forward`: what rests of a saga goes on where it stopped, with other params.

use clap::Args;
use serde_json::{Map, Value, json};

use super::super::act::How;
use super::super::exit::{Exit, Failure};
use super::super::named::Named;
use super::decide::Decision;
use super::object;

#[derive(Debug, Clone, Args)]
pub(super) struct ForwardArgs {
    #[command(flatten)]
    how: How,
    /// Which saga, or which of its members alone: its id, for instance 42.0, or its idempotency key.
    #[arg(value_name = "ID")]
    id: Named,
    /// Variables of the context that are replaced, as a JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}", value_parser = object)]
    params: Map<String, Value>,
}

pub(super) async fn run(args: ForwardArgs) -> Result<Exit, Failure> {
    let decision = Decision {
        verb: "forward",
        done: "goes forward",
        body: json!({ "params": args.params }),
    };
    decision.make(&args.how, &args.id).await
}
