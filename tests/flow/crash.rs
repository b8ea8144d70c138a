//! Drains, nodes in doubt, late results, cancelled sets, and code that is missing.

use std::time::Duration;

use procession::StageError;
use procession::errors::AskError;
use procession::flow::{Node, NodeContext, NodeState, Processed, Processor, SetError, SetState};
use procession::operate::AbortAnswer;
use procession::status::{CauseKind, ProcedureState};
use procession::testkit::{Ended, FaultPlan, Run, Trouble, World};
use serde::{Deserialize, Serialize};

use crate::kit::{Lab, Tested, by, done, ended, failing, held, kinds, live, set, start, state, states};

/// Waits for the gate of its name, and must not be repeated.
#[derive(Serialize, Deserialize)]
pub(crate) struct Once;

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

pub(crate) fn with_once(lab: &Lab, builder: procession::Builder) -> procession::Builder {
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

fn lives<T>(world: &World, lab: &Lab, drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>) -> Result<T, Trouble> {
    world
        .run(FaultPlan::none(), |builder| with_once(lab, builder), drive)?
        .done()
}

#[test]
fn f_059_drain() -> Tested {
    for in_time in [true, false] {
        let (world, lab) = (World::new(), Lab::default());
        let nodes = || {
            [
                done("a"),
                held("b").after(["a"]),
                done("c").after(["a"]),
                done("d").after(["b", "c"]),
            ]
        };
        lives(&world, &lab, async |run| {
            let handle = run
                .wait(run.executor.start_set(set(nodes())?).key("the set").width(1))
                .await??;
            run.settle().await;
            assert_eq!(lab.line(), "a b");
            let drained = run.executor.drain(Duration::from_secs(5));
            let mut drained = std::pin::pin!(drained);
            assert!(run.at_rest(drained.as_mut()).await.is_none());
            assert!(
                run.executor.start_set(set([done("x")])?).await.is_err(),
                "it is draining"
            );
            if in_time {
                lab.open("b");
            }
            let report = run.wait(drained).await??;
            assert_eq!(
                (report.finished_calls, report.cut_off_calls),
                if in_time { (1, 0) } else { (0, 1) }
            );
            drop(handle);
            Ok(())
        })?;
        lab.open("b");
        lives(&world, &lab, async |run| {
            let handle = run
                .wait(run.executor.start_set(set(nodes())?).key("the set").width(1))
                .await??;
            assert_eq!(ended(run, &handle).await?, "4 SUCCESS");
            Ok(())
        })?;
        let calls: Vec<(String, u32, u32)> = lab
            .calls()
            .into_iter()
            .map(|call| (call.name, call.attempt, call.repeated))
            .collect();
        let call = |name: &str, repeated| (name.to_owned(), 1, repeated);
        let expected = if in_time {
            vec![call("a", 0), call("b", 0), call("c", 0), call("d", 0)]
        } else {
            vec![call("a", 0), call("b", 0), call("b", 1), call("c", 0), call("d", 0)]
        };
        assert_eq!(calls, expected);
    }
    Ok(())
}

#[test]
fn f_060_in_doubt() -> Tested {
    // As it is: called again, with the same token.
    let (world, lab) = (World::new(), Lab::default());
    let nodes = || [held("a"), done("b").after(["a"])];
    killed(&world, &lab, async |run| start(run, set(nodes())?).await.map(drop))?;
    lab.open("a");
    lives(&world, &lab, async |run| {
        let handle = start(run, set(nodes())?).await?;
        assert_eq!(ended(run, &handle).await?, "2 SUCCESS");
        Ok(())
    })?;
    let calls = lab.calls();
    assert_eq!(lab.line(), "a a b");
    assert_eq!((calls[0].repeated, calls[1].repeated), (0, 1));
    assert_eq!(calls[0].token, calls[1].token);

    // Not to be repeated: it asks.
    let (world, lab) = (World::new(), Lab::default());
    let nodes = || [Node::new("a", Once), done("b").after(["a"])];
    killed(&world, &lab, async |run| start(run, set(nodes())?).await.map(drop))?;
    lab.open("a");
    lives(&world, &lab, async |run| {
        let handle = start(run, set(nodes())?).await?;
        assert_eq!(states(run, &handle).await?, "a PENDING, b PENDING");
        let cause = handle.node("a").await?.cause;
        assert!(
            cause
                .as_ref()
                .is_some_and(|cause| cause.starts_with("in doubt: the process ended")),
            "{cause:?}"
        );
        assert_eq!(lab.line(), "a");
        run.wait(handle.retry("a", by())).await??;
        assert_eq!(ended(run, &handle).await?, "2 SUCCESS");
        // The start's own, and four of this life.
        assert_eq!(run.store.commits(), 5);
        Ok(())
    })?;
    assert_eq!(lab.line(), "a a b");
    Ok(())
}

#[test]
fn f_060_a_node_that_kills_the_process() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let nodes = || [held("a"), done("b").after(["a"]), done("other")];
    for _ in 0..2 {
        killed(&world, &lab, async |run| start(run, set(nodes())?).await.map(drop))?;
    }
    assert_eq!(lab.count("a"), 2);
    lives(&world, &lab, async |run| {
        let handle = start(run, set(nodes())?).await?;
        assert_eq!(states(run, &handle).await?, "a PENDING, b PENDING, other SUCCESS");
        let cause = handle.node("a").await?.cause;
        assert!(
            cause
                .as_ref()
                .is_some_and(|cause| cause.starts_with("in doubt: 2 processes")),
            "{cause:?}"
        );
        assert_eq!(lab.count("a"), 2, "there is no third call");
        run.wait(handle.succeed::<crate::kit::Work>("a", &5, by())).await??;
        assert_eq!(ended(run, &handle).await?, "3 SUCCESS");
        Ok(())
    })
}

