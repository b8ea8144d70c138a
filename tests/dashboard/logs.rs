//! What stages and undos log is kept by attempt, and shown as far as the host says.

use std::fmt::Debug;
use std::future::IntoFuture;
use std::time::Duration;

use procession::dashboard::{DashboardBuilder, Grant, NoAccess, Part, Redact, ShowAll, StageLogs};
use procession::procedure::RetryPolicy;
use procession::testkit::{Trouble, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing_subscriber::layer::SubscriberExt;

use crate::kit::{Site, Tested, at, everybody, site_in};

/// Copies files, with words on each, and fails in the end.
#[derive(Serialize, Deserialize)]
pub(crate) struct Copy;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Stage {
    Open,
    Copy,
}

impl Procedure for Copy {
    const KIND: &'static str = "copy";
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Open
    }

    async fn execute(&mut self, stage: Stage, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Open => {
                tracing::info!(token = "s3cret", "opened");
                Ok(Step::Next(Stage::Copy))
            }
            Stage::Copy => {
                (0..60).for_each(|file| tracing::debug!(file, "copied"));
                if cx.attempt() == 1 {
                    return Err(StageError::retry("the disk is busy"));
                }
                Err(StageError::fail("the disk is full"))
            }
        }
    }

    async fn rollback(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        tracing::warn!("undone: {stage:?}");
        Ok(())
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(5)
    }
}

/// Runs one to its end, and asks.
pub(crate) fn copied<T>(
    set_up: impl FnOnce(DashboardBuilder<NoAccess>, &StageLogs) -> DashboardBuilder,
    ask: impl AsyncFnOnce(&Site<'_>) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    // Or a line that another test's thread reaches first counts as wanted by nobody, here too.
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).ok();
    let logs = StageLogs::new();
    tracing::subscriber::with_default(tracing_subscriber::registry().with(logs.clone()), || {
        let engine = |builder: procession::Builder| builder.register::<Copy>(());
        site_in(
            &World::new(),
            engine,
            |dashboard| set_up(dashboard, &logs),
            async |site| {
                let handle = site.run.wait(site.run.executor.submit(Copy).into_future()).await??;
                assert!(site.run.wait(handle.outcome()).await?.is_err(), "it fails in the end");
                site.pass(Duration::from_secs(1)).await?;
                ask(site).await
            },
        )
    })
}

pub(crate) fn shown(dashboard: DashboardBuilder<NoAccess>, logs: &StageLogs) -> DashboardBuilder {
    everybody(dashboard).logs(logs).redact(ShowAll)
}

/// The attempts of a reply, each with how many events it has.
fn attempts(body: &Value) -> Vec<Value> {
    let items = body["items"].as_array().cloned().unwrap_or_default();
    let all = items.iter().map(|item| {
        let events = item["events"].as_array().map_or(0, Vec::len);
        json!([
            item["call"],
            item["stage"],
            item["visit"],
            item["attempt"],
            events,
            item["left_out"]
        ])
    });
    all.collect()
}

#[test]
fn each_attempt_has_its_newest_events() -> Tested {
    copied(shown, async |site| {
        let body = site.body("procedures/1.0/logs").await?;
        assert_eq!(body["kept"], true);
        // The engine's own line on a failure is one of its events.
        assert_eq!(
            attempts(&body),
            [
                json!(["stage", "Open", 0, 1, 1, 0]),
                json!(["stage", "Copy", 1, 1, 50, 11]),
                json!(["stage", "Copy", 1, 2, 50, 11]),
                json!(["undo", "Copy", 1, 1, 1, 0]),
                json!(["undo", "Open", 0, 1, 1, 0]),
            ]
        );
        let first = at(&body, "/items/0/events/0");
        assert_eq!(
            (
                at(&first, "/level"),
                at(&first, "/text/message"),
                at(&first, "/text/fields")
            ),
            (
                json!("INFO"),
                json!("opened"),
                json!([{ "name": "token", "value": "s3cret" }])
            )
        );
        assert_eq!(at(&body, "/items/3/events/0/text/message"), "undone: Copy");
        Ok(())
    })
}

#[test]
fn an_entry_of_the_history_names_its_attempt() -> Tested {
    copied(shown, async |site| {
        let history = site.body("procedures/1.0/history").await?;
        let mut asked = 0;
        for entry in history["items"].as_array().into_iter().flatten() {
            let undo = entry["ending"] == "undone";
            let path = format!(
                "procedures/1.0/logs?visit={}&attempt={}&undo={undo}",
                entry["visit"], entry["attempt"]
            );
            let found = attempts(&site.body(&path).await?);
            let call = if undo { "undo" } else { "stage" };
            assert_eq!(found.len(), 1, "{path}");
            assert_eq!((&found[0][0], &found[0][1]), (&json!(call), &entry["stage"]), "{path}");
            asked += 1;
        }
        assert_eq!(asked, 5);
        assert_eq!(site.body("procedures/1.0/logs?limit=2").await?["more"], 3);
        Ok(())
    })
}

