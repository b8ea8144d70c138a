//! Ten stories, each crashed at every commit, before, after and torn, and again in its recovery; and how often that is.

use std::time::Duration;

use procession::flow::{Node, NodeState, OnError, When};
use procession::testkit::{Ended, Enumeration, Fault, FaultPlan, Run, Trouble, World};

use crate::kit::{
    Act, Bulky, Lab, Rule, Tested, Work, by, done, ended, enumerate_in, enumerate_set, failing, held, held_then, kinds,
    node, ruled, set, states,
};
use crate::streams::{append, enumerate_stream, rest, states as stream_states};

type Counted = Result<Enumeration, Trouble>;

fn diamond() -> Counted {
    let nodes = || {
        vec![
            done("a"),
            held("b").after(["a"]),
            held("c").after(["a"]),
            done("d").after(["b", "c"]),
        ]
    };
    let (counted, _) = enumerate_set(nodes, async |lab, run, set| {
        run.settle().await;
        lab.open("b");
        lab.open("c");
        assert_eq!(ended(run, set).await?, "4 SUCCESS");
        Ok(())
    })?;
    Ok(counted)
}

fn met_early() -> Counted {
    let nodes = || {
        vec![
            done("a"),
            done("b").after(["a"]),
            done("c").after(["a"]),
            held_then("e", Act::Fail).after(["a"]).on_error(OnError::Continue),
            done("d").after(["b", "c", "e"]).when(When::AtLeast(2)),
        ]
    };
    let (counted, _) = enumerate_set(nodes, async |lab, run, set| {
        run.settle().await;
        lab.open("e");
        assert_eq!(ended(run, set).await?, "4 SUCCESS, 1 ERROR");
        Ok(())
    })?;
    Ok(counted)
}

fn custom() -> Counted {
    let nodes = || {
        vec![
            done("a"),
            node("b63", Act::Fail).after(["a"]).on_error(OnError::Continue),
            done("c63").after(["a"]),
            ruled("d", Act::Done(1), Rule::OneFailed)
                .after(["b63", "c63"])
                .when(When::Custom),
        ]
    };
    let (counted, _) = enumerate_set(nodes, async |_, run, set| {
        assert_eq!(ended(run, set).await?, "3 SUCCESS, 1 ERROR");
        Ok(())
    })?;
    Ok(counted)
}

fn retries() -> Counted {
    let thrice = procession::procedure::RetryPolicy::default().attempts(3).jitter(0);
    let thrice = thrice.base(Duration::from_secs(1));
    let nodes = move || vec![node("a", Act::RetryUpTo(2)).retry(thrice), done("b").after(["a"])];
    let (counted, lab) = enumerate_set(nodes, async |lab, run, set| {
        assert_eq!(ended(run, set).await?, "2 SUCCESS");
        if lab.line() != "a a a b" {
            return Ok(());
        }
        // A delay stays what it was, whatever crashed in it.
        let started = run.executor.status(set.id()).await?.submitted;
        let b = run.executor.history(set.id()).await?.pop();
        let took = b.map(|entry| entry.ended.0 - started.0);
        assert_eq!(took, Some(3_000_000));
        Ok(())
    })?;
    assert_eq!(lab.line(), "a a a b");
    Ok(counted)
}

/// Crashed once: after two deaths both nodes that were out would ask, and the story would be another.
fn stop() -> Counted {
    let life = |world: &World, lab: &Lab, plan: FaultPlan| {
        let set_up = |builder| kinds(lab, builder);
        world.run(plan, set_up, async |run: &Run| {
            let nodes = [
                done("a"),
                held_then("b", Act::Fail).after(["a"]).on_error(OnError::Stop),
                held("c").after(["a"]),
                done("e").after(["a"]),
                done("d").after(["b", "c", "e"]),
            ];
            let start = run.executor.start_set(set(nodes)?).key("the set").width(2);
            let handle = run.wait(start).await??;
            run.settle().await;
            lab.open("b");
            run.settle().await;
            lab.open("c");
            assert_eq!(ended(run, &handle).await?, "2 SUCCESS, 1 ERROR, 2 CANCELLED");
            Ok((states(run, &handle).await?, run.store.commits() - 1))
        })
    };
    let (world, lab) = (World::new(), Lab::default());
    let (expected, commits) = life(&world, &lab, FaultPlan::none())?.done()?;
    let mut runs = 0;
    for commit in 1..=commits {
        let torn = world
            .disk
            .torn_points(commit)
            .into_iter()
            .map(|cut| Fault::Torn { cut });
        for fault in [Fault::CrashBefore, Fault::CrashAfter].into_iter().chain(torn) {
            let (world, lab) = (World::new(), Lab::default());
            let crashed = life(&world, &lab, FaultPlan::at(commit, fault))?;
            assert!(matches!(crashed, Ended::Crashed));
            let (found, _) = life(&world, &lab, FaultPlan::none())?.done()?;
            assert_eq!(found, expected, "commit {commit}, {fault:?}");
            runs += 1;
        }
    }
    let second = 0;
    Ok(Enumeration { commits, runs, second })
}

