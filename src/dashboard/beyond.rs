//! What one procedure's page says beyond its row: who has paused it, how far its rollback is, and
//! with what it has failed last.

use std::collections::{BTreeMap, BTreeSet};

use procession_actors::journal::codec;
use procession_actors::view::Status;
use procession_kernel::{Ending, HistoryEntry, Kind, PauseScope, ProcedureId, ProcedureState, WaitReason};
use serde_json::{Value, json};

use super::access::Grant;
use super::live::AUDIT_NEWEST;
use super::problem::Problem;
use super::procedure::{HISTORY_MAX, MEMBERS_MAX};
use super::show::Show;
use super::state::State;
use crate::views::{ending_word, time};

/// How calls end that have failed.
pub(super) const fn is_failure(ending: Ending) -> bool {
    matches!(
        ending,
        Ending::Retry | Ending::Fail | Ending::Panic | Ending::UndoFailed
    )
}

/// Names each pause that covers it, whatever else it waits for, with who made it and why, if the audit still knows.
pub(super) async fn paused_by(state: &State, row: &Status) -> Result<Vec<Value>, Problem> {
    if row.ended.is_some() {
        return Ok(Vec::new());
    }
    let mut pauses = wide_pauses(state, row).await?;
    pauses.extend(paused_above(state, row));
    let acts = state.pauses.made(state, &pauses).await?;
    let shown = pauses.iter().zip(&acts).map(|(what, act)| {
        json!({
            "what": what.to_string(),
            "who": act.as_ref().map(|act| act.who.as_str()),
            "why": act.as_ref().map(|act| act.why.as_str()),
            "at": act.as_ref().map(|act| time(act.at)),
        })
    });
    Ok(shown.collect())
}

/// Returns the pauses of everything and of its kind. An engine that does not answer is an error only where the row says
/// that something has paused it.
async fn wide_pauses(state: &State, row: &Status) -> Result<Vec<PauseScope>, Problem> {
    let snapshot = match state.live.snapshot().await {
        Ok(snapshot) => snapshot,
        Err(_) if !row.paused && row.wait != Some(WaitReason::Paused) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let wide = [PauseScope::All, PauseScope::Kind(row.kind.clone())];
    Ok(wide.into_iter().filter(|what| snapshot.paused.contains(what)).collect())
}

/// Returns itself and those above it, as far as they are paused.
fn paused_above(state: &State, row: &Status) -> Vec<PauseScope> {
    let model = state.shared.read();
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut at = Some((row.id, row.paused, row.parent));
    // A damaged tree may lead in a circle.
    while let Some((id, paused, parent)) = at.filter(|(id, ..)| seen.insert(*id)) {
        found.extend(paused.then_some(PauseScope::One(id)));
        let above = parent.and_then(|parent| model.get(parent));
        at = above.map(|above| (above.id, above.paused, above.parent));
    }
    found
}

/// Counts what is stored of a procedure, each up to a bound: history entries, signals, and operators' acts on its
/// family among the newest.
pub(super) async fn counts(state: &State, id: ProcedureId) -> Result<Value, Problem> {
    let counts = state.engine().committed().counts(id).await?.unwrap_or_default();
    let newest = state.live.audit().await?;
    let acts = newest
        .iter()
        .filter(|act| act.target.is_some_and(|of| of.family == id.family));
    let counted = |count: usize, more: bool| json!({ "count": count, "more": more });
    Ok(json!({
        "history": counted(counts.history, counts.more_history),
        "signals": counted(counts.signals, counts.more_signals),
        "audit": counted(acts.count(), newest.len() == AUDIT_NEWEST),
    }))
}

/// Says with what one failed last that is tried again, or is rolled back, and how far that is.
pub(super) async fn failing(state: &State, grant: &Grant, show: &Show<'_>, row: &Status) -> Result<Value, Problem> {
    let rolls_back = row.state == ProcedureState::Failed;
    if row.ended.is_some() || !(rolls_back || row.attempt > 0) {
        return Ok(Value::Null);
    }
    let _turn = state.turns.take(grant).await?;
    let committed = state.engine().committed();
    let entries = committed.history_outline(row.id.family, HISTORY_MAX).await?;
    let kinds = if rolls_back {
        below(row.id, committed.family(row.id.family, 0, MEMBERS_MAX).await?)
    } else {
        BTreeMap::from([(row.id.member, row.kind.clone())])
    };
    let own: Vec<&HistoryEntry> = entries
        .iter()
        .filter(|entry| kinds.contains_key(&entry.member))
        .collect();
    let count = |counts: fn(&HistoryEntry) -> bool| own.iter().filter(|entry| counts(entry)).count();
    let undone = count(|entry| matches!(entry.ending, Ending::Undone | Ending::UndoSkipped));
    let stands = count(|entry| entry.stands);
    let last = own
        .iter()
        .rev()
        .find(|entry| is_failure(entry.ending) && entry.error.is_some());
    let shown = last.map(|entry| {
        let kind = kinds.get(&entry.member).unwrap_or(&row.kind).as_str();
        json!({
            "id": ProcedureId::new(entry.family, entry.member).to_string(),
            "stage": codec::describe(entry.stage.as_slice()),
            "attempt": entry.attempt,
            "ending": ending_word(entry.ending),
            "error": show.said(kind, entry),
            "at": time(entry.ended),
        })
    });
    Ok(json!({
        "undone": rolls_back.then_some(undone),
        "of": rolls_back.then_some(undone + stands),
        "last": shown,
    }))
}

/// Returns the kinds of one and of all below it: children have higher numbers than their parents.
fn below(top: ProcedureId, family: Vec<Status>) -> BTreeMap<u32, Kind> {
    let mut kinds = BTreeMap::new();
    for status in family {
        let is_below = status.parent.is_some_and(|parent| kinds.contains_key(&parent.member));
        if status.id == top || is_below {
            kinds.insert(status.id.member, status.kind);
        }
    }
    kinds
}