#[test]
fn texts_are_hidden_by_default_and_levels_are_not() -> Tested {
    let set_up = |dashboard, logs: &StageLogs| everybody(dashboard).logs(logs);
    copied(set_up, async |site| {
        let body = site.body("procedures/1.0/logs").await?;
        let text = body.to_string();
        for secret in ["s3cret", "opened", "the disk"] {
            assert!(!text.contains(secret), "{secret}");
        }
        assert_eq!(
            at(&body, "/items/0/events/0/text"),
            json!({ "redacted": true, "size": 17 })
        );
        assert_eq!(at(&body, "/items/4/events/0/level"), "WARN");
        Ok(())
    })
}

/// Hides one field of logs.
struct NoTokens;

impl Redact for NoTokens {
    fn redact(&self, _: &str, part: Part, value: &mut Value, _: &Grant) {
        if part != Part::Log {
            return;
        }
        for field in value["fields"].as_array_mut().into_iter().flatten() {
            if field["name"] == "token" {
                field["value"] = json!("***");
            }
        }
    }
}

#[test]
fn a_host_hides_what_it_names() -> Tested {
    let set_up = |dashboard, logs: &StageLogs| everybody(dashboard).logs(logs).redact(NoTokens);
    copied(set_up, async |site| {
        let body = site.body("procedures/1.0/logs?visit=0").await?;
        assert_eq!(at(&body, "/items/0/events/0/text/message"), "opened");
        assert_eq!(at(&body, "/items/0/events/0/text/fields/0/value"), "***");
        Ok(())
    })
}

/// Says so many bytes, with a field without end.
#[derive(Serialize, Deserialize)]
struct Talk(usize);

struct Endless;

impl Debug for Endless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (0..10_000).try_for_each(|_| f.write_str("ü"))
    }
}

impl Procedure for Talk {
    const KIND: &'static str = "talk";
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) {}

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        let said = tracing::info_span!("inner");
        said.in_scope(|| tracing::info!(endless = ?Endless, quoted = "a \"b\"", "{}", "ü".repeat(self.0)));
        Ok(Step::Done(()))
    }
}

/// Has so many say something, under a bound of all, and asks.
fn said(many: usize, length: usize, most: usize, ask: impl AsyncFnOnce(&Site<'_>) -> Tested) -> Tested {
    tracing::subscriber::set_global_default(tracing_subscriber::registry()).ok();
    let logs = StageLogs::new().max_bytes(most);
    tracing::subscriber::with_default(tracing_subscriber::registry().with(logs.clone()), || {
        let engine = |builder: procession::Builder| builder.register::<Talk>(());
        site_in(
            &World::new(),
            engine,
            |dashboard| shown(dashboard, &logs),
            async |site| {
                for _ in 0..many {
                    let handle = site
                        .run
                        .wait(site.run.executor.submit(Talk(length)).into_future())
                        .await??;
                    site.run.wait(handle.outcome()).await??;
                }
                site.pass(Duration::from_secs(1)).await?;
                ask(site).await
            },
        )
    })
}

#[test]
fn texts_are_cut_on_a_character_whatever_a_value_writes() -> Tested {
    said(1, 2_000, 1 << 20, async |site| {
        let body = site.body("procedures/1.0/logs").await?;
        let text = at(&body, "/items/0/events/0/text");
        let length = |place: &str| at(&text, place).as_str().map(str::len);
        assert_eq!(
            (length("/message"), length("/fields/0/value")),
            (Some(1_024), Some(256))
        );
        assert_eq!(
            (at(&text, "/fields/1/value"), at(&text, "/cut")),
            (json!("a \"b\""), json!(true))
        );
        Ok(())
    })
}

#[test]
fn all_together_are_within_their_bound_and_the_oldest_go_first() -> Tested {
    said(20, 400, 8_000, async |site| {
        let oldest = site.body("procedures/1.0/logs").await?;
        assert_eq!(oldest["items"], json!([]));
        assert!(
            oldest["forgotten"].as_u64().is_some_and(|attempts| attempts >= 10),
            "{oldest}"
        );
        let newest = site.body("procedures/20.0/logs").await?;
        assert_eq!(attempts(&newest), [json!(["stage", "()", 0, 1, 1, 0])]);
        Ok(())
    })
}

#[test]
fn a_dashboard_without_the_layer_says_so() -> Tested {
    copied(
        |dashboard, _| everybody(dashboard),
        async |site| {
            let body = site.body("procedures/1.0/logs").await?;
            assert_eq!((&body["kept"], &body["items"]), (&json!(false), &json!([])));
            Ok(())
        },
    )
}
