//! A schedule, as the API shows it, and how it is asked for a run through it.

use std::time::Duration;

use procession::schedule::{Jobs, Schedule};
use procession::testkit::World;
use procession::{Builder, Procedure};
use serde_json::json;

use crate::act::post;
use crate::kit::{Job, Tested, everybody, site_in, text};

const HOUR: Duration = Duration::from_secs(3_600);

fn engine(builder: Builder) -> Builder {
    let jobs = Jobs::new().job("nightly", |_| Ok(Job::Wait("go".to_owned())));
    builder.register::<Schedule>(jobs)
}

#[test]
fn the_next_run_is_shown_and_one_is_asked_for_as_the_page_does() -> Tested {
    site_in(&World::new(), engine, everybody, async |site| {
        let executor = &site.run.executor;
        let id = executor.schedule(Schedule::every("nightly", HOUR)?).await?.id();
        site.run.settle().await;
        site.shown().await?;
        let shown = site.body(&format!("procedures/{id}")).await?;
        let shown = &shown["procedure"];
        assert_eq!(shown["kind"], Schedule::KIND);
        assert_eq!(shown["until"], "1970-01-01T01:00:00Z");
        assert!(
            text(&shown["next"]).ends_with("at the latest at 1970-01-01T01:00:00Z"),
            "{shown}"
        );

        // As the page sends it.
        let path = format!("procedures/{id}/signal");
        let body = json!({ "name": "request", "payload": null, "reason": "", "key": "once" });
        for _ in 0..2 {
            let done = post(site, &path, &body).await;
            assert_eq!(done.status, 200, "{}", done.body);
        }
        site.run.settle().await;
        site.shown().await?;
        let runs = site.body("procedures?filter=kind:job").await?;
        assert_eq!(runs["items"].as_array().map(Vec::len), Some(1), "{runs}");
        assert_eq!(runs["items"][0]["key"], "nightly 1970-01-01T00:00:00Z asked");

        let wrong = post(site, &path, &json!({ "name": "request", "payload": 7 })).await;
        assert_eq!(wrong.status, 400, "{}", wrong.body);
        Ok(())
    })
}

/// The right to ask for a run is the least that an operator has. The timetable, the job and its input are the program's.
#[test]
fn no_signal_of_the_api_changes_a_schedule() -> Tested {
    site_in(&World::new(), engine, everybody, async |site| {
        let executor = &site.run.executor;
        let id = executor.schedule(Schedule::every("nightly", HOUR)?).await?.id();
        site.run.settle().await;
        site.shown().await?;
        let path = format!("procedures/{id}/signal");
        let plan = json!({ "job": "nightly", "timetable": { "every": { "micros": 1_000_000 } } });
        let bytes: Vec<u8> = plan.to_string().into_bytes();
        for change in [plan.clone(), json!(plan.to_string()), json!(bytes)] {
            let body = json!({ "name": "request", "payload": { "change": change } });
            let refused = post(site, &path, &body).await;
            assert_eq!(refused.status, 400, "{}", refused.body);
            let says = text(&refused.body["detail"]);
            assert!(says.contains("a request for a run has no payload"), "{}", refused.body);
        }
        site.run.pass(Duration::from_secs(60)).await;
        let value = executor.value::<Schedule>(id).await?.ok_or("it lives")?;
        assert_eq!((value.timetable().as_str(), value.runs()), ("every 3600s", 0));
        Ok(())
    })
}
