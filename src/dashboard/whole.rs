//! What is told of the engine as a whole: attention, limits, locks, kinds, and the engine itself.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, web};
use procession_actors::view::{BlockedStage, KindRate, KindUse, Mailboxes, Rule, Snapshot, Verdict, WorkerStatus};
use procession_kernel::{Kind, LimitUse, PauseScope, ProcedureId, Timestamp};
use serde_json::{Value, json};

use super::act::is_own;
use super::model::{Counts, Pulse, Tiles};
use super::params::Params;
use super::problem::Answer;
use super::show::Show;
use super::stages;
use super::state::{State, viewer};
use crate::views::{LimitView, LockUseView, fine_millis, millis, time};

/// Locks, and waiters of each, that one reply shows at most.
const LOCKS_MAX: usize = 5_000;

/// Rules by harm, the worst first: what loses work, what keeps all from moving, what keeps some.
const BY_HARM: [Rule; 19] = [
    Rule::StoreFailed,
    Rule::StoreSlow,
    Rule::StoreUnreadable,
    Rule::DiskNearlyFull,
    Rule::RollbackFailed,
    Rule::Deadlock,
    Rule::Quarantined,
    Rule::Poison,
    Rule::Undecided,
    Rule::UnacknowledgedFailures,
    Rule::BlockedWorker,
    Rule::RetryStorm,
    Rule::NoProgress,
    Rule::Starved,
    Rule::Overrun,
    Rule::ActorLost,
    Rule::LostWake,
    Rule::ClockAhead,
    Rule::Size,
];

/// What needs somebody now: verdicts by harm, and how many there are of what.
pub(super) async fn attention(request: HttpRequest, state: web::Data<State>) -> Answer {
    let grant = viewer(&request)?;
    Params::of(&request, &[])?;
    let moment = state.moment()?;
    let verdicts = state.live.verdicts().await?;
    let mut ranked: Vec<&Verdict> = verdicts.iter().collect();
    let harm = |rule: Rule| BY_HARM.iter().position(|other| *other == rule).unwrap_or(BY_HARM.len());
    ranked.sort_by_key(|verdict| (harm(verdict.rule), verdict.since));
    let show = Show::new(&state, &grant);
    let items: Vec<Value> = ranked.iter().map(|verdict| show.verdict(verdict)).collect();
    let counts = state.shared.read().counts().clone();
    let text = match items.len() {
        0 => "Nothing needs you.".to_owned(),
        1 => "One thing needs you.".to_owned(),
        several => format!("{several} things need you."),
    };
    let mut body = json!({ "text": text, "verdicts": items, "states": by_state(&counts) });
    if let (Some(body), Some(more)) = (body.as_object_mut(), figures(&state).as_object()) {
        body.extend(more.clone());
        let snapshot = state.live.snapshot().await?;
        body.insert("commit_p99_ms".to_owned(), json!(snapshot.commit_p99.map(millis)));
    }
    state.reply(moment, body)
}

/// What is counted of all, and how many commits there were lately.
fn figures(state: &State) -> Value {
    let now = state.now();
    // Not while the model is held: it has a lock of its own.
    let failed_day = state.engine().failed_in_a_day();
    let model = state.shared.read();
    let tiles: Tiles = model.tally().tiles;
    json!({
        "tiles": {
            "active": tiles.active,
            "retrying": tiles.retrying,
            "rolling_back": tiles.rolling_back,
            "rollback_failed": tiles.rollback_failed,
            "paused": tiles.paused,
            "failed_day": failed_day,
        },
        "oldest_runnable": model.tally().oldest_ready().map(waiter),
        "pulse": { "step_ms": Pulse::STEP_MS, "commits": model.pulse().line(now) },
    })
}

/// Who waits, and since when.
fn waiter((since, id): (Timestamp, ProcedureId)) -> Value {
    json!({ "id": id.to_string(), "since": time(since) })
}

pub(super) fn by_state(counts: &Counts) -> BTreeMap<String, usize> {
    let mut states = BTreeMap::new();
    for ((state, _), count) in counts {
        *states.entry(state.to_string()).or_default() += count;
    }
    states
}