#[test]
fn f_061_a_late_result() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let nodes = || [held("a"), done("b").after(["a"])];
    lives(&world, &lab, async |run| {
        let handle = start(run, set(nodes())?).await?;
        run.settle().await;
        // Another engine has the journal from here on.
        let epoch = world.disk.take_epoch();
        lab.open("a");
        let ended = run.wait(handle.outcome()).await?;
        assert!(
            matches!(&ended, Err(SetError::Ask(AskError::Moved { newer })) if *newer == epoch),
            "{ended:?}"
        );
        assert_eq!(lab.line(), "a", "nothing that rests on it happened");
        Ok(())
    })?;
    lives(&world, &lab, async |run| {
        let handle = start(run, set(nodes())?).await?;
        assert_eq!(ended(run, &handle).await?, "2 SUCCESS");
        Ok(())
    })?;
    assert_eq!(lab.line(), "a a b");
    Ok(())
}

#[test]
fn f_061_cancel() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let before = run.store.commits();
        let nodes = [
            done("a"),
            held("b").after(["a"]),
            done("c").after(["b"]),
            done("d").after(["c"]),
        ];
        let handle = start(run, set(nodes)?).await?;
        run.settle().await;
        let aborted = run.executor.abort(handle.id(), by()).await?;
        assert_eq!(aborted.abort, Some(AbortAnswer::WillRollBack));
        lab.open("b");
        run.settle().await;
        assert_eq!(
            states(run, &handle).await?,
            "a SUCCESS, b SUCCESS, c CANCELLED, d CANCELLED"
        );
        assert_eq!(state(run, &handle).await?, SetState::Finish);
        let root = run.executor.status(handle.id()).await?;
        assert_ne!(root.state, ProcedureState::Success);
        assert_eq!(root.cause.map(|cause| cause.kind), Some(CauseKind::Aborted));
        assert_eq!(run.store.commits() - before, 4);

        let handle = run
            .wait(run.executor.start_set(set([failing("a"), done("b").after(["a"])])?))
            .await??;
        assert_eq!(state(run, &handle).await?, SetState::Pending);
        let before = run.store.commits();
        run.executor.abort(handle.id(), by()).await?;
        assert_eq!(states(run, &handle).await?, "a CANCELLED, b CANCELLED");
        assert_eq!(run.store.commits() - before, 1);
        assert!(run.executor.abort(handle.id(), by()).await.is_err(), "it has ended");
        Ok(())
    })
}

/// The same name at two versions of its data.
mod versions {
    use procession::StageError;
    use procession::flow::{NodeContext, Processed, Processor};
    use procession::procedure::Old;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    pub(super) struct First(pub(super) u8);

