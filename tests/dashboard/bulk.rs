//! One verb for all that a filter admits: planned, bounded, begun once, and told of.

use std::time::Duration;

use procession::dashboard::{Grant, Right, Rights};
use procession::testkit::World;
use serde_json::{Value, json};

use crate::act::post;
use crate::kit::{Job, Site, Tested, ids, site, site_in, text};

async fn three(site: &Site<'_>) -> Result<Vec<String>, procession::testkit::Trouble> {
    let mut ids = Vec::new();
    for key in ["req-1", "req-2", "other"] {
        ids.push(site.submit(Job::Wait("go".to_owned()), key).await?.to_string());
    }
    Ok(ids)
}

#[test]
fn it_is_planned_then_begun_once_then_has_a_page() -> Tested {
    site(async |site| {
        let all = three(site).await?;
        let mut wish = json!({ "filter": "key:req-", "reason": "a quiet night", "key": "night 1" });
        assert_eq!(post(site, "bulk/pause", &wish).await.status, 400, "it needs its plan");
        let plan = post(site, "bulk/pause?dry_run=true", &wish).await.body;
        assert_eq!((&plan["count"], &plan["over"]), (&json!(2), &json!(false)), "{plan}");
        assert!(text(&plan["revision"]).starts_with("2-"), "{plan}");
        assert_eq!(ids(&plan), all[..2]);
        assert_eq!(
            site.body("procedures").await?["items"].as_array().map(Vec::len),
            Some(3),
            "nothing is begun"
        );
        wish["expected"] = plan["revision"].clone();
        let begun = post(site, "bulk/pause", &wish).await;
        assert_eq!(
            (begun.status.as_u16(), &begun.body["count"]),
            (200, &json!(2)),
            "{}",
            begun.body
        );
        let again = post(site, "bulk/pause", &wish).await.body;
        assert_eq!((&again["id"], &again["repeated"]), (&begun.body["id"], &json!(true)));
        let other = json!({ "filter": "key:req-", "reason": "another", "key": "night 1", "expected": "2" });
        assert_eq!(post(site, "bulk/pause", &other).await.status, 409);
        wish["filter"] = json!("key:other");
        assert_eq!(
            post(site, "bulk/pause", &wish).await.status,
            409,
            "the key stands for another filter"
        );
        site.run.settle().await;
        site.shown().await?;
        let id = text(&begun.body["id"]);
        let told = site.body(&format!("procedures/{id}/bulk")).await?;
        assert_eq!(
            (&told["state"], &told["done"], &told["left"], &told["verb"]),
            (&json!("Success"), &json!(2), &json!(0), &json!("pause")),
            "{told}"
        );
        assert_eq!(ids(&told), all[..2]);
        let page = site.body(&format!("procedures/{id}")).await?;
        assert_eq!(page["procedure"]["kind"], "procession.bulk");
        for (at, id) in all.iter().enumerate() {
            let row = site.body(&format!("procedures/{id}")).await?;
            assert_eq!(row["procedure"]["paused"], json!(at < 2));
        }
        let entries = site.body("audit").await?["items"].clone();
        let verbs: Vec<String> = entries
            .as_array()
            .into_iter()
            .flatten()
            .map(|entry| text(&entry["verb"]))
            .collect();
        assert_eq!(verbs, [format!("pause {}", all[1]), format!("pause {}", all[0])]);
        assert_eq!(entries[0]["key"], json!(format!("{id}: {}", all[1])));
        assert_eq!(site.get(&format!("procedures/{}/bulk", all[0])).await.status, 404);
        Ok(())
    })
}

#[test]
fn it_is_bounded_and_never_acts_on_more_than_was_planned() -> Tested {
    site(async |site| {
        three(site).await?;
        let wish = json!({ "filter": "kind:job", "reason": "x", "limit": 2, "expected": "9" });
        let plan = post(site, "bulk/retry?dry_run=true", &wish).await.body;
        assert_eq!((&plan["count"], &plan["over"]), (&json!(3), &json!(true)));
        let refused = post(site, "bulk/retry", &wish).await;
        assert_eq!((refused.status.as_u16(), &refused.body["limit"]), (413, &json!(2)));
        let wish = json!({ "filter": "kind:job", "reason": "x", "expected": "2" });
        let refused = post(site, "bulk/retry", &wish).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.body["count"], &refused.body["kind"]),
            (409, &json!(3), &json!("revised"))
        );
        assert_eq!(refused.body["revision"], plan["revision"], "it is the same set");
        let counted = json!({ "filter": "kind:job", "reason": "x", "expected": "3" });
        let refused = post(site, "bulk/retry", &counted).await;
        assert_eq!(refused.status, 409, "a count does not name the procedures");
        for (path, wish) in [
            ("bulk/retry", json!({ "reason": "x", "expected": "2" })),
            (
                "bulk/retry",
                json!({ "reason": "x", "filter": "state:soon", "expected": "2" }),
            ),
            (
                "bulk/retry",
                json!({ "reason": "x", "filter": "a", "limit": 5_001, "expected": "2" }),
            ),
            ("bulk/bypass", json!({ "reason": "x", "filter": "a", "expected": "2" })),
            (
                "bulk/priority",
                json!({ "reason": "x", "filter": "a", "expected": "2" }),
            ),
        ] {
            assert_eq!(post(site, path, &wish).await.status, 400, "{path} {wish}");
        }
        assert_eq!(post(site, "bulk/kill", &wish).await.status, 404);
        assert_eq!(site.get("bulk/pause").await.status, 405);
        assert_eq!(site.get("bulk/kill").await.status, 404);
        Ok(())
    })
}

