//! What is told of the engine as a whole, and how seldom the engine is asked for it.

use std::time::Duration;

use procession::operate::{OperatorRequest, PauseScope};
use procession::provider::SyncTimes;
use procession::testkit::{Trouble, World};
use serde_json::json;

use crate::act::post;
use crate::kit::{Job, Tested, everybody, site, site_in, text};

#[test]
fn nothing_needs_anybody_at_first() -> Tested {
    site(async |site| {
        let attention = site.body("attention").await?;
        assert_eq!(attention["text"], "Nothing needs you.");
        assert_eq!(attention["verdicts"], json!([]));
        Ok(())
    })
}

#[test]
fn a_retry_storm_needs_somebody() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Retry("rpc timeout".to_owned()), "a").await?;
        site.pass(Duration::from_secs(20)).await?;
        let attention = site.body("attention").await?;
        assert_eq!(attention["verdicts"][0]["rule"], "retry_storm");
        assert_eq!(attention["verdicts"][0]["procedure"], id.to_string());
        assert_eq!(attention["text"], "One thing needs you.");
        Ok(())
    })
}

#[test]
fn limits_are_shown_with_who_waits() -> Tested {
    let limited = |builder: procession::Builder| builder.limit("job", 1);
    site_in(&World::new(), limited, everybody, async |site| {
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        site.submit(Job::Wait("go".to_owned()), "b").await?;
        let limits = site.body("limits").await?;
        let oldest = json!({ "id": "2.0", "since": "1970-01-01T00:00:00Z" });
        assert_eq!(
            limits["items"],
            json!([{
                "key": "job", "limit": 1, "oldest": oldest, "used": 1, "waiting": 1, "had_to_wait": 1,
                "holders": ["1.0"], "waiters": [oldest],
            }])
        );
        Ok(())
    })
}

#[test]
fn the_engine_is_asked_twice_a_second_at_most() -> Tested {
    let limited = |builder: procession::Builder| builder.limit("job", 5);
    site_in(&World::new(), limited, everybody, async |site| {
        let before = site.body("limits").await?;
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        // Time stands still: all who ask get what was answered to the first.
        for _ in 0..10 {
            assert_eq!(site.body("limits").await?["items"], before["items"]);
        }
        site.pass(Duration::from_millis(500)).await?;
        assert_eq!(site.body("limits").await?["items"][0]["used"], 1);
        Ok(())
    })
}

#[test]
fn a_plan_makes_no_reading_old_and_an_act_does() -> Tested {
    let limited = |builder: procession::Builder| builder.limit("job", 5);
    site_in(&World::new(), limited, everybody, async |site| {
        let used = async || Ok::<_, Trouble>(site.body("limits").await?["items"][0]["used"].clone());
        assert_eq!(used().await?, 0);
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        let reason = json!({ "reason": "a closer look" });
        for path in [format!("procedures/{id}/pause"), "kinds/job/pause".to_owned()] {
            let planned = post(site, &format!("{path}?dry_run=true"), &reason).await;
            assert_eq!(planned.status, 200, "{}", planned.body);
            assert_eq!(used().await?, 0, "nothing was done");
        }
        assert_eq!(post(site, &format!("procedures/{id}/pause"), &reason).await.status, 200);
        assert_eq!(used().await?, 1);
        Ok(())
    })
}

#[test]
fn explanations_are_asked_for_at_a_bounded_rate() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        let path = format!("procedures/{id}/waits");
        for _ in 0..5 {
            site.body(&path).await?;
        }
        let reply = site.get(&path).await;
        assert_eq!(
            (reply.status.as_u16(), reply.body["kind"].clone()),
            (429, json!("busy"))
        );
        assert_eq!(reply.header("retry-after"), "1");
        site.pass(Duration::from_millis(500)).await?;
        site.body(&path).await?;
        Ok(())
    })
}

#[test]
fn the_audit_is_read_page_by_page() -> Tested {
    site(async |site| {
        for limit in 1..=5 {
            let by = OperatorRequest::new("bob", format!("reason {limit}"));
            site.run.executor.set_limit("job", Some(limit), by).await?;
        }
        let first = site.body("audit?limit=2").await?;
        assert_eq!(first["items"][0]["why"], "reason 5");
        let cursor = first["cursor"].as_str().unwrap_or_default();
        let second = site.body(&format!("audit?limit=2&cursor={cursor}")).await?;
        assert_eq!(second["items"][0]["why"], "reason 3");
        let cursor = second["cursor"].as_str().unwrap_or_default();
        let third = site.body(&format!("audit?limit=2&cursor={cursor}")).await?;
        assert_eq!(third["items"].as_array().map(Vec::len), Some(1));
        for above in [5, 99_999] {
            let page = site.body(&format!("audit?limit=2&cursor={above}")).await?;
            assert_eq!(page["items"][0]["why"], "reason 5", "{above}");
        }
        Ok(())
    })
}

