//! The value behind each stage, where the kind keeps values and the host shows them, and what differs between two.

use std::future::IntoFuture;
use std::time::Duration;

use actix_web::http::StatusCode;
use procession::dashboard::{DashboardBuilder, NoAccess, ShowAll};
use procession::testkit::{Trouble, World};
use procession::{Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kit::{Job, Site, Tested, at, everybody, site_in};

/// Fills a cart, and has it packed by a child.
#[derive(Serialize, Deserialize)]
struct Cart {
    items: Vec<String>,
    total: u32,
    note: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Stage {
    Add,
    Look,
    Pack,
    Sign,
}

impl Procedure for Cart {
    const KIND: &'static str = "cart";
    const KEEP_VALUES: usize = 200;
    type Stage = Stage;
    type Env = ();
    type Output = ();

    fn first(&self) -> Stage {
        Stage::Add
    }

    async fn execute(&mut self, stage: Stage, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Stage::Add => {
                self.items.insert(0, "tea".to_owned());
                self.total = 7;
                Ok(Step::Next(Stage::Look))
            }
            Stage::Look => Ok(Step::Next(Stage::Pack)),
            Stage::Pack => {
                self.note = Some("x".repeat(300));
                let children = Children::new().and(&Job::Note("packed".to_owned()))?;
                Ok(Step::Spawn {
                    children,
                    then: Stage::Sign,
                })
            }
            Stage::Sign => {
                self.note = Some("signed".to_owned());
                Ok(Step::Done(()))
            }
        }
    }
}

fn filled<T>(
    set_up: impl FnOnce(DashboardBuilder<NoAccess>) -> DashboardBuilder,
    ask: impl AsyncFnOnce(&Site<'_>) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let engine = |builder: procession::Builder| builder.register::<Cart>(());
    site_in(&World::new(), engine, set_up, async |site| {
        let cart = Cart {
            items: vec!["salt".to_owned()],
            total: 2,
            note: None,
        };
        let handle = site.run.wait(site.run.executor.submit(cart).into_future()).await??;
        site.run.wait(handle.outcome()).await??;
        site.pass(Duration::from_secs(1)).await?;
        ask(site).await
    })
}

fn shown(dashboard: DashboardBuilder<NoAccess>) -> DashboardBuilder {
    everybody(dashboard).redact(ShowAll)
}

/// Returns the numbers of the root's entries, which are told apart by their stages.
async fn entries(site: &Site<'_>) -> Result<Vec<Value>, Trouble> {
    let history = site.body("procedures/1.0/history").await?;
    let items = at(&history, "/items").as_array().cloned().unwrap_or_default();
    Ok(items.iter().map(|entry| at(entry, "/number")).collect())
}

#[test]
fn each_entry_leads_to_the_value_behind_it() -> Tested {
    filled(shown, async |site| {
        let history = site.body("procedures/1.0/history").await?;
        let left = |place: usize| at(&history, &format!("/items/{place}/value"));
        assert_eq!(left(0), json!({ "changed": true, "size": 30 }));
        assert_eq!(left(1), json!({ "changed": false, "size": null }));
        let numbers = entries(site).await?;
        let value = async |number: &Value| site.body(&format!("procedures/1.0/values?entry={number}")).await;
        let first = value(&numbers[0]).await?;
        let cart = json!({ "items": ["tea", "salt"], "total": 7, "note": null });
        assert_eq!(at(&first, "/to/value/value"), cart);
        let second = value(&numbers[1]).await?;
        assert_eq!(
            (at(&second, "/to/left_by"), at(&second, "/to/value/value")),
            (numbers[0].clone(), cart)
        );
        let third = value(&numbers[2]).await?;
        assert_eq!(at(&third, "/to/value"), Value::Null);
        assert!(
            at(&third, "/to/too_large").as_u64().is_some_and(|size| size > 300),
            "{third}"
        );
        assert_eq!(at(&value(&numbers[3]).await?, "/to/value/value/note"), "signed");
        let unknown = site.get("procedures/1.0/values?entry=99").await;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND);
        assert_eq!(site.get("procedures/1.0/values").await.status, StatusCode::BAD_REQUEST);
        Ok(())
    })
}

#[test]
fn two_values_are_compared_and_the_first_is_what_was_submitted() -> Tested {
    filled(shown, async |site| {
        let numbers = entries(site).await?;
        let path = format!("procedures/1.0/values?entry={}&from=0", numbers[1]);
        let body = site.body(&path).await?;
        assert_eq!(at(&body, "/from/value/value/total"), 2);
        assert_eq!(
            at(&body, "/difference/items"),
            json!([
                { "path": "/items/0", "change": "added", "to": "tea" },
                { "path": "/total", "change": "changed", "from": 2, "to": 7 },
            ])
        );
        // The value behind the third is too large to be compared.
        let path = format!("procedures/1.0/values?entry={}&from={}", numbers[2], numbers[0]);
        assert_eq!(site.body(&path).await?["difference"], Value::Null);
        Ok(())
    })
}

#[test]
fn a_host_that_shows_no_values_shows_their_sizes() -> Tested {
    filled(everybody, async |site| {
        let numbers = entries(site).await?;
        let body = site
            .body(&format!("procedures/1.0/values?entry={}&from=0", numbers[0]))
            .await?;
        assert_eq!(at(&body, "/to/value"), json!({ "redacted": true, "size": 30 }));
        assert_eq!(at(&body, "/difference"), Value::Null);
        assert!(!body.to_string().contains("salt"), "{body}");
        Ok(())
    })
}

#[test]
fn a_kind_that_keeps_no_values_says_so() -> Tested {
    filled(shown, async |site| {
        let history = site.body("procedures/1.1/history").await?;
        assert_eq!(at(&history, "/items/0/value"), Value::Null);
        let path = format!("procedures/1.1/values?entry={}", at(&history, "/items/0/number"));
        let body = site.body(&path).await?;
        assert_eq!(
            (at(&body, "/to/left_by"), at(&body, "/to/value")),
            (Value::Null, Value::Null)
        );
        Ok(())
    })
}
