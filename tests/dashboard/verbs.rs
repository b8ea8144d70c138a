//! Verbs beyond those that move one procedure: what is shown in full, results that operators
//! give, signals, and the end of the engine. A dry run of each leaves everything as it was.

use procession::limits::LockNeed;
use procession::operate::OperatorRequest;
use procession::procedure::{Kind, RetryPolicy};
use procession::testkit::{FaultPlan, World};
use procession::{Children, Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::act::{post, waiting};
use crate::kit::{Job, Reply, Site, Tested, at, everybody, site, site_in, site_on, text};

/// A kind whose code is gone at the second start.
#[derive(Serialize, Deserialize)]
struct Gone;

impl Procedure for Gone {
    const KIND: &'static str = "gone";
    const HOLD_LOCKS: bool = true;
    type Stage = ();
    type Env = ();
    type Output = ();

    fn first(&self) -> Self::Stage {}

    fn locks(&self, (): &()) -> Vec<LockNeed> {
        vec![LockNeed::exclusive("t/gone")]
    }

    async fn execute(&mut self, (): (), _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        Ok(Step::Wait {
            event: "never".to_owned(),
            timeout: None,
            then: (),
        })
    }
}

/// Does two things that cannot be undone, and has a child that fails.
#[derive(Serialize, Deserialize)]
struct Trip;

impl Procedure for Trip {
    const KIND: &'static str = "trip";
    type Stage = u32;
    type Env = ();
    type Output = ();

    fn first(&self) -> u32 {
        1
    }

    async fn execute(&mut self, stage: u32, _: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        match stage {
            1 => Ok(Step::Next(2)),
            _ => Ok(Step::Spawn {
                children: Children::new().and(&Job::Fail("no train".to_owned()))?,
                then: 3,
            }),
        }
    }

    async fn rollback(&mut self, _: u32, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Err(StageError::fail("no refund"))
    }

    fn retry_undo() -> RetryPolicy {
        RetryPolicy::default().attempts(1)
    }
}

/// The row of a member does not change with the undos of its family. A plan that was made for it is held to the rollback.
#[test]
fn an_undo_is_skipped_only_if_it_is_the_one_of_the_plan() -> Tested {
    let engine = |builder: procession::Builder| builder.register::<Trip>(());
    site_in(&World::new(), engine, everybody, async |site| {
        site.run.executor.submit(Trip).await?;
        site.pass(std::time::Duration::from_mins(1)).await?;
        let row = at(&site.body("procedures/1.0").await?, "/procedure");
        assert_eq!(row["reason"], "rollback_failed", "{row}");
        let (root, child) = ("procedures/1.0/skip-undo", "procedures/1.1/skip-undo");
        let by_child = planned(site, child, &json!({})).await?.body;
        let by_root = planned(site, root, &json!({})).await?.body;
        let skip = json!({ "reason": "refunded by hand", "expected": by_root["revision"] });
        assert_eq!(post(site, root, &skip).await.status, 200);
        site.pass(std::time::Duration::from_mins(1)).await?;
        // By now the other undo has failed.
        let row = at(&site.body("procedures/1.0").await?, "/procedure");
        assert_eq!(row["reason"], "rollback_failed", "{row}");
        let late = |plan: &Value| json!({ "reason": "refunded by hand", "expected": plan["revision"] });
        for (path, wish) in [
            (child, late(&by_child)),
            ("procedures/1.1/retry-undo", late(&by_child)),
            (root, late(&by_root)),
        ] {
            let refused = post(site, path, &wish).await;
            assert_eq!(
                (
                    refused.status.as_u16(),
                    &refused.body["kind"],
                    &refused.body["revision"]
                ),
                (409, &json!("revised"), &row["revision"]),
                "{path}: {}",
                refused.body
            );
        }
        assert_eq!(
            by_child["revision"], by_root["revision"],
            "both were about the same undo"
        );
        let by_child = planned(site, child, &json!({})).await?.body;
        assert_eq!(post(site, child, &late(&by_child)).await.status, 200);
        Ok(())
    })
}

async fn planned(site: &Site<'_>, path: &str, body: &Value) -> Result<Reply, procession::testkit::Trouble> {
    site.pass(std::time::Duration::from_secs(1)).await?;
    let before = at(&site.body("audit").await?, "/items");
    let reply = post(site, &format!("{path}?dry_run=true"), body).await;
    site.pass(std::time::Duration::from_secs(1)).await?;
    assert_eq!(
        at(&site.body("audit").await?, "/items"),
        before,
        "a dry run is not written down"
    );
    Ok(reply)
}

async fn newest(site: &Site<'_>) -> Result<(String, String), procession::testkit::Trouble> {
    site.pass(std::time::Duration::from_secs(1)).await?;
    let entry = at(&site.body("audit").await?, "/items/0");
    Ok((text(&at(&entry, "/verb")), text(&at(&entry, "/who"))))
}

#[test]
fn what_is_revealed_is_in_the_audit_first() -> Tested {
    site(async |site| {
        let id = waiting(site).await?;
        let path = format!("procedures/{id}/reveal");
        assert_eq!(post(site, &path, &json!({})).await.status, 400, "it needs a reason");
        let reason = json!({ "reason": "a customer asks" });
        let plan = planned(site, &path, &reason).await?.body;
        assert_eq!(plan["payload"]["value"], Value::Null);
        assert!(plan["payload"]["size"].is_number());
        let told = post(site, &path, &reason).await;
        assert_eq!(
            (told.status.as_u16(), &told.body["payload"]["value"]),
            (200, &json!({ "Wait": "go" }))
        );
        assert_eq!(told.body["output"], Value::Null);
        assert_eq!(
            newest(site).await?,
            (format!("reveal the values of {id}"), "ann".to_owned())
        );
        post(site, &path, &reason).await;
        assert_eq!(site.run.executor.audit(None, 10).await?.len(), 2, "each time");
        let keyed = json!({ "reason": "again", "key": "one" });
        assert_eq!(post(site, &path, &keyed).await.status, 400);
        assert_eq!(post(site, "procedures/99.0/reveal", &reason).await.status, 404);
        Ok(())
    })
}

#[test]
fn an_export_is_the_whole_family_and_in_the_audit() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Parent(2), "a").await?;
        let path = format!("procedures/{id}/export");
        let reason = json!({ "reason": "for a report" });
        let plan = planned(site, &path, &reason).await?.body;
        assert_eq!(plan["export"], Value::Null);
        assert!(plan["bytes"].as_u64().is_some_and(|bytes| bytes > 0));
        let told = post(site, &path, &reason).await.body;
        assert_eq!(told["export"]["procedures"].as_array().map(Vec::len), Some(3));
        assert_eq!(newest(site).await?.0, format!("export the family of {id}"));
        assert_eq!(post(site, "procedures/99.0/export", &reason).await.status, 404);
        Ok(())
    })
}