/// As many as were shown, and others: nobody has approved of them.
#[test]
fn it_is_held_to_the_procedures_of_its_plan() -> Tested {
    site(async |site| {
        let all = three(site).await?;
        let mut wish = json!({ "filter": "key:req-", "reason": "x" });
        let plan = post(site, "bulk/pause?dry_run=true", &wish).await.body;
        site.signal(all[0].parse()?, "go").await?;
        let new = site.submit(Job::Wait("go".to_owned()), "req-3").await?;
        wish["expected"] = plan["revision"].clone();
        let refused = post(site, "bulk/pause", &wish).await;
        let told = ["kind", "count", "came", "went"].map(|name| refused.body[name].clone());
        assert_eq!(
            (refused.status.as_u16(), told),
            (409, [json!("revised"), json!(2), json!(1), json!(1)]),
            "{}",
            refused.body
        );
        assert!(text(&refused.body["detail"]).contains("1 came and 1 went"));
        assert!(
            ids(&site
                .body("procedures?filter=kind:procession.bulk%20state:live,ended")
                .await?)
            .is_empty()
        );
        // One that has gone meanwhile is left alone, and takes the others nowhere.
        wish["expected"] = refused.body["revision"].clone();
        let plan = post(site, "bulk/pause?dry_run=true", &wish).await.body;
        assert_eq!(
            (&plan["revision"], ids(&plan)),
            (&wish["expected"], vec![all[1].clone(), new.to_string()])
        );
        site.signal(new, "go").await?;
        let begun = post(site, "bulk/pause", &wish).await;
        assert_eq!(
            (begun.status.as_u16(), &begun.body["count"]),
            (200, &json!(1)),
            "{}",
            begun.body
        );
        Ok(())
    })
}

/// It acts in the name that is in its value, and nobody asks for the right of its verb.
#[test]
fn it_is_neither_submitted_as_a_value_nor_run_again() -> Tested {
    site(async |site| {
        let all = three(site).await?;
        let mut wish = json!({ "filter": "key:req-", "reason": "a quiet night" });
        wish["expected"] = post(site, "bulk/pause?dry_run=true", &wish).await.body["revision"].clone();
        let begun = post(site, "bulk/pause", &wish).await.body;
        site.run.settle().await;
        site.shown().await?;
        let again = format!("procedures/{}/run-again", text(&begun["id"]));
        let again = post(site, &again, &json!({ "reason": "once more" })).await;
        assert_eq!((again.status.as_u16(), &again.body["kind"]), (400, &json!("request")));
        let filter = json!({ "filter": "kind:procession.bulk state:ended", "reason": "once more" });
        let again = post(site, "bulk/run-again?dry_run=true", &filter).await;
        assert_eq!(again.status, 400, "{}", again.body);
        let (family, _) = all[2].split_once('.').ok_or("an id has a dot")?;
        let value = json!({
            "verb": "Abort", "who": "ann", "why": "so", "at_once": 1, "todo": [[family.parse::<u64>()?, 0]],
            "report": { "done": 0, "refused": 0, "outcomes": [] },
        });
        let kind = "kinds/procession.bulk/submit";
        let submitted = post(site, kind, &json!({ "value": value })).await;
        assert_eq!(
            (submitted.status.as_u16(), &submitted.body["kind"]),
            (400, &json!("request"))
        );
        assert!(
            text(&submitted.body["detail"]).contains("library's own"),
            "{}",
            submitted.body
        );
        Ok(())
    })
}

