//! What is said of one beyond its row: who has paused it and what exactly, how far its rollback is,
//! and with what it has failed last, however long its history is.

use std::future::IntoFuture;
use std::time::Duration;

use procession::operate::{OperatorRequest, PauseScope};
use procession::testkit::{Trouble, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::act::post;
use crate::kit::{Job, Tested, at, everybody, ids, site, site_in, text};

/// Stages that are executed before one fails: more than a page of the history has.
const STAGES: u32 = 600;
/// The stage whose undo fails.
const STUCK: u32 = 597;

/// Runs many stages, fails, and cannot be undone whole.
#[derive(Serialize, Deserialize)]
struct Saga;

impl Procedure for Saga {
    const KIND: &'static str = "saga";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            STAGES => Err(StageError::fail("no room")),
            stage => Ok(Step::Next(stage + 1)),
        }
    }

    async fn rollback(&mut self, stage: u32, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        match stage {
            STUCK => Err(StageError::fail("the table is gone")),
            _ => Ok(()),
        }
    }
}

#[test]
fn a_long_rollback_says_how_far_it_is_and_what_its_undo_said() -> Tested {
    let sagas = |builder: procession::Builder| builder.register::<Saga>(());
    site_in(&World::new(), sagas, everybody, async |site| {
        let handle = site.run.wait(site.run.executor.submit(Saga).into_future()).await??;
        site.run.settle().await;
        site.shown().await?;
        // The tile leads to a list, and both are of those that go on by themselves.
        let rolling_back = async || {
            let tile = at(&site.body("attention").await?, "/tiles/rolling_back");
            let list = ids(&site.body("procedures?filter=state:rolling_back").await?);
            Ok::<_, Trouble>((tile, list))
        };
        assert_eq!(rolling_back().await?, (json!(1), vec![handle.id().to_string()]));
        let by = || OperatorRequest::new("bob", "a closer look");
        site.run.executor.pause(PauseScope::One(handle.id()), by()).await?;
        site.pass(Duration::from_secs(1)).await?;
        assert_eq!(rolling_back().await?, (json!(0), vec![]), "an operator holds it back");
        site.run.executor.resume(PauseScope::One(handle.id()), by()).await?;
        site.pass(Duration::from_secs(600)).await?;
        let body = site.body(&format!("procedures/{}", handle.id())).await?;
        assert_eq!(body["procedure"]["reason"], "rollback_failed");
        assert_eq!(rolling_back().await?, (json!(0), vec![]));
        let failing = &body["failing"];
        assert_eq!((&failing["undone"], &failing["of"]), (&json!(3), &json!(STAGES)));
        let last = &failing["last"];
        assert_eq!(
            (&last["stage"], &last["ending"], &last["error"]),
            (
                &json!(STUCK.to_string()),
                &json!("undo_failed"),
                &json!("the table is gone")
            )
        );
        let skip = format!("procedures/{}/skip-undo?dry_run=true", handle.id());
        let undone = at(&post(site, &skip, &json!({})).await.body, "/plan/undone");
        let stages: Vec<String> = undone
            .as_array()
            .into_iter()
            .flatten()
            .map(|undo| text(&undo["stage"]))
            .collect();
        assert_eq!(
            (stages.len(), stages.first()),
            (596, Some(&(STUCK - 1).to_string())),
            "the undo that is skipped does not run"
        );
        // One more attempt, and it rests again: what has failed stays counted.
        let path = format!("procedures/{}/retry", handle.id());
        let told = post(site, &path, &json!({ "reason": "the table is back" })).await;
        assert_eq!(told.status, 200, "{}", told.body);
        site.pass(Duration::from_secs(1)).await?;
        let again = site.body(&format!("procedures/{}", handle.id())).await?;
        assert_eq!(again["procedure"]["reason"], "rollback_failed");
        assert!(at(&again, "/failing/last/attempt").as_u64() > at(&body, "/failing/last/attempt").as_u64());
        Ok(())
    })
}

#[test]
fn one_that_is_tried_again_says_what_it_said() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Retry("rpc timeout".to_owned()), "a").await?;
        site.pass(Duration::from_secs(20)).await?;
        let body = site.body(&format!("procedures/{id}")).await?;
        assert_eq!(
            (&body["failing"]["undone"], &body["failing"]["last"]["error"]),
            (&json!(null), &json!("rpc timeout"))
        );
        let verdict = at(&site.body("attention").await?, "/verdicts/0");
        assert_eq!(
            (&verdict["rule"], &verdict["facts"]["error"]),
            (&json!("retry_storm"), &json!("rpc timeout"))
        );
        let said = verdict["text"].as_str().unwrap_or_default();
        assert!(said.contains("the last error 5 times in a row: rpc timeout"), "{said}");
        let calm = site.submit(Job::Wait("go".to_owned()), "b").await?;
        assert_eq!(site.body(&format!("procedures/{calm}")).await?["failing"], json!(null));
        Ok(())
    })
}

