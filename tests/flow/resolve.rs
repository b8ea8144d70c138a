//! What a person decides about nodes, and what that decision reaches.

use std::time::Duration;

use procession::errors::AskError;
use procession::flow::{Node, NodeState, OnError, ResolveError, SetState, When};
use procession::operate::{Bulk, BulkVerb, OperatorRequest, PauseScope};
use procession::procedure::{Kind, RetryPolicy};
use procession::testkit::{FaultPlan, Run, World};
use procession::{Procedure, StageContext, StageError, Step};
use serde::{Deserialize, Serialize};

use crate::kit::{
    Act, Bulky, Lab, Rule, Tested, Work, by, done, ended, enumerate_in, enumerate_set, failing, held, kinds, live,
    node, ruled, set, start, state, states,
};

/// Fails until it is repaired.
fn broken(name: &str) -> procession::flow::Node {
    node(name, Act::FailUntil(format!("{name} repaired")))
}

/// Runs its second stage again and again, beyond its point of no return, until it is let out.
#[derive(Serialize, Deserialize)]
struct Circle;

impl Procedure for Circle {
    const KIND: &'static str = "circle";
    const REPEAT_LIMIT: Option<u32> = Some(3);
    type Stage = u8;
    type Env = Lab;
    type Output = ();

    fn first(&self) -> u8 {
        1
    }

    async fn execute(&mut self, _: u8, cx: &mut StageContext<'_, Self>) -> Result<Step<Self>, StageError> {
        if cx.env().is_open("out") {
            return Ok(Step::Done(()));
        }
        Ok(Step::Next(2))
    }

    async fn rollback(&mut self, _: u8, _: &mut StageContext<'_, Self>) -> Result<(), StageError> {
        Ok(())
    }

    fn rollback_supported(&self, stage: &u8) -> bool {
        *stage == 1
    }
}

#[test]
fn a_retry_resumes_a_procedure_at_its_repeat_limit() -> Tested {
    let lab = Lab::default();
    let set_up = |builder| kinds(&lab, builder).register::<Circle>(lab.clone());
    let drive = async |run: &Run| {
        let handle = start(run, set([Node::procedure("c", Circle)])?).await?;
        run.settle().await;
        assert_eq!(handle.node("c").await?.state, NodeState::Pending);
        lab.open("out");
        handle.retry("c", by()).await?;
        assert_eq!(ended(run, &handle).await?, "1 SUCCESS");
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}

#[test]
fn f_035_retry() -> Tested {
    let nodes = || {
        vec![
            done("a"),
            broken("b").after(["a"]),
            done("c").after(["b"]),
            done("d").after(["c"]),
        ]
    };
    let (enumerated, lab) = enumerate_set(nodes, async |lab, run, set| {
        run.settle().await;
        lab.open("b repaired");
        run.wait(set.retry("b", by().key("retry b"))).await??;
        assert_eq!(ended(run, set).await?, "4 SUCCESS");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (7, "a b b c d"));
    assert!(lab.calls().iter().all(|call| call.attempt == 1), "attempts begin anew");
    Ok(())
}

#[test]
fn f_035_the_commit_of_a_retry_moves_what_waits_behind() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let nodes = [
            node("b", Act::FailUntil("repaired".to_owned())),
            done("c").after(["b"]),
            done("d").after(["c"]),
        ];
        let handle = start(run, set(nodes)?).await?;
        assert_eq!(states(run, &handle).await?, "b PENDING, c PENDING, d PENDING");
        // Nobody is called, so that the retry is all that happens.
        pause_work(run).await?;
        run.wait(handle.retry("b", by())).await??;
        assert_eq!(states(run, &handle).await?, "b READY, c WAIT, d WAIT");
        assert_eq!(state(run, &handle).await?, SetState::Running);
        Ok(())
    })
}

async fn pause_work(run: &Run) -> Tested {
    run.executor.pause(PauseScope::Kind(Kind::from("work")), by()).await?;
    Ok(())
}

