//! `me`: who asks, what they may do, and whether the engine lives. The page shows what it
//! offers by it; what is allowed is checked with each request all the same.

use std::sync::Arc;

use actix_web::{HttpRequest, web};
use procession_actors::AskError;
use procession_actors::view::Snapshot;
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
    let engine = match is_ready {
        true => standing(&state.live.snapshot().await),
        false => "recovering",
    };
    let body = json!({
        "who": grant.who(),
        "rights": rights,
        "engine": engine,
        "trace_url": state.trace_url,
        "engines": state.engines,
    });
    state.reply(moment, body)
}

/// The word for an engine that does not answer in time.
pub(super) const SILENT: &str = "silent";

/// Says in a word how the engine stands, by what it answered.
pub(super) fn standing(answer: &Result<Arc<Snapshot>, AskError>) -> &'static str {
    match answer {
        Ok(snapshot) if snapshot.poisoned.is_some() => "journal_failed",
        Ok(snapshot) if snapshot.draining => "draining",
        Ok(_) => "live",
        Err(AskError::Stopped) => "stopped",
        Err(_) => SILENT,
    }
}
