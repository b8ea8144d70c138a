//! `procedures/{id}/values`: the value behind a stage, and what differs between two.

use actix_web::{HttpRequest, web};
use procession_actors::view::ValueBehind;
use serde_json::{Value, json};

use super::problem::{Answer, Problem};
use super::procedure::{Asked, VALUE_MAX};
use super::redact::Part;
use super::state::State;
use crate::views::compared;

pub(super) async fn values(request: HttpRequest, state: web::Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &["entry", "from"])?;
    let entry: Option<u32> = asked.params.number("entry")?;
    let entry =
        entry.ok_or_else(|| Problem::request("No entry is named.", "Name one of the history with \"entry\"."))?;
    let from: Option<u32> = asked.params.number("from")?;
    let moment = state.moment()?;
    let row = asked.row().await?;
    let _turn = state.turns.take(&asked.grant).await?;
    let kind = row.kind.as_str();
    let to = value_of(&state, &asked, kind, entry).await?;
    let from = match from {
        Some(from) => Some(value_of(&state, &asked, kind, from).await?),
        None => None,
    };
    state.reply(moment, compared(from, to))
}

async fn value_of(state: &State, asked: &Asked<'_>, kind: &str, number: u32) -> Result<Value, Problem> {
    let behind = state.engine().committed().value_behind(asked.id, number).await?;
    let behind = behind.ok_or_else(|| Problem::unknown_entry(asked.id, number))?;
    let ValueBehind {
        left_by, size, bytes, ..
    } = behind;
    let bytes = bytes.filter(|bytes| bytes.len() <= VALUE_MAX);
    let too_large = size.filter(|_| bytes.is_none());
    let show = asked.show();
    let value = match &bytes {
        Some(bytes) if state.redact.reads_values() => show.value(kind, Part::Payload, Some(bytes.as_slice())),
        Some(bytes) => show.size(kind, Part::Payload, Some(bytes.len())),
        None => Value::Null,
    };
    Ok(json!({ "entry": number, "left_by": left_by, "too_large": too_large, "value": value }))
}
