//! What an undo said is shown or hidden as of the kind that said it, whatever kind is rolled back.

use std::future::IntoFuture;
use std::time::Duration;

use procession::dashboard::{DashboardBuilder, Grant, NoAccess, Part, Redact, ShowAll};
use procession::procedure::RetryPolicy;
use procession::testkit::World;
use procession::{Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::flows::{backlog, drawing};
use crate::kit::{Job, Tested, at, everybody, site_in};

const SAID: &str = "card 4711 is locked";

/// Has a card charged.
#[derive(Serialize, Deserialize)]
struct Order;

/// Fails when it is charged, and what it did before cannot be undone.
#[derive(Serialize, Deserialize)]
struct Card;

impl Procedure for Order {
    const KIND: &'static str = "order";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if stage == 2 {
            return Ok(Step::Done(()));
        }
        let children = Children::new().and(&Card)?;
        Ok(Step::Spawn { children, then: 2 })
    }
}

impl Procedure for Card {
    const KIND: &'static str = "card";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            1 => Ok(Step::Next(2)),
            _ => Err(StageError::fail("no money")),
        }
    }

    async fn rollback(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Err(StageError::retry(SAID))
    }

    fn retry_undo() -> RetryPolicy {
        RetryPolicy::default().attempts(50)
    }
}

/// Hides what this kind says.
struct Of(&'static str);

impl Redact for Of {
    fn redact(&self, kind: &str, part: Part, value: &mut Value, _: &Grant) {
        if [Part::Error, Part::Question, Part::Note].contains(&part) && kind == self.0 {
            *value = json!("***");
        }
    }
}

/// Returns what the storm says of an order that is rolled back, and of a card in it, where this kind's errors are hidden.
fn storm(hidden: &'static str) -> Result<Value, procession::testkit::Trouble> {
    let engine = |builder: procession::Builder| builder.register::<Order>(()).register::<Card>(());
    let set_up = |dashboard| everybody(dashboard).redact(Of(hidden));
    site_in(&World::new(), engine, set_up, async |site| {
        site.run.wait(site.run.executor.submit(Order).into_future()).await??;
        site.pass(Duration::from_secs(20)).await?;
        let verdict = at(&site.body("attention").await?, "/verdicts/0");
        assert_eq!(
            (at(&verdict, "/rule"), at(&verdict, "/procedure")),
            (json!("retry_storm"), json!("1.0"))
        );
        Ok(verdict)
    })
}

#[test]
fn what_an_undo_said_is_hidden_by_the_kind_that_said_it() -> Tested {
    let hidden = storm("card")?;
    assert_eq!(hidden["facts"]["error"], "***");
    assert!(!hidden.to_string().contains("4711"), "{hidden}");
    let shown = storm("order")?;
    assert_eq!(shown["facts"]["error"], SAID);
    assert!(
        shown["text"].as_str().is_some_and(|text| text.ends_with(SAID)),
        "{shown}"
    );
    Ok(())
}

#[test]
fn what_a_node_of_a_stream_said_is_hidden_by_its_processor_wherever_it_is_shown() -> Tested {
    let (_, engine) = drawing(true);
    let set_up = |dashboard| everybody(dashboard).redact(Of("draw"));
    site_in(&World::new(), &engine, set_up, async |site| {
        let id = backlog(site, 2).await?.open().await?;
        site.pass(Duration::from_mins(20)).await?;
        let one = format!("procedures/{id}");
        for path in [
            "attention",
            "procedures",
            "flows",
            &one,
            &format!("{one}/queue"),
            &format!("{one}/tree"),
        ] {
            let body = site.body(path).await?;
            assert!(!body.to_string().contains("disk is full"), "{path}: {body}");
        }
        let verdict = at(&site.body("attention").await?, "/verdicts/0");
        assert_eq!(
            (&verdict["rule"], &verdict["facts"]["question"]),
            (&json!("undecided"), &json!("***"))
        );
        let history = at(&site.body(&format!("{one}/history")).await?, "/items");
        let told = |entry: usize, path: &str| at(&history[entry]["note"]["value"], path);
        assert_eq!(
            (told(1, "/name"), told(1, "/kind")),
            (json!("inv 1"), json!("draw")),
            "{history}"
        );
        assert_eq!((told(1, "/note"), told(1, "/output_bytes")), (json!("***"), json!(1)));
        assert_eq!(history[2]["error"], "***");
        Ok(())
    })
}

/// Has a payment made.
#[derive(Serialize, Deserialize)]
struct Sale;

/// Fails, with nothing to undo.
#[derive(Serialize, Deserialize)]
struct Payment;

impl Procedure for Sale {
    const KIND: &'static str = "sale";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let children = Children::new().and(&Payment)?;
        Ok(Step::Spawn { children, then: 2 })
    }
}

impl Procedure for Payment {
    const KIND: &'static str = "payment";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Err(StageError::fail(SAID))
    }
}

