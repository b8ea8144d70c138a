//! The read model: what it shows is what the store has, and nothing else.

use std::time::Duration;

use procession::dashboard::Dashboard;
use procession::provider::Space;
use procession::testkit::{FaultPlan, ReadFault, Run, Trouble, World};
use serde_json::json;

use crate::act::{post, waiting};
use crate::kit::{Job, Site, Tested, everybody, ids, site, site_on};

#[test]
fn what_was_there_before_is_shown_after_a_start() -> Tested {
    let world = World::new();
    site_on(&world, async |site| {
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        site.submit(Job::End, "b").await?;
        Ok(())
    })?;
    site_on(&world, async |site| {
        assert_eq!(ids(&site.body("procedures").await?), ["1.0"]);
        assert_eq!(ids(&site.body("procedures?filter=state:ended").await?), ["2.0"]);
        let states = site.body("attention").await?["states"].clone();
        assert_eq!(states, json!({ "Success": 1, "WaitingTimeout": 1 }));
        Ok(())
    })
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
fn rates_are_of_the_last_minute_to_the_second() -> Tested {
    let world = World::new();
    let rate = async |site: &Site<'_>| {
        let kinds = site.body("kinds").await?;
        assert_eq!(kinds["items"][0]["kind"], "job");
        let rate = &kinds["items"][0]["last_minute"];
        assert_eq!(rate["window_ms"], 60_000);
        let figures = ["started", "ended", "failed"].map(|name| rate[name].as_u64());
        Ok::<_, Trouble>(figures.map(Option::unwrap_or_default))
    };
    site_on(&world, async |site| {
        assert_eq!(rate(site).await?, [0, 0, 0]);
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        site.submit(Job::End, "b").await?;
        site.submit(Job::Fail("no".to_owned()), "c").await?;
        // Half a second lies between two questions to the engine.
        site.pass(Duration::from_secs(1)).await?;
        assert_eq!(rate(site).await?, [3, 2, 1]);
        site.pass(Duration::from_secs(30)).await?;
        site.submit(Job::Parent(2), "d").await?;
        site.signal(id, "go").await?;
        site.pass(Duration::from_secs(1)).await?;
        // Two children are of this kind, too.
        assert_eq!(rate(site).await?, [6, 3, 1]);
        site.pass(Duration::from_secs(27)).await?;
        assert_eq!(
            rate(site).await?,
            [6, 3, 1],
            "59 s later all of it is within the minute"
        );
        site.pass(Duration::from_secs(1)).await?;
        assert_eq!(rate(site).await?, [3, 1, 0], "a minute later what was first is not");
        Ok(())
    })?;
    // The next engine counts from its own start.
    site_on(&world, async |site| {
        assert_eq!(rate(site).await?, [0, 0, 0]);
        Ok(())
    })
}

#[test]
fn a_family_that_is_set_aside_is_counted_as_one() -> Tested {
    let world = World::new();
    site_on(&world, async |site| {
        site.submit(Job::Retry("rpc timeout".to_owned()), "a").await?;
        assert_eq!(site.body("attention").await?["tiles"]["retrying"], 1);
        Ok(())
    })?;
    // Without the kind's code it is not tried again.
    let life = world.run(
        FaultPlan::none(),
        |builder| builder,
        async |run: &Run| {
            let dashboard = everybody(Dashboard::builder(&run.executor)).start().await?;
            let site = Site { run, dashboard };
            site.shown().await?;
            let tiles = site.body("attention").await?["tiles"].clone();
            let retrying = site.body("procedures?filter=state:retrying").await?;
            assert_eq!((&tiles["retrying"], ids(&retrying)), (&json!(0), vec![]));
            assert_eq!(tiles["active"], 1);
            Ok(())
        },
    );
    life?.done()
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
    site_on(&world, async |site| {
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        Ok(())
    })?;
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
            assert_eq!(body["items"][0]["set_aside"], true, "a discharge alone is taken of it");
            let attention = site.body("attention").await?;
            assert_eq!(attention["verdicts"][0]["rule"], "quarantined");
            Ok(())
        },
    );
    life?.done()
}

/// What is done could not be told to who did it, who would do it again.
#[test]
fn nothing_is_done_while_the_model_is_being_filled() -> Tested {
    let world = World::new();
    let id = site_on(&world, async |site| waiting(site).await)?;
    let life = world.run(
        FaultPlan::none(),
        |builder| builder.register::<Job>(()),
        async |run: &Run| {
            run.settle().await;
            // As long as rows cannot be read the model is empty, however often it is begun.
            run.store.fail_reads(ReadFault::for_good().of(Space::Procedures));
            let dashboard = everybody(Dashboard::builder(&run.executor)).start().await?;
            let site = Site { run, dashboard };
            let before = run.executor.snapshot().await?;
            let wish = json!({ "reason": "x", "expected": "1", "limit": 1, "filter": "kind:job", "value": "End" });
            for path in [
                &format!("procedures/{id}/abort"),
                &format!("procedures/{id}/pause"),
                "kinds/job/pause",
                "kinds/job/submit",
                "engine/pause",
                "engine/drain",
                "limits/job",
                "bulk/pause",
            ] {
                let refused = post(&site, path, &wish).await;
                assert_eq!(
                    (refused.status.as_u16(), &refused.body["kind"]),
                    (503, &json!("recovering")),
                    "{path}: {}",
                    refused.body
                );
            }
            run.store.fail_reads(ReadFault::none());
            run.settle().await;
            let after = run.executor.snapshot().await?;
            assert_eq!(after.durable, before.durable, "a commit was made");
            assert_eq!(
                (after.paused, after.live_families),
                (before.paused, before.live_families)
            );
            Ok(())
        },
    );
    life?.done()
}
