//! What operators do through the API: a plan first, then the act, with a reason, and no right
//! but the one that it needs.

use std::time::Duration;

use actix_web::test::TestRequest;
use procession::ProcedureId;
use procession::dashboard::{Grant, Right, Rights};
use procession::testkit::{Trouble, World};
use serde_json::{Value, json};

use crate::kit::{Job, Reply, Site, Tested, at, near, site, site_in, text};

const PROBLEM: &str = "application/problem+json";

pub(crate) async fn post(site: &Site<'_>, path: &str, body: &Value) -> Reply {
    let request = near(TestRequest::post()).insert_header(("x-procession", "1"));
    site.ask(request.set_json(body), path).await
}

pub(crate) async fn waiting(site: &Site<'_>) -> Result<ProcedureId, Trouble> {
    site.submit(Job::Wait("go".to_owned()), "a").await
}

#[test]
fn an_abort_is_planned_then_applied_then_in_the_audit() -> Tested {
    site(async |site| {
        let id = waiting(site).await?;
        let path = format!("procedures/{id}/abort");
        let reason = json!({ "reason": "a wrong name" });
        assert_eq!(post(site, &path, &reason).await.status, 400);
        let plan = post(site, &format!("{path}?dry_run=true"), &json!({})).await.body;
        assert_eq!(
            (&plan["dry_run"], &plan["number"], &plan["changed"]),
            (&json!(true), &Value::Null, &json!(1))
        );
        assert_eq!(site.body("procedures").await?["items"][0]["state"], "WaitingTimeout");
        let apply = json!({ "reason": "a wrong name", "expected": plan["revision"], "key": "abort 1" });
        let done = post(site, &path, &apply).await;
        assert_eq!(
            (done.status.as_u16(), &done.body["abort"]),
            (200, &json!({ "outcome": "will_roll_back", "why": null }))
        );
        site.run.settle().await;
        site.shown().await?;
        let late = post(site, &format!("{path}?dry_run=true"), &json!({})).await;
        assert_eq!(
            (late.status.as_u16(), &late.body["kind"]),
            (409, &json!("finished")),
            "{}",
            late.body
        );
        assert_eq!(
            site.body(&format!("procedures/{id}")).await?["procedure"]["state"],
            "RolledBack"
        );
        let entry = site.body("audit").await?["items"][0].clone();
        assert_eq!(
            (text(&entry["who"]), text(&entry["why"])),
            ("ann".to_owned(), "a wrong name".to_owned())
        );
        Ok(())
    })
}

#[test]
fn what_has_changed_since_the_plan_is_left_alone() -> Tested {
    site(async |site| {
        let id = waiting(site).await?;
        let plan = post(site, &format!("procedures/{id}/abort?dry_run=true"), &json!({}))
            .await
            .body;
        let paused = post(site, &format!("procedures/{id}/pause"), &json!({ "reason": "wait" })).await;
        assert_eq!(paused.status, 200, "{}", paused.body);
        let apply = json!({ "reason": "late", "expected": plan["revision"] });
        let refused = post(site, &format!("procedures/{id}/abort"), &apply).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.body["kind"]),
            (409, &json!("revised"))
        );
        let now = site.run.executor.status(id).await?;
        let is = (&refused.body["revision"], &refused.body["state"]);
        assert_eq!(is, (&json!(now.revision.to_string()), &json!(now.state.to_string())));
        Ok(())
    })
}

#[test]
fn a_bypass_needs_the_id_typed() -> Tested {
    site(async |site| {
        let id = waiting(site).await?;
        let plan = post(site, &format!("procedures/{id}/bypass?dry_run=true"), &json!({}))
            .await
            .body;
        let mut apply = json!({ "reason": "stuck", "expected": plan["revision"] });
        assert_eq!(post(site, &format!("procedures/{id}/bypass"), &apply).await.status, 400);
        apply["confirm"] = json!("9.0");
        assert_eq!(post(site, &format!("procedures/{id}/bypass"), &apply).await.status, 400);
        apply["confirm"] = json!(id.to_string());
        assert_eq!(post(site, &format!("procedures/{id}/bypass"), &apply).await.status, 200);
        Ok(())
    })
}

#[test]
fn limits_kinds_and_the_engine_take_their_verbs() -> Tested {
    site(async |site| {
        waiting(site).await?;
        let reason = json!({ "reason": "a quiet night" });
        for path in ["kinds/job/pause", "kinds/job/resume", "engine/pause", "engine/resume"] {
            assert_eq!(post(site, path, &reason).await.status, 200, "{path}");
        }
        assert_eq!(post(site, "limits/job", &reason).await.status, 400);
        let limit = json!({ "reason": "a quiet night", "limit": 3 });
        assert_eq!(post(site, "limits/job", &limit).await.status, 200);
        assert_eq!(site.body("limits").await?["items"][0]["limit"], 3);
        Ok(())
    })
}

