//! When nodes begin: by all parents, by some, by given ones, by a rule of their own.

use std::thread;
use std::time::Duration;

use procession::flow::{Node, NodeState, OnError, SetState, When};
use procession::testkit::{FaultPlan, World};

use crate::kit::{
    Act, Lab, Rule, Tested, Work, asked_about, by, done, ended, enumerate_set, failing, held, held_then, kinds, live,
    node, ruled, set, start, state, states,
};

fn one_of_three(e: Node) -> Vec<Node> {
    vec![
        done("a"),
        done("b").after(["a"]),
        done("c").after(["a"]),
        e.after(["a"]),
        done("d").after(["b", "c", "e"]).when(When::AtLeast(2)),
    ]
}

#[test]
fn f_023_at_least_met_early_and_a_late_branch_goes_on() -> Tested {
    let nodes = || one_of_three(held_then("e", Act::Fail).on_error(OnError::Continue));
    let (enumerated, lab) = enumerate_set(nodes, async |lab, run, set| {
        run.settle().await;
        if !lab.is_open("e") {
            assert_eq!(
                states(run, set).await?,
                "a SUCCESS, b SUCCESS, c SUCCESS, e RUNNING, d SUCCESS"
            );
            assert_eq!(state(run, set).await?, SetState::Running);
            // It came before the end of the set.
            assert_eq!(set.output::<Work>("d").await?, 1);
        }
        lab.open("e");
        assert_eq!(ended(run, set).await?, "4 SUCCESS, 1 ERROR");
        assert_eq!(state(run, set).await?, SetState::Finish);
        Ok(())
    })?;
    assert_eq!(enumerated.commits, 6);
    assert_eq!((lab.count("d"), lab.count("e")), (1, 1));
    Ok(())
}

#[test]
fn f_023_a_late_branch_that_is_pending_keeps_its_set() -> Tested {
    let nodes = || one_of_three(held_then("e", Act::FailUntil("repaired".to_owned())));
    let (enumerated, lab) = enumerate_set(nodes, async |lab, run, set| {
        lab.open("e");
        run.settle().await;
        if !lab.is_open("repaired") {
            assert_eq!(
                states(run, set).await?,
                "a SUCCESS, b SUCCESS, c SUCCESS, e PENDING, d SUCCESS"
            );
            // Its last node is final, and the set lives on.
            assert_eq!(state(run, set).await?, SetState::Finish);
            assert!(run.executor.status(set.id()).await?.ended.is_none());
        }
        lab.open("repaired");
        run.wait(set.retry("e", by().key("retry e"))).await??;
        assert_eq!(ended(run, set).await?, "5 SUCCESS");
        Ok(())
    })?;
    assert_eq!(enumerated.commits, 8);
    assert_eq!((lab.count("d"), lab.count("e")), (1, 2));
    Ok(())
}

#[test]
fn f_024_at_least_that_cannot_be_met() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let before = run.store.commits();
        let nodes = [
            done("a"),
            failing("b").after(["a"]).on_error(OnError::Continue),
            failing("c").after(["a"]).on_error(OnError::Continue),
            held("e").after(["a"]),
            done("d").after(["b", "c", "e"]).when(When::AtLeast(2)),
        ];
        let handle = start(run, set(nodes)?).await?;
        assert_eq!(
            states(run, &handle).await?,
            "a SUCCESS, b ERROR, c ERROR, e RUNNING, d PENDING"
        );
        assert_eq!(run.store.commits() - before, 4);
        assert_eq!(state(run, &handle).await?, SetState::Running);
        lab.open("e");
        assert_eq!(state(run, &handle).await?, SetState::Pending);
        assert_eq!(run.store.commits() - before, 5);
        let status = handle.status().await?;
        assert_eq!(status.pending, ["d"]);
        let d = handle.node("d").await?;
        assert_eq!(d.reason.as_deref(), Some("cannot begin: by b, c"));
        assert_eq!(
            (d.when, d.after),
            (When::AtLeast(2), vec!["b".to_owned(), "c".to_owned(), "e".to_owned()])
        );
        let verdicts = run.executor.verdicts().await?;
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
        assert_eq!(verdicts[0].procedure, Some(d.id));
        Ok(())
    })?;
    assert_eq!(lab.count("d"), 0);
    Ok(())
}

fn named(b: Node, e: Node) -> Vec<Node> {
    let wanted = When::Named(vec!["b".to_owned(), "c".to_owned()]);
    vec![
        done("a"),
        b.after(["a"]),
        done("c").after(["a"]),
        e.after(["a"]),
        done("d").after(["b", "c", "e"]).when(wanted),
    ]
}

#[test]
fn f_025_named_parents() -> Tested {
    let nodes = || named(done("b"), failing("e").on_error(OnError::Continue));
    let (enumerated, lab) = enumerate_set(nodes, async |_, run, set| {
        assert_eq!(ended(run, set).await?, "4 SUCCESS, 1 ERROR");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.count("d")), (6, 1));

    let nodes = || named(failing("b").on_error(OnError::Continue), done("e"));
    let (enumerated, lab) = enumerate_set(nodes, async |_, run, set| {
        assert_eq!(
            states(run, set).await?,
            "a SUCCESS, b ERROR, c SUCCESS, e SUCCESS, d PENDING"
        );
        assert_eq!(state(run, set).await?, SetState::Pending);
        assert_eq!(set.node("d").await?.reason.as_deref(), Some("cannot begin: by b"));
        let wanted = When::Named(vec!["b".to_owned(), "c".to_owned()]);
        assert_eq!(set.node("d").await?.when, wanted);
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.count("d")), (5, 0));
    Ok(())
}

