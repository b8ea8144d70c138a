//! `me`: who asks, what they may do, and whether the engine lives. The page shows what it
//! offers by it; what is allowed is checked with each request all the same.

use actix_web::{HttpRequest, web};
use procession_actors::AskError;
use serde_json::json;

use super::access::Right;
use super::params::Params;
use super::problem::Answer;
use super::state::{State, viewer};

pub(super) async fn me(request: HttpRequest, state: web::Data<State>) -> Answer {
    let grant = viewer(&request)?;
    Params::of(&request, &[])?;
    let (moment, is_ready) = {
        let model = state.shared.read();
        (model.moment(), model.is_ready())
    };
    let rights: Vec<&str> = Right::ALL
        .into_iter()
        .filter(|right| grant.has(*right))
        .map(Right::as_str)
        .collect();
    let engine = if is_ready { standing(&state).await } else { "recovering" };
    state.reply(
        moment,
        json!({ "who": grant.who(), "rights": rights, "engine": engine, "trace_url": state.trace_url }),
    )
}

/// Says in a word how the engine stands.
async fn standing(state: &State) -> &'static str {
    match state.live.snapshot().await {
        Ok(snapshot) if snapshot.poisoned.is_some() => "journal_failed",
        Ok(snapshot) if snapshot.draining => "draining",
        Ok(_) => "live",
        Err(AskError::Stopped) => "stopped",
        Err(_) => "silent",
    }
}
