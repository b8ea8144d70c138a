//! What the engine itself answers, for the figures of each screen to be compared with. Nothing here
//! goes through the dashboard.

use std::collections::BTreeMap;

use procession::flow::SetRoot;
use procession::health::Verdict;
use procession::operate::{Bulk, BulkReport};
use procession::procedure::Timestamp;
use procession::provider::Clock;
use procession::status::ListFilter;
use procession::testkit::{Run, Trouble};
use procession::{Executor, Procedure, ProcedureId};
use serde_json::{Value, json};

/// How many statuses are read at once.
const PAGE: usize = 1_000;
/// How many entries of the audit are read.
const AUDIT: usize = 500;
/// A second of the engine's clock.
const SECOND: u64 = 1_000_000;

/// The most nodes of a set that are listed.
const NODES: usize = 100;

/// Asks the engine how each live set stands.
pub(crate) async fn sets(run: &Run) -> Result<Value, Trouble> {
    let page = run.executor.list(ListFilter::default(), None, PAGE).await?;
    let roots = page.items.iter().filter(|row| row.kind.as_str() == SetRoot::KIND);
    let mut told = Vec::new();
    for root in roots {
        let set = run.executor.set_handle(root.id);
        let status = set.status().await?;
        let nodes = set.nodes(0, NODES).await?.items;
        let nodes = nodes.iter().map(|node| json!([node.name, node.state.to_string()]));
        told.push(json!({
            "id": root.id.to_string(),
            "state": status.state.to_string(),
            "counts": status.counts,
            "pending": status.pending,
            "nodes": nodes.collect::<Vec<_>>(),
        }));
    }
    Ok(json!(told))
}

