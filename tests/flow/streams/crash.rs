//! Drains, streams in doubt, cancelled streams, code that is missing, and every crash.

use std::time::Duration;

use procession::errors::AskError;
use procession::flow::{Node, NodeContext, Processed, Processor, ResolveError, StreamName, StreamReader, StreamState};
use procession::operate::PauseScope;
use procession::procedure::RetryPolicy;
use procession::status::{CauseKind, ProcedureState};
use procession::testkit::{Ended, Fault, FaultPlan, Run, World};
use procession::{Executor, ProcedureId, StageError};
use serde::{Deserialize, Serialize};

use super::kit::{append, state, states, the_stream};
use crate::kit::{Lab, Tested, by, done, failing, held, kinds, live, live_in, set, start};

/// Waits for the gate of its name, and must not be repeated.
#[derive(Serialize, Deserialize)]
struct Once;

impl Processor for Once {
    const NAME: &'static str = "once";
    const REPEATABLE: bool = false;
    type Env = Lab;
    type Output = i64;

    async fn process(&self, cx: &mut NodeContext<'_>, lab: &Lab) -> Result<Processed<i64>, StageError> {
        lab.called(cx);
        while !lab.is_open(cx.name()) {
            tokio::task::yield_now().await;
        }
        Ok(Processed::Done(7))
    }
}

fn with_once(lab: &Lab, builder: procession::Builder) -> procession::Builder {
    kinds(lab, builder).processor::<Once>(lab.clone())
}

/// Lives until the engine is killed.
fn killed(world: &World, lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Tested) -> Tested {
    let ended = world.run(
        FaultPlan::none(),
        |builder| with_once(lab, builder),
        async |run: &Run| {
            drive(run).await?;
            run.settle().await;
            run.store.crash();
            std::future::pending::<Tested>().await
        },
    )?;
    assert!(matches!(ended, Ended::Crashed));
    Ok(())
}

/// A process that dies for the third time before the node could ask leaves it as poison.
#[test]
fn a_node_that_is_poison_is_retried() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    killed(&world, &lab, async |run| {
        append(&the_stream(run)?, [held("n1"), done("n2")]).await?;
        Ok(())
    })?;
    killed(&world, &lab, async |_| Ok(()))?;
    // Marked as the one suspect, it would ask with the second commit.
    let ended = world.run(
        FaultPlan::at(1, Fault::CrashBefore),
        |builder| with_once(&lab, builder),
        async |run: &Run| {
            run.settle().await;
            Ok(())
        },
    )?;
    assert!(matches!(ended, Ended::Crashed));
    lab.open("n1");
    live_in(&world, &lab, async |run| {
        let stream = the_stream(run)?;
        assert_eq!(states(run, &stream).await?, "n1 PENDING, n2 WAIT");
        let asks = stream.status().await?.in_hand.ok_or("nothing is in hand")?;
        let reason = asks.reason.as_deref();
        assert_eq!((reason, asks.cause), (Some("paused as poison"), None));
        let failed = stream.fail(by()).await;
        assert!(matches!(failed, Err(ResolveError::AsksNothing { .. })));
        stream.retry(by()).await?;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS");
        let retried = stream.retry(by()).await;
        assert!(matches!(retried, Err(ResolveError::AsksNothing { .. })));
        Ok(())
    })
}

/// So is a stream that is poison before it has a node in hand: killed three times before its first stage was committed.
#[test]
fn a_stream_that_is_poison_before_its_first_node_is_retried() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    // In each process the commit that would end its first stage. The node itself does not get there.
    for at in [2, 1, 1] {
        let ended = world.run(
            FaultPlan::at(at, Fault::CrashBefore),
            |builder| kinds(&lab, builder),
            async |run: &Run| {
                let stream = the_stream(run)?;
                if stream.status().await?.since.is_none() {
                    append(&stream, [done("n1")]).await?;
                }
                run.settle().await;
                Ok(())
            },
        )?;
        assert!(matches!(ended, Ended::Crashed), "at {at}");
    }
    live_in(&world, &lab, async |run| {
        let stream = the_stream(run)?;
        let status = stream.status().await?;
        assert_eq!((status.state, status.in_hand.is_none()), (StreamState::Pending, true));
        stream.retry(by()).await?;
        append(&stream, [done("n1")]).await?;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS");
        Ok(())
    })
}

