//! Charts: what ended and failed in each stretch of time, by kind, whether or not the engine started again in between.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::test::{TestRequest, call_service, init_service, read_body};
use actix_web::{App, web};
use procession::Executor;
use procession::dashboard::Dashboard;
use procession::testkit::{Trouble, World};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};

use crate::kit::{Job, Site, Tested, at, everybody, near, site, site_in, text};

const MINUTE: Duration = Duration::from_mins(1);

/// Runs a test over an engine that keeps its charts in a file.
fn life<T>(world: &World, file: &Path, drive: impl AsyncFnOnce(&Site<'_>) -> Result<T, Trouble>) -> Result<T, Trouble> {
    let file = file.to_owned();
    site_in(world, move |builder| builder.charts_file(file), everybody, drive)
}

/// The counts of all buckets in which something ended, from the oldest on: ended, failed.
fn counts(body: &Value) -> Vec<(u64, u64)> {
    let buckets = body["buckets"].as_array().cloned().unwrap_or_default();
    let all = buckets.into_iter().chain([body["open"].clone()]);
    let counts = all.map(|bucket| (at(&bucket, "/ended").as_u64(), at(&bucket, "/failed").as_u64()));
    let known = counts.filter_map(|(ended, failed)| Some((ended?, failed?)));
    known.filter(|counts| *counts != (0, 0)).collect()
}

/// How many buckets are known, the open one not counted.
fn known(body: &Value) -> usize {
    let buckets = body["buckets"].as_array().cloned().unwrap_or_default();
    buckets.iter().filter(|bucket| bucket["known"] == json!(true)).count()
}

#[test]
fn figures_stand_across_hours_and_a_restart() -> Tested {
    let (world, folder) = (World::new(), tempfile::tempdir()?);
    let file = folder.path().join("charts");
    // Far from the begin of time, so that no bucket would be before it.
    world.clock.advance(Duration::from_hours(1_000));
    life(&world, &file, async |site| {
        let empty = site.body("charts").await?;
        assert_eq!(
            (counts(&empty), known(&empty)),
            (Vec::new(), 0),
            "nothing is known before the start"
        );
        assert_eq!(at(&empty, "/buckets").as_array().map(Vec::len), Some(60));
        for number in 0..3 {
            site.submit(Job::End, &format!("good {number}")).await?;
        }
        site.submit(Job::Fail("no space".to_owned()), "bad").await?;
        let waits = site.submit(Job::Wait("go".to_owned()), "slow").await?;
        site.pass(20 * MINUTE).await?;
        site.signal(waits, "go").await?;
        let hour = site.body("charts?kind=job").await?;
        assert_eq!(counts(&hour), [(4, 1), (1, 0)]);
        let slow = at(&hour, "/open/took");
        assert_eq!(slow["count"], 1);
        let took = slow["p50_ms"].as_f64().unwrap_or_default();
        assert!((took - 1_200_000.0).abs() < 48_000.0, "20 minutes, not {took} ms");
        assert_eq!(known(&hour), 20, "the engine has counted for 20 minutes");
        // What is not written after the next 30 seconds would be lost by a crash.
        site.pass(MINUTE).await
    })?;
    world.clock.advance(Duration::from_hours(2));
    life(&world, &file, async |site| {
        let hour = site.body("charts").await?;
        assert_eq!(
            (counts(&hour), known(&hour)),
            (Vec::new(), 0),
            "nobody counted in the last hour"
        );
        let day = site.body("charts?span=24h").await?;
        assert_eq!(counts(&day), [(4, 1), (1, 0)], "no figure is lost or changed");
        assert_eq!(day["buckets"].as_array().map(Vec::len), Some(96));
        let queued = at(&day, "/buckets")
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|each| each["queued"]["count"].as_u64())
            .sum::<u64>();
        assert!(queued >= 6, "each stage waited for its turn, however short");
        site.submit(Job::End, "after").await?;
        site.pass(Duration::from_hours(21)).await?;
        let day = site.body("charts?span=24h&kind=job").await?;
        assert_eq!(counts(&day), [(4, 1), (1, 0), (1, 0)]);
        site.pass(Duration::from_hours(4)).await?;
        let day = site.body("charts?span=24h&kind=job").await?;
        assert_eq!(counts(&day), [], "a day later it is gone");
        Ok(())
    })
}

