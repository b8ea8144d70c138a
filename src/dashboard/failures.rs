//! `failures`: the failures that nobody has acknowledged, in groups. The failures of one group are a list with the
//! filter `failure:` and its fingerprint.

use actix_web::{HttpRequest, web};
use serde_json::{Value, json};

use super::params::Params;
use super::problem::Answer;
use super::redact::Part;
use super::state::{State, viewer};
use crate::views::{FAILURES_READ, FailuresView};

pub(super) async fn failures(request: HttpRequest, state: web::Data<State>) -> Answer {
    let grant = viewer(&request)?;
    Params::of(&request, &[])?;
    let moment = state.moment()?;
    let _turn = state.turns.take(&grant).await?;
    let (entries, truncated) = state.engine().committed().newest_failures(FAILURES_READ).await?;
    let view = FailuresView::of(entries, truncated, state.now());
    let shown = view.items.iter().map(|group| {
        let said_by = group.origin_kind.as_deref().unwrap_or(&group.kind);
        let mut text = state.redact_text(said_by, Part::Error, &group.text, &grant);
        // The page of a root shows the same text as one of its own kind.
        state.redact.redact(&group.kind, Part::Error, &mut text, &grant);
        let mut shown = json!(group);
        if let Some(shown) = shown.get_mut("text") {
            *shown = text;
        }
        let print = u64::from_str_radix(&group.fingerprint, 16).ok();
        if let (Some(print), Some(shown)) = (print, shown.get_mut("fingerprint")) {
            *shown = format!("{:016x}", state.print_shown(print, &group.text, &grant)).into();
        }
        shown
    });
    let items: Vec<Value> = shown.collect();
    let mut body = json!(view);
    if let Some(shown) = body.get_mut("items") {
        *shown = items.into();
    }
    state.reply(moment, body)
}
