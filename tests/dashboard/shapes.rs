//! The shape of every reply, against a golden file: fields are added, never changed.
//!
//! `BLESS=1 cargo test --all-features --test dashboard shapes` writes the files anew; look at
//! the difference before it lands.

use std::path::Path;
use std::time::Duration;

use procession::operate::OperatorRequest;
use procession::testkit::{Trouble, World};
use serde_json::Value;

use crate::act::post;
use crate::flows::{album, backlog, drawing};
use crate::kit::{Job, Site, Tested, everybody, site_in};
use crate::{logs, sagas};

/// File and path of each reply to a `GET`.
pub(crate) const REPLIES: [(&str, &str); 25] = [
    ("me", "me"),
    ("attention", "attention"),
    ("limits", "limits"),
    ("locks", "locks"),
    ("kinds", "kinds"),
    ("stages", "kinds/job/stages"),
    ("engine", "engine"),
    ("audit", "audit"),
    ("failures", "failures"),
    ("find", "find?key=request%201"),
    ("procedures", "procedures"),
    ("procedures_ended", "procedures?filter=state:ended"),
    ("procedure", "procedures/1"),
    ("procedure_failed", "procedures/4.0"),
    ("tree", "procedures/3.0/tree"),
    ("timeline", "procedures/3.0/timeline"),
    ("history", "procedures/5.0/history?limit=2"),
    ("logs_none", "procedures/4.0/logs"),
    ("values_none", "procedures/5.0/values?entry=1&from=0"),
    ("waits", "procedures/2.0/waits"),
    ("signals", "procedures/1.0/signals"),
    ("problem_filter", "procedures?filter=state:soon"),
    ("problem_unknown", "procedures/99.0"),
    ("problem_unknown_kind", "kinds/nosuch/stages"),
    ("problem_unknown_entry", "procedures/5.0/values?entry=99"),
];

/// File and path of each chart.
pub(crate) const CHARTS: [(&str, &str); 2] = [("charts", "charts"), ("charts_kind", "charts?kind=job&span=24h")];

/// File and path of each reply about sets and streams.
pub(crate) const FLOWS: [(&str, &str); 4] = [
    ("flows", "flows"),
    ("graph", "procedures/1.0/graph"),
    ("graph_grouped", "procedures/1.0/graph?max=3"),
    ("queue", "procedures/2.0/queue"),
];

/// File and path of each reply about logs.
pub(crate) const LOGS: [(&str, &str); 1] = [("logs", "procedures/1.0/logs?visit=0")];

/// File and path of each reply about sagas.
pub(crate) const SAGAS: [(&str, &str); 2] = [("saga", "procedures/1.0/saga"), ("saga_undone", "procedures/2.0/saga")];

/// File, path and body of the plans of decisions about sagas.
pub(crate) const SAGA_PLANS: [(&str, &str, &str); 3] = [
    (
        "plan_forward",
        "procedures/1.0/forward?dry_run=true",
        r#"{ "params": { "flight": "ok" } }"#,
    ),
    (
        "plan_skip",
        "procedures/1.1/skip?dry_run=true",
        r#"{ "results": { "flight": "by train" } }"#,
    ),
    ("problem_not_resting", "procedures/2.0/skip?dry_run=true", "{}"),
];