fn retried() -> Counted {
    let nodes = || {
        vec![
            done("a"),
            node("b", Act::FailUntil("repaired".to_owned())).after(["a"]),
            done("c").after(["b"]),
            done("d").after(["c"]),
        ]
    };
    let (counted, _) = enumerate_set(nodes, async |lab, run, set| {
        run.settle().await;
        lab.open("repaired");
        run.wait(set.retry("b", by().key("retry b"))).await??;
        assert_eq!(ended(run, set).await?, "4 SUCCESS");
        Ok(())
    })?;
    Ok(counted)
}

fn given() -> Counted {
    let nodes = || vec![done("a"), failing("b").after(["a"]), done("c").after(["b"])];
    let (counted, _) = enumerate_set(nodes, async |_, run, set| {
        run.settle().await;
        run.wait(set.succeed::<Work>("b", &42, by().key("succeed b"))).await??;
        assert_eq!(ended(run, set).await?, "3 SUCCESS");
        Ok(())
    })?;
    Ok(counted)
}

fn pending_stream() -> Counted {
    let (counted, _) = enumerate_stream(async |lab, run, stream| {
        let broken = node("n2", Act::FailUntil("repaired".to_owned()));
        append(stream, [done("n1"), broken, done("n3"), done("n4"), done("n5")]).await?;
        rest(run).await?;
        append(stream, [done("n6")]).await?;
        lab.open("repaired");
        stream.retry(by().key("repaired")).await?;
        rest(run).await?;
        assert_eq!(stream.status().await?.ended, 6);
        Ok(())
    })?;
    Ok(counted)
}

fn finished_stream() -> Counted {
    let (counted, _) = enumerate_stream(async |lab, run, stream| {
        append(stream, [held("n1"), done("n2")]).await?;
        run.settle().await;
        stream.finish().await?;
        lab.open("n1");
        rest(run).await?;
        assert_eq!(stream_states(run, stream).await?, "n1 SUCCESS, n2 SUCCESS");
        Ok(())
    })?;
    Ok(counted)
}

fn parked() -> Counted {
    let limited = |lab: &Lab, builder| kinds(lab, builder).limit("work", 1);
    let nodes = || vec![node("a", Act::Park(None)), Node::new("b", Bulky(1)).after(["a"])];
    let (counted, _) = enumerate_in(limited, nodes, async |_, run, set| {
        run.settle().await;
        if set.node("a").await?.state == NodeState::Running {
            run.pass(Duration::from_hours(24)).await;
        }
        run.wait(set.notify("a", &"go", by().key("notify"))).await?.ok();
        assert_eq!(ended(run, set).await?, "2 SUCCESS");
        Ok(())
    })?;
    Ok(counted)
}

#[test]
fn f_063_crash_at_every_commit() -> Tested {
    let stories = [
        diamond()?,
        met_early()?,
        custom()?,
        retries()?,
        stop()?,
        retried()?,
        given()?,
        pending_stream()?,
        finished_stream()?,
        parked()?,
    ];
    let commits: Vec<u64> = stories.iter().map(|story| story.commits).collect();
    assert_eq!(commits, [5, 6, 6, 7, 4, 7, 5, 12, 7, 6]);
    assert_eq!(commits.iter().sum::<u64>(), 65);
    // Before, after, and torn in at least one place.
    for story in &stories {
        assert!(story.runs as u64 >= 3 * story.commits, "{story:?}");
    }
    let second: usize = stories.iter().map(|story| story.second).sum();
    assert!(second > 195, "and again in the recoveries: {second}");
    Ok(())
}
