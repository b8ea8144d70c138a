//! The read model: what it shows is what the store has, and nothing else.

use std::time::Duration;

use procession::testkit::World;
use serde_json::json;

use crate::kit::{Job, Tested, everybody, ids, site, site_in};

#[test]
fn what_was_there_before_is_shown_after_a_start() -> Tested {
    let world = World::new();
    site_in(
        &world,
        |builder| builder,
        everybody,
        async |site| {
            site.submit(Job::Wait("go".to_owned()), "a").await?;
            site.submit(Job::End, "b").await?;
            Ok(())
        },
    )?;
    site_in(
        &world,
        |builder| builder,
        everybody,
        async |site| {
            assert_eq!(ids(&site.body("procedures").await?), ["1.0"]);
            assert_eq!(ids(&site.body("procedures?filter=state:ended").await?), ["2.0"]);
            let states = site.body("attention").await?["states"].clone();
            assert_eq!(states, json!({ "Success": 1, "WaitingTimeout": 1 }));
            Ok(())
        },
    )
}

#[test]
fn counts_follow_every_change() -> Tested {
    site(async |site| {
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        site.submit(Job::Fail("no".to_owned()), "b").await?;
        let kinds = site.body("kinds").await?;
        assert_eq!(kinds["items"][0]["kind"], "job");
        assert_eq!(kinds["items"][0]["registered"], true);
        assert_eq!(kinds["items"][0]["versions"], json!({ "1": 1 }));
        assert_eq!(
            kinds["items"][0]["states"],
            json!({ "RolledBack": 1, "WaitingTimeout": 1 })
        );
        site.signal(id, "go").await?;
        let kinds = site.body("kinds").await?;
        assert_eq!(kinds["items"][0]["states"], json!({ "RolledBack": 1, "Success": 1 }));
        Ok(())
    })
}

#[test]
fn results_that_have_gone_are_shown_no_more() -> Tested {
    site(async |site| {
        let id = site.submit(Job::End, "a").await?;
        site.body(&format!("procedures/{id}")).await?;
        site.pass(Duration::from_hours(1)).await?;
        assert_eq!(site.get(&format!("procedures/{id}")).await.status, 404);
        assert_eq!(site.body("attention").await?["states"], json!({}));
        Ok(())
    })
}

#[test]
fn a_family_that_is_set_aside_is_shown_so() -> Tested {
    let world = World::new();
    site_in(
        &world,
        |builder| builder,
        everybody,
        async |site| {
            site.submit(Job::Wait("go".to_owned()), "a").await?;
            Ok(())
        },
    )?;
    // Without the kind's code nothing of it can run.
    let plan = procession::testkit::FaultPlan::none();
    let life = world.run(
        plan,
        |builder| builder,
        async |run: &procession::testkit::Run| {
            let dashboard = everybody(procession::dashboard::Dashboard::builder(&run.executor))
                .start()
                .await?;
            let site = crate::kit::Site { run, dashboard };
            site.shown().await?;
            let body = site.body("procedures?filter=reason:quarantined").await?;
            assert_eq!(ids(&body), ["1.0"]);
            let attention = site.body("attention").await?;
            assert_eq!(attention["verdicts"][0]["rule"], "quarantined");
            Ok(())
        },
    );
    life?.done()
}
