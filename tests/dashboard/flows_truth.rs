//! Streams, and all that is shown of sets and streams together: every figure is the engine's own answer.

use std::sync::atomic::Ordering;

use procession::ProcedureId;
use procession::dashboard::{DashboardBuilder, Grant, NoAccess};
use procession::flow::{Node, Set, Stream};
use procession::operate::OperatorRequest;
use procession::testkit::{Trouble, World};
use serde_json::{Value, json};

use crate::act::post;
use crate::flows::{Draw, album, assert_drawn, assert_told, backlog, drawing, start};
use crate::kit::{Job, Site, Tested, at, everybody, ids, site_in, text};

/// Compares a stream in the list and in its queue with what the engine says of it.
async fn assert_queued(site: &Site<'_>, stream: &Stream) -> Result<Value, Trouble> {
    let (id, status) = (stream.open().await?, stream.status().await?);
    let body = site.body(&format!("flows?filter=root:{id}%20state:live,ended")).await?;
    let shown = at(&body, "/items/0");
    assert_eq!(
        (at(&shown, "/sort"), text(&at(&shown, "/name"))),
        (json!("stream"), stream.name().to_string())
    );
    assert_eq!(text(&at(&shown, "/state")), status.state.to_string());
    assert_eq!(at(&shown, "/queue/waiting"), status.waiting);
    assert_eq!(at(&shown, "/queue/done"), status.ended);
    assert_eq!(at(&shown, "/queue/sealed"), status.sealed);
    let oldest = status.oldest.map(|at| at.to_string());
    assert_eq!(at(&shown, "/queue/oldest"), json!(oldest));
    let in_hand = status.in_hand.as_ref().map(|node| node.name.as_str());
    assert_eq!(at(&shown, "/queue/in_hand"), json!(in_hand));

    let queue = site.body(&format!("procedures/{id}/queue")).await?;
    assert_eq!(text(&at(&queue, "/state")), status.state.to_string());
    let told = at(&queue, "/in_hand").get("name").cloned().unwrap_or_default();
    assert_eq!(told, json!(in_hand));
    assert_eq!(
        (at(&queue, "/waiting"), at(&queue, "/oldest")),
        (json!(status.waiting), json!(oldest))
    );
    let behind = status.in_hand.as_ref().map_or(0, |node| node.place + 1);
    let waiting = stream.waiting(behind, 64).await?.items;
    let next = at(&queue, "/next");
    let told = next.as_array().into_iter().flatten();
    let told: Vec<String> = told.map(|node| text(&at(node, "/name"))).collect();
    assert_eq!(
        told,
        waiting.iter().map(|node| node.name.clone()).collect::<Vec<String>>()
    );
    let records = stream.records(None, 50).await?.items;
    let shown = at(&queue, "/records");
    let told = shown.as_array().into_iter().flatten();
    let told: Vec<Value> = told
        .map(|record| json!([at(record, "/place"), at(record, "/name"), at(record, "/state")]))
        .collect();
    let wanted = records
        .iter()
        .map(|record| json!([record.place, record.name, record.state.to_string()]));
    assert_eq!(told, wanted.collect::<Vec<Value>>());
    Ok(queue)
}

fn places(queue: &Value) -> Vec<Value> {
    let records = at(queue, "/records");
    let records = records.as_array().into_iter().flatten();
    records.map(|record| at(record, "/place")).collect()
}

#[test]
fn a_stream_is_told_with_its_queue_and_its_records() -> Tested {
    let (disk, engine) = drawing(true);
    let world = World::new();
    site_in(&world, &engine, everybody, async |site| {
        let stream = backlog(site, 100).await?;
        let queue = assert_queued(site, &stream).await?;
        assert_eq!(
            (&queue["state"], &queue["in_hand"]["question"]),
            (&json!("PENDING"), &json!("the disk is full"))
        );
        let next = queue["next"].as_array().map(Vec::len);
        assert_eq!((next, &queue["waiting"]), (Some(64), &json!(100)));
        assert_eq!((&queue["done"], &queue["per_minute"]), (&json!(1), &json!(1)));
        assert_eq!(site.body("flows").await?["items"][0]["pending"], json!(["small"]));
        Ok(())
    })?;
    site_in(&world, &engine, everybody, async |site| {
        let stream = site.run.executor.stream("invoices", "customer-17")?;
        assert_queued(site, &stream).await?;
        disk.store(false, Ordering::Relaxed);
        stream.retry(OperatorRequest::new("ann", "room was made")).await?;
        site.run.settle().await;
        site.shown().await?;
        let queue = assert_queued(site, &stream).await?;
        assert_eq!((&queue["done"], &queue["in_hand"]), (&json!(102), &Value::Null));
        assert_eq!(places(&queue).len(), 50);
        let id = stream.open().await?;
        let older = format!("procedures/{id}/queue?before={}&limit=500", text(&queue["before"]));
        let older = site.body(&older).await?;
        assert_eq!((&older["per_minute"], &older["before"]), (&Value::Null, &Value::Null));
        let mut all = [places(&queue), places(&older)].concat();
        all.dedup();
        assert_eq!(all.len(), 102, "none is missing, and none is there twice");
        stream.finish().await?;
        site.run.settle().await;
        site.shown().await?;
        assert_eq!(assert_queued(site, &stream).await?["state"], "FINISH");
        assert_eq!(ids(&site.body("flows").await?), Vec::<String>::new());
        let other = site.submit(Job::Wait("go".to_owned()), "no stream").await?;
        assert_eq!(site.get(&format!("procedures/{other}/queue")).await.status, 404);
        Ok(())
    })
}