#[test]
fn a_bypass_ends_one_as_failed_if_that_is_asked_for() -> Tested {
    site(async |site| {
        let id = waiting(site).await?;
        let path = format!("procedures/{id}/bypass");
        let odd = post(site, &format!("{path}?dry_run=true"), &json!({ "as": "undone" })).await;
        assert_eq!(odd.status, 400, "{}", odd.body);
        let plan = planned(site, &path, &json!({ "as": "failed" })).await?.body;
        let apply = json!({
            "as": "failed", "reason": "it cannot be done", "expected": plan["revision"], "confirm": id.to_string(),
        });
        assert_eq!(post(site, &path, &apply).await.status, 200);
        assert_eq!(newest(site).await?.0, format!("bypass {id} as failed"));
        let outcome = site.run.executor.outcome(id).await?;
        assert_eq!(outcome.state, procession::status::ProcedureState::Failed);
        Ok(())
    })
}

#[test]
fn an_operator_gives_the_result_of_one_that_waits_and_of_one_that_ended() -> Tested {
    site(async |site| {
        let id = waiting(site).await?;
        let path = format!("procedures/{id}/override-result");
        let wrong = planned(site, &path, &json!({ "output": 7 })).await?;
        assert_eq!(wrong.status, 400, "{}", wrong.body);
        assert_eq!(planned(site, &path, &json!({})).await?.status, 400);
        let plan = planned(site, &path, &json!({ "output": "by hand" })).await?.body;
        let mut apply = json!({ "output": "by hand", "reason": "it was done", "expected": plan["revision"] });
        assert_eq!(post(site, &path, &apply).await.status, 400, "the id is typed");
        apply["confirm"] = json!(id.to_string());
        assert_eq!(post(site, &path, &apply).await.status, 200);
        assert_eq!(newest(site).await?.0, format!("bypass {id} as success with an output"));
        let outcome = site.run.executor.outcome(id).await?;
        assert_eq!(outcome.output::<String>()?.as_deref(), Some("by hand"));
        let plan = planned(site, &path, &json!({ "output": "better" })).await?.body;
        apply["output"] = json!("better");
        assert_eq!(post(site, &path, &apply).await.body["kind"], "revised");
        apply["expected"] = plan["revision"].clone();
        assert_eq!(post(site, &path, &apply).await.status, 200);
        let outcome = site.run.executor.outcome(id).await?;
        assert_eq!(outcome.output::<String>()?.as_deref(), Some("better"));
        let failed = site.submit(Job::Fail("no space".to_owned()), "b").await?;
        let refused = planned(
            site,
            &format!("procedures/{failed}/override-result"),
            &json!({ "output": "x" }),
        )
        .await?;
        assert_eq!(
            (refused.status.as_u16(), &refused.body["kind"]),
            (409, &json!("not_now"))
        );
        Ok(())
    })
}

