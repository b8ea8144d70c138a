//! One procedure: its page, its family, its history, its signals, and why it does not move.

use std::time::Duration;

use procession::dashboard::{Grant, Part, Redact};
use procession::testkit::World;
use serde_json::{Value, json};

use crate::kit::{Job, Tested, everybody, ids, site, site_in, text};

#[test]
fn the_page_says_state_reason_since_and_what_comes_next() -> Tested {
    site(async |site| {
        site.pass(Duration::from_secs(60)).await?;
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        site.pass(Duration::from_secs(192)).await?;
        let body = site.body(&format!("procedures/{id}")).await?;
        let procedure = &body["procedure"];
        assert_eq!(procedure["state"], "WaitingTimeout");
        assert_eq!(procedure["reason"], "event");
        assert_eq!(procedure["since"], "1970-01-01T00:01:00Z");
        assert_eq!(body["now"], "1970-01-01T00:04:12Z");
        assert!(procedure["next"].is_string());
        assert_eq!(body["output"], Value::Null);
        assert_eq!(body["payload"]["redacted"], true);
        Ok(())
    })
}

#[test]
fn a_family_is_a_tree_and_a_timeline() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Parent(3), "a").await?;
        let tree = site.body(&format!("procedures/{id}/tree")).await?;
        assert_eq!(ids(&tree), ["1.0", "1.1", "1.2", "1.3"]);
        assert_eq!(tree["items"][0]["children"], 3);
        let timeline = site.body("procedures/1.2/timeline").await?;
        assert_eq!(timeline["items"].as_array().map(Vec::len), Some(4));
        assert_eq!(timeline["folded"], false);
        Ok(())
    })
}

#[test]
fn history_is_read_page_by_page() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        site.signal(id, "go").await?;
        let first = site.body(&format!("procedures/{id}/history?limit=1")).await?;
        assert_eq!(first["items"][0]["stage"], "Begin");
        let cursor = first["cursor"].as_str().unwrap_or_default();
        let second = site
            .body(&format!("procedures/{id}/history?limit=1&cursor={cursor}"))
            .await?;
        assert_eq!(second["items"][0]["stage"], "Finish");
        assert_eq!(second["cursor"], Value::Null);
        Ok(())
    })
}

#[test]
fn a_lock_says_who_holds_it_and_who_waits() -> Tested {
    site(async |site| {
        let holder = site.submit(Job::Hold("t/users".to_owned()), "a").await?;
        let waiter = site.submit(Job::Hold("t/users".to_owned()), "b").await?;
        let locks = site.body("locks").await?;
        assert_eq!(locks["items"][0]["holders"][0]["id"], holder.to_string());
        assert_eq!(locks["items"][0]["waiting"], json!([waiter.to_string()]));
        let waits = site.body(&format!("procedures/{waiter}/waits")).await?;
        assert_eq!(waits["links"][0]["to"], holder.to_string());
        Ok(())
    })
}

#[test]
fn the_history_of_a_family_is_that_of_all_its_members() -> Tested {
    site(async |site| {
        let root = site.submit(Job::Parent(2), "a").await?;
        let own = site.body(&format!("procedures/{root}/history")).await?;
        assert_eq!(ids(&own), ["1.0"]);
        let path = format!("procedures/{root}/history?family=true&limit=2");
        let page = site.body(&path).await?;
        assert_eq!(ids(&page), ["1.0", "1.1"]);
        let rest = site.body(&format!("{path}&cursor={}", text(&page["cursor"]))).await?;
        assert_eq!((ids(&rest), &rest["cursor"]), (vec!["1.2".to_owned()], &json!(null)));
        let reply = site.get(&format!("procedures/{root}/history?family=yes")).await;
        assert_eq!(reply.status, 400);
        Ok(())
    })
}

#[test]
fn signals_are_listed_without_what_they_carry() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        site.signal(id, "other").await?;
        let signals = site.body(&format!("procedures/{id}/signals")).await?;
        assert_eq!(signals["items"][0]["name"], "other");
        assert!(!signals.to_string().contains("now\":\"now"));
        Ok(())
    })
}

#[test]
fn what_is_not_there_is_not_found() -> Tested {
    site(async |site| {
        for path in ["", "/tree", "/timeline", "/history", "/waits", "/signals"] {
            let reply = site.get(&format!("procedures/77.0{path}")).await;
            assert_eq!(
                (reply.status.as_u16(), reply.body["kind"].clone()),
                (404, json!("unknown")),
                "{path}"
            );
            assert_eq!(site.get(&format!("procedures/x.y{path}")).await.status, 400);
        }
        Ok(())
    })
}

/// Hides all that users said.
struct Silence;

impl Redact for Silence {
    fn redact(&self, _: &str, _: Part, value: &mut Value, _: &Grant) {
        *value = json!("***");
    }
}

#[test]
fn no_error_text_leaves_that_the_host_hides() -> Tested {
    let silent = |dashboard| everybody(dashboard).redact(Silence);
    site_in(
        &World::new(),
        |builder| builder,
        silent,
        async |site| {
            let id = site.submit(Job::Fail("secret words".to_owned()), "a").await?;
            site.submit(Job::Retry("secret words".to_owned()), "b").await?;
            site.pass(Duration::from_secs(20)).await?;
            let paths = ["", "/tree", "/history", "/waits", "/timeline"].map(|path| format!("procedures/{id}{path}"));
            let lists = [
                "procedures?filter=state:ended",
                "procedures",
                "attention",
                "procedures/2.0/history",
                "procedures/2.0",
            ];
            for path in paths.iter().map(String::as_str).chain(lists) {
                let body = site.body(path).await?.to_string();
                assert!(!body.contains("secret"), "{path}: {body}");
            }
            Ok(())
        },
    )
}

#[test]
fn by_default_errors_are_shown_and_values_are_not() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Fail("disk full".to_owned()), "a").await?;
        let body = site.body(&format!("procedures/{id}")).await?;
        assert_eq!(body["procedure"]["cause"]["text"], "disk full");
        assert!(body["payload"]["size"].as_u64().is_some_and(|size| size > 0));
        assert!(body["payload"]["value"].is_null());
        Ok(())
    })
}
