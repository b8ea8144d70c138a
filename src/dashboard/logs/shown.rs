//! `procedures/{id}/logs`: what its attempts logged, as far as the host shows it.

use actix_web::{HttpRequest, web};
use serde_json::{Value, json};

use super::{AttemptLog, CallKey, LogEvent};
use crate::dashboard::problem::Answer;
use crate::dashboard::procedure::Asked;
use crate::dashboard::redact::Part;
use crate::dashboard::show::Show;
use crate::dashboard::state::State;
use crate::views::time;

/// Attempts of one reply, at most, and unless another number is asked for: the newest.
const ATTEMPTS_MAX: usize = 100;
const ATTEMPTS: usize = 20;

pub(in crate::dashboard) async fn logs(request: HttpRequest, state: web::Data<State>) -> Answer {
    let asked = Asked::new(&request, &state, &["visit", "attempt", "undo", "limit"])?;
    let visit: Option<u32> = asked.params.number("visit")?;
    let attempt: Option<u32> = asked.params.number("attempt")?;
    let limit = asked.params.limit("limit", ATTEMPTS, ATTEMPTS_MAX)?;
    // Whoever names a visit means its stage, unless the undo is asked for.
    let undo = asked.params.flag("undo")?;
    let moment = state.moment()?;
    let row = asked.row().await?;
    let Some(logs) = &state.logs else {
        let body = json!({ "kept": false, "items": [], "more": 0, "forgotten": 0 });
        return state.reply(moment, body);
    };
    let wanted = |key: &CallKey| {
        let is_call = visit.is_none_or(|visit| key.visit == visit && key.is_undo == undo);
        is_call && attempt.is_none_or(|attempt| key.attempt == attempt)
    };
    let (found, forgotten) = logs.of(state.engine().store_number(), asked.id, wanted);
    let more = found.len().saturating_sub(limit);
    let show = asked.show();
    let items: Vec<Value> = found
        .iter()
        .skip(more)
        .map(|attempt| shown(attempt, row.kind.as_str(), &show))
        .collect();
    state.reply(
        moment,
        json!({ "kept": true, "items": items, "more": more, "forgotten": forgotten }),
    )
}

fn shown(attempt: &AttemptLog, kind: &str, show: &Show<'_>) -> Value {
    let events: Vec<Value> = attempt.events.iter().map(|event| line(event, kind, show)).collect();
    json!({
        "id": attempt.key.id.to_string(),
        "call": if attempt.key.is_undo { "undo" } else { "stage" },
        "stage": attempt.stage,
        "visit": attempt.key.visit,
        "attempt": attempt.key.attempt,
        "events": events,
        "left_out": attempt.left_out,
    })
}

/// Level, target and time are the code's. All else may hold data of users.
fn line(event: &LogEvent, kind: &str, show: &Show<'_>) -> Value {
    let fields: Vec<Value> = event
        .text
        .fields
        .iter()
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect();
    let text = json!({
        "size": event.text.len(),
        "message": event.text.message,
        "fields": fields,
        "cut": event.text.is_cut,
    });
    json!({
        "time": time(event.at),
        "level": event.level,
        "target": event.target,
        "text": show.part(kind, Part::Log, text),
    })
}