#[test]
fn a_limit_is_set_to_a_rate_and_shows_what_of_it_is_used() -> Tested {
    site(async |site| {
        let set = async |limit: Value| post(site, "limits/job", &limit).await.status;
        let why = "the provider says so";
        let both = json!({ "reason": why, "begins": 1, "per_ms": 60_000, "limit": 4 });
        assert_eq!(set(both).await, 200);
        let one = site.submit(Job::Wait("go".to_owned()), "a").await?;
        let other = site.submit(Job::Wait("go".to_owned()), "b").await?;
        let limit = at(&site.body("limits").await?, "/items/0");
        assert_eq!(
            (&limit["limit"], &limit["used"], &limit["waiting"]),
            (&json!(4), &json!(1), &json!(1))
        );
        assert_eq!(
            (&limit["holders"], &limit["waiters"][0]["id"]),
            (&json!([one.to_string()]), &json!(other.to_string()))
        );
        let rate = at(&limit, "/rate");
        let shown = (&rate["begins"], &rate["per_ms"], &rate["begun"]);
        assert_eq!(shown, (&json!(1), &json!(60_000), &json!(1)));
        assert!(rate["free_at"].is_string(), "{rate}");
        let waits = site.body(&format!("procedures/{other}/waits")).await?;
        assert_eq!(at(&waits, "/permit/rate"), rate);
        for wrong in [
            json!({ "reason": why, "begins": 1 }),
            json!({ "reason": why, "per_ms": 5 }),
            json!({ "reason": why, "begins": 1, "per_ms": 5, "unlimited": true }),
            json!({ "reason": why, "begins": 1, "per_ms": 0 }),
        ] {
            assert!(set(wrong.clone()).await.is_client_error(), "{wrong}");
        }
        assert_eq!(set(json!({ "reason": why, "unlimited": true })).await, 200);
        assert_eq!(at(&site.body("limits").await?, "/items/0/rate"), Value::Null);
        Ok(())
    })
}

