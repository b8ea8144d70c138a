//! What failures lead to: attempts, questions, errors, a set that stops, and how far a failure reaches.

use std::time::Duration;

use procession::flow::{Node, NodeState, OnError, SetError, SetState, When};
use procession::procedure::RetryPolicy;
use procession::status::CauseKind;
use procession::testkit::{Ended, Fault, FaultPlan, Run, World};

use crate::kit::{
    Act, Bulky, Lab, Tested, done, ended, enumerate_set, failing, held, held_then, kinds, live, node, set, start,
    state, states,
};

fn attempts(attempts: u32) -> RetryPolicy {
    RetryPolicy::default().attempts(attempts)
}

#[test]
fn f_029_retries() -> Tested {
    let nodes = || vec![node("a", Act::RetryUpTo(2)).retry(attempts(3)), done("b").after(["a"])];
    let (enumerated, lab) = enumerate_set(nodes, async |_, run, set| {
        assert_eq!(ended(run, set).await?, "2 SUCCESS");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (7, "a a a b"));
    let calls = lab.calls();
    let at: Vec<u64> = calls.iter().map(|call| call.at).collect();
    assert_eq!(at, [0, 1, 3, 3]);
    let tokens: Vec<_> = calls.iter().take(3).map(|call| call.token).collect();
    assert!(tokens.iter().all(|token| *token == tokens[0]), "{tokens:?}");
    let attempts: Vec<u32> = calls.iter().map(|call| call.attempt).collect();
    assert_eq!(attempts, [1, 2, 3, 1]);
    Ok(())
}

#[test]
fn f_029_a_delay_of_zero_costs_no_commit() -> Tested {
    let at_once = attempts(3).base(Duration::ZERO);
    let nodes = || vec![node("a", Act::RetryUpTo(2)).retry(at_once), done("b").after(["a"])];
    let (enumerated, lab) = enumerate_set(nodes, async |_, run, set| {
        assert_eq!(ended(run, set).await?, "2 SUCCESS");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (5, "a a a b"));
    Ok(())
}

#[test]
fn f_030_attempts_used_up() -> Tested {
    let nodes = || vec![node("a", Act::Retry).retry(attempts(2)), done("b").after(["a"])];
    let (enumerated, lab) = enumerate_set(nodes, async |_, run, set| {
        run.pass(Duration::from_secs(10)).await;
        let a = set.node("a").await?;
        assert_eq!(
            (a.state, a.cause.as_deref()),
            (NodeState::Pending, Some("not now (failed 2 times)"))
        );
        let b = set.node("b").await?;
        assert_eq!(
            (b.state, b.reason.as_deref()),
            (NodeState::Pending, Some("cannot begin: by a"))
        );
        assert_eq!(state(run, set).await?, SetState::Pending);
        let verdicts = run.executor.verdicts().await?;
        let texts: Vec<&str> = verdicts.iter().map(|verdict| verdict.text.as_str()).collect();
        assert!(
            matches!(texts[..], [text] if text.contains("not now") && text.contains('1')),
            "{texts:?}"
        );
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (4, "a a"));

    // A day and three restarts change nothing.
    let (world, lab) = (World::new(), Lab::default());
    for _ in 0..4 {
        let life = async |run: &Run| {
            let handle = start(run, set(nodes())?).await?;
            run.pass(Duration::from_hours(24)).await;
            assert_eq!(states(run, &handle).await?, "a PENDING, b PENDING");
            assert_eq!(run.executor.verdicts().await?.len(), 1);
            Ok(())
        };
        world
            .run(FaultPlan::none(), |builder| kinds(&lab, builder), life)?
            .done()?;
    }
    assert_eq!(lab.line(), "a a");
    Ok(())
}

#[test]
fn f_031_continue_before_a_lenient_and_a_strict_child() -> Tested {
    let lenient = || {
        vec![
            failing("a").on_error(OnError::Continue),
            done("b").after(["a"]).when(When::AllFinished),
        ]
    };
    let (enumerated, lab) = enumerate_set(lenient, async |_, run, set| {
        assert_eq!(ended(run, set).await?, "1 SUCCESS, 1 ERROR");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (3, "a b"));

    let strict = || vec![failing("a").on_error(OnError::Continue), done("b").after(["a"])];
    let (enumerated, lab) = enumerate_set(strict, async |_, run, set| {
        assert_eq!(states(run, set).await?, "a ERROR, b PENDING");
        let verdicts = run.executor.verdicts().await?;
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
        assert_eq!(verdicts[0].procedure, Some(set.node("b").await?.id));
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (2, "a"));

    let (enumerated, lab) = enumerate_set(strict, async |_, run, set| {
        run.settle().await;
        run.wait(set.retry("b", crate::kit::by().key("retry b"))).await??;
        assert_eq!(ended(run, set).await?, "1 SUCCESS, 1 ERROR");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (4, "a b"));
    Ok(())
}

fn stopping(c: Act) -> Vec<Node> {
    vec![
        done("a"),
        held_then("b", Act::Fail).after(["a"]).on_error(OnError::Stop),
        held_then("c", c).after(["a"]).retry(attempts(3)),
        done("e").after(["a"]),
        done("d").after(["b", "c", "e"]),
    ]
}

#[test]
fn f_032_stop() -> Tested {
    for (c, expected) in [(Act::Done(1), "c SUCCESS"), (Act::Retry, "c ERROR")] {
        let lab = Lab::default();
        live(&lab, async |run| {
            let before = run.store.commits();
            let handle = run.executor.start_set(set(stopping(c))?).width(2).await?;
            run.settle().await;
            lab.open("b");
            run.settle().await;
            assert_eq!(
                states(run, &handle).await?,
                "a SUCCESS, b ERROR, c RUNNING, e READY, d PENDING"
            );
            lab.open("c");
            let stopped = run.wait(handle.outcome()).await?;
            let Err(SetError::Stopped { cause }) = stopped else {
                return Err(format!("{stopped:?}").into());
            };
            assert_eq!((cause.kind, cause.text.as_str()), (CauseKind::Failed, "it fails"));
            assert_eq!(
                states(run, &handle).await?,
                format!("a SUCCESS, b ERROR, {expected}, e CANCELLED, d CANCELLED")
            );
            assert_eq!(state(run, &handle).await?, SetState::Finish);
            assert_eq!(run.store.commits() - before, 4);
            Ok(())
        })?;
        assert_eq!(lab.line(), "a b c");
    }
    Ok(())
}

#[test]
fn f_032_stop_under_crashes() -> Tested {
    let life = |world: &World, lab: &Lab, plan: FaultPlan| {
        let set_up = |builder| kinds(lab, builder);
        world.run(plan, set_up, async |run: &Run| {
            let start = run
                .executor
                .start_set(set(stopping(Act::Done(1)))?)
                .key("the set")
                .width(2);
            let handle = run.wait(start).await??;
            run.settle().await;
            lab.open("b");
            run.settle().await;
            lab.open("c");
            assert_eq!(ended(run, &handle).await?, "2 SUCCESS, 1 ERROR, 2 CANCELLED");
            states(run, &handle).await
        })
    };
    // Once: after two deaths both nodes that were out would ask, and the story would be another.
    for commit in 1..=4 {
        for fault in [Fault::CrashBefore, Fault::CrashAfter] {
            let (world, lab) = (World::new(), Lab::default());
            assert!(matches!(
                life(&world, &lab, FaultPlan::at(commit, fault))?,
                Ended::Crashed
            ));
            let states = life(&world, &lab, FaultPlan::none())?.done()?;
            assert_eq!(states, "a SUCCESS, b ERROR, c SUCCESS, e CANCELLED, d CANCELLED");
            assert_eq!((lab.count("d"), lab.count("e")), (0, 0));
        }
    }
    Ok(())
}

/// Its data is refused by `upgrade`.
mod old {
    use procession::StageError;
    use procession::flow::{NodeContext, Processed, Processor};
    use serde::{Deserialize, Serialize};

    use crate::kit::Lab;

    #[derive(Serialize, Deserialize)]
    pub(super) struct First;

    impl Processor for First {
        const NAME: &'static str = "aged";
        type Env = Lab;
        type Output = ();

        async fn process(&self, _: &mut NodeContext<'_>, _: &Lab) -> Result<Processed<()>, StageError> {
            Ok(Processed::Done(()))
        }
    }

    #[derive(Serialize, Deserialize)]
    pub(super) struct Second;

    impl Processor for Second {
        const NAME: &'static str = "aged";
        const VERSION: u16 = 2;
        const OLDEST: u16 = 1;
        type Env = Lab;
        type Output = ();

        async fn process(&self, cx: &mut NodeContext<'_>, lab: &Lab) -> Result<Processed<()>, StageError> {
            lab.called(cx);
            Ok(Processed::Done(()))
        }
    }
}

#[test]
fn f_033_failures_that_no_retry_helps() -> Tested {
    let behind = |a: Node| vec![a.retry(attempts(3)), done("b").after(["a"]).when(When::AllFinished)];
    let limit = 1_000;
    let large = || Node::new("a", Bulky(limit + 1));
    let aged = || Node::new("a", old::First);
    let failed_for_good: &dyn Fn() -> Node = &|| failing("a");
    let panics: &dyn Fn() -> Node = &|| node("a", Act::Panic);
    let cases: [(&dyn Fn() -> Node, usize, u64, &str); 4] = [
        (failed_for_good, 1, 3, "it fails"),
        (&aged, 0, 3, "its data of version 1 of \"aged\""),
        (&large, 1, 3, "its output of 1004 bytes is over the limit of 1000"),
        (panics, 3, 7, "it panicked: out of paper (failed 3 times)"),
    ];
    for (make, calls, commits, cause) in cases {
        for on_error in [OnError::Continue, OnError::Pend] {
            let lab = Lab::default();
            let set_up = |builder| {
                kinds(&lab, builder)
                    .processor::<old::Second>(lab.clone())
                    .max_payload(limit)
            };
            let drive = async |run: &Run| {
                let before = run.store.commits();
                let handle = start(run, set(behind(make().on_error(on_error)))?).await?;
                if on_error == OnError::Continue {
                    assert_eq!(ended(run, &handle).await?, "1 SUCCESS, 1 ERROR");
                    assert_eq!(run.store.commits() - before, commits);
                } else {
                    run.pass(Duration::from_secs(10)).await;
                    assert_eq!(states(run, &handle).await?, "a PENDING, b PENDING");
                }
                let a = handle.node("a").await?;
                assert!(
                    a.cause.as_ref().is_some_and(|found| found.starts_with(cause)),
                    "{:?}",
                    a.cause
                );
                Ok(())
            };
            World::new().run(FaultPlan::none(), set_up, drive)?.done()?;
            assert_eq!(lab.count("a"), calls, "{cause}");
        }
    }
    Ok(())
}

#[test]
fn f_034_pending_is_passed_on_as_far_as_it_reaches() -> Tested {
    let chain = || {
        vec![
            done("a"),
            failing("b").after(["a"]),
            done("c").after(["b"]),
            done("d").after(["c"]),
        ]
    };
    let (enumerated, lab) = enumerate_set(chain, async |_, run, set| {
        assert_eq!(states(run, set).await?, "a SUCCESS, b PENDING, c PENDING, d PENDING");
        assert_eq!(set.node("d").await?.reason.as_deref(), Some("cannot begin: by c"));
        assert_eq!(set.status().await?.pending, ["b"]);
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (3, "a b"));

    let lab = Lab::default();
    live(&lab, async |run| {
        let before = run.store.commits();
        let nodes = [
            done("a"),
            failing("b").after(["a"]),
            held("c").after(["a"]),
            done("d").after(["b", "c"]).when(When::AllFinished),
            done("e").after(["c"]),
            done("f").after(["d", "e"]).when(When::AllFinished),
        ];
        let handle = start(run, set(nodes)?).await?;
        assert_eq!(
            states(run, &handle).await?,
            "a SUCCESS, b PENDING, c RUNNING, d PENDING, e WAIT, f PENDING"
        );
        assert_eq!(state(run, &handle).await?, SetState::Running);
        lab.open("c");
        assert_eq!(
            states(run, &handle).await?,
            "a SUCCESS, b PENDING, c SUCCESS, d PENDING, e SUCCESS, f PENDING"
        );
        assert_eq!(state(run, &handle).await?, SetState::Pending);
        assert_eq!(run.store.commits() - before, 5);
        // Nothing was written for those that it was passed on to.
        let born = run.executor.status(handle.id()).await?.revision;
        for name in ["d", "f"] {
            assert_eq!(handle.node(name).await?.revision, born, "{name}");
        }
        Ok(())
    })
}
