//! Failures in a stream, and what a person decides about them.

use std::time::Duration;

use procession::flow::{AppendError, Node, NodeState, OnError, ResolveError, StreamState, When};
use procession::procedure::RetryPolicy;
use procession::status::{CauseKind, ProcedureState};

use super::kit::{append, enumerate_stream, rest, state, states, the_stream};
use crate::kit::{Act, Bulky, Lab, Tested, Work, by, done, failing, held, live, node};

fn repaired(name: &str) -> Node {
    node(name, Act::FailUntil("repaired".to_owned()))
}

#[test]
fn f_048_a_pending_stream() -> Tested {
    let (counted, lab) = enumerate_stream(async |lab, run, stream| {
        let first = [done("n1"), repaired("n2"), done("n3"), done("n4"), done("n5")];
        append(stream, first).await?;
        rest(run).await?;
        let status = stream.status().await?;
        if let Some(asks) = &status.in_hand {
            assert_eq!(
                (asks.name.as_str(), asks.state, asks.cause.as_deref()),
                ("n2", NodeState::Pending, Some("it fails"))
            );
            assert_eq!(status.state, StreamState::Pending);
            assert!(
                states(run, stream)
                    .await?
                    .starts_with("n1 SUCCESS, n2 PENDING, n3 WAIT")
            );
        }
        append(stream, [done("n6")]).await?;
        lab.open("repaired");
        stream.retry(by().key("repaired")).await?;
        rest(run).await?;
        assert_eq!(
            states(run, stream).await?,
            "n1 SUCCESS, n2 SUCCESS, n3 SUCCESS, n4 SUCCESS, n5 SUCCESS, n6 SUCCESS"
        );
        Ok(())
    })?;
    assert_eq!((counted.commits, lab.line().as_str()), (12, "n1 n2 n2 n3 n4 n5 n6"));
    Ok(())
}

#[test]
fn f_048_a_neighbour_is_never_delayed() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let (stream, other) = (the_stream(run)?, run.executor.stream("invoices", "customer-18")?);
        append(&stream, [done("n1"), failing("n2"), done("n3")]).await?;
        append(&other, (0..10).map(|number| done(&format!("o{number}")))).await?;
        run.settle().await;
        assert_eq!(other.status().await?.ended, 10);
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 PENDING, n3 WAIT");
        assert_eq!(lab.count("n3"), 0);
        Ok(())
    })
}

#[test]
fn f_049_continue() -> Tested {
    for (when, expected, commits) in [
        (When::AllFinished, "n1 SUCCESS, n2 ERROR, n3 SUCCESS", 6),
        (When::AllSucceeded, "n1 SUCCESS, n2 ERROR, n3 PENDING", 6),
    ] {
        let (counted, _) = enumerate_stream(async |lab, run, stream| {
            let nodes = [
                done("n1"),
                failing("n2").on_error(OnError::Continue),
                done("n3").when(when.clone()),
            ];
            append(stream, nodes).await?;
            rest(run).await?;
            assert_eq!(states(run, stream).await?, expected);
            if when == When::AllSucceeded {
                let asks = stream.status().await?.in_hand;
                let cause = asks.and_then(|node| node.cause);
                assert_eq!(cause.as_deref(), Some("cannot begin: by n2"));
                assert_eq!(lab.count("n3"), 0);
            }
            Ok(())
        })?;
        assert_eq!(counted.commits, commits);
    }
    // It runs once somebody says so.
    let (counted, lab) = enumerate_stream(async |_, run, stream| {
        let nodes = [done("n1"), failing("n2").on_error(OnError::Continue), done("n3")];
        append(stream, nodes).await?;
        rest(run).await?;
        stream.retry(by().key("go on")).await?;
        rest(run).await?;
        assert_eq!(states(run, stream).await?, "n1 SUCCESS, n2 ERROR, n3 SUCCESS");
        Ok(())
    })?;
    assert_eq!((counted.commits, lab.line().as_str()), (8, "n1 n2 n3"));
    Ok(())
}

#[test]
fn f_050_stop() -> Tested {
    let (counted, lab) = enumerate_stream(async |_, run, stream| {
        let nodes = [
            done("n1"),
            failing("n2").on_error(OnError::Stop),
            done("n3"),
            done("n4"),
        ];
        append(stream, nodes).await?;
        rest(run).await?;
        assert_eq!(
            states(run, stream).await?,
            "n1 SUCCESS, n2 ERROR, n3 CANCELLED, n4 CANCELLED"
        );
        assert_eq!(state(run, stream).await?, StreamState::Finish);
        let root = run.executor.status(stream.open().await?).await?;
        assert_eq!(root.state, ProcedureState::Failed);
        assert_eq!(root.cause.map(|cause| cause.text).as_deref(), Some("it fails"));
        let late = stream.append(done("n5")).await;
        assert_eq!(
            late.map_err(|error| error.to_string()),
            Err("stream invoices:customer-17 has finished: nothing can be appended".to_owned())
        );
        Ok(())
    })?;
    assert_eq!((counted.commits, lab.line().as_str()), (5, "n1 n2"));
    Ok(())
}