async fn large(site: &Site<'_>) -> Result<Set, Trouble> {
    let mut large = Set::builder("large");
    let first = large.add(Node::new("small", Draw));
    for number in 1..5_000 {
        large.add(Node::new(format!("n{number}"), Draw).after([first]));
    }
    site.run.settle().await;
    Ok(large.build()?)
}

#[test]
fn f_065_the_page_tells_the_truth() -> Tested {
    let (disk, engine) = drawing(true);
    site_in(&World::new(), &engine, everybody, async |site| {
        let diamond = album(site, "album 7").await?;
        let large = start(site, large(site).await?, "large").await?;
        let family = site.submit(Job::AskFirst("drop t?".to_owned(), 2), "gates").await?;
        let stream = backlog(site, 10).await?;

        // All figures agree with the engine's answers.
        assert_eq!(ids(&site.body("flows").await?).len(), 3);
        assert_told(site, &diamond, "").await?;
        assert_told(site, &large, "").await?;
        assert_drawn(site, &diamond).await?;
        assert_queued(site, &stream).await?;
        let graph = site.body(&format!("procedures/{}/graph", large.id())).await?;
        assert_eq!((ids(&graph).len(), &graph["truncated"]), (5_000, &json!(false)));
        let groups = graph["groups"].as_array().map(Vec::len);
        assert_eq!(groups, Some(2), "folded by layer and state");
        let gates = format!("procedures/{family}/graph");
        assert_eq!(
            site.body(&gates).await?["counts"],
            json!({ "asks": 1, "waiting · gate": 2 })
        );

        // The last node's explanation names the gate, the node that holds it up, and since when.
        let (last, small) = (diamond.node("publish").await?, diamond.node("small").await?);
        let waits = site.body(&format!("procedures/{}/waits", last.id)).await?;
        let link = &waits["links"][0];
        assert_eq!(
            (&link["why"], text(&link["to"])),
            (&json!("gate"), small.id.to_string())
        );
        assert_eq!(text(&link["since"]), last.since.to_string());
        assert_eq!(text(&waits["ends"][0]["id"]), small.id.to_string());
        let cause = site.body(&format!("procedures/{}", small.id)).await?;
        assert_eq!(cause["procedure"]["question"], "the disk is full");

        // A dry run changes nothing; then it is applied.
        disk.store(false, Ordering::Relaxed);
        let retry = format!("procedures/{}/retry", small.id);
        let plan = post(site, &format!("{retry}?dry_run=true"), &json!({})).await;
        assert_eq!(plan.status, 200, "{}", plan.body);
        assert_told(site, &diamond, "").await?;
        let done = post(site, &retry, &json!({ "reason": "room was made" })).await;
        assert_eq!(done.status, 200, "{}", done.body);
        site.run.settle().await;
        site.shown().await?;
        assert_told(site, &diamond, "%20state:ended").await?;

        // The question of the family is answered, and the family goes on.
        let decide = format!("procedures/{}/decide", ProcedureId::new(family.family, 1));
        let plan = post(site, &format!("{decide}?dry_run=true"), &json!({ "answer": true })).await;
        let answer = json!({ "answer": true, "expected": plan.body["revision"] });
        let done = post(site, &decide, &answer).await;
        assert_eq!(done.status, 200, "{}", done.body);
        site.run.settle().await;
        site.shown().await?;
        assert_eq!(site.body(&gates).await?["counts"], json!({ "success": 3 }));
        Ok(())
    })
}

#[test]
fn f_065_a_caller_that_may_only_look_decides_nothing() -> Tested {
    let (_, engine) = drawing(true);
    let reader = |dashboard: DashboardBuilder<NoAccess>| {
        dashboard.access(|_: &actix_web::HttpRequest| Grant::ReadOnly { who: "bob".to_owned() })
    };
    site_in(&World::new(), &engine, reader, async |site| {
        let set = album(site, "album 7").await?;
        assert_told(site, &set, "").await?;
        let small = set.node("small").await?.id;
        for (verb, body) in [
            ("retry", json!({ "reason": "r" })),
            ("override-result", json!({ "reason": "r", "output": 7 })),
            ("bypass", json!({ "reason": "r", "as": "failed" })),
            ("decide", json!({ "answer": true })),
        ] {
            let reply = post(site, &format!("procedures/{small}/{verb}"), &body).await;
            assert_eq!(reply.status, 403, "{verb}: {}", reply.body);
        }
        Ok(())
    })
}
