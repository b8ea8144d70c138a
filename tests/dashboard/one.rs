//! One procedure: its page, its family, its history, its signals, and why it does not move.

use std::time::Duration;

use procession::ProcedureId;
use procession::dashboard::{Grant, Part, Redact};
use procession::messages::SendSignal;
use procession::operate::OperatorRequest;
use procession::testkit::{Trouble, World};
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
        let lock = json!({ "path": "t/users", "mode": "exclusive", "holders": [holder.to_string()] });
        assert_eq!(
            (&waits["lock"], &waits["permit"], &waits["children"]),
            (&lock, &json!(null), &json!(null))
        );
        let behind = site.submit(Job::Hold("t/users".to_owned()), "c").await?;
        let waits = site.body(&format!("procedures/{behind}/waits")).await?;
        assert_eq!(
            (&waits["lock"], &waits["links"][0]["to"]),
            (&lock, &json!(waiter.to_string()))
        );
        assert_eq!(waits["place"], json!({ "place": 2, "of": 2 }));
        Ok(())
    })
}

#[test]
fn a_permit_says_how_many_are_out_and_children_how_many_are_done() -> Tested {
    site(async |site| {
        let by = || OperatorRequest::new("ann", "a test");
        site.run.executor.set_limit("job", Some(1), by()).await?;
        let parent = site.submit(Job::Parent(3), "a").await?;
        let waits = site.body(&format!("procedures/{parent}/waits")).await?;
        let all = json!({ "done": 0, "total": 3, "running": 3, "held": 0, "named": ["1.1", "1.2", "1.3"] });
        assert_eq!(waits["children"], all);
        site.signal(ProcedureId::new(parent.family, 2), "go").await?;
        site.pass(Duration::from_secs(1)).await?;
        let waits = site.body(&format!("procedures/{parent}/waits")).await?;
        let rest = json!({ "done": 1, "total": 3, "running": 2, "held": 0, "named": ["1.1", "1.3"] });
        assert_eq!(waits["children"], rest);
        let waiter = site.submit(Job::End, "b").await?;
        let waits = site.body(&format!("procedures/{waiter}/waits")).await?;
        assert_eq!(waits["permit"], json!({ "key": "job", "limit": 1, "used": 1 }));
        assert_eq!((&waits["lock"], &waits["place"]["place"]), (&json!(null), &json!(1)));
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
        assert_eq!(signals["items"][0]["payload"], json!({ "redacted": true, "size": 4 }));
        assert!(!signals.to_string().contains("now\":\"now"));
        Ok(())
    })
}

#[test]
fn a_queue_is_summed_up_beside_its_signals() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        for name in ["other", "noise", "other"] {
            site.signal(id, name).await?;
        }
        let last = SendSignal::new(id, "final", &1)?.last();
        site.run.executor.signal_all(vec![last]).await?;
        let mailbox = site.body(&format!("procedures/{id}/signals")).await?["mailbox"].take();
        assert_eq!(mailbox["waiting"], 4);
        assert_eq!(
            mailbox["names"],
            json!([
                { "name": "other", "waiting": 2 },
                { "name": "final", "waiting": 1 },
                { "name": "noise", "waiting": 1 }
            ])
        );
        assert_eq!(
            (&mailbox["more"], &mailbox["closed"]),
            (&json!(false), &json!(["final"]))
        );
        assert!(mailbox["oldest"].is_string());
        site.signal(id, "go").await?;
        let ended = site.body(&format!("procedures/{id}/signals")).await?;
        assert_eq!(ended["mailbox"], json!(null));
        Ok(())
    })
}

/// Shows of signals whose they are and what part, and hides nothing else.
struct Named;

impl Redact for Named {
    fn redact(&self, kind: &str, part: Part, value: &mut Value, grant: &Grant) {
        if part == Part::Signal {
            *value = json!([kind, value["size"], grant.who()]);
        }
    }
}

/// Shows all.
struct All;

impl Redact for All {
    fn redact(&self, _: &str, _: Part, _: &mut Value, _: &Grant) {}
}