/// Kinds: how many procedures there are of each, by state and by version, what happened
/// to them since the engine started, and how many began and ended in the last minute.
pub(super) async fn kinds(request: HttpRequest, state: web::Data<State>) -> Answer {
    viewer(&request)?;
    Params::of(&request, &[])?;
    let moment = state.moment()?;
    let snapshot = state.live.snapshot().await?;
    let counts = state.shared.read().counts().clone();
    let mut kinds: BTreeMap<&Kind, BTreeMap<String, usize>> = BTreeMap::new();
    for kind in &snapshot.kinds {
        kinds.entry(&kind.kind).or_default();
    }
    for ((state, kind), count) in &counts {
        *kinds.entry(kind).or_default().entry(state.to_string()).or_default() += count;
    }
    let shown = kinds.iter().map(|(kind, states)| {
        let known = snapshot.kinds.iter().find(|known| known.kind == **kind);
        json!({
            "kind": kind.as_str(),
            "registered": known.is_some(),
            "starts_with": known.and_then(|_| starts_with(&state, kind)),
            "states": states,
            "version": known.map(|known| known.version),
            "oldest": known.map(|known| known.oldest),
            "versions": state.shared.read().tally().versions(kind),
            "machine_versions": machine_versions(&state, kind),
            "since_start": known.map(since_start),
            "last_minute": last_minute(known.map(|known| known.last_minute).unwrap_or_default()),
            "paused": snapshot.paused.contains(&PauseScope::Kind((*kind).clone())),
        })
    });
    let all = snapshot.paused.contains(&PauseScope::All);
    state.reply(moment, json!({ "items": shown.collect::<Vec<_>>(), "all_paused": all }))
}

/// Returns what one of a registered kind is submitted with, `value` or the `params` of a saga. Returns `None` if it is
/// not submitted by its kind: the library's own kinds have their own ways, and a machine may be known from the store
/// alone.
fn starts_with(state: &State, kind: &Kind) -> Option<&'static str> {
    match may_begin(state, kind) {
        Some(begins) => begins.then_some("params"),
        None => (!is_own(kind.as_str())).then_some("value"),
    }
}

/// Returns whether new sagas of a kind may begin. Returns `None` if it is the kind of no machine.
#[cfg(feature = "saga")]
fn may_begin(state: &State, kind: &Kind) -> Option<bool> {
    let versions = crate::saga::versions(&state.executor, kind)?;
    Some(versions.iter().any(|version| version.is_started))
}

#[cfg(not(feature = "saga"))]
const fn may_begin(_: &State, _: &Kind) -> Option<bool> {
    None
}

/// Shows the versions of a saga's machine; null for any other kind.
#[cfg(feature = "saga")]
fn machine_versions(state: &State, kind: &Kind) -> Value {
    let versions = crate::saga::versions(&state.executor, kind);
    json!(versions.map(|versions| {
        let shown = versions
            .into_iter()
            .map(|one| json!({ "version": one.version, "starts": one.is_started }));
        shown.collect::<Vec<_>>()
    }))
}

#[cfg(not(feature = "saga"))]
const fn machine_versions(_: &State, _: &Kind) -> Value {
    Value::Null
}

fn last_minute(rate: KindRate) -> Value {
    json!({ "window_ms": KindRate::WINDOW_MS, "started": rate.started, "ended": rate.ended, "failed": rate.failed })
}

fn since_start(kind: &KindUse) -> Value {
    let stages = kind.stages.iter().map(|stage| {
        json!({
            "stage": stage.stage,
            "runs": stage.runs,
            "mean_ms": stages::mean(stage),
            "longest_ms": millis(stage.longest),
        })
    });
    let [success, rolled_back, failed] = kind.finished;
    json!({
        "submitted": kind.submitted,
        "finished": { "success": success, "rolled_back": rolled_back, "failed": failed },
        "retries": kind.retries,
        "panics": kind.panics,
        "stages": stages.collect::<Vec<_>>(),
    })
}

pub(super) async fn limits(request: HttpRequest, state: web::Data<State>) -> Answer {
    viewer(&request)?;
    Params::of(&request, &[])?;
    let moment = state.moment()?;
    let limits = state.live.limits().await?;
    state.reply(moment, json!({ "items": shown_limits(&state, &limits, Names::Shown) }))
}

/// Whether limits are shown with the names of those who hold and wait. A stream leaves them out: they change all the
/// time, and each change would be sent to every viewer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    Shown,
    LeftOut,
}