#[test]
fn f_026_all_finished() -> Tested {
    let nodes = |b: Node| {
        vec![
            done("a"),
            b.after(["a"]),
            held("c").after(["a"]),
            node("d", Act::See(1)).after(["b", "c"]).when(When::AllFinished),
        ]
    };
    for c_first in [false, true] {
        let b = || {
            if c_first {
                held_then("b", Act::Fail)
            } else {
                failing("b")
            }
        };
        let (enumerated, lab) = enumerate_set(
            || nodes(b().on_error(OnError::Continue)),
            async |lab, run, set| {
                run.settle().await;
                lab.open("c");
                run.settle().await;
                lab.open("b");
                assert_eq!(ended(run, set).await?, "3 SUCCESS, 1 ERROR");
                Ok(())
            },
        )?;
        assert_eq!((enumerated.commits, lab.count("d")), (5, 1));
        assert_eq!(lab.noted(), ["d saw b ERROR it fails", "d saw c SUCCESS 1"]);
    }
    let (enumerated, lab) = enumerate_set(
        || nodes(failing("b")),
        async |lab, run, set| {
            lab.open("c");
            assert_eq!(states(run, set).await?, "a SUCCESS, b PENDING, c SUCCESS, d PENDING");
            assert_eq!(set.node("d").await?.reason.as_deref(), Some("cannot begin: by b"));
            assert_eq!(set.status().await?.pending, ["b"]);
            Ok(())
        },
    )?;
    assert_eq!((enumerated.commits, lab.count("d")), (4, 0));
    Ok(())
}

/// The names of the parents tell the questions of one test from those of others.
fn by_rule(parents: [&str; 2], b: Act, rule: Rule) -> Vec<Node> {
    let [first, second] = parents;
    vec![
        done("a"),
        node(first, b).after(["a"]).on_error(OnError::Continue),
        done(second).after(["a"]),
        ruled("d", Act::Done(1), rule).after([first, second]).when(When::Custom),
    ]
}

#[test]
fn f_027_a_custom_strategy() -> Tested {
    let parents = ["b27", "c27"];
    let (enumerated, lab) = enumerate_set(
        || by_rule(parents, Act::Fail, Rule::OneFailed),
        async |_, run, set| {
            assert_eq!(ended(run, set).await?, "3 SUCCESS, 1 ERROR");
            Ok(())
        },
    )?;
    assert_eq!((enumerated.commits, lab.count("d")), (6, 1));
    let asked = asked_about(&parents);
    assert!(
        !asked.is_empty() && asked.iter().all(|asked| asked.ended > 0),
        "{asked:?}"
    );

    let parents = ["b27s", "c27s"];
    let (enumerated, lab) = enumerate_set(
        || by_rule(parents, Act::Done(1), Rule::OneFailed),
        async |_, run, set| {
            assert_eq!(ended(run, set).await?, "4 SUCCESS");
            Ok(())
        },
    )?;
    assert_eq!((enumerated.commits, lab.count("d")), (6, 1));
    Ok(())
}

#[test]
fn f_027_it_is_asked_off_the_supervisors_thread() -> Tested {
    let parents = ["b27t", "c27t"];
    let directory = tempfile::tempdir()?;
    let lab = Lab::default();
    actix_rt::System::new().block_on(async {
        let builder = procession::Executor::builder(directory.path().join("journal")).workers(1);
        let executor = kinds(&lab, builder).start().await?;
        let nodes = by_rule(parents, Act::Done(1), Rule::OneFailed);
        let counts = executor.start_set(set(nodes)?).await?.outcome().await?;
        assert_eq!(counts.success, 4);
        executor.drain(Duration::from_secs(10)).await?;
        Ok::<(), procession::testkit::Trouble>(())
    })?;
    // The supervisor runs on a thread of the engine's own; this only shows that it is not the caller's.
    let asked = asked_about(&parents);
    assert!(
        asked.iter().all(|asked| asked.thread != thread::current().id()),
        "{asked:?}"
    );
    assert_eq!(asked.last().map(|asked| asked.ended), Some(2));
    Ok(())
}

#[test]
fn f_028_undecided_and_a_strategy_that_panics() -> Tested {
    for (parents, rule) in [(["b28", "c28"], Rule::NotYet), (["b28p", "c28p"], Rule::Panics)] {
        let lab = Lab::default();
        let world = World::new();
        let drive = async |run: &procession::testkit::Run| {
            let mut nodes = by_rule(parents, Act::Done(1), rule);
            nodes[2] = held("c").after(["a"]);
            nodes[3] = ruled("d", Act::Done(1), rule)
                .after([parents[0], "c"])
                .when(When::Custom);
            let before = run.store.commits();
            let handle = start(run, set(nodes)?).await?;
            run.settle().await;
            assert_eq!(handle.node("d").await?.state, NodeState::Wait, "c goes on");
            lab.open("c");
            run.settle().await;
            let d = handle.node("d").await?;
            assert_eq!(d.state, NodeState::Pending);
            assert_eq!(d.reason.as_deref(), Some("its strategy has not let it begin"));
            assert_eq!(run.store.commits() - before, 4);
            let verdicts = run.executor.verdicts().await?;
            assert_eq!(verdicts.len(), 1, "{verdicts:?}");
            if rule == Rule::Panics {
                assert!(verdicts[0].text.contains("the rule is wrong"), "{}", verdicts[0].text);
            }
            run.wait(handle.retry("d", by())).await??;
            assert_eq!(ended(run, &handle).await?, "4 SUCCESS");
            assert_eq!(run.store.commits() - before, 6);
            Ok(())
        };
        world
            .run(FaultPlan::none(), |builder| kinds(&lab, builder), drive)?
            .done()?;
        assert_eq!(lab.count("d"), 1);
    }
    Ok(())
}