    impl Processor for First {
        const NAME: &'static str = "versioned";
        type Env = ();
        type Output = String;

        async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<String>, StageError> {
            Ok(Processed::Done(format!("first {}", self.0)))
        }
    }

    #[derive(Serialize, Deserialize)]
    pub(super) struct Second {
        pub(super) number: u8,
    }

    impl Processor for Second {
        const NAME: &'static str = "versioned";
        const VERSION: u16 = 2;
        const OLDEST: u16 = 1;
        type Env = ();
        type Output = String;

        async fn process(&self, _: &mut NodeContext<'_>, (): &()) -> Result<Processed<String>, StageError> {
            Ok(Processed::Done(format!("second {}", self.number)))
        }

        fn upgrade(_: u16, old: Old<'_>) -> Result<Self, procession::errors::UpgradeError> {
            let First(number) = old.decode()?;
            Ok(Self { number })
        }
    }
}

#[test]
fn f_062_code_that_is_missing() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let both = || [held("a"), Node::new("q", Once).after(["a"])];
    killed(&world, &lab, async |run| {
        start(run, set(both())?).await?;
        run.executor.start_set(set([held("p")])?).key("alone").await?;
        Ok(())
    })?;
    // Without the code of q the first set is quarantined, and the other runs.
    lab.open("p");
    let without = |builder| kinds(&lab, builder);
    let drive = async |run: &Run| {
        run.settle().await;
        let quarantined = run.executor.snapshot().await?.quarantined;
        assert!(
            matches!(&quarantined[..], [(_, why)] if why.contains("once")),
            "{quarantined:?}"
        );
        assert_eq!(lab.line(), "a p p");
        run.wait(run.executor.drain(Duration::from_secs(1))).await??;
        Ok(())
    };
    world.run(FaultPlan::none(), without, drive)?.done()?;
    let strict = |builder: procession::Builder| kinds(&lab, builder).strict(true);
    let refused = world.run(FaultPlan::none(), strict, async |_: &Run| Ok(()));
    assert!(refused.is_err_and(|error| error.to_string().contains("once")));
    // With it the set goes on where it was.
    lab.open("a");
    lab.open("q");
    lives(&world, &lab, async |run| {
        let handle = start(run, set(both())?).await?;
        assert_eq!(ended(run, &handle).await?, "2 SUCCESS");
        Ok(())
    })
}

#[test]
fn f_062_data_of_other_versions() -> Tested {
    let world = World::new();
    let paused = async |run: &Run, set| {
        run.executor.pause(procession::operate::PauseScope::All, by()).await?;
        start(run, set).await?;
        Ok(())
    };
    let resumed = async |run: &Run| {
        run.executor.resume(procession::operate::PauseScope::All, by()).await?;
        run.settle().await;
        Ok::<_, Trouble>(run.executor.find("the set").await?)
    };
    let first = |builder: procession::Builder| builder.processor::<versions::First>(());
    let second = |builder: procession::Builder| builder.processor::<versions::Second>(());
    let old = set([Node::new("a", versions::First(7))])?;
    world
        .run(FaultPlan::none(), first, async |run: &Run| paused(run, old).await)?
        .done()?;
    let upgraded = async |run: &Run| {
        let Some(found) = resumed(run).await? else {
            return Err("it has gone".into());
        };
        let handle = run.executor.set_handle(found.id());
        assert_eq!(run.wait(handle.output::<versions::Second>("a")).await??, "second 7");
        Ok(())
    };
    world.run(FaultPlan::none(), second, upgraded)?.done()?;

    let world = World::new();
    let new = set([Node::new("a", versions::Second { number: 7 })])?;
    world
        .run(FaultPlan::none(), second, async |run: &Run| paused(run, new).await)?
        .done()?;
    let too_new = async |run: &Run| {
        let Some(found) = resumed(run).await? else {
            return Err("it has gone".into());
        };
        let a = run.executor.set_handle(found.id()).node("a").await?;
        assert_eq!(a.state, NodeState::Pending);
        assert!(
            a.cause.as_ref().is_some_and(|cause| cause.contains("knows up to 1")),
            "{:?}",
            a.cause
        );
        Ok(())
    };
    world.run(FaultPlan::none(), first, too_new)?.done()
}