#[test]
fn f_059_a_stream_is_drained() -> Tested {
    for in_time in [true, false] {
        let (world, lab) = (World::new(), Lab::default());
        live_in(&world, &lab, async |run| {
            let stream = the_stream(run)?;
            append(&stream, [held("n1"), done("n2")]).await?;
            run.settle().await;
            let mut drained = std::pin::pin!(run.executor.drain(Duration::from_secs(5)));
            assert!(run.at_rest(drained.as_mut()).await.is_none());
            // A stream that is there takes what its successor will run. One that is not cannot be opened.
            append(&stream, [done("n3")]).await?;
            let other = run.executor.stream("invoices", "customer-18")?;
            let refused = other.append(done("x")).await.map_err(|error| error.to_string());
            assert_eq!(
                refused,
                Err("the engine is draining; submit to its successor".to_owned())
            );
            if in_time {
                lab.open("n1");
            }
            run.wait(drained).await??;
            Ok(())
        })?;
        lab.open("n1");
        live_in(&world, &lab, async |run| {
            let stream = the_stream(run)?;
            assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS, n3 SUCCESS");
            Ok(())
        })?;
        let calls: Vec<(String, u32, u32)> = lab
            .calls()
            .into_iter()
            .map(|call| (call.name, call.attempt, call.repeated))
            .collect();
        let call = |name: &str, repeated| (name.to_owned(), 1, repeated);
        let mut expected = vec![call("n1", 0), call("n2", 0), call("n3", 0)];
        if !in_time {
            expected.insert(1, call("n1", 1));
        }
        assert_eq!(calls, expected);
    }
    Ok(())
}

/// Waits for a gate, and then appends to a stream that is not there.
#[derive(Serialize, Deserialize)]
struct Opens;

impl Processor for Opens {
    const NAME: &'static str = "opens";
    type Env = Lab;
    type Output = ();

    async fn process(&self, cx: &mut NodeContext<'_>, lab: &Lab) -> Result<Processed<()>, StageError> {
        lab.called(cx);
        while !lab.is_open("opens") {
            tokio::task::yield_now().await;
        }
        let line = done(&format!("line of {}", cx.name()));
        cx.append(&StreamName::new("report", "s")?, line).await?;
        Ok(Processed::Done(()))
    }

    fn retry() -> RetryPolicy {
        RetryPolicy::default().attempts(1)
    }
}

#[test]
fn a_drain_uses_up_no_attempt_of_a_node_that_opens_a_stream() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let with_opens = |builder: procession::Builder| kinds(&lab, builder).processor::<Opens>(lab.clone());
    let drive = async |run: &Run| {
        append(&the_stream(run)?, [Node::new("n1", Opens), done("n2")]).await?;
        start(run, set([Node::new("a", Opens)])?).await?;
        run.settle().await;
        let mut drained = std::pin::pin!(run.executor.drain(Duration::from_secs(5)));
        assert!(run.at_rest(drained.as_mut()).await.is_none());
        lab.open("opens");
        run.wait(drained).await??;
        Ok(())
    };
    world.run(FaultPlan::none(), with_opens, drive)?.done()?;
    let drive = async |run: &Run| {
        run.settle().await;
        let set = start(run, set([Node::new("a", Opens)])?).await?;
        assert_eq!(states(run, &the_stream(run)?).await?, "n1 SUCCESS, n2 SUCCESS");
        assert_eq!(set.outcome().await?.success, 1);
        assert_eq!(run.executor.stream("report", "s")?.status().await?.ended, 2);
        Ok(())
    };
    world.run(FaultPlan::none(), with_opens, drive)?.done()?;
    let calls = lab.calls();
    // Each of the two twice, `n2`, and the two lines.
    assert_eq!(calls.len(), 7, "{calls:?}");
    assert!(
        calls.iter().all(|call| (call.attempt, call.repeated) == (1, 0)),
        "{calls:?}"
    );
    Ok(())
}

#[test]
fn f_060_a_stream_in_doubt() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    killed(&world, &lab, async |run| {
        append(&the_stream(run)?, [Node::new("n1", Once), done("n2")]).await
    })?;
    lab.open("n1");
    let drive = async |run: &Run| {
        let stream = the_stream(run)?;
        assert_eq!(states(run, &stream).await?, "n1 PENDING, n2 WAIT");
        let cause = stream.status().await?.in_hand.and_then(|node| node.cause);
        assert!(cause.is_some_and(|cause| cause.starts_with("in doubt: the process ended")));
        assert_eq!(lab.line(), "n1");
        stream.retry(by()).await?;
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 SUCCESS");
        Ok(())
    };
    world
        .run(FaultPlan::none(), |builder| with_once(&lab, builder), drive)?
        .done()?;
    assert_eq!(lab.line(), "n1 n1 n2");
    let calls = lab.calls();
    assert_eq!(calls[0].token, calls[1].token);
    Ok(())
}

