//! The stream of events: order, resuming, coalescing, bounds, and its end.

use std::time::Duration;

use actix_web::test::TestRequest;
use procession::dashboard::Grant;
use procession::testkit::World;
use serde_json::json;

use crate::kit::{Job, Tested, near, site, site_in, text};
use crate::listen::rows;

/// Between two events that tell of one row.
const GAP: Duration = Duration::from_millis(100);

#[test]
fn a_stream_goes_on_from_the_page_that_was_read() -> Tested {
    site(async |site| {
        let page = site.body("procedures").await?;
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        let mut stream = site.listen(&format!("?from={}", text(&page["as_of"]))).await?;
        assert_eq!(stream.next().await?.map(|event| event.name), Some("ping".to_owned()));
        let change = stream.next_of("change").await?;
        assert_eq!(rows(&change), ["1.0"]);
        assert_eq!(change.data["rows"][0]["state"], "WaitingTimeout");
        let after = site.body("procedures").await?;
        assert_eq!(change.id, after["as_of"].as_str().map(str::to_owned));
        Ok(())
    })
}

#[test]
fn changes_come_in_commit_order_and_the_newest_of_a_row_wins() -> Tested {
    site(async |site| {
        let mut stream = site.listen("").await?;
        let mut seen = Vec::new();
        for key in ["a", "b", "c"] {
            // Each is several commits, which no time lies between.
            let id = site.submit(Job::Wait("go".to_owned()), key).await?;
            site.signal(id, "go").await?;
            site.pass(GAP).await?;
            let change = stream.next_of("change").await?;
            assert_eq!(rows(&change), [id.to_string()]);
            assert_eq!(change.data["rows"][0]["state"], "Success");
            let id = change.id.unwrap_or_default();
            seen.push(id.rsplit('-').next().and_then(|seq| seq.parse::<u64>().ok()));
        }
        assert!(seen.is_sorted());
        Ok(())
    })
}

#[test]
fn a_row_is_told_of_ten_times_a_second_at_most() -> Tested {
    site(async |site| {
        let mut stream = site.listen("").await?;
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        stream.next_of("change").await?;
        let begun = site.run.now();
        site.signal(id, "go").await?;
        // Nothing of it is told before the time is up: the next event is of a time when it is.
        site.pass(GAP).await?;
        let change = stream.next_of("change").await?;
        assert_eq!(change.data["now"], begun.after(GAP).to_string());
        Ok(())
    })
}

#[test]
fn a_stream_resumes_where_it_was_cut() -> Tested {
    site(async |site| {
        let mut stream = site.listen("").await?;
        site.submit(Job::Wait("go".to_owned()), "a").await?;
        let last = stream.next_of("change").await?.id.unwrap_or_default();
        drop(stream);
        site.submit(Job::Wait("go".to_owned()), "b").await?;
        site.submit(Job::Wait("go".to_owned()), "c").await?;
        let request = near(TestRequest::get()).insert_header(("last-event-id", last));
        let mut again = site
            .listen_as(request, "?from=0-0")
            .await
            .map_err(|status| status.to_string())?;
        assert_eq!(rows(&again.next_of("change").await?), ["2.0", "3.0"]);
        Ok(())
    })
}

#[test]
fn what_is_too_old_or_of_another_epoch_is_read_anew() -> Tested {
    let world = World::new();
    site_in(
        &world,
        |builder| builder,
        crate::kit::everybody,
        async |site| {
            site.submit(Job::Wait("go".to_owned()), "a").await?;
            Ok(())
        },
    )?;
    site_in(
        &world,
        |builder| builder,
        crate::kit::everybody,
        async |site| {
            let page = site.body("procedures").await?;
            for from in ["1-1", "2-999999999", "7-3", "2-0"] {
                let mut stream = site.listen(&format!("?from={from}")).await?;
                stream.next().await?;
                let event = stream.next().await?.map(|event| (event.name, event.id));
                assert_eq!(event, Some(("resync".to_owned(), Some(text(&page["as_of"])))), "{from}");
            }
            let request = near(TestRequest::get()).insert_header(("last-event-id", "nonsense"));
            let mut stream = site.listen_as(request, "").await.map_err(|status| status.to_string())?;
            stream.next_of("resync").await?;
            assert_eq!(site.get("events?from=nonsense").await.status, 400);
            Ok(())
        },
    )
}

#[test]
fn a_slow_reader_is_told_to_read_anew_and_delays_nobody() -> Tested {
    site(async |site| {
        let mut slow = site.listen("").await?;
        let mut quick = site.listen("?filter=root:2").await?;
        slow.next_of("ping").await?;
        quick.next_of("ping").await?;
        // More rows than one event tells of.
        site.submit(Job::Parent(1_500), "a").await?;
        site.pass(GAP).await?;
        slow.next_of("resync").await?;
        site.pass(Duration::from_secs(1)).await?;
        site.submit(Job::Wait("go".to_owned()), "b").await?;
        assert_eq!(rows(&slow.next_of("change").await?), ["2.0"]);
        // What the other families did was nothing to this one.
        assert_eq!(rows(&quick.next_of("change").await?), ["2.0"]);
        Ok(())
    })
}