#[test]
fn children_count_for_their_kind_alone() -> Tested {
    site(async |site| {
        let parent = site.submit(Job::Parent(3), "parent").await?;
        for child in 1..=3 {
            site.signal(procession::ProcedureId::new(parent.family, child), "go")
                .await?;
        }
        assert_eq!(counts(&site.body("charts").await?), [(1, 0)]);
        assert_eq!(counts(&site.body("charts?kind=job").await?), [(4, 0)]);
        // A kind that is registered and has done nothing has an empty chart; any other has none.
        let bulk = site.body("charts?kind=procession.bulk").await?;
        assert_eq!((counts(&bulk), text(&bulk["of"])), (Vec::new(), "kind".to_owned()));
        for wrong in ["charts?kind=jobs", "charts?span=7d", "charts?limit=3"] {
            let reply = site.get(wrong).await;
            assert_eq!(reply.status, StatusCode::BAD_REQUEST, "{wrong}");
            assert!(reply.body["remedy"].is_string(), "{wrong}");
        }
        Ok(())
    })
}

/// The warnings and notes about charts, in order.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl<S: Subscriber> Layer<S> for Heard {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        struct Said(String);
        impl Visit for Said {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }
        let mut said = Said(String::new());
        event.record(&mut said);
        if said.0.contains("charts") {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(said.0);
        }
    }
}

#[test]
fn a_file_that_cannot_be_kept_harms_nothing_and_is_told_once() -> Tested {
    let (world, folder) = (World::new(), tempfile::tempdir()?);
    let file = folder.path().join("charts");
    std::fs::write(&file, "a file of somebody else")?;
    // Nothing can be written there: as on a disk that is full.
    let new = folder.path().join("charts.new");
    std::fs::create_dir(&new)?;
    let heard = Heard::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(heard.clone()));
    let said = || heard.0.lock().expect("nobody panicked").clone();
    life(&world, &file, async |site| {
        assert_eq!(
            std::fs::read_to_string(folder.path().join("charts.unreadable"))?,
            "a file of somebody else"
        );
        for number in 0..4 {
            site.submit(Job::End, &format!("good {number}")).await?;
            site.pass(MINUTE).await?;
        }
        assert_eq!(said(), ["a file of charts was set aside", "the charts cannot be kept"]);
        assert_eq!(
            counts(&site.body("charts").await?),
            [(1, 0); 4],
            "it counts, and all else goes on"
        );
        std::fs::remove_dir(&new)?;
        site.pass(MINUTE).await?;
        assert_eq!(said().last().map(String::as_str), Some("the charts are kept again"));
        Ok(())
    })?;
    life(&world, &file, async |site| {
        assert_eq!(counts(&site.body("charts").await?), [(1, 0); 4]);
        Ok(())
    })
}

/// Asks an engine of the machine's own time for the ends in its chart of the last day; none while it cannot answer.
async fn ended(dashboard: &Dashboard) -> Option<u64> {
    let app = init_service(App::new().service(web::scope("/ops").configure(dashboard.routes()))).await;
    let request = near(TestRequest::get()).uri("/ops/api/v1/charts?span=24h&kind=job");
    let response = call_service(&app, request.to_request()).await;
    let body: Value = serde_json::from_slice(&read_body(response).await).ok()?;
    let ended = counts(&body).into_iter().map(|(ended, _)| ended);
    body.get("open").map(|_| ended.sum())
}

#[test]
fn an_engine_on_a_directory_keeps_its_charts_there() -> Tested {
    let folder = tempfile::tempdir()?;
    let journal = folder.path().join("journal");
    actix_rt::System::new().block_on(async {
        for life in 1..=3 {
            let executor = Executor::builder(&journal)
                .workers(1)
                .register::<Job>(())
                .start()
                .await?;
            let dashboard = everybody(Dashboard::builder(&executor)).start().await?;
            executor.submit(Job::End).await?.await?;
            // What was counted before is read while the engine runs.
            while ended(&dashboard).await != Some(life) {
                tokio::task::yield_now().await;
            }
            executor.shutdown().await;
            assert!(journal.join("charts").is_file(), "it is written at the end");
        }
        Ok(())
    })
}