#[test]
fn a_signal_is_sent_once_and_wakes() -> Tested {
    site(async |site| {
        let id = waiting(site).await?;
        let path = format!("procedures/{id}/signal");
        assert_eq!(post(site, &path, &json!({})).await.status, 400, "it needs a name");
        let signal = json!({ "name": "go", "payload": { "by": "hand" }, "key": "signal 1" });
        let plan = planned(site, &path, &signal).await?.body;
        assert_eq!(plan["changed"], 1);
        assert_eq!(site.body("procedures").await?["items"][0]["state"], "WaitingTimeout");
        let sent = post(site, &path, &signal).await.body;
        site.run.settle().await;
        assert_eq!(site.run.executor.status(id).await?.state.to_string(), "Success");
        let again = post(site, &path, &signal).await.body;
        assert_eq!(again["number"], sent["number"]);
        let late = post(site, &path, &json!({ "name": "go" })).await;
        assert_eq!((late.status.as_u16(), &late.body["kind"]), (409, &json!("finished")));
        assert!(newest(site).await?.0.starts_with(&format!("signal go to {id}")));
        Ok(())
    })
}

#[test]
fn a_signal_that_its_kind_does_not_take_is_refused() -> Tested {
    site(async |site| {
        let id = waiting(site).await?;
        let path = format!("procedures/{id}/signal");
        for (payload, why) in [(json!(""), "a name is missing"), (Value::Null, "invalid type")] {
            let signal = json!({ "name": "typed", "payload": payload });
            for path in [format!("{path}?dry_run=true"), path.clone()] {
                let refused = post(site, &path, &signal).await;
                assert_eq!(
                    (refused.status.as_u16(), &refused.body["kind"]),
                    (400, &json!("request"))
                );
                let text = text(&refused.body["detail"]);
                assert!(
                    text.starts_with(&format!("{id} does not take the signal \"typed\": ")),
                    "{text}"
                );
                assert!(text.contains(why), "{text}");
            }
        }
        assert!(site.run.executor.mailbox(id).await?.kept.is_empty());
        let taken = post(site, &path, &json!({ "name": "typed", "payload": "ann" })).await;
        assert_eq!(taken.status, 200);
        Ok(())
    })
}