#[test]
fn f_050_finish_and_what_comes_later() -> Tested {
    let (counted, lab) = enumerate_stream(async |lab, run, stream| {
        append(stream, [held("n1"), done("n2")]).await?;
        run.settle().await;
        stream.finish().await?;
        assert!(stream.status().await?.sealed);
        let late = stream.append(done("n3")).await;
        assert!(matches!(late, Err(AppendError::Finished { .. })), "{late:?}");
        lab.open("n1");
        rest(run).await?;
        assert_eq!(states(run, stream).await?, "n1 SUCCESS, n2 SUCCESS");
        assert_eq!(state(run, stream).await?, StreamState::Finish);
        // Once more, and it has ended.
        stream.finish().await?;
        let late = stream.append(done("n3")).await;
        assert!(matches!(late, Err(AppendError::Finished { .. })), "{late:?}");
        Ok(())
    })?;
    assert_eq!((counted.commits, lab.line().as_str()), (7, "n1 n2"));

    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        append(&stream, [done("n1")]).await?;
        stream.finish().await?;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS");
        run.pass(Duration::from_secs(29 * 86_400)).await;
        assert!(stream.append(done("n1")).await.is_err(), "it is kept for 30 days");
        run.pass(Duration::from_secs(2 * 86_400)).await;
        assert_eq!(state(run, &stream).await?, StreamState::Init);
        append(&stream, [done("n1")]).await?;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS");
        assert_eq!(lab.line(), "n1 n1");
        // What has gone can be finished anew as well, by a handle that knew it.
        stream.finish().await?;
        run.settle().await;
        run.pass(Duration::from_secs(31 * 86_400)).await;
        stream.finish().await?;
        assert_eq!(state(run, &stream).await?, StreamState::Finish);
        assert_eq!(stream.status().await?.ended, 0, "it is a new one");
        Ok(())
    })
}

#[test]
fn f_051_resolve_in_a_stream() -> Tested {
    let (counted, lab) = enumerate_stream(async |_, run, stream| {
        append(stream, [failing("n1"), node("n2", Act::See(1))]).await?;
        rest(run).await?;
        stream.succeed::<Work>(&41, by().key("given")).await?;
        rest(run).await?;
        assert_eq!(states(run, stream).await?, "n1 SUCCESS, n2 SUCCESS");
        let records = stream.records(None, 10).await?.items;
        let given = records.iter().find(|record| record.name == "n1");
        let given = given.map(|record| (record.output::<i64>(), record.attempts));
        assert!(matches!(given, Some((Ok(Some(41)), 0))), "{given:?}");
        let audit = run.executor.audit(None, 10).await?;
        assert!(audit.iter().all(|entry| entry.who == "ann" || entry.who == "kim"));
        Ok(())
    })?;
    assert_eq!((counted.commits, lab.line().as_str()), (7, "n1 n2"));
    assert_eq!(lab.noted(), ["n2 saw n1 SUCCESS 41"]);

    let (counted, lab) = enumerate_stream(async |_, run, stream| {
        let second = node("n2", Act::See(1)).when(When::AllFinished);
        append(stream, [failing("n1"), second]).await?;
        rest(run).await?;
        stream.fail(by().key("given up")).await?;
        rest(run).await?;
        assert_eq!(states(run, stream).await?, "n1 ERROR, n2 SUCCESS");
        Ok(())
    })?;
    assert_eq!((counted.commits, lab.line().as_str()), (7, "n1 n2"));
    assert_eq!(lab.noted(), ["n2 saw n1 ERROR it fails"]);
    Ok(())
}