#[test]
fn each_verb_needs_its_right_and_no_other() -> Tested {
    let verbs = [
        ("procedures/1.0/pause", Right::Operate),
        ("procedures/1.0/resume", Right::Operate),
        ("procedures/1.0/retry", Right::Operate),
        ("procedures/1.0/retry-undo", Right::Operate),
        ("procedures/1.0/abort", Right::Abort),
        ("procedures/1.0/skip-undo", Right::Repair),
        ("procedures/1.0/bypass", Right::Repair),
        ("procedures/1.0/priority", Right::Configure),
        ("kinds/job/pause", Right::Operate),
        ("kinds/job/submit", Right::Submit),
        ("engine/pause", Right::Operate),
        ("limits/job", Right::Configure),
        ("procedures/1.0/reveal", Right::Payload),
        ("procedures/1.0/export", Right::Payload),
        ("procedures/1.0/override-result", Right::Repair),
        ("procedures/1.0/discharge", Right::Repair),
        ("procedures/1.0/signal", Right::Submit),
        ("procedures/1.0/acknowledge", Right::Operate),
        ("procedures/1.0/run-again", Right::Operate),
        ("procedures/1.0/decide", Right::Operate),
        ("engine/drain", Right::Configure),
    ];
    for held in Right::ALL {
        let one = move |_: &actix_web::HttpRequest| Grant::Only {
            who: "bob".to_owned(),
            rights: Rights::none().with(held),
        };
        site_in(
            &World::new(),
            |builder| builder,
            |dashboard| dashboard.access(one),
            async |site| {
                waiting(site).await?;
                for (path, needed) in verbs {
                    let reply = post(
                        site,
                        &format!("{path}?dry_run=true"),
                        &json!({ "priority": 1, "limit": 1, "name": "go", "output": "done", "answer": true }),
                    )
                    .await;
                    let is_refused = reply.body["kind"] == "right";
                    assert_eq!(is_refused, held != needed, "{path} with {held}: {}", reply.body);
                }
                assert_eq!(site.get("engine").await.status == 200, held == Right::View);
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[test]
fn what_cannot_be_read_changes_nothing() -> Tested {
    site(async |site| {
        let id = waiting(site).await?;
        let pause = format!("procedures/{id}/pause");
        for body in [
            json!({}),
            json!({ "reason": " " }),
            json!({ "reason": "x", "reasons": 1 }),
            json!([1]),
        ] {
            assert_eq!(post(site, &pause, &body).await.status, 400, "{body}");
        }
        let long = json!({ "reason": "x".repeat(70_000) });
        let refused = post(site, &pause, &long).await;
        assert_eq!(
            (refused.status.as_u16(), refused.header("content-type")),
            (413, PROBLEM)
        );
        assert_eq!(
            (&refused.body["kind"], &refused.body["limit"]),
            (&json!("too_large"), &json!(65_536))
        );
        let request = near(TestRequest::post()).insert_header(("x-procession", "1"));
        let request = request
            .insert_header(("content-type", "application/json"))
            .set_payload("{\"reason\": ");
        let refused = site.ask(request, &pause).await;
        assert_eq!(
            (refused.status.as_u16(), refused.header("content-type")),
            (400, PROBLEM)
        );
        assert!(
            text(&refused.body["detail"]).starts_with("The body cannot be read"),
            "{}",
            refused.body
        );
        assert_eq!(
            post(site, &format!("procedures/{id}/kill"), &json!({ "reason": "x" }))
                .await
                .status,
            404
        );
        assert_eq!(site.get(&pause).await.status, 405);
        assert_eq!(site.get(&format!("procedures/{id}/kill")).await.status, 404);
        assert_eq!(site.body("procedures").await?["items"][0]["paused"], false);
        Ok(())
    })
}

/// Returns the commit that a reply is of.
fn as_of(reply: &Reply) -> u64 {
    let moment = text(&at(&reply.body, "/as_of"));
    let seq = moment.split_once('-').map(|(_, seq)| seq.parse());
    seq.and_then(Result::ok).unwrap_or_default()
}

#[test]
fn the_reply_to_an_act_is_of_its_commit_or_a_later_one() -> Tested {
    site(async |site| {
        let id = waiting(site).await?;
        // Nothing but the reply is waited for, so what is shown may be behind it.
        for (verb, body) in [
            ("pause", json!({ "reason": "a look", "key": "pause 1" })),
            ("pause", json!({ "reason": "a look", "key": "pause 1" })),
            ("priority", json!({ "priority": 3, "reason": "sooner" })),
            ("resume", json!({ "reason": "seen" })),
            ("abort", json!({})),
        ] {
            let dry = if verb == "abort" { "?dry_run=true" } else { "" };
            let reply = post(site, &format!("procedures/{id}/{verb}{dry}"), &body).await;
            assert_eq!(reply.status, 200, "{verb}: {}", reply.body);
            let acted = site.run.executor.status(id).await?.revision;
            assert!(
                as_of(&reply) >= acted.0,
                "{verb}: {} is before {acted}",
                reply.body["as_of"]
            );
        }
        // A stream that goes on from there is not told to read anew.
        let reply = post(
            site,
            &format!("procedures/{id}/priority"),
            &json!({ "priority": 4, "reason": "now" }),
        )
        .await;
        let mut stream = site.listen(&format!("?from={}", text(&reply.body["as_of"]))).await?;
        post(
            site,
            &format!("procedures/{id}/priority"),
            &json!({ "priority": 5, "reason": "now" }),
        )
        .await;
        // A row is told ten times a second at most, by the clock, which stands still.
        site.pass(Duration::from_secs(1)).await?;
        loop {
            let event = stream.next().await?.ok_or("it goes on")?;
            assert_ne!(event.name, "resync", "{}", event.data);
            if event.name == "change" && event.data["rows"][0]["priority"] == 5 {
                return Ok(());
            }
        }
    })
}

#[test]
fn who_has_acted_sees_it_at_once() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        let shown = async || {
            let acts = site.body("audit").await?["items"].as_array().map(Vec::len);
            let counted = at(&site.body(&format!("procedures/{id}")).await?, "/counts/audit/count");
            let limit = at(&site.body("limits").await?, "/items/0/limit");
            let paused = at(&site.body("engine").await?, "/paused");
            Ok::<_, Trouble>((acts, counted, limit, paused))
        };
        assert_eq!(shown().await?, (Some(0), json!(0), json!(null), json!([])));
        // No time passes: what was answered before each act is as new as can be, and is not shown after it.
        let reason = json!({ "reason": "a look" });
        assert_eq!(post(site, &format!("procedures/{id}/pause"), &reason).await.status, 200);
        assert_eq!(shown().await?, (Some(1), json!(1), json!(null), json!([])));
        let limit = json!({ "reason": "a look", "limit": 3 });
        assert_eq!(post(site, "limits/job", &limit).await.status, 200);
        assert_eq!(shown().await?, (Some(2), json!(1), json!(3), json!([])));
        assert_eq!(post(site, "engine/pause", &reason).await.status, 200);
        assert_eq!(shown().await?, (Some(3), json!(1), json!(3), json!(["everything"])));
        Ok(())
    })
}

/// Three characters stay escaped in the path that the web server hands on.
#[test]
fn a_name_in_the_path_may_have_any_character() -> Tested {
    site(async |site| {
        let set = post(
            site,
            "limits/a%2Bb%20%25c%2Fd%252F",
            &json!({ "reason": "x", "limit": 3 }),
        )
        .await;
        assert_eq!(set.status, 200, "{}", set.body);
        site.pass(Duration::from_secs(1)).await?;
        let limits = site.body("limits").await?;
        let keys = limits["items"].as_array().into_iter().flatten();
        let keys: Vec<String> = keys.map(|limit| text(&limit["key"])).collect();
        assert!(keys.contains(&"a+b %c/d%2F".to_owned()), "{keys:?}");
        let unknown = post(site, "kinds/no%2Fsuch/submit", &json!({ "value": 1 })).await;
        assert!(
            text(&unknown.body["detail"]).contains("\"no/such\""),
            "{}",
            unknown.body
        );
        Ok(())
    })
}