/// Limits, each with who waits for the longest time.
pub(super) fn shown_limits(state: &State, limits: &[LimitUse], names: Names) -> Vec<Value> {
    let model = state.shared.read();
    let shown = |limit: &LimitUse| {
        let mut view = json!(LimitView::from(limit));
        if let Some(view) = view.as_object_mut() {
            let oldest = model.tally().oldest_waiter(&limit.key);
            view.insert("oldest".to_owned(), json!(oldest.map(waiter)));
            if names == Names::LeftOut {
                view.remove("holders");
                view.remove("waiters");
            }
        }
        view
    };
    limits.iter().map(shown).collect()
}

pub(super) async fn locks(request: HttpRequest, state: web::Data<State>) -> Answer {
    viewer(&request)?;
    Params::of(&request, &[])?;
    let moment = state.moment()?;
    let locks = state.live.locks().await?;
    let items: Vec<LockUseView> = locks.iter().take(LOCKS_MAX).map(LockUseView::from).collect();
    state.reply(moment, json!({ "items": items, "truncated": locks.len() > LOCKS_MAX }))
}

pub(super) async fn engine(request: HttpRequest, state: web::Data<State>) -> Answer {
    viewer(&request)?;
    Params::of(&request, &[])?;
    let moment = state.moment()?;
    let snapshot = state.live.snapshot().await?;
    let mut body = shown(&snapshot, state.executor.mailboxes());
    if let Some(body) = body.as_object_mut() {
        body.insert("streams".to_owned(), json!(state.streams.len()));
        body.extend(figures(&state).as_object().cloned().unwrap_or_default());
    }
    state.reply(moment, body)
}

/// Shows the engine, but for why families are quarantined: that is a verdict's to say.
pub(super) fn shown(snapshot: &Snapshot, mailboxes: Mailboxes) -> Value {
    json!({
        "epoch": snapshot.epoch.to_string(),
        "decided": snapshot.decided.to_string(),
        "durable": snapshot.durable.to_string(),
        "commits": snapshot.commits,
        "batches": snapshot.batches,
        "appended_bytes": snapshot.appended_bytes,
        "live_families": snapshot.live_families,
        "going": snapshot.going,
        "actors": snapshot.actors,
        "workers": snapshot.workers.iter().map(worker).collect::<Vec<_>>(),
        "mailboxes": {
            "supervisor": mailboxes.supervisor,
            "limiter": mailboxes.limiter,
            "journal": mailboxes.journal,
            "reader": mailboxes.reader,
            "workers": mailboxes.workers,
        },
        "late": snapshot.late,
        "lost_wakes": snapshot.lost_wakes,
        "poisoned": snapshot.poisoned,
        "draining": snapshot.draining,
        "recovered": {
            "families": snapshot.recovered.families,
            "procedures": snapshot.recovered.procedures,
            "quarantined": snapshot.recovered.quarantined.len(),
            "took_ms": millis(snapshot.recovered.took + snapshot.recovered.opening),
            "read_ms": millis(snapshot.recovered.took),
            "opening_ms": millis(snapshot.recovered.opening),
        },
        "quarantined": snapshot.quarantined.iter().map(|(family, _)| format!("{family}.0")).collect::<Vec<_>>(),
        "size_bytes": snapshot.size_bytes,
        "disk_free_bytes": snapshot.disk_room.map(|room| room.free),
        "commit_p99_ms": snapshot.commit_p99.map(millis),
        "sync_p50_ms": snapshot.sync_times.map(|times| fine_millis(times.p50)),
        "sync_p99_ms": snapshot.sync_times.map(|times| fine_millis(times.p99)),
        "paused": snapshot.paused.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "last_batch": {
            "commits": snapshot.last_batch.commits,
            "writes": snapshot.last_batch.writes,
            "took_ms": millis(snapshot.last_batch.took),
        },
        "panics": snapshot.kinds.iter().map(|kind| kind.panics).sum::<u64>(),
    })
}

fn worker(worker: &WorkerStatus) -> Value {
    let call = |call: &BlockedStage| {
        json!({
            "id": call.procedure.to_string(),
            "call": format!("{:?}", call.call).to_lowercase(),
            "stage": call.stage,
            "time_ms": millis(call.time),
        })
    };
    json!({
        "worker": worker.worker,
        "blocked": worker.blocked.as_ref().map(call),
        "busy": worker.busy.as_ref().map(call),
        "waiting": worker.waiting,
        "extra": worker.extra,
        "actors": worker.actors,
    })
}
