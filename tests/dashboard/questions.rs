//! Questions to people, as the API shows them, and how they are answered through it.

use procession::ProcedureId;
use procession::dashboard::{Grant, Part, Redact};
use procession::testkit::World;
use serde_json::{Value, json};

use crate::kit::{Job, Site, Tested, everybody, ids, site, site_in, text};

async fn post(site: &Site<'_>, path: &str, body: &Value) -> crate::kit::Reply {
    crate::act::post(site, path, body).await
}

#[test]
fn a_question_is_shown_until_it_is_answered() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Ask("drop t?".to_owned()), "a").await?;
        let other = site.submit(Job::Wait("go".to_owned()), "b").await?;
        let body = site.body(&format!("procedures/{id}")).await?;
        let procedure = &body["procedure"];
        assert_eq!(
            (&procedure["reason"], &procedure["question"]),
            (&json!("decision"), &json!("drop t?"))
        );
        let waiting = site.body(&format!("procedures/{other}")).await?;
        assert_eq!(waiting["procedure"].get("question"), None, "it asks nothing");
        assert_eq!(
            ids(&site.body("procedures?filter=reason:decision").await?),
            [id.to_string()]
        );
        let attention = site.body("attention").await?;
        let verdict = &attention["verdicts"][0];
        assert_eq!(
            (&verdict["rule"], &verdict["procedure"]),
            (&json!("undecided"), &json!(id.to_string()))
        );
        assert_eq!(verdict["facts"]["question"], "drop t?");
        assert!(text(&verdict["text"]).ends_with("asks: drop t?"), "{verdict}");

        // Its plan first; without the plan's revision nothing is taken.
        let path = format!("procedures/{id}/decide");
        let plan = post(
            site,
            &format!("{path}?dry_run=true"),
            &json!({ "answer": { "drop": true } }),
        )
        .await;
        assert_eq!(plan.status, 200, "{}", plan.body);
        assert_eq!(plan.body["changes"][0]["id"], id.to_string());
        let blind = post(site, &path, &json!({ "answer": true })).await;
        assert_eq!(blind.status, 400, "{}", blind.body);
        let expected = text(&plan.body["revision"]);
        let empty = post(site, &path, &json!({ "expected": expected })).await;
        assert!(
            text(&empty.body["detail"]).contains("`answer` is missing"),
            "{}",
            empty.body
        );

        // An answer needs no reason; the same one with its key is taken once.
        let body = json!({ "answer": { "drop": true }, "expected": expected, "key": "k" });
        for _ in 0..2 {
            let done = post(site, &path, &body).await;
            assert_eq!(done.status, 200, "{}", done.body);
        }
        site.run.settle().await;
        let outcome = site.run.executor.outcome(id).await?;
        assert_eq!(outcome.output::<String>()?.as_deref(), Some("{\"drop\":true}"));
        assert_eq!(site.body("attention").await?["verdicts"], json!([]));
        let history = site.body(&format!("procedures/{id}/history")).await?;
        assert_eq!(
            (&history["items"][0]["ending"], &history["items"][0]["error"]),
            (&json!("asked"), &json!("drop t?"))
        );
        Ok(())
    })
}

#[test]
fn those_behind_one_that_asks_are_counted_and_named_as_next() -> Tested {
    site(async |site| {
        let root = site.submit(Job::AskFirst("drop t?".to_owned(), 2), "a").await?;
        let member = |number| ProcedureId::new(root.family, number).to_string();
        let attention = site.body("attention").await?;
        let verdict = &attention["verdicts"][0];
        assert_eq!(
            (&verdict["procedure"], &verdict["facts"]["behind"]),
            (&json!(member(1)), &json!("2"))
        );
        let told = "asks while 2 wait behind it at gates: drop t?";
        assert!(text(&verdict["text"]).ends_with(told), "{verdict}");
        for (number, behind) in [(0, 0), (1, 2), (2, 1), (3, 0)] {
            let waits = site.body(&format!("procedures/{}/waits", member(number))).await?;
            assert_eq!(waits["behind"], behind, "{waits}");
        }
        let path = format!("procedures/{}/bypass?dry_run=true", member(1));
        let plan = post(site, &path, &json!({ "confirm": member(1) })).await;
        assert_eq!(plan.status, 200, "{}", plan.body);
        assert_eq!(plan.body["plan"]["moves_next"], json!([member(2)]), "{}", plan.body);
        Ok(())
    })
}

#[test]
fn an_answer_where_nobody_asks_is_refused() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        let path = format!("procedures/{id}/decide?dry_run=true");
        let refused = post(site, &path, &json!({ "answer": true })).await;
        assert_eq!(refused.status, 409, "{}", refused.body);
        assert!(
            text(&refused.body["detail"]).contains("asks no question"),
            "{}",
            refused.body
        );
        Ok(())
    })
}

/// Hides questions.
struct Hidden;

impl Redact for Hidden {
    fn redact(&self, _: &str, part: Part, value: &mut Value, _: &Grant) {
        if part == Part::Question {
            *value = json!("***");
        }
    }
}

#[test]
fn what_is_shown_of_a_question_is_the_hosts_to_say() -> Tested {
    let hidden = |dashboard| everybody(dashboard).redact(Hidden);
    site_in(
        &World::new(),
        |builder| builder,
        hidden,
        async |site| {
            let id = site.submit(Job::Ask("drop t?".to_owned()), "a").await?;
            let replies = ["", "/history", "/tree", "/waits"].map(|part| format!("procedures/{id}{part}"));
            for path in replies.iter().map(String::as_str).chain(["procedures", "attention"]) {
                let body = site.body(path).await?;
                assert!(!body.to_string().contains("drop t?"), "{path}: {body}");
            }
            let one = site.body(&format!("procedures/{id}")).await?;
            assert_eq!(one["procedure"]["question"], "***");
            Ok(())
        },
    )
}