#[test]
fn a_result_that_was_acknowledged_goes_sooner() -> Tested {
    site(async |site| {
        let waits = waiting(site).await?;
        let refused = post(site, &format!("procedures/{waits}/acknowledge"), &json!({})).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.body["kind"]),
            (409, &json!("not_now"))
        );
        let id = site.submit(Job::End, "b").await?;
        let path = format!("procedures/{id}/acknowledge");
        assert_eq!(planned(site, &path, &json!({})).await?.status, 200);
        assert_eq!(post(site, &path, &json!({})).await.status, 200);
        assert_eq!(newest(site).await?.0, format!("acknowledge {id}"));
        site.pass(std::time::Duration::from_mins(6)).await?;
        assert_eq!(site.get(&format!("procedures/{id}")).await.status, 404);
        Ok(())
    })
}

#[test]
fn a_quarantined_family_is_discharged() -> Tested {
    let world = World::new();
    let first = world.run(
        FaultPlan::none(),
        |builder| builder.register::<Gone>(()).register::<Job>(()),
        async |run| {
            run.wait(std::future::IntoFuture::into_future(run.executor.submit(Gone)))
                .await??;
            run.settle().await;
            Ok(())
        },
    )?;
    first.done()?;
    site_on(&world, async |site| {
        let job = waiting(site).await?;
        let refused = post(site, &format!("procedures/{job}/discharge?dry_run=true"), &json!({})).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.body["kind"]),
            (409, &json!("not_now"))
        );
        let path = "procedures/1.0/discharge";
        let waits = site.submit(Job::Hold("t/gone".to_owned()), "b").await?;
        let plan = planned(site, path, &json!({})).await?.body;
        assert_eq!(plan["changed"], 1);
        assert_eq!(plan["plan"]["freed"][0]["locks"], json!(["exclusive t/gone"]));
        assert_eq!(plan["plan"]["moves_next"], json!([waits.to_string()]));
        let mut apply = json!({ "reason": "its code is gone", "expected": plan["revision"] });
        assert_eq!(post(site, path, &apply).await.status, 400, "the id is typed");
        apply["confirm"] = json!("1.0");
        assert_eq!(post(site, path, &apply).await.status, 200);
        assert_eq!(newest(site).await?.0, "discharge the family 1");
        assert_eq!(site.run.executor.archive().await?.len(), 1);
        assert_eq!(post(site, path, &apply).await.status, 404);
        Ok(())
    })
}

#[test]
fn the_engine_drains_when_its_plan_was_seen() -> Tested {
    let world = World::new();
    site_on(&world, async |site| {
        let id = waiting(site).await?;
        let wish = json!({ "reason": "a new release", "deadline_ms": 5_000 });
        assert_eq!(post(site, "engine/drain", &wish).await.status, 400, "it needs its plan");
        let long = json!({ "deadline_ms": 86_400_000_u64 });
        assert_eq!(planned(site, "engine/drain", &long).await?.status, 400);
        let plan = planned(site, "engine/drain", &wish).await?.body;
        assert_eq!(
            (&plan["drain"]["deadline_ms"], &plan["drain"]["live_families"]),
            (&json!(5_000), &json!(1))
        );
        assert!(!site.run.executor.snapshot().await?.draining);
        let mut apply = wish.clone();
        apply["expected"] = json!("77");
        assert_eq!(post(site, "engine/drain", &apply).await.body["kind"], "revised");
        apply["expected"] = plan["revision"].clone();
        let done = post(site, "engine/drain", &apply).await;
        assert_eq!((done.status.as_u16(), done.body["number"].is_string()), (200, true));
        site.run.settle().await;
        assert_eq!(site.get("engine").await.status, 503);
        let late = post(site, &format!("procedures/{id}/pause"), &json!({ "reason": "x" })).await;
        assert_eq!((late.status.as_u16(), &late.body["kind"]), (503, &json!("draining")));
        Ok(())
    })?;
    site_on(&world, async |site| {
        assert_eq!(newest(site).await?.0, "drain within 5000 ms");
        let listed = site
            .run
            .executor
            .list(procession::status::ListFilter::default(), None, 9)
            .await?;
        assert_eq!(listed.items[0].kind, Kind::from("job"), "it goes on");
        site.run
            .executor
            .pause(
                procession::operate::PauseScope::All,
                OperatorRequest::new("ann", "look"),
            )
            .await?;
        Ok(())
    })
}
