//! `kinds/{kind}/submit`: a value that is sent as JSON becomes a procedure, or the params of a saga.

use procession_actors::view::Status;
use procession_actors::{Procedure, SubmitError};
use procession_kernel::Kind;
use serde_json::Value;

use super::answer;
use super::wish::{Request, Wish, wrong};
use crate::bulk::Bulk;
use crate::dashboard::problem::{Answer, Problem};
use crate::dashboard::state::State;
use crate::messages::Submit;

/// What the names of the library's own kinds begin with.
const OWN: &str = "procession.";

/// Submits it, if it is a value of the kind. A dry run says whether it is one.
pub(super) async fn submit(state: &State, kind: &Kind, Request { wish, by }: Request) -> Answer {
    let is_dry = by.dry_run;
    if !state.engine().kinds().any(|known| known == kind) {
        return Err(Problem::unknown_kind(kind.as_str()));
    }
    if is_own(kind.as_str()) {
        return Err(own(kind.as_str()));
    }
    let submit = submission(state, kind, wish).await?;
    let operated = state.executor.submit_by(submit, by).await?;
    answer(state, &operated, is_dry, None)
}

/// Returns `true` for the kinds of the library itself. Each has a way of its own, with rights of its own: a bulk acts on
/// other procedures in the name that is in its value.
pub(in crate::dashboard) fn is_own(kind: &str) -> bool {
    kind.starts_with(OWN)
}

fn own(kind: &str) -> Problem {
    let text = format!("The kind \"{kind}\" is the library's own, and is not submitted as a value.");
    Problem::request(
        text,
        "Use `bulk/{verb}` for a bulk, and the host's code for schedules, sets and streams.",
    )
}

/// Refuses to run a bulk again: it would repeat its verb in the name of who asked for it then.
pub(super) fn may_run_again(row: Option<&Status>) -> Result<(), Problem> {
    if row.is_some_and(|row| row.kind.as_str() == Bulk::KIND) {
        let text = "A bulk is not run again: it acts in the name of who asked for it.";
        return Err(Problem::request(
            text,
            "Ask for the same verb and filter in a bulk of your own.",
        ));
    }
    Ok(())
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