/// Asks the engine for everything that a page shows.
pub(crate) async fn truth(run: &Run) -> Result<Value, Trouble> {
    let (executor, now) = (&run.executor, run.world.clock.now());
    let (mut states, mut kinds) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
    let (mut rows, mut bulks, mut cursor) = (Vec::new(), BTreeMap::<String, Value>::new(), None);
    loop {
        let page = executor.list(ListFilter::default(), cursor, PAGE).await?;
        for status in &page.items {
            *states.entry(status.state.to_string()).or_default() += 1;
            if status.ended.is_none() {
                *kinds.entry(status.kind.to_string()).or_default() += 1;
            }
            rows.push(json!({
                "id": status.id.to_string(),
                "kind": status.kind.to_string(),
                "state": status.state.to_string(),
                "stage": status.stage,
                "ended": status.ended.is_some(),
                "attempt": status.attempt,
                "priority": status.priority,
                "paused": status.paused,
                "submitted": ago(now, status.submitted),
                "since": ms(now, status.since),
                "ended_ago": status.ended.map(|ended| ago(now, ended)),
            }));
            if status.kind.as_str() == Bulk::KIND && status.ended.is_some() {
                bulks.insert(status.id.to_string(), bulk(executor, status.id).await?);
            }
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let limits = executor.limits().await?;
    let limits = limits.iter().map(|limit| {
        json!({ "key": limit.key.as_str(), "limit": limit.limit, "used": limit.used, "waiting": limit.waiting, "had_to_wait": limit.had_to_wait })
    });
    let locks = executor.locks().await?;
    let locks = locks.iter().map(|lock| {
        let holders: Vec<String> = lock.holders.iter().map(|(id, _)| id.to_string()).collect();
        let waiting: Vec<String> = lock.waiting.iter().map(ToString::to_string).collect();
        let held = lock.since.iter().flatten().min().map(|since| ms(now, *since));
        json!({ "path": lock.path.as_str(), "holders": holders, "waiting": waiting, "held": held })
    });
    let verdicts = executor.verdicts().await?;
    let mut whole = json!({
        "now": now.0 / 1_000,
        "states": states,
        "live_by_kind": kinds,
        "rows": rows,
        "bulks": bulks,
        "limits": limits.collect::<Vec<_>>(),
        "locks": locks.collect::<Vec<_>>(),
        "verdicts": verdicts.len(),
        "told": verdicts.iter().map(|verdict| told(now, verdict)).collect::<Vec<_>>(),
        "audit": executor.audit(None, AUDIT).await?.len(),
        "acts": executor.audit(None, AUDIT).await?.iter().map(|act| ms(now, act.at)).collect::<Vec<_>>(),
    });
    if let (Some(whole), Some(engine)) = (whole.as_object_mut(), of_engine(executor).await?.as_object()) {
        whole.extend(engine.clone());
    }
    Ok(whole)
}

/// What the engine says of itself.
async fn of_engine(executor: &Executor) -> Result<Value, Trouble> {
    let (snapshot, mailboxes) = (executor.snapshot().await?, executor.mailboxes());
    let kinds = snapshot.kinds.iter().map(|kind| {
        let figures = json!({ "submitted": kind.submitted, "retries": kind.retries, "panics": kind.panics });
        (kind.kind.to_string(), figures)
    });
    Ok(json!({
        "decided": snapshot.decided.to_string(),
        "durable": snapshot.durable.to_string(),
        "epoch": snapshot.epoch.to_string(),
        "commits": snapshot.commits,
        "going": snapshot.going,
        "batches": snapshot.batches,
        "last_batch": { "commits": snapshot.last_batch.commits, "ms": snapshot.last_batch.took.as_millis() },
        "commit_p99_ms": snapshot.commit_p99.map(|time| time.as_millis()),
        "sync_ms": snapshot.sync_times.map(|times| [times.p50, times.p99].map(|time| time.as_secs_f64() * 1_000.0)),
        "size_bytes": snapshot.size_bytes,
        "disk_free_bytes": snapshot.disk_room.map(|room| room.free),
        "appended_bytes": snapshot.appended_bytes,
        "live_families": snapshot.live_families,
        "actors": snapshot.actors,
        "late": snapshot.late,
        "lost_wakes": snapshot.lost_wakes,
        "workers": snapshot.workers.iter().map(|worker| (worker.worker, worker.waiting, worker.actors)).collect::<Vec<_>>(),
        "mailboxes": [mailboxes.supervisor, mailboxes.limiter, mailboxes.journal, mailboxes.reader, mailboxes.workers],
        "quarantined": snapshot.quarantined.len(),
        "found": {
            "families": snapshot.recovered.families,
            "procedures": snapshot.recovered.procedures,
            "quarantined": snapshot.recovered.quarantined.len(),
            "ms": (snapshot.recovered.took + snapshot.recovered.opening).as_millis(),
            "read": snapshot.recovered.took.as_millis(),
        },
        "since_start": kinds.collect::<BTreeMap<_, _>>(),
    }))
}

/// Returns the executed stages of one procedure.
pub(crate) async fn history(run: &Run, id: ProcedureId) -> Result<Value, Trouble> {
    let now = run.world.clock.now();
    let entries = run.executor.history(id).await?;
    let told = entries.iter().filter(|entry| entry.member == id.member).map(|entry| {
        json!({
            "number": entry.number,
            "visit": entry.visit,
            "attempt": entry.attempt,
            "begun": ms(now, entry.begun),
            "waited": ms(entry.begun, entry.queued),
            "took": ms(entry.ended, entry.begun),
        })
    });
    Ok(told.collect())
}

fn told(now: Timestamp, verdict: &Verdict) -> Value {
    json!({
        "rule": verdict.rule.as_str(),
        "procedure": verdict.procedure.map(|id| id.to_string()),
        "since": ms(now, verdict.since),
        "text": verdict.text,
        "facts": verdict.facts.iter().cloned().collect::<BTreeMap<_, _>>(),
    })
}

/// How many milliseconds one instant is after another.
fn ms(later: Timestamp, earlier: Timestamp) -> u64 {
    later.0.saturating_sub(earlier.0) / 1_000
}

/// How long ago something was, in whole seconds, which begin with those of the clock.
fn ago(now: Timestamp, then: Timestamp) -> u64 {
    (now.0 / SECOND).saturating_sub(then.0 / SECOND)
}

/// Returns what a bulk that has ended says that it did; nothing if it has no output.
async fn bulk(executor: &Executor, id: ProcedureId) -> Result<Value, Trouble> {
    let report: Option<BulkReport> = executor.outcome(id).await?.output()?;
    Ok(report.map_or(Value::Null, |report| {
        let refused = report.outcomes.iter().filter_map(|outcome| outcome.refused.clone());
        json!({ "done": report.done, "refused": report.refused, "why": refused.collect::<Vec<_>>() })
    }))
}