#[test]
fn a_listed_failure_is_hidden_as_of_the_root_and_of_who_said_it() -> Tested {
    let engine = |builder: procession::Builder| builder.register::<Sale>(()).register::<Payment>(());
    for (hides, is_shown) in [("sale", false), ("payment", false), ("another", true)] {
        let dashboard = move |builder| everybody(builder).redact(Of(hides));
        site_in(&World::new(), engine, dashboard, async |site| {
            site.run.executor.submit(Sale).into_future().await?;
            site.pass(Duration::from_secs(10)).await?;
            let failures = site.body("failures").await?;
            let group = &failures["items"][0];
            assert_eq!(
                (&group["kind"], &group["origin_kind"]),
                (&json!("sale"), &json!("payment"))
            );
            let attention = site.body("attention").await?;
            assert_eq!(
                attention["verdicts"][0]["rule"], "unacknowledged_failures",
                "{attention}"
            );
            let mut replies = vec![failures.to_string(), attention.to_string()];
            let of_root = [
                "procedures/1.0",
                "procedures/1.0/waits",
                "procedures?filter=kind:sale%20state:ended",
            ];
            for path in of_root {
                replies.push(site.body(path).await?.to_string());
            }
            let asked = site
                .body("procedures?filter=root:1%20state:ended%20kind:sale%20err:4711")
                .await?;
            let found = asked["items"].as_array().map(Vec::len);
            assert_eq!(found, Some(usize::from(is_shown)), "{hides} hides: {asked}");
            for reply in replies {
                assert_eq!(reply.contains(SAID), is_shown, "{hides} hides: {reply}");
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Returns what a list says that filters so; none of it is of the moment.
async fn listed(site: &crate::kit::Site<'_>, filter: &str) -> Result<Value, procession::testkit::Trouble> {
    let body = site.body(&format!("procedures?filter={filter}")).await?;
    let told = ["/items", "/cursor", "/scanned", "/truncated", "/unreadable"];
    Ok(told.map(|place| at(&body, place)).into_iter().collect())
}

/// Whoever has a fingerprint can try texts until one has it.
#[test]
fn a_fingerprint_does_not_tell_whether_a_hidden_text_was_guessed() -> Tested {
    let engine = |builder: procession::Builder| builder.register::<Sale>(()).register::<Payment>(());
    let with = |hides: &'static str, drive: &dyn Fn(&Value) -> Vec<String>| {
        let dashboard = move |builder| everybody(builder).redact(Of(hides));
        site_in(&World::new(), engine, dashboard, async |site| {
            site.run.executor.submit(Sale).into_future().await?;
            site.pass(Duration::from_secs(10)).await?;
            let print = at(&site.body("failures").await?, "/items/0/fingerprint");
            let mut told = vec![print.clone()];
            for asked in drive(&print) {
                told.push(listed(site, &format!("failure:{asked}")).await?);
            }
            Ok(told)
        })
    };
    let own = |print: &Value| vec![crate::kit::text(print)];
    let shown = with("another", &own)?;
    assert_eq!(shown[1][0][0]["id"], "1.0", "{shown:?}");
    let guess = crate::kit::text(&shown[0]);
    let guesses = |print: &Value| vec![guess.clone(), "0123456789abcdef".to_owned(), crate::kit::text(print)];
    for hides in ["sale", "payment"] {
        let hidden = with(hides, &guesses)?;
        assert_ne!(hidden[0], shown[0], "{hides}");
        assert_eq!(
            hidden[1], hidden[2],
            "{hides}: a right guess is answered as a wrong one"
        );
        assert_eq!(
            hidden[3][0][0]["id"], "1.0",
            "{hides}: the group's own list: {hidden:?}"
        );
        assert!(!hidden[3].to_string().contains(SAID), "{hides}: {hidden:?}");
    }
    Ok(())
}

/// Has more members than a tree shows, and one behind them that fails.
#[derive(Serialize, Deserialize)]
struct Crowd;

impl Procedure for Crowd {
    const KIND: &'static str = "crowd";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let quiet = Job::Wait("go".to_owned());
        let children = Children::of((0..5_000).map(|_| &quiet))?.and(&Payment)?;
        Ok(Step::Spawn { children, then: 2 })
    }
}

#[test]
fn a_familys_history_is_hidden_by_the_kind_of_each_member_however_many_they_are() -> Tested {
    let engine = |builder: procession::Builder| builder.register::<Crowd>(()).register::<Payment>(());
    for (hides, shown) in [("payment", "***"), ("crowd", SAID)] {
        let dashboard = move |builder| everybody(builder).redact(Of(hides));
        site_in(&World::new(), engine, dashboard, async |site| {
            site.run.executor.submit(Crowd).into_future().await?;
            site.pass(Duration::from_secs(10)).await?;
            let mut cursor = "0".to_owned();
            let failed = loop {
                let page = site
                    .body(&format!("procedures/1.0/history?family=true&cursor={cursor}"))
                    .await?;
                let items = page["items"].as_array().cloned().unwrap_or_default();
                if let Some(failed) = items.into_iter().find(|entry| !entry["error"].is_null()) {
                    break failed;
                }
                cursor = page["cursor"].as_str().ok_or("no attempt of it failed")?.to_owned();
            };
            assert_eq!(
                (&failed["id"], &failed["error"]),
                (&json!("1.5001"), &json!(shown)),
                "{hides}: {failed}"
            );
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn values_are_shown_with_their_procedure_only_if_the_host_says_so() -> Tested {
    let shown = |set_up: fn(DashboardBuilder<NoAccess>) -> DashboardBuilder| {
        site_in(
            &World::new(),
            |builder| builder,
            set_up,
            async |site| {
                let id = site.submit(Job::End, "a").await?;
                let large = site.submit(Job::Wait("x".repeat(70_000)), "b").await?;
                let one = site.body(&format!("procedures/{id}")).await?;
                let large = site.body(&format!("procedures/{large}")).await?;
                Ok([at(&one, "/payload"), at(&one, "/output"), at(&large, "/payload/value")])
            },
        )
    };
    let [payload, output, _] = shown(everybody)?;
    assert_eq!(
        (&payload["redacted"], &output["redacted"]),
        (&json!(true), &json!(true))
    );
    let [payload, output, large] = shown(|dashboard| everybody(dashboard).redact(ShowAll))?;
    assert_eq!((&payload["value"], &payload["redacted"]), (&json!("End"), &Value::Null));
    assert!(output["value"].is_string() && payload["size"].is_u64(), "{output}");
    assert_eq!(large, Value::Null, "of a large one the size alone");
    Ok(())
}