#[test]
fn f_036_succeed_and_fail() -> Tested {
    let nodes = || {
        vec![
            done("a"),
            failing("b").after(["a"]),
            node("c", Act::See(1)).after(["b"]),
        ]
    };
    let (enumerated, lab) = enumerate_set(nodes, async |_, run, set| {
        run.settle().await;
        run.wait(set.succeed::<Work>("b", &42, by().key("succeed b"))).await??;
        assert_eq!(ended(run, set).await?, "3 SUCCESS");
        let mut audit = run.executor.audit(None, 10).await?;
        audit.retain(|entry| entry.who == "ann");
        assert!(matches!(&audit[..], [entry] if entry.why == "a test"), "{audit:?}");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (5, "a b c"));
    assert_eq!(lab.noted(), ["c saw b SUCCESS 42"]);

    let nodes = || vec![failing("a"), done("b").after(["a"]).when(When::AllFinished)];
    let (enumerated, lab) = enumerate_set(nodes, async |_, run, set| {
        run.settle().await;
        run.wait(set.fail("a", by().key("fail a"))).await??;
        assert_eq!(ended(run, set).await?, "1 SUCCESS, 1 ERROR");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (4, "a b"));
    Ok(())
}

#[test]
fn f_036_an_output_of_another_processor_is_refused() -> Tested {
    live(&Lab::default(), async |run| {
        let handle = start(run, set([failing("b")])?).await?;
        run.settle().await;
        let before = run.store.commits();
        let refused = run.wait(handle.succeed::<Bulky>("b", &"text".to_owned(), by())).await?;
        let text = refused.err().map(|error| error.to_string());
        assert_eq!(
            text.as_deref(),
            Some("the output given is not one of \"work\": it is one of \"bulky\"")
        );
        assert_eq!(run.store.commits(), before);
        Ok(())
    })
}

#[test]
fn f_036_a_failed_node_may_stop_its_set() -> Tested {
    live(&Lab::default(), async |run| {
        let nodes = [
            failing("a").on_error(OnError::Continue),
            done("b").after(["a"]).on_error(OnError::Stop),
            done("c").after(["b"]),
        ];
        let handle = start(run, set(nodes)?).await?;
        run.settle().await;
        run.wait(handle.fail("b", by())).await??;
        assert_eq!(states(run, &handle).await?, "a ERROR, b ERROR, c CANCELLED");
        Ok(())
    })
}

#[test]
fn f_037_a_failure_of_ones_own_stays() -> Tested {
    let nodes = || {
        vec![
            done("a"),
            broken("b").after(["a"]),
            broken("x").after(["a"]),
            done("d").after(["b", "x"]),
        ]
    };
    let (enumerated, lab) = enumerate_set(nodes, async |lab, run, set| {
        run.settle().await;
        lab.open("b repaired");
        run.wait(set.retry("b", by().key("retry b"))).await??;
        run.settle().await;
        if !lab.is_open("x repaired") {
            assert_eq!(states(run, set).await?, "a SUCCESS, b SUCCESS, x PENDING, d PENDING");
            assert_eq!(set.node("d").await?.reason.as_deref(), Some("cannot begin: by x"));
        }
        lab.open("x repaired");
        run.wait(set.retry("x", by().key("retry x"))).await??;
        assert_eq!(ended(run, set).await?, "4 SUCCESS");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (9, "a b x b x d"));
    Ok(())
}

#[test]
fn f_038_a_node_resolved_below_the_one_that_failed() -> Tested {
    let nodes = || vec![done("a"), broken("b").after(["a"]), node("c", Act::See(1)).after(["b"])];
    let (enumerated, lab) = enumerate_set(nodes, async |lab, run, set| {
        run.settle().await;
        run.wait(set.retry("c", by().key("retry c"))).await??;
        run.settle().await;
        if !lab.is_open("b repaired") {
            assert_eq!(states(run, set).await?, "a SUCCESS, b PENDING, c SUCCESS");
            assert_eq!(state(run, set).await?, SetState::Finish);
        }
        lab.open("b repaired");
        run.wait(set.retry("b", by().key("retry b"))).await??;
        assert_eq!(ended(run, set).await?, "3 SUCCESS");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (7, "a b c b"));
    assert_eq!(lab.noted(), ["c saw b PENDING it fails"]);
    Ok(())
}

fn not_pending(refused: Result<impl Sized, ResolveError>) -> Option<NodeState> {
    match refused {
        Err(ResolveError::NotPending { state, .. }) => Some(state),
        _ => None,
    }
}

#[test]
fn f_039_what_resolve_refuses() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let nodes = [
            done("success"),
            failing("error").on_error(OnError::Continue),
            held("running"),
            done("wait").after(["running"]),
            node("ready", Act::Retry).retry(RetryPolicy::default().attempts(2).base(Duration::from_hours(1))),
        ];
        let handle = start(run, set(nodes)?).await?;
        run.settle().await;
        let before = run.store.commits();
        for (name, expected) in [
            ("success", NodeState::Success),
            ("error", NodeState::Error),
            ("running", NodeState::Running),
            ("wait", NodeState::Wait),
            ("ready", NodeState::Ready),
        ] {
            for key in [None, Some("a key")] {
                let by = || key.map_or_else(by, |key| by().key(key));
                let found = [
                    not_pending(run.wait(handle.retry(name, by())).await?),
                    not_pending(run.wait(handle.succeed::<Work>(name, &1, by())).await?),
                    not_pending(run.wait(handle.fail(name, by())).await?),
                ];
                assert_eq!(found, [Some(expected); 3], "{name} {key:?}");
            }
        }
        let unknown = run.wait(handle.retry("nobody", by())).await?;
        let text = unknown.err().map(|error| error.to_string());
        assert_eq!(text.as_deref(), Some("the set has no node \"nobody\""));
        assert_eq!(run.store.commits(), before);
        // An ended set.
        run.executor.abort(handle.id(), by()).await?;
        lab.open("running");
        run.settle().await;
        assert_eq!(
            not_pending(run.wait(handle.retry("wait", by())).await?),
            Some(NodeState::Cancelled)
        );
        Ok(())
    })
}

#[test]
fn f_039_of_two_callers_at_once_one_takes_effect() -> Tested {
    for seed in 1..=200 {
        let lab = Lab::default();
        let turns = usize::try_from(seed % 23)?;
        let late = FaultPlan::none().late(seed, 9);
        let drive = async |run: &Run| {
            let handle = start(run, set([broken("b"), held("c").after(["b"])])?).await?;
            run.settle().await;
            lab.open("b repaired");
            let before = run.store.commits();
            let kim = async {
                for _ in 0..turns {
                    tokio::task::yield_now().await;
                }
                handle
                    .succeed::<Work>("b", &7, OperatorRequest::new("kim", "me too"))
                    .await
            };
            let (first, second) = futures_of(handle.retry("b", by()), kim).await;
            let taken = usize::from(first.is_ok()) + usize::from(second.is_ok());
            assert_eq!(taken, 1, "seed {seed}: {first:?} {second:?}");
            let refused = first.err().or(second.err());
            assert!(
                matches!(
                    &refused,
                    Some(ResolveError::NotPending { .. } | ResolveError::Ask(AskError::Revised { .. }))
                ),
                "seed {seed}: {refused:?}"
            );
            run.settle().await;
            let commits = run.store.commits() - before;
            assert_eq!(commits, if lab.count("b") == 2 { 2 } else { 1 }, "seed {seed}");
            Ok(())
        };
        World::new().run(late, |builder| kinds(&lab, builder), drive)?.done()?;
    }
    Ok(())
}

#[test]
fn f_039_one_key_has_one_effect_and_of_two_callers_one() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = start(run, set([broken("b"), held("c").after(["b"])])?).await?;
        run.settle().await;
        lab.open("b repaired");
        let (by_ann, by_kim) = (by().key("k"), OperatorRequest::new("kim", "me too"));
        let before = run.store.commits();
        let both = futures_of(handle.retry("b", by_ann.clone()), handle.retry("b", by_kim));
        let (first, second) = run.wait(both).await?;
        assert!(first.is_ok(), "{first:?}");
        assert!(
            matches!(
                &second,
                Err(ResolveError::NotPending { .. } | ResolveError::Ask(AskError::Revised { .. }))
            ),
            "{second:?}"
        );
        run.settle().await;
        // The retry, and the end of b.
        assert_eq!(run.store.commits() - before, 2);
        let again = run.wait(handle.retry("b", by_ann)).await??;
        assert_eq!(again.number, first?.number);
        assert_eq!(run.store.commits() - before, 2);
        Ok(())
    })
}