#[test]
fn g_070_of_a_note_the_size_is_shown_unless_the_host_shows_more() -> Tested {
    let noted = async |site: &crate::kit::Site<'_>| {
        let id = site.submit(Job::Note("in rack 7".to_owned()), "a").await?;
        let entries = site.body(&format!("procedures/{id}/history")).await?;
        assert_eq!(entries["items"][1].get("note"), None, "its second stage notes nothing");
        Ok::<_, Trouble>(entries["items"][0]["note"].clone())
    };
    let hidden = site(async |site| noted(site).await)?;
    assert_eq!(hidden, json!({ "redacted": true, "size": 10 }));
    let open = |dashboard| everybody(dashboard).redact(All);
    let shown = site_in(&World::new(), |builder| builder, open, async |site| noted(site).await)?;
    assert_eq!(shown, json!({ "size": 10, "value": "in rack 7" }));
    Ok(())
}

#[test]
fn what_is_shown_of_a_signal_is_the_hosts_to_say() -> Tested {
    let named = |dashboard| everybody(dashboard).redact(Named);
    site_in(
        &World::new(),
        |builder| builder,
        named,
        async |site| {
            let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
            site.signal(id, "other").await?;
            let signals = site.body(&format!("procedures/{id}/signals")).await?;
            assert_eq!(signals["items"][0]["payload"], json!(["job", 4, "ann"]));
            Ok(())
        },
    )
}

#[test]
fn what_is_kept_of_one_is_counted_up_to_a_bound() -> Tested {
    site(async |site| {
        let counts = async |id: ProcedureId| {
            let body = site.body(&format!("procedures/{id}")).await?;
            let of = |name: &str| {
                (
                    body["counts"][name]["count"].as_u64(),
                    body["counts"][name]["more"].clone(),
                )
            };
            Ok::<_, Trouble>(["history", "signals", "audit"].map(of))
        };
        let exact = |count| (Some(count), json!(false));
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        let other = site.submit(Job::Parent(3), "b").await?;
        assert_eq!(counts(id).await?, [exact(1), exact(0), exact(0)]);
        for at in 0..16 {
            site.signal(id, &format!("noise {at}")).await?;
        }
        let by = OperatorRequest::new("bob", "first things first");
        site.run.executor.set_priority(id, 7, by.clone()).await?;
        site.pass(Duration::from_secs(1)).await?;
        assert_eq!(counts(id).await?, [exact(1), exact(16), exact(1)]);
        site.signal(id, "one more").await?;
        site.signal(id, "go").await?;
        assert_eq!(counts(id).await?, [exact(2), (Some(16), json!(true)), exact(1)]);
        // Of large ones fewer are read.
        let large = site.submit(Job::Wait("go".to_owned()), "c").await?;
        let photo = "x".repeat(40_000);
        for _ in 0..4 {
            site.run.executor.signal(large, "photo", &photo).await?;
        }
        site.pass(Duration::from_secs(1)).await?;
        assert_eq!(counts(large).await?, [exact(1), (Some(2), json!(true)), exact(0)]);
        // A child has its own stages, and the acts of its family.
        site.run.executor.set_priority(other, 7, by).await?;
        site.pass(Duration::from_secs(1)).await?;
        let child = ProcedureId::new(other.family, 2);
        assert_eq!(counts(child).await?, [exact(1), exact(0), exact(1)]);
        Ok(())
    })
}

#[test]
fn a_long_history_is_not_counted_to_its_end() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Parent(2_000), "a").await?;
        let history = async |member| {
            let body = site
                .body(&format!("procedures/{}", ProcedureId::new(id.family, member)))
                .await?;
            Ok::<_, Trouble>(body["counts"]["history"].clone())
        };
        assert_eq!(history(0).await?, json!({ "count": 1, "more": false }));
        assert_eq!(history(1).await?, json!({ "count": 1, "more": false }));
        site.signal(ProcedureId::new(id.family, 1), "go").await?;
        assert_eq!(history(1).await?, json!({ "count": 1, "more": true }));
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