#[test]
fn rows_outside_the_filter_are_not_sent() -> Tested {
    site(async |site| {
        let mut stream = site.listen("?filter=state:waiting").await?;
        let id = site.submit(Job::Wait("go".to_owned()), "a").await?;
        assert_eq!(rows(&stream.next_of("change").await?), ["1.0"]);
        site.signal(id, "go").await?;
        site.pass(GAP).await?;
        let change = stream.next_of("change").await?;
        assert_eq!((rows(&change), &change.data["left"]), (Vec::new(), &json!(["1.0"])));
        Ok(())
    })
}

#[test]
fn a_ping_comes_every_second() -> Tested {
    site(async |site| {
        let mut stream = site.listen("").await?;
        let begun = site.run.now();
        stream.next_of("ping").await?;
        // The stream waits for time only once it has told all else.
        stream.next_of("gauges").await?;
        site.pass(Duration::from_secs(1)).await?;
        let ping = stream.next_of("ping").await?;
        assert_eq!(ping.data["now"], begun.after(Duration::from_secs(1)).to_string());
        Ok(())
    })
}

#[test]
fn verdicts_limits_and_gauges_are_told_when_they_differ() -> Tested {
    site(async |site| {
        let mut stream = site.listen("").await?;
        assert_eq!(stream.next_of("verdict").await?.data["verdicts"], json!([]));
        let gauges = stream.next_of("gauges").await?;
        assert_eq!(gauges.data["states"], json!({}));
        site.submit(Job::Retry("rpc timeout".to_owned()), "a").await?;
        site.pass(Duration::from_secs(20)).await?;
        let verdicts = stream.next_of("verdict").await?;
        assert_eq!(verdicts.data["verdicts"][0]["rule"], "retry_storm");
        Ok(())
    })
}

#[test]
fn one_caller_has_eight_streams_and_all_have_64() -> Tested {
    let by_name = |request: &actix_web::HttpRequest| {
        let who = request.headers().get("x-who").and_then(|who| who.to_str().ok());
        Grant::ReadOnly {
            who: who.unwrap_or("nobody").to_owned(),
        }
    };
    site_in(
        &World::new(),
        |builder| builder,
        |dashboard| dashboard.access(by_name),
        async |site| {
            let of = |who: &str| near(TestRequest::get()).insert_header(("x-who", who));
            let mut open = Vec::new();
            for caller in 0..8 {
                for _ in 0..8 {
                    let stream = site.listen_as(of(&caller.to_string()), "").await;
                    open.push(stream.map_err(|status| status.to_string())?);
                }
                let ninth = site.listen_as(of(&caller.to_string()), "").await;
                assert_eq!(ninth.err().map(|status| status.as_u16()), Some(429));
            }
            assert_eq!(site.body("engine").await?["streams"], 64);
            let one_more = site.listen_as(of("another"), "").await;
            assert_eq!(one_more.err().map(|status| status.as_u16()), Some(429));
            // A place is free as soon as its stream is gone.
            open.pop();
            assert!(site.listen_as(of("another"), "").await.is_ok());
            Ok(())
        },
    )
}

#[test]
fn a_stream_takes_the_place_of_the_one_of_its_name() -> Tested {
    site(async |site| {
        let mut first = site.listen("?name=a").await?;
        let mut other = site.listen("?name=b").await?;
        let mut newest = site.listen("?name=a").await?;
        assert_eq!(site.body("engine").await?["streams"], 2);
        while first.next().await?.is_some() {}
        // Its end frees nothing that is not its own.
        assert_eq!(site.body("engine").await?["streams"], 2);
        other.next_of("gauges").await?;
        newest.next_of("gauges").await?;
        Ok(())
    })
}

#[test]
fn a_drain_says_goodbye() -> Tested {
    site(async |site| {
        let mut stream = site.listen("").await?;
        stream.next_of("gauges").await?;
        site.run.executor.drain(Duration::ZERO).await?;
        site.run.world.clock.advance(Duration::from_secs(1));
        stream.next_of("bye").await?;
        assert!(stream.next().await?.is_none());
        Ok(())
    })
}

#[test]
fn a_closed_dashboard_ends_its_streams_and_begins_none() -> Tested {
    site(async |site| {
        let mut stream = site.listen("").await?;
        site.dashboard.close();
        stream.next_of("bye").await?;
        assert!(stream.next().await?.is_none());
        assert_eq!(site.get("events").await.status, 503);
        Ok(())
    })
}
