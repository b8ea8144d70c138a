//! `kinds/{kind}/stages`: how procedures of a kind went from stage to stage, as observed since the engine started.

use actix_web::{HttpRequest, web};
use procession_actors::view::{KindUse, StagePass, StageUse};
use serde_json::{Value, json};

use super::params::{Params, name_of};
use super::problem::{Answer, Problem};
use super::state::{State, viewer};
use crate::views::millis;

pub(super) async fn stages(request: HttpRequest, state: web::Data<State>) -> Answer {
    viewer(&request)?;
    Params::of(&request, &[])?;
    let moment = state.moment()?;
    let kind = name_of(&request, "kind");
    let kind = kind.as_str();
    let snapshot = state.live.snapshot().await?;
    let known = snapshot.kinds.iter().find(|known| known.kind.as_str() == kind);
    let known = known.ok_or_else(|| Problem::unknown_kind(kind))?;
    let [success, rolled_back, failed] = known.finished;
    let stages: Vec<Value> = known.passes.iter().map(|pass| stage(known, pass)).collect();
    let edges = known.passes.iter().flat_map(|pass| {
        let next = pass.next.iter();
        next.map(|(to, count)| json!({ "from": pass.stage, "to": to, "count": count }))
    });
    state.reply(
        moment,
        json!({
            "kind": kind,
            "submitted": known.submitted,
            "finished": { "success": success, "rolled_back": rolled_back, "failed": failed },
            "items": stages,
            "edges": edges.collect::<Vec<_>>(),
        }),
    )
}

fn stage(kind: &KindUse, pass: &StagePass) -> Value {
    let used = kind.stages.iter().find(|used| used.stage == pass.stage);
    let [success, rolled_back, failed] = pass.ended;
    json!({
        "stage": pass.stage,
        "begun": pass.begun,
        "runs": used.map_or(0, |used| used.runs),
        "mean_ms": used.map(mean),
        "longest_ms": used.map(|used| millis(used.longest)),
        "retries": pass.retries,
        "ended": { "success": success, "rolled_back": rolled_back, "failed": failed },
        "undone": pass.undone,
        "undo_failed": pass.undo_failed,
    })
}

/// Returns what a run of this stage took on average, in milliseconds.
pub(super) fn mean(stage: &StageUse) -> u64 {
    let runs = u32::try_from(stage.runs).unwrap_or(u32::MAX);
    millis(stage.total.checked_div(runs).unwrap_or_default())
}