/// File, path and body of each reply to a `POST`, in the order in which they are asked for.
pub(crate) const ANSWERS: [(&str, &str, &str); 11] = [
    ("plan_abort", "procedures/1.0/abort?dry_run=true", "{}"),
    (
        "plan_bypass",
        "procedures/3.0/bypass?dry_run=true",
        r#"{ "recursive": true }"#,
    ),
    ("plan_limit", "limits/job?dry_run=true", r#"{ "unlimited": true }"#),
    ("plan_drain", "engine/drain?dry_run=true", r#"{ "deadline_ms": 5000 }"#),
    ("plan_export", "procedures/2.0/export?dry_run=true", "{}"),
    ("plan_bulk", "bulk/pause?dry_run=true", r#"{ "filter": "key:request" }"#),
    ("reveal", "procedures/2.0/reveal", r#"{ "reason": "look" }"#),
    ("act_pause", "kinds/job/pause", r#"{ "reason": "look" }"#),
    (
        "act_abort",
        "procedures/2.0/abort?dry_run=false",
        r#"{ "reason": "look", "expected": "5" }"#,
    ),
    (
        "problem_revised",
        "procedures/1.0/abort",
        r#"{ "reason": "look", "expected": "1" }"#,
    ),
    (
        "bulk_begun",
        "bulk/pause",
        r#"{ "filter": "key:request", "reason": "look", "expected": "4-c00bbe483d160bb6", "key": "night" }"#,
    ),
];

/// Leaves out what the machine measured.
fn settled(value: &mut Value) {
    if let Some(object) = value.as_object_mut() {
        for (name, field) in object.iter_mut() {
            if [
                "took_ms",
                "size_bytes",
                "disk_free_bytes",
                "appended_bytes",
                "commit_p99_ms",
                "pulse",
            ]
            .contains(&name.as_str())
            {
                *field = Value::from("measured");
            }
            settled(field);
        }
    }
    if let Some(items) = value.as_array_mut() {
        items.iter_mut().for_each(settled);
    }
}

/// Asks for a path until no message waits. The dashboard's model asks the engine for changes by the time of the machine,
/// and so at any moment.
async fn at_rest(site: &Site<'_>, path: &str) -> Value {
    loop {
        let body = site.get(path).await.body;
        let mailboxes = body.get("mailboxes").and_then(Value::as_object);
        if mailboxes.is_none_or(|mailboxes| mailboxes.values().all(|waiting| *waiting == 0)) {
            return body;
        }
        site.run.settle().await;
    }
}

async fn scene(site: &Site<'_>) -> Tested {
    site.pass(Duration::from_secs(1)).await?;
    let first = site.submit(Job::Hold("t/users".to_owned()), "request 1").await?;
    site.signal(first, "noise").await?;
    site.submit(Job::Hold("t/users".to_owned()), "request 2").await?;
    site.submit(Job::Parent(2), "request 3").await?;
    site.submit(Job::Fail("no space".to_owned()), "request 4").await?;
    site.submit(Job::Retry("rpc timeout".to_owned()), "request 5").await?;
    let by = OperatorRequest::new("bob", "a quiet night").key("limit 1");
    site.run.executor.set_limit("job", Some(40), by).await?;
    site.run
        .executor
        .set_priority(first, 7, OperatorRequest::new("bob", "first things first"))
        .await?;
    site.pass(Duration::from_secs(30)).await
}

#[test]
fn every_reply_has_its_golden_shape() -> Tested {
    let replies = site_in(
        &World::new(),
        |builder| builder,
        everybody,
        async |site| {
            scene(site).await?;
            let mut replies = Vec::new();
            for (name, path) in REPLIES {
                let mut body = at_rest(site, path).await;
                settled(&mut body);
                replies.push((name, format!("{}\n", serde_json::to_string_pretty(&body)?)));
            }
            for (name, path, body) in ANSWERS {
                site.run.settle().await;
                site.shown().await?;
                let mut body = post(site, path, &serde_json::from_str(body)?).await.body;
                settled(&mut body);
                if let Some(moment) = body.get_mut("as_of") {
                    // The model may show the act already, or not yet.
                    *moment = Value::from("1-0");
                }
                replies.push((name, format!("{}\n", serde_json::to_string_pretty(&body)?)));
            }
            site.run.settle().await;
            site.shown().await?;
            let bulk = site.get("procedures/6.0/bulk").await.body;
            replies.push(("bulk", format!("{}\n", serde_json::to_string_pretty(&bulk)?)));
            Ok::<_, Trouble>(replies)
        },
    )?;
    compare(replies)
}

#[test]
fn every_reply_about_sets_and_streams_has_its_golden_shape() -> Tested {
    let (_, engine) = drawing(true);
    let replies = site_in(&World::new(), &engine, everybody, async |site| {
        site.pass(Duration::from_secs(1)).await?;
        album(site, "album 7").await?;
        backlog(site, 3).await?;
        site.pass(Duration::from_secs(30)).await?;
        let mut replies = Vec::new();
        for (name, path) in FLOWS {
            let body = site.get(path).await.body;
            replies.push((name, format!("{}\n", serde_json::to_string_pretty(&body)?)));
        }
        Ok(replies)
    })?;
    compare(replies)
}

#[test]
fn every_chart_has_its_golden_shape() -> Tested {
    let world = World::new();
    // Before the start nothing is known.
    world.clock.advance(Duration::from_mins(1));
    let replies = site_in(
        &world,
        |builder| builder,
        everybody,
        async |site| {
            scene(site).await?;
            site.pass(Duration::from_mins(1)).await?;
            site.submit(Job::End, "request 6").await?;
            let mut replies = Vec::new();
            for (name, path) in CHARTS {
                let body = site.get(path).await.body;
                replies.push((name, format!("{}\n", serde_json::to_string_pretty(&body)?)));
            }
            Ok(replies)
        },
    )?;
    compare(replies)
}

#[test]
fn every_reply_about_logs_has_its_golden_shape() -> Tested {
    let replies = logs::copied(logs::shown, async |site| {
        let mut replies = Vec::new();
        for (name, path) in LOGS {
            let body = site.body(path).await?;
            replies.push((name, format!("{}\n", serde_json::to_string_pretty(&body)?)));
        }
        Ok(replies)
    })?;
    compare(replies)
}

#[test]
fn every_reply_about_sagas_has_its_golden_shape() -> Tested {
    let sagas = sagas::sagas()?;
    let replies = site_in(&World::new(), sagas::engine(sagas.clone()), everybody, async |site| {
        site.pass(Duration::from_secs(1)).await?;
        sagas::start(site, &sagas, "tour", "tour", sagas::resting()).await?;
        let lost = serde_json::json!({ "reserve": "ok", "pay": "x.NoMoney" });
        sagas::start(site, &sagas, "order", "order", lost).await?;
        site.pass(Duration::from_secs(30)).await?;
        let mut replies = Vec::new();
        for (name, path) in SAGAS {
            replies.push((name, site.get(path).await.body));
        }
        for (name, path, body) in SAGA_PLANS {
            replies.push((name, post(site, path, &serde_json::from_str(body)?).await.body));
        }
        let replies = replies.into_iter();
        let replies = replies.map(|(name, body)| Ok((name, format!("{}\n", serde_json::to_string_pretty(&body)?))));
        replies.collect::<Result<Vec<_>, Trouble>>()
    })?;
    compare(replies)
}

fn compare(replies: Vec<(&str, String)>) -> Tested {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dashboard/golden");
    let mut differ = Vec::new();
    for (name, found) in replies {
        let file = folder.join(format!("{name}.json"));
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&file, found)?;
        } else {
            let golden = std::fs::read_to_string(&file)?;
            if found != golden {
                differ.push(format!("{name}: {found}"));
            }
        }
    }
    assert!(
        differ.is_empty(),
        "other than their golden files: {}",
        differ.join("\n")
    );
    Ok(())
}
