//! How procedures of a kind went from stage to stage is counted as it was committed.

use std::future::IntoFuture;
use std::time::Duration;

use actix_web::http::StatusCode;
use procession::testkit::World;
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::kit::{Tested, at, everybody, site_in};
use crate::logs::Copy;

/// Goes round as often as it says, sleeps, and ends.
#[derive(Serialize, Deserialize)]
struct Round(u32);

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Lap {
    Run,
    Rest { left: u32 },
}

impl Procedure for Round {
    const KIND: &'static str = "round";
    type Stage = Lap;
    type Env = ();
    type Output = ();

    fn first(&self) -> Lap {
        Lap::Run
    }

    async fn execute(&mut self, stage: Lap, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            Lap::Run if self.0 > 0 => {
                self.0 -= 1;
                Ok(Step::Next(Lap::Run))
            }
            Lap::Run => Ok(Step::Sleep {
                until: cx.now().after(Duration::from_secs(1)),
                then: Lap::Rest { left: 0 },
            }),
            Lap::Rest { .. } => Ok(Step::Done(())),
        }
    }
}

fn edges(body: &Value) -> Vec<Value> {
    let edges = body["edges"].as_array().cloned().unwrap_or_default();
    let mut edges: Vec<Value> = edges
        .iter()
        .map(|edge| json!([edge["from"], edge["to"], edge["count"]]))
        .collect();
    edges.sort_by_key(Value::to_string);
    edges
}

#[test]
fn each_way_from_a_stage_is_counted() -> Tested {
    let engine = |builder: procession::Builder| builder.register::<Copy>(()).register::<Round>(());
    site_in(&World::new(), engine, everybody, async |site| {
        assert_eq!(site.body("kinds/round/stages").await?["items"], json!([]));
        for laps in [2, 5] {
            site.run
                .wait(site.run.executor.submit(Round(laps)).into_future())
                .await??;
            let copy = site.run.wait(site.run.executor.submit(Copy).into_future()).await??;
            assert!(site.run.wait(copy.outcome()).await?.is_err(), "it fails in the end");
        }
        site.pass(Duration::from_secs(5)).await?;
        let round = site.body("kinds/round/stages").await?;
        assert_eq!(edges(&round), [json!(["Run", "Rest", 2]), json!(["Run", "Run", 7])]);
        assert_eq!(
            (at(&round, "/items/0/begun"), at(&round, "/items/0/runs")),
            (json!(2), json!(9))
        );
        assert_eq!(at(&round, "/items/1/ended/success"), 2);
        let copy = site.body("kinds/copy/stages").await?;
        assert_eq!(edges(&copy), [json!(["Open", "Copy", 2])]);
        let last = at(&copy, "/items/1");
        assert_eq!(
            (at(&last, "/retries"), at(&last, "/ended"), at(&last, "/undone")),
            (
                json!(2),
                json!({ "success": 0, "rolled_back": 2, "failed": 0 }),
                json!(2)
            )
        );
        assert_eq!(at(&copy, "/items/0/undone"), 2);
        assert_eq!(
            (at(&copy, "/submitted"), at(&copy, "/finished/rolled_back")),
            (json!(2), json!(2))
        );
        let unknown = site.get("kinds/none/stages").await;
        assert_eq!(unknown.status, StatusCode::NOT_FOUND);
        Ok(())
    })
}