/// Awaits both at once.
async fn futures_of<A, B>(first: impl Future<Output = A>, second: impl Future<Output = B>) -> (A, B) {
    let (mut first, mut second) = (Box::pin(first), Box::pin(second));
    let (mut one, mut two) = (None, None);
    std::future::poll_fn(|cx| {
        if one.is_none()
            && let std::task::Poll::Ready(value) = first.as_mut().poll(cx)
        {
            one = Some(value);
        }
        if two.is_none()
            && let std::task::Poll::Ready(value) = second.as_mut().poll(cx)
        {
            two = Some(value);
        }
        match (one.take(), two.take()) {
            (Some(one), Some(two)) => std::task::Poll::Ready((one, two)),
            (first, second) => {
                (one, two) = (first, second);
                std::task::Poll::Pending
            }
        }
    })
    .await
}

#[test]
fn f_040_a_dry_run_then_all_at_once() -> Tested {
    let written = |behind: usize| -> Result<u64, procession::testkit::Trouble> {
        let lab = Lab::default();
        live(&lab, async |run| {
            let mut nodes = vec![broken("b")];
            nodes.extend((0..behind).map(|place| done(&format!("n{place}")).after(["b"])));
            nodes.push(failing("x"));
            let handle = start(run, set(nodes)?).await?;
            run.settle().await;
            assert_eq!(handle.status().await?.counts.pending as usize, behind + 2);
            // Nothing of b runs, so that its retry is all that is written.
            pause_work(run).await?;
            run.settle().await;
            let before = run.store.commits();
            let plan = run.wait(handle.retry("b", by().dry_run())).await??;
            assert!(plan.number.is_none() && plan.plan.is_some(), "{plan:?}");
            run.settle().await;
            assert_eq!(run.store.commits(), before);
            let writes = run.executor.snapshot().await?.appended_writes;
            run.wait(handle.retry("b", by())).await??;
            run.settle().await;
            assert_eq!(run.store.commits(), before + 1);
            let status = handle.status().await?;
            assert_eq!((status.counts.pending, status.counts.wait as usize), (1, behind));
            assert_eq!(handle.node("x").await?.state, NodeState::Pending);
            Ok(run.executor.snapshot().await?.appended_writes - writes)
        })
    };
    assert_eq!(written(1_000)?, written(10)?);
    Ok(())
}