#[test]
fn f_051_what_resolve_refuses() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let (stream, bulky) = (the_stream(run)?, run.executor.stream("invoices", "customer-18")?);
        let text = |refused: Result<_, ResolveError>| refused.map(drop).map_err(|error| error.to_string());
        let nothing = || Err("stream invoices:customer-17 asks nothing".to_owned());
        assert_eq!(text(stream.retry(by()).await), nothing(), "it is not there");
        append(&stream, [held("n1"), failing("n2")]).await?;
        run.settle().await;
        assert_eq!(text(stream.fail(by()).await), nothing(), "n1 runs");
        lab.open("n1");
        run.settle().await;
        let before = run.store.commits();
        let other = stream.succeed::<Bulky>(&"x".to_owned(), by()).await;
        assert_eq!(
            text(other),
            Err("the output given is not one of \"work\": it is one of \"bulky\"".to_owned())
        );
        stream.retry(by().dry_run()).await?;
        assert_eq!(run.store.commits(), before);
        append(&bulky, [Node::new("n1", Bulky(60_000))]).await?;
        run.settle().await;
        let before = run.store.commits();
        let large = bulky.succeed::<Bulky>(&"x".repeat(60_001), by()).await;
        assert_eq!(
            text(large),
            Err("the output given is not one of \"bulky\": it has 60004 bytes, at most 60000".to_owned())
        );
        assert_eq!(run.store.commits(), before);
        // Of two at once one is taken, and a repeat by its key is the same one.
        let (one, two) = futures::future::join(stream.fail(by()), stream.fail(by())).await;
        assert_eq!([one.is_ok(), two.is_ok()].into_iter().filter(|taken| *taken).count(), 1);
        run.settle().await;
        assert_eq!(text(stream.retry(by()).await), nothing(), "n2 has ended");
        append(&stream, [failing("n3").when(When::AllFinished)]).await?;
        run.settle().await;
        let first = stream.fail(by().key("k")).await?;
        run.settle().await;
        let again = stream.fail(by().key("k")).await?;
        assert_eq!(first.number, again.number);
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 ERROR, n3 ERROR");
        Ok(())
    })
}

#[test]
fn an_answer_that_is_none_is_asked_for_again() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        append(&stream, [failing("n1")]).await?;
        run.settle().await;
        let id = stream.open().await?;
        run.executor.decide(id, &"perhaps", by()).await?;
        run.settle().await;
        let asks = run.executor.status(id).await?.question.unwrap_or_default();
        assert!(asks.ends_with("; it fails"), "{asks}");
        // One for a node before this one.
        let (place, act) = (7_u32, "fail");
        let late = std::collections::BTreeMap::from([("place", Value::Place(place)), ("act", Value::Act(act))]);
        run.executor.decide(id, &late, by()).await?;
        run.settle().await;
        let asks = run.executor.status(id).await?.question.unwrap_or_default();
        assert_eq!(asks, "the answer was for place 7; it fails");
        assert_eq!(states(run, &stream).await?, "n1 PENDING");
        let fail = std::collections::BTreeMap::from([("act", "fail")]);
        run.executor.decide(id, &fail, by()).await?;
        assert_eq!(states(run, &stream).await?, "n1 ERROR");
        append(&stream, [failing("n2").when(When::AllFinished)]).await?;
        run.settle().await;
        let output = std::collections::BTreeMap::from([("succeed", 7)]);
        let succeed = std::collections::BTreeMap::from([("act", output)]);
        run.executor.decide(id, &succeed, by()).await?;
        assert_eq!(states(run, &stream).await?, "n1 ERROR, n2 SUCCESS");
        let record = stream.records(None, 2).await?.items.pop();
        assert_eq!(record.and_then(|record| record.cause).as_deref(), Some("it fails"));
        assert_eq!(lab.line(), "n1 n2");
        Ok(())
    })
}

#[derive(serde::Serialize)]
#[serde(untagged)]
enum Value {
    Place(u32),
    Act(&'static str),
}

#[test]
fn attempts_are_counted_and_recorded() -> Tested {
    let retry = RetryPolicy::default().attempts(3).jitter(0);
    let (counted, lab) = enumerate_stream(async |_, run, stream| {
        let nodes = [
            node("n1", Act::RetryUpTo(2)).retry(retry.base(Duration::from_secs(1))),
            node("n2", Act::Panic).on_error(OnError::Continue),
        ];
        append(stream, nodes).await?;
        run.pass(Duration::from_secs(60)).await;
        rest(run).await?;
        run.pass(Duration::from_secs(60)).await;
        assert_eq!(states(run, stream).await?, "n1 SUCCESS, n2 ERROR");
        let records = stream.records(None, 10).await?.items;
        let causes: Vec<_> = records.iter().map(|record| record.cause.clone()).collect();
        assert_eq!(causes, [Some("it panicked: out of paper".to_owned()), None]);
        Ok(())
    })?;
    assert_eq!(counted.commits, 2 + 1 + 5 + 1);
    let calls = lab.calls();
    assert_eq!(lab.line(), "n1 n1 n1 n2");
    assert!(calls.iter().take(3).all(|call| call.token == calls[0].token));
    assert_ne!(calls[0].token, calls[3].token);
    Ok(())
}

#[test]
fn f_061_a_stream_that_asks_is_cancelled() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let stream = the_stream(run)?;
        append(&stream, [failing("n1"), done("n2")]).await?;
        run.settle().await;
        run.executor.abort(stream.open().await?, by()).await?;
        assert_eq!(states(run, &stream).await?, "n1 CANCELLED, n2 CANCELLED");
        let root = run.executor.status(stream.open().await?).await?;
        assert_eq!(root.cause.map(|cause| cause.kind), Some(CauseKind::Aborted));
        Ok(())
    })
}
