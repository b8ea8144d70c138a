//! `find`: what was submitted with an idempotency key.

use actix_web::{HttpRequest, web};
use serde_json::json;

use super::params::Params;
use super::problem::{Answer, Problem};
use super::show::Show;
use super::state::{State, viewer};
use crate::views::time;

pub(super) async fn find(request: HttpRequest, state: web::Data<State>) -> Answer {
    let grant = viewer(&request)?;
    let params = Params::of(&request, &["key"])?;
    let key = params
        .text("key")
        .ok_or_else(|| Problem::request("The parameter \"key\" is missing.", "Send an idempotency key."))?;
    let moment = state.moment()?;
    let found = state.engine().committed().find(key).await?;
    let found = found.ok_or_else(|| Problem::unknown_key(key))?;
    let show = Show::new(&state, &grant);
    let body = json!({
        "found": found.as_str(),
        "id": found.id().to_string(),
        "key_until": found.key_until().map(time),
        "procedure": found.status().map(|status| show.procedure(status)),
    });
    state.reply(moment, body)
}