#[test]
fn f_040_one_bulk_retries_them_all() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let set_up = |builder| kinds(&lab, builder);
    let drive = async |run: &Run| {
        let mut handles = Vec::new();
        for place in 0..20 {
            let nodes = [broken("b"), done("c").after(["b"])];
            let start = run.executor.start_set(set(nodes)?).key(format!("set {place}"));
            handles.push(run.wait(start).await??);
        }
        run.settle().await;
        lab.open("b repaired");
        let mut asking = Vec::new();
        for handle in &handles {
            asking.push(handle.node("b").await?.id);
        }
        let bulk = Bulk::new(BulkVerb::Retry, asking, "ann", "the service is back");
        run.wait(run.wait(run.executor.submit(bulk).key("the bulk")).await??)
            .await??;
        for handle in &handles {
            assert_eq!(ended(run, handle).await?, "2 SUCCESS");
        }
        Ok(run.store.commits())
    };
    let commits = world.run(FaultPlan::none(), set_up, drive)?.done()?;
    // 3 commits to begin each set and end both nodes, 1 to ask, and the bulk's own.
    assert!(commits > 20 * 4, "{commits}");
    assert_eq!((lab.count("b"), lab.count("c")), (40, 20));
    Ok(())
}

#[test]
fn a_custom_node_that_holds_itself_up_stays_when_its_parent_is_retried() -> Tested {
    let nodes = || {
        vec![
            broken("b"),
            done("c"),
            ruled("x", Act::Done(1), Rule::NotYet).after(["c"]).when(When::Custom),
            done("z").after(["b", "x"]).when(When::AllFinished),
        ]
    };
    let (_, lab) = enumerate_in(kinds, nodes, async |lab, run, set| {
        run.settle().await;
        lab.open("b repaired");
        run.wait(set.retry("b", by().key("retry b"))).await??;
        assert_eq!(states(run, set).await?, "b SUCCESS, c SUCCESS, x PENDING, z PENDING");
        assert_eq!(set.status().await?.pending, ["x"]);
        Ok(())
    })?;
    assert_eq!(lab.count("x"), 0);
    Ok(())
}
