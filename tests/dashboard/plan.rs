//! What a plan says beyond the rows that change: undos, what is freed, who moves then, and what
//! to think of before.

use procession::testkit::Trouble;
use serde_json::{Value, json};

use crate::act::post;
use crate::kit::{Job, Site, Tested, at, site, text};

async fn plan(site: &Site<'_>, path: &str, body: &Value) -> Result<Value, Trouble> {
    let reply = post(site, &format!("{path}?dry_run=true"), body).await;
    if reply.status != 200 {
        return Err(format!("{path}: {}", reply.body).into());
    }
    Ok(at(&reply.body, "/plan"))
}

fn hold(path: &str) -> Job {
    Job::Hold(path.to_owned())
}

fn warns(plan: &Value, words: &str) -> bool {
    let warnings = at(plan, "/warnings");
    let warnings = warnings.as_array().map(Vec::as_slice).unwrap_or_default();
    warnings.iter().any(|warning| text(warning).contains(words))
}

#[test]
fn an_abort_undoes_then_frees_then_lets_the_next_in() -> Tested {
    site(async |site| {
        let first = site.submit(hold("t/users"), "a").await?;
        let second = site.submit(hold("t/users"), "b").await?;
        let plan = plan(site, &format!("procedures/{first}/abort"), &json!({})).await?;
        assert_eq!(plan["undone"][0]["stage"], "Begin", "{plan}");
        assert_eq!(plan["stays"], json!([]));
        let freed =
            json!({ "id": first.to_string(), "limits": [], "locks": ["exclusive t/users"], "when": "after_rollback" });
        assert_eq!(plan["freed"], json!([freed]));
        assert_eq!(plan["moves_next"], json!([second.to_string()]));
        Ok(())
    })
}

#[test]
fn a_bypass_undoes_nothing_and_frees_at_once() -> Tested {
    site(async |site| {
        let first = site.submit(hold("t/users"), "a").await?;
        let second = site.submit(hold("t/users"), "b").await?;
        let path = format!("procedures/{first}/bypass");
        let plan = plan(site, &path, &json!({})).await?;
        assert_eq!(plan["undone"], json!([]), "{plan}");
        assert_eq!(
            (&plan["stays"][0]["stages"], &plan["stays"][0]["why"]),
            (&json!(["Begin"]), &json!("a bypass undoes nothing"))
        );
        assert_eq!(plan["freed"][0]["when"], "now");
        assert_eq!(plan["moves_next"], json!([second.to_string()]));
        // What was foreseen is what happens.
        let revision = site.body(&format!("procedures/{first}")).await?["procedure"]["revision"].clone();
        let apply = json!({ "reason": "x", "confirm": first.to_string(), "expected": revision });
        let done = post(site, &path, &apply).await;
        assert_eq!(
            (done.status.as_u16(), &done.body["plan"]),
            (200, &Value::Null),
            "{}",
            done.body
        );
        site.run.settle().await;
        assert!(
            site.run
                .executor
                .status(second)
                .await?
                .wait
                .is_some_and(|wait| wait.to_string().contains("release"))
        );
        Ok(())
    })
}

#[test]
fn a_family_is_warned_of() -> Tested {
    site(async |site| {
        let root = site.submit(Job::Parent(3), "a").await?;
        let whole = plan(site, &format!("procedures/{root}/abort"), &json!({})).await?;
        assert!(warns(&whole, "it includes 3 descendants"), "{whole}");
        assert_eq!(whole["undone"].as_array().map(Vec::len), Some(4), "{whole}");
        let numbers: Vec<u32> = whole["undone"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|undo| text(&undo["number"]).parse())
            .collect::<Result<_, _>>()?;
        assert!(numbers.is_sorted_by(|newer, older| newer > older), "{numbers:?}");
        let child = procession::ProcedureId::new(root.family, 1);
        let one = plan(site, &format!("procedures/{child}/abort"), &json!({})).await?;
        assert!(warns(&one, &format!("its parent {root} waits for its result")), "{one}");
        assert!(warns(&one, &format!("{root} fails too, and is rolled back")), "{one}");
        let held = plan(site, &format!("procedures/{root}/pause"), &json!({})).await?;
        assert!(warns(&held, "it includes 3 descendants"), "{held}");
        assert_eq!(held["undone"], json!([]));
        Ok(())
    })
}

