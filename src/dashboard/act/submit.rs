//! `kinds/{kind}/submit`: a value that is sent as JSON becomes a procedure, or the params of a saga.

use procession_actors::SubmitError;
use procession_kernel::Kind;
use serde_json::Value;

use super::answer;
use super::wish::{Request, Wish, wrong};
use crate::dashboard::problem::{Answer, Problem};
use crate::dashboard::state::State;
use crate::messages::Submit;

/// Submits it, if it is a value of the kind. A dry run says whether it is one.
pub(super) async fn submit(state: &State, kind: &Kind, Request { wish, by }: Request) -> Answer {
    let is_dry = by.dry_run;
    if !state.engine().kinds().any(|known| known == kind) {
        return Err(Problem::unknown_kind(kind.as_str()));
    }
    let submit = submission(state, kind, wish).await?;
    let operated = state.executor.submit_by(submit, by).await?;
    answer(state, &operated, is_dry, None)
}

async fn submission(state: &State, kind: &Kind, wish: Wish) -> Result<Submit, Problem> {
    let value = wish.value.as_ref();
    let value = value.ok_or_else(|| wrong("`value` is missing; `null` is one, too."))?;
    let mut submit = match saga(state, kind, value).await {
        Some(submit) => submit?,
        None => state.executor.submission_of(kind.as_str(), value)?,
    };
    if let Some(key) = wish.idempotency_key {
        submit = submit.key(key);
    }
    if let Some(priority) = wish.priority {
        submit = submit.priority(priority);
    }
    if let Some(name) = wish.name.filter(|name| !name.is_empty()) {
        submit = submit.named(name);
    }
    Ok(wish
        .labels
        .into_iter()
        .fold(submit, |submit, (name, value)| submit.label(name, value)))
}

/// Returns a saga with the value as its params, if the kind is that of a machine. Its own value is for the engine alone.
#[cfg(feature = "saga")]
async fn saga(state: &State, kind: &Kind, params: &Value) -> Option<Result<Submit, SubmitError>> {
    crate::saga::submission(&state.executor, kind, params).await
}

#[cfg(not(feature = "saga"))]
async fn saga(_: &State, _: &Kind, _: &Value) -> Option<Result<Submit, SubmitError>> {
    None
}