#[test]
fn the_audit_is_filtered() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        for (who, why) in [("bob", "a quiet night"), ("ann", "a loud night"), ("bobby", "noise")] {
            let by = OperatorRequest::new(who, why);
            site.run.executor.set_limit("job", Some(4), by.clone()).await?;
            site.run.executor.set_priority(id, 3, by).await?;
        }
        let reasons = async |filter: &str| -> Result<Vec<String>, Trouble> {
            let body = site.body(&format!("audit?filter={filter}")).await?;
            assert_eq!(body["scanned"], 6);
            let items = body["items"].as_array().cloned().unwrap_or_default();
            Ok(items.iter().map(|item| text(&item["why"])).collect())
        };
        assert_eq!(reasons("verb:set+who:ann").await?, ["a loud night", "a loud night"]);
        assert_eq!(reasons("who:bob+target:1.0").await?, ["noise", "a quiet night"]);
        assert_eq!(reasons("NIGHT+target:1").await?, ["a loud night", "a quiet night"]);
        assert_eq!(reasons("target:2").await?, Vec::<String>::new());
        let first = site.body("audit?filter=who:ann&limit=1").await?;
        let cursor = text(&first["cursor"]);
        let second = site
            .body(&format!("audit?filter=who:ann&limit=1&cursor={cursor}"))
            .await?;
        assert_eq!(text(&second["items"][0]["verb"]), "set the limit job to 4");
        let refused = site.get("audit?filter=who:ann+when:now").await;
        assert_eq!((refused.status.as_u16(), &refused.body["position"]), (400, &json!(9)));
        Ok(())
    })
}

#[test]
fn kinds_tell_of_versions_and_stages_and_limits_of_the_oldest_waiter() -> Tested {
    site(async |site| {
        site.run
            .executor
            .set_limit("job", Some(1), OperatorRequest::new("bob", "few"))
            .await?;
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        site.pass(Duration::from_secs(1)).await?;
        let second = site.submit(Job::Wait("go".to_owned()), "b").await?;
        site.pass(Duration::from_secs(1)).await?;
        site.submit(Job::Wait("go".to_owned()), "c").await?;
        site.pass(Duration::from_secs(1)).await?;
        let kinds = site.body("kinds").await?;
        let job = &kinds["items"][0];
        assert_eq!((&job["version"], &job["versions"]), (&json!(1), &json!({ "1": 3 })));
        assert_eq!(job["since_start"]["submitted"], 3);
        assert_eq!(
            job["since_start"]["stages"],
            json!([{ "stage": "Begin", "runs": 1, "mean_ms": 0, "longest_ms": 0 }])
        );
        let limits = site.body("limits").await?;
        assert_eq!(
            limits["items"][0]["oldest"],
            json!({ "id": second.to_string(), "since": "1970-01-01T00:00:01Z" })
        );
        Ok(())
    })
}

#[test]
fn the_engine_tells_of_itself() -> Tested {
    site(async |site| {
        let engine = site.body("engine").await?;
        assert_eq!(
            (&engine["draining"], &engine["poisoned"]),
            (&json!(false), &json!(null))
        );
        assert_eq!(engine["streams"], 0);
        let as_of = engine["as_of"].as_str().unwrap_or_default();
        assert_eq!(as_of.split('-').next(), engine["epoch"].as_str());
        Ok(())
    })
}

#[test]
fn tiles_count_what_stands_now() -> Tested {
    site(async |site| {
        site.submit(Job::Retry("rpc timeout".to_owned()), "a").await?;
        let waits = site.submit(Job::Wait("go".to_owned()), "b").await?;
        let fails = site.submit(Job::Fail("no space".to_owned()), "c").await?;
        let tiles = site.body("attention").await?["tiles"].clone();
        let expected = json!({
            "active": 2, "retrying": 1, "rolling_back": 0, "rollback_failed": 0, "paused": 0, "failed_day": 1,
        });
        assert_eq!(tiles, expected, "{fails}");
        let by = OperatorRequest::new("bob", "a closer look");
        site.run
            .executor
            .pause(PauseScope::Kind("job".into()), by.clone())
            .await?;
        site.run.settle().await;
        site.pass(Duration::from_secs(1)).await?;
        let kinds = site.body("kinds").await?;
        assert_eq!(
            (&kinds["items"][0]["paused"], &kinds["all_paused"]),
            (&json!(true), &json!(false))
        );
        assert_eq!(kinds["items"][0]["versions"], json!({ "1": 2 }));
        assert_eq!(site.body("attention").await?["tiles"]["paused"], 1);
        site.run.executor.resume(PauseScope::Kind("job".into()), by).await?;
        site.signal(waits, "go").await?;
        assert_eq!(site.body("attention").await?["tiles"]["active"], 1);
        Ok(())
    })
}

#[test]
fn how_long_syncs_take_is_told_to_the_microsecond() -> Tested {
    site(async |site| {
        let none = site.body("engine").await?;
        assert_eq!(
            (&none["sync_p50_ms"], &none["sync_p99_ms"]),
            (&json!(null), &json!(null))
        );
        site.run.store.set_sync_times(SyncTimes {
            p50: Duration::from_nanos(412_600),
            p99: Duration::from_millis(31),
        });
        site.pass(Duration::from_secs(1)).await?;
        let told = site.body("engine").await?;
        assert_eq!(
            (&told["sync_p50_ms"], &told["sync_p99_ms"]),
            (&json!(0.412), &json!(31.0))
        );
        Ok(())
    })
}