/// A family goes on while somebody looks at its plan. It is aborted all the same: held to all its rows, one that moves
/// could not be.
#[test]
fn an_abort_tells_how_many_stages_it_concerns_beyond_its_plan() -> Tested {
    site(async |site| {
        let root = site.submit(Job::Parent(3), "a").await?;
        let path = format!("procedures/{root}/abort");
        let plan = post(site, &format!("{path}?dry_run=true"), &json!({})).await.body;
        assert_eq!(plan["reach"], json!({ "undone": 4, "stays": 0 }), "{plan}");
        site.signal(procession::ProcedureId::new(root.family, 1), "go").await?;
        let apply = json!({ "reason": "x", "expected": plan["revision"], "key": "k" });
        let done = post(site, &path, &apply).await;
        assert_eq!(
            (done.status.as_u16(), &done.body["reach"]),
            (200, &json!({ "undone": 3, "stays": 2 })),
            "{}",
            done.body
        );
        let again = post(site, &path, &apply).await;
        assert_eq!(
            (again.status.as_u16(), &again.body["reach"]),
            (200, &done.body["reach"]),
            "a repeat is answered as the act was: {}",
            again.body
        );
        // Nothing is undone by what only pauses.
        let held = post(site, &format!("procedures/{root}/pause?dry_run=true"), &json!({})).await;
        assert_eq!(held.body["reach"], Value::Null);
        Ok(())
    })
}

#[test]
fn a_limit_that_is_raised_lets_the_difference_in() -> Tested {
    site(async |site| {
        let wish = json!({ "reason": "x", "limit": 1 });
        assert_eq!(post(site, "limits/job", &wish).await.status, 200);
        let mut ids = Vec::new();
        for key in ["a", "b", "c", "d"] {
            ids.push(site.submit(Job::Wait("go".to_owned()), key).await?.to_string());
        }
        let raised = plan(site, "limits/job", &json!({ "limit": 3 })).await?;
        assert_eq!(raised["moves_next"], json!([ids[1], ids[2]]), "{raised}");
        Ok(())
    })
}

#[test]
fn a_plan_says_what_is_set() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        let sets = async |path: &str, wish: &Value| -> Result<Value, Trouble> {
            let reply = post(site, &format!("{path}?dry_run=true"), wish).await;
            Ok(at(&reply.body, "/sets/0"))
        };
        let one = format!("procedures/{id}");
        for (path, wish, what, now, then) in [
            (
                format!("{one}/priority"),
                json!({ "priority": 9 }),
                format!("priority of {id}"),
                "0",
                "9",
            ),
            (
                format!("{one}/pause"),
                json!({}),
                format!("pause of {id}"),
                "not paused",
                "paused",
            ),
            (
                "engine/pause".to_owned(),
                json!({}),
                "pause of everything".to_owned(),
                "not paused",
                "paused",
            ),
            (
                "kinds/job/resume".to_owned(),
                json!({}),
                "pause of the kind job".to_owned(),
                "not paused",
                "not paused",
            ),
            (
                "limits/pikc".to_owned(),
                json!({ "limit": 3, "begins": 10, "per_ms": 1_000 }),
                "limit pikc".to_owned(),
                "not there",
                "3 at once, 10 in 1 s",
            ),
        ] {
            let expected = json!({ "what": what, "now": now, "then": then });
            assert_eq!(sets(&path, &wish).await?, expected, "{path}");
        }
        let new = plan(site, "limits/pikc", &json!({ "limit": 3 })).await?;
        assert!(warns(&new, "there is no limit pikc yet"), "{new}");
        let made = post(site, "limits/pikc", &json!({ "limit": 3, "reason": "x" }))
            .await
            .body;
        assert_eq!((&made["new"], &made["sets"]), (&json!(true), &Value::Null), "{made}");
        let known = plan(site, "limits/pikc", &json!({ "unlimited": true })).await?;
        assert_eq!(known["warnings"], json!([]), "{known}");
        Ok(())
    })
}

#[test]
fn what_can_never_be_is_a_wrong_request() -> Tested {
    site(async |site| {
        let limit = json!({ "begins": 1, "per_ms": 0, "reason": "x" });
        assert_eq!(post(site, "limits/job", &limit).await.status, 400);
        let named = json!({ "value": "End", "name": "n".repeat(300) });
        let reply = post(site, "kinds/job/submit", &named).await;
        assert_eq!(reply.status, 400, "{}", reply.body);
        Ok(())
    })
}