#[test]
fn f_061_a_cancelled_stream() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let before = run.store.commits();
        let stream = the_stream(run)?;
        append(&stream, [held("n1"), done("n2"), done("n3")]).await?;
        run.settle().await;
        let id = stream.open().await?;
        run.executor.abort(id, by()).await?;
        lab.open("n1");
        assert_eq!(states(run, &stream).await?, "n1 SUCCESS, n2 CANCELLED, n3 CANCELLED");
        assert_eq!(state(run, &stream).await?, StreamState::Finish);
        let root = run.executor.status(id).await?;
        assert_eq!(root.state, ProcedureState::Failed);
        assert_eq!(root.cause.map(|cause| cause.kind), Some(CauseKind::Aborted));
        assert_eq!(run.store.commits() - before, 5);
        assert!(run.executor.abort(id, by()).await.is_err(), "it has ended");
        Ok(())
    })
}

#[test]
fn f_062_a_stream_whose_processor_is_missing() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let drive = async |run: &Run| {
        run.executor.pause(PauseScope::All, by()).await?;
        append(&the_stream(run)?, [Node::new("q", Once)]).await?;
        run.executor.drain(Duration::from_secs(1)).await?;
        Ok(())
    };
    world
        .run(FaultPlan::none(), |builder| with_once(&lab, builder), drive)?
        .done()?;
    lab.open("q");
    live_in(&world, &lab, async |run| {
        run.executor.resume(PauseScope::All, by()).await?;
        let stream = the_stream(run)?;
        assert_eq!(states(run, &stream).await?, "q PENDING");
        let cause = stream.status().await?.in_hand.and_then(|node| node.cause);
        assert_eq!(
            cause.as_deref(),
            Some("processor \"once\" is not registered: register it, then retry")
        );
        assert_eq!(run.executor.snapshot().await?.quarantined, []);
        Ok(())
    })?;
    let before = lab.calls().len();
    let drive = async |run: &Run| {
        let stream = the_stream(run)?;
        run.settle().await;
        let commits = run.store.commits();
        stream.retry(by()).await?;
        assert_eq!(states(run, &stream).await?, "q SUCCESS");
        assert_eq!(run.store.commits() - commits, 2, "the answer and the node");
        Ok(())
    };
    world
        .run(FaultPlan::none(), |builder| with_once(&lab, builder), drive)?
        .done()?;
    assert_eq!(lab.calls().len(), before + 1);
    // An engine that takes no streams quarantines it.
    let without = |builder: procession::Builder| builder.processor::<Once>(lab.clone());
    let drive = async |run: &Run| {
        run.settle().await;
        let quarantined = run.executor.snapshot().await?.quarantined;
        assert!(
            matches!(&quarantined[..], [(_, why)] if why.contains("procession.stream")),
            "{quarantined:?}"
        );
        Ok(())
    };
    world.run(FaultPlan::none(), without, drive)?.done()?;
    let strict = world.run(
        FaultPlan::none(),
        |builder| without(builder).strict(true),
        async |_: &Run| Ok(()),
    );
    assert!(strict.is_err_and(|error| error.to_string().contains("procession.stream")));
    Ok(())
}

#[test]
fn a_closed_journal_shows_its_streams() -> Tested {
    let (directory, lab) = (tempfile::tempdir()?, Lab::default());
    let place = directory.path().join("journal");
    actix_rt::System::new().block_on(async {
        let executor = kinds(&lab, Executor::builder(&place)).start().await?;
        let stream = executor.stream("invoices", "customer-17")?;
        let nodes = ["n1", "n2", "n3"].map(|name| match name {
            "n2" => failing(name),
            name => done(name),
        });
        stream.append_all(nodes).await?;
        while stream.status().await?.state != StreamState::Pending {
            tokio::task::yield_now().await;
        }
        stream.finish().await?;
        let (id, live) = (stream.open().await?, stream.status().await?);
        let records = stream.records(None, 10).await?;
        executor.drain(Duration::from_secs(10)).await?;
        drop((executor, stream));

        let journal = Executor::builder(&place).offline().await?;
        let reader = StreamReader::closed(&journal, id).await?;
        assert_eq!(reader.name().await?.to_string(), "invoices:customer-17");
        let status = reader.status().await?;
        assert_eq!(status, live);
        assert_eq!((status.waiting, status.ended, status.sealed), (1, 1, true));
        assert_eq!(reader.records(None, 10).await?, records);
        let waiting = reader.waiting(0, 10).await?.items;
        assert_eq!(
            waiting.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(),
            ["n3"]
        );
        let other = StreamReader::closed(&journal, ProcedureId::root(99)).await;
        assert!(matches!(other, Err(AskError::Unknown(_))));
        Ok(())
    })
}