#[test]
fn one_that_was_paused_many_acts_ago_says_by_whom() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        let other = site.submit(Job::Wait("go".to_owned()), "b").await?;
        let busy = async |acts: i16| -> Tested {
            for number in 0..acts {
                let by = OperatorRequest::new("ann", "it matters");
                site.run.executor.set_priority(other, number, by).await?;
            }
            site.pass(Duration::from_secs(1)).await
        };
        let executor = &site.run.executor;
        executor
            .pause(PauseScope::One(id), OperatorRequest::new("bob", "a closer look"))
            .await?;
        busy(1_100).await?;
        let path = format!("procedures/{id}");
        assert_eq!(site.body(&path).await?["paused_by"][0]["why"], "a closer look");
        busy(3).await?;
        assert_eq!(site.body(&path).await?["paused_by"][0]["why"], "a closer look");
        // Another takes its place, while nobody looks.
        executor
            .resume(PauseScope::One(id), OperatorRequest::new("bob", "done"))
            .await?;
        executor
            .pause(PauseScope::One(id), OperatorRequest::new("eve", "once more"))
            .await?;
        busy(600).await?;
        let paused = &site.body(&path).await?["paused_by"];
        assert_eq!(
            (paused.as_array().map(Vec::len), &paused[0]["who"]),
            (Some(1), &json!("eve"))
        );
        Ok(())
    })
}

#[test]
fn one_that_is_paused_says_by_whom_and_what_exactly() -> Tested {
    site(async |site| {
        let root = site.submit(Job::Parent(1), "a").await?;
        let by = |why: &str| OperatorRequest::new("bob", why);
        let pauses = [
            (PauseScope::Kind("job".into()), "the servers restart"),
            (PauseScope::One(root), "a closer look"),
        ];
        for (what, why) in pauses {
            site.run.executor.pause(what, by(why)).await?;
        }
        site.signal("1.1".parse()?, "go").await?;
        site.pass(Duration::from_secs(1)).await?;
        let body = site.body("procedures/1.1").await?;
        assert_eq!(
            (&body["procedure"]["reason"], &body["procedure"]["paused"]),
            (&json!("paused"), &json!(false))
        );
        let pause =
            |what: &str, why: &str| json!({ "what": what, "who": "bob", "why": why, "at": "1970-01-01T00:00:00Z" });
        let expected = [
            pause("the kind job", "the servers restart"),
            pause("1.0", "a closer look"),
        ];
        assert_eq!(body["paused_by"], json!(expected));
        site.run
            .executor
            .resume(PauseScope::Kind("job".into()), by("done"))
            .await?;
        site.pass(Duration::from_secs(1)).await?;
        assert_eq!(site.body("procedures/1.1").await?["paused_by"], json!(&expected[1..]));
        site.run.executor.resume(PauseScope::One(root), by("done")).await?;
        site.pass(Duration::from_secs(1)).await?;
        assert_eq!(
            site.body("procedures/1.1").await?["paused_by"],
            Value::Array(Vec::new())
        );
        Ok(())
    })
}

#[test]
fn a_pause_of_all_or_of_a_kind_or_of_an_ancestor_is_named_whatever_it_waits_for() -> Tested {
    site(async |site| {
        let alone = site.submit(Job::Retry("rpc timeout".to_owned()), "a").await?;
        let root = site.submit(Job::Parent(1), "b").await?;
        let child = procession::ProcedureId::new(root.family, 1);
        let by = || OperatorRequest::new("bob", "the servers restart");
        let executor = &site.run.executor;
        for what in [PauseScope::All, PauseScope::Kind("job".into()), PauseScope::One(root)] {
            executor.pause(what, by()).await?;
        }
        site.shown().await?;
        let told = async |id, what: &str| -> Result<Vec<String>, Trouble> {
            let body = site.body(&format!("procedures/{id}{what}")).await?;
            assert!(text(&at(&body, "/paused_by/0/who")) == "bob", "{body}");
            let procedure = if what.is_empty() {
                at(&body, "/procedure")
            } else {
                body.clone()
            };
            assert!(
                text(&procedure["next"]).ends_with("but not before an operator resumes it"),
                "{body}"
            );
            let named = body["paused_by"].as_array().cloned().unwrap_or_default();
            Ok(named.iter().map(|by| text(&by["what"])).collect())
        };
        for what in ["", "/waits"] {
            assert_eq!(told(alone, what).await?, ["everything", "the kind job"], "{what}");
            let of_child = ["everything", "the kind job", &root.to_string()];
            assert_eq!(told(child, what).await?, of_child, "{what}");
        }
        let why = site.body(&format!("procedures/{alone}/waits")).await?;
        assert_eq!(
            at(&why, "/ends/0/until"),
            json!("once an operator acts: paused"),
            "{why}"
        );
        for what in [PauseScope::All, PauseScope::Kind("job".into())] {
            executor.resume(what, by()).await?;
        }
        site.pass(Duration::from_secs(1)).await?;
        let body = site.body(&format!("procedures/{alone}")).await?;
        assert_eq!(body["paused_by"], json!([]), "{body}");
        Ok(())
    })
}
