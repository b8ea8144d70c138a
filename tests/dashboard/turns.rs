//! Whoever asks for lists without end waits, and costs the engine and other callers little.

use std::future::IntoFuture;
use std::time::Duration;

use actix_web::HttpRequest;
use actix_web::http::StatusCode;
use actix_web::test::TestRequest;
use futures::future::join_all;
use procession::dashboard::Grant;
use procession::testkit::{Fault, World};

use crate::flows::{backlog, drawing};
use crate::kit::{Reply, Site, Tested, everybody, near, site_in};

/// It admits nothing, so that all there is is looked at.
const LIST: &str = "procedures?filter=state:ended%20err:zzzz";
/// More of it than one caller may have at once on any machine.
const MANY: usize = 1_000;
/// How long a caller of so many must have waited at least, on the engine's clock.
const HELD: Duration = Duration::from_secs(1);
/// Whatever is not there after so long never is.
const LONG: Duration = Duration::from_secs(60);

/// Runs a test on a dashboard that knows its callers by a header.
fn named(drive: impl AsyncFnOnce(&Site<'_>) -> Tested) -> Tested {
    let by_header = |request: &HttpRequest| {
        let who = request.headers().get("x-viewer").and_then(|who| who.to_str().ok());
        let who = who.unwrap_or("nobody").to_owned();
        Grant::All { who }
    };
    site_in(
        &World::new(),
        |builder| builder,
        |dashboard| dashboard.access(by_header),
        drive,
    )
}

async fn ask(site: &Site<'_>, who: &'static str, path: &str) -> Reply {
    site.ask(near(TestRequest::get()).insert_header(("x-viewer", who)), path)
        .await
}

/// Waits for something while the engine's time goes on; gives how long that took on its clock.
async fn patiently<T>(site: &Site<'_>, what: impl Future<Output = T>) -> (T, Duration) {
    const STEP: Duration = Duration::from_millis(10);
    let mut passed = Duration::ZERO;
    let time_goes_on = async {
        loop {
            site.run.pass(STEP).await;
            passed += STEP;
        }
    };
    let done = tokio::select! {
        biased;
        done = what => done,
        () = time_goes_on => unreachable!("time has no end"),
    };
    (done, passed)
}

/// Has a caller use up all that it may have at once.
async fn use_up(site: &Site<'_>, who: &'static str) -> Duration {
    let mut held = Duration::ZERO;
    for _ in 0..MANY {
        let (reply, waited) = patiently(site, ask(site, who, LIST)).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        held += waited;
    }
    held
}

#[test]
fn one_that_asks_for_lists_without_end_is_slowed_down() -> Tested {
    named(async |site| {
        let held = use_up(site, "ann").await;
        assert!(held >= HELD, "{held:?}");
        // Another has its own share.
        let reply = tokio::time::timeout(Duration::from_secs(60), ask(site, "bob", LIST)).await?;
        assert_eq!(reply.status, 200, "{}", reply.body);
        // What takes no looking through is answered whoever asks.
        let reply = tokio::time::timeout(Duration::from_secs(60), ask(site, "ann", "me")).await?;
        assert_eq!(reply.status, 200, "{}", reply.body);
        Ok(())
    })
}

#[test]
fn one_that_asks_for_many_lists_at_once_is_told_when_to_ask_again() -> Tested {
    named(async |site| {
        use_up(site, "ann").await;
        let (replies, _) = patiently(site, join_all((0..20).map(|_| ask(site, "ann", LIST)))).await;
        let is_busy = |reply: &&Reply| reply.status == StatusCode::TOO_MANY_REQUESTS;
        let busy: Vec<&Reply> = replies.iter().filter(is_busy).collect();
        assert!(busy.len() >= 12 && busy.len() < 20, "{}", busy.len());
        for reply in busy {
            assert_eq!(reply.body["kind"], "busy");
            let seconds: u64 = reply.header("retry-after").parse()?;
            assert!((1..=30).contains(&seconds), "{seconds}");
        }
        assert!(replies.iter().any(|reply| reply.status == 200));
        Ok(())
    })
}

/// The engine answers nothing while it waits for its disk. That is no reason for others to wait for their turn.
#[test]
fn a_stream_that_is_not_answered_for_does_not_hold_the_turn() -> Tested {
    let (_, engine) = drawing(true);
    site_in(&World::new(), engine, everybody, async |site| {
        let stream = backlog(site, 2).await?.open().await?;
        site.run.store.fault_next(Fault::Withhold);
        let mut submitted = std::pin::pin!(site.run.executor.submit(crate::kit::Job::End).into_future());
        assert!(futures::poll!(&mut submitted).is_pending());
        site.run
            .until("a commit is on the disk", || site.run.store.is_withholding())
            .await?;
        for path in ["flows".to_owned(), format!("procedures/{stream}/queue")] {
            let (reply, _) = tokio::time::timeout(LONG, patiently(site, site.get(&path))).await?;
            assert_eq!(
                (reply.status, &reply.body["kind"]),
                (StatusCode::SERVICE_UNAVAILABLE, &"silent".into())
            );
            let (reply, _) = tokio::time::timeout(LONG, patiently(site, site.get("procedures"))).await?;
            assert_eq!(reply.status, StatusCode::OK, "{}", reply.body);
        }
        site.run.store.release_receipts();
        submitted.await?;
        Ok(())
    })
}

/// Every path that may look through much: none is a way around.
#[test]
fn whatever_looks_through_much_counts() -> Tested {
    for path in [
        "procedures",
        "procedures?filter=state:ended",
        "audit?filter=zzzz",
        "procedures/1.0/tree",
        "procedures/1.0/timeline",
        "procedures/1.0/history",
    ] {
        named(async |site| {
            site.submit(crate::kit::Job::End, "a").await?;
            let mut held = Duration::ZERO;
            for _ in 0..MANY {
                let (reply, waited) = patiently(site, ask(site, "ann", path)).await;
                assert_eq!(reply.status, 200, "{path}: {}", reply.body);
                held += waited;
            }
            assert!(held >= HELD, "{path}: {held:?}");
            Ok(())
        })?;
    }
    Ok(())
}
