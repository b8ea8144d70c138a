//! What the engine itself answers, for the figures of each screen to be compared with. Nothing here
//! goes through the dashboard.

use std::collections::BTreeMap;

use procession::provider::Clock;
use procession::testkit::{Run, Trouble};
use procession::{Bulk, BulkReport, Executor, ListFilter, Procedure, ProcedureId, Timestamp};
use serde_json::{Value, json};

/// How many statuses are read at once.
const PAGE: usize = 1_000;
/// How many entries of the audit are read.
const AUDIT: usize = 500;
/// A second of the engine's clock.
const SECOND: u64 = 1_000_000;

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
                "since": ago(now, status.since),
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
        json!({ "key": limit.key.as_str(), "limit": limit.limit, "used": limit.used, "waiting": limit.waiting })
    });
    let locks = executor.locks().await?;
    let locks = locks.iter().map(|lock| {
        let holders: Vec<String> = lock.holders.iter().map(|(id, _)| id.to_string()).collect();
        let waiting: Vec<String> = lock.waiting.iter().map(ToString::to_string).collect();
        json!({ "path": lock.path.as_str(), "holders": holders, "waiting": waiting })
    });
    let snapshot = executor.snapshot().await?;
    let verdicts = executor.verdicts().await?;
    Ok(json!({
        "states": states,
        "live_by_kind": kinds,
        "rows": rows,
        "bulks": bulks,
        "limits": limits.collect::<Vec<_>>(),
        "locks": locks.collect::<Vec<_>>(),
        "verdicts": verdicts.len(),
        "audit": executor.audit(None, AUDIT).await?.len(),
        "decided": snapshot.decided.to_string(),
        "durable": snapshot.durable.to_string(),
        "epoch": snapshot.epoch.to_string(),
        "commits": snapshot.commits,
        "going": snapshot.going,
        "batches": snapshot.batches,
        "live_families": snapshot.live_families,
        "actors": snapshot.actors,
        "late": snapshot.late,
        "lost_wakes": snapshot.lost_wakes,
        "workers": snapshot.workers.len(),
        "found": { "families": snapshot.recovered.families, "procedures": snapshot.recovered.procedures },
    }))
}

/// How long ago something was, in whole seconds, which begin with those of the clock.
fn ago(now: Timestamp, then: Timestamp) -> u64 {
    (now.0 / SECOND).saturating_sub(then.0 / SECOND)
}

/// Gives what a bulk that has ended says that it did; nothing if it has no output.
async fn bulk(executor: &Executor, id: ProcedureId) -> Result<Value, Trouble> {
    let report: Option<BulkReport> = executor.outcome(id).await?.output()?;
    Ok(report.map_or(Value::Null, |report| {
        let refused = report.outcomes.iter().filter_map(|outcome| outcome.refused.clone());
        json!({ "done": report.done, "refused": report.refused, "why": refused.collect::<Vec<_>>() })
    }))
}