#[test]
fn it_needs_the_right_of_its_verb_and_to_look() -> Tested {
    let look = Rights::none().with(Right::View);
    for (rights, missing) in [
        (look, Some("operate")),
        (Rights::none().with(Right::Operate), Some("view")),
        (look.with(Right::Operate), None),
    ] {
        let one = move |_: &actix_web::HttpRequest| Grant::Only {
            who: "bob".to_owned(),
            rights,
        };
        site_in(
            &World::new(),
            |builder| builder,
            |dashboard| dashboard.access(one),
            async |site| {
                three(site).await?;
                let reply = post(site, "bulk/pause?dry_run=true", &json!({ "filter": "req" })).await;
                assert_eq!(
                    reply.body["right"],
                    missing.map_or(Value::Null, Value::from),
                    "{}",
                    reply.body
                );
                Ok(())
            },
        )?;
    }
    Ok(())
}

#[test]
fn failures_of_a_group_run_again_in_one_request() -> Tested {
    site(async |site| {
        for (key, text) in [("a", "no space on rs-1"), ("b", "no space on rs-2"), ("c", "refused")] {
            site.submit(Job::Fail(text.to_owned()), key).await?;
        }
        site.run.settle().await;
        let groups = site.body("failures").await?["items"].clone();
        let group = groups
            .as_array()
            .and_then(|all| all.iter().find(|group| group["count"] == 2));
        let group = group.ok_or_else(|| format!("no group of two: {groups}"))?;
        let filter = format!("failure:{} kind:job", text(&group["fingerprint"]));
        let wish = json!({ "filter": filter, "reason": "the disk has room" });
        let plan = post(site, "bulk/run-again?dry_run=true", &wish).await.body;
        assert_eq!(plan["count"], 2, "{plan}");
        let mut wish = wish;
        wish["expected"] = plan["revision"].clone();
        assert_eq!(post(site, "bulk/run-again", &wish).await.status, 200);
        site.run.settle().await;
        // They fail again, and so are listed again: as others, under keys that name the first ones.
        for key in ["again 1.0", "again 2.0"] {
            let found = site.run.executor.find(key).await?;
            assert!(found.is_some(), "nothing runs under the key {key}");
        }
        let one = post(site, "procedures/3.0/run-again", &json!({ "reason": "one more" })).await;
        assert_eq!(one.status, 200, "{}", one.body);
        let new = text(&one.body["submitted"]).to_owned();
        site.run.settle().await;
        let shown = site.body(&format!("procedures/{new}")).await?;
        assert_eq!(shown["procedure"]["key"], "again 3.0", "{shown}");
        assert_eq!(site.body("failures").await?["count"], 3, "each failed once more");
        let refused = post(site, "procedures/3.0/run-again", &json!({})).await;
        assert_eq!(refused.status, 400, "a reason is needed: {}", refused.body);
        Ok(())
    })
}

#[test]
fn failures_are_grouped_listed_and_acknowledged() -> Tested {
    site(async |site| {
        for (key, text) in [("a", "no space on rs-1"), ("b", "no space on rs-2"), ("c", "refused")] {
            site.submit(Job::Fail(text.to_owned()), key).await?;
            site.pass(Duration::from_secs(10)).await?;
        }
        let attention = site.body("attention").await?;
        let verdict = &attention["verdicts"][0];
        assert_eq!(verdict["rule"], "unacknowledged_failures", "{attention}");
        assert_eq!(
            (&verdict["facts"]["unacknowledged"], &verdict["facts"]["kinds"]),
            (&json!("3"), &json!("3 job"))
        );
        let groups = site.body("failures").await?["items"].clone();
        assert_eq!(
            (&groups[0]["text"], &groups[0]["count"]),
            (&json!("refused"), &json!(1)),
            "{groups}"
        );
        assert_eq!((&groups[1]["count"], &groups[1]["newest"]), (&json!(2), &json!("2.0")));
        let filter = format!("failure:{} kind:job", text(&groups[1]["fingerprint"]));
        let list = site
            .body(&format!("procedures?filter={}", filter.replace(' ', "%20")))
            .await?;
        assert_eq!(ids(&list), ["1.0", "2.0"]);
        let mut wish = json!({ "filter": filter, "reason": "the disk was full" });
        let plan = post(site, "bulk/acknowledge?dry_run=true", &wish).await.body;
        assert_eq!(plan["count"], 2, "{plan}");
        wish["expected"] = plan["revision"].clone();
        assert_eq!(post(site, "bulk/acknowledge", &wish).await.status, 200);
        site.run.settle().await;
        let left = site.body("failures").await?;
        assert_eq!(
            (&left["count"], &left["items"][0]["text"]),
            (&json!(1), &json!("refused")),
            "{left}"
        );
        site.pass(Duration::from_secs(20)).await?;
        let attention = site.body("attention").await?;
        assert_eq!(attention["verdicts"][0]["facts"]["unacknowledged"], "1", "{attention}");
        Ok(())
    })
}
