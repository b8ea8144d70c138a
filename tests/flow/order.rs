//! In which order nodes run, what a set costs, and that nothing rests on a commit that is not on disk.

use procession::flow::{Node, NodeState, Set, SetState};
use procession::status::WaitReason;
use procession::testkit::Fault;

use crate::kit::Act;
use crate::kit::{Lab, Tested, Work, done, ended, enumerate_set, held, live, node, set, start, state, states};

fn diamond() -> Vec<Node> {
    vec![
        done("a"),
        held("b").after(["a"]),
        held("c").after(["a"]),
        node("d", Act::See(4)).after(["b", "c"]),
    ]
}

#[test]
fn f_020_a_diamond_costs_five_commits() -> Tested {
    let (enumerated, lab) = enumerate_set(diamond, async |lab, run, set| {
        run.settle().await;
        if !lab.is_open("b") {
            // No crash has been so late yet: both are called before either ends.
            assert_eq!(states(run, set).await?, "a SUCCESS, b RUNNING, c RUNNING, d WAIT");
            assert_eq!(state(run, set).await?, SetState::Running);
        }
        lab.open("b");
        lab.open("c");
        assert_eq!(ended(run, set).await?, "4 SUCCESS");
        assert_eq!(state(run, set).await?, SetState::Finish);
        assert_eq!(set.output::<Work>("d").await?, 4);
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (5, "a b c d"));
    assert_eq!(lab.most(), 2);
    assert_eq!(lab.noted(), ["d saw b SUCCESS 1", "d saw c SUCCESS 1"]);
    Ok(())
}

#[test]
fn f_020_a_chain_and_a_single_node() -> Tested {
    let chain = || {
        let link = |place: usize| {
            let node = done(&place.to_string());
            if place == 0 {
                node
            } else {
                node.after([(place - 1).to_string()])
            }
        };
        (0..10).map(link).collect()
    };
    let (enumerated, lab) = enumerate_set(chain, async |_, run, set| {
        assert_eq!(ended(run, set).await?, "10 SUCCESS");
        Ok(())
    })?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (11, "0 1 2 3 4 5 6 7 8 9"));

    let (enumerated, lab) = enumerate_set(
        || vec![done("a")],
        async |_, run, set| {
            assert_eq!(ended(run, set).await?, "1 SUCCESS");
            let node = set.node("a").await?;
            assert_eq!((node.state, node.place, node.after.len()), (NodeState::Success, 0, 0));
            Ok(())
        },
    )?;
    assert_eq!((enumerated.commits, lab.line().as_str()), (2, "a"));
    Ok(())
}

#[test]
fn f_021_a_child_waits_for_the_receipt() -> Tested {
    // The start's own commit is number 0; the set is number 1, and its nodes follow.
    for withheld in 1..=4_usize {
        let lab = Lab::default();
        live(&lab, async |run| {
            let nodes = [done("a"), done("b").after(["a"]), done("c").after(["b"])];
            let mut commits = 0;
            run.store.fault_next(Fault::Withhold);
            for _ in 1..withheld {
                // Each release lets one commit through, and the next one is withheld.
                commits += 1;
                run.store.fault_next(Fault::Withhold);
            }
            let started = run.executor.start_set(set(nodes)?).key("the set");
            let mut started = std::pin::pin!(std::future::IntoFuture::into_future(started));
            let mut handle = run.at_rest(started.as_mut()).await;
            for _ in 0..=commits {
                let calls = lab.calls().len();
                run.settle().await;
                assert_eq!(lab.calls().len(), calls, "nothing begins before the receipt");
                run.store.release_receipts();
                handle = match handle {
                    None => run.at_rest(started.as_mut()).await,
                    there => there,
                };
            }
            let handle = match handle {
                Some(handle) => handle?,
                None => run.wait(started).await??,
            };
            assert_eq!(ended(run, &handle).await?, "3 SUCCESS");
            Ok(())
        })?;
        assert_eq!(lab.line(), "a b c");
    }
    Ok(())
}

/// Builds one first node, this number of nodes in the middle, and one last node.
fn wide(middle: usize) -> Result<Set, procession::flow::BuildError> {
    let mut set = Set::builder("wide");
    let first = set.add(done("first"));
    let middle: Vec<_> = (0..middle)
        .map(|place| {
            let act = Act::Held("gate".to_owned(), Box::new(Act::Done(1)));
            set.add(node(&format!("m{place}"), act).after([first]))
        })
        .collect();
    set.add(done("last").after(middle));
    set.build()
}

#[test]
fn f_022_wide_with_a_width() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let before = run.store.commits();
        let handle = run.executor.start_set(wide(100)?).width(8).await?;
        run.settle().await;
        let status = handle.status().await?;
        let counts = status.counts;
        assert_eq!(
            (counts.running, counts.ready, counts.wait, counts.success),
            (8, 92, 1, 1)
        );
        let held_back = handle.node("m50").await?;
        assert_eq!(held_back.reason, Some(WaitReason::Width.to_string()));
        lab.open("gate");
        assert_eq!(ended(run, &handle).await?, "102 SUCCESS");
        assert_eq!(run.store.commits() - before, 103);
        Ok(())
    })?;
    assert_eq!((lab.most(), lab.count("last")), (8, 1));
    Ok(())
}

#[test]
fn a_page_of_nodes_is_cut_and_goes_on() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = start(run, wide(1_500)?).await?;
        run.settle().await;
        let (mut from, mut seen) = (Some(0), Vec::new());
        while let Some(place) = from {
            let page = handle.nodes(place, 700).await?;
            assert!(page.items.len() <= 700);
            seen.extend(page.items.iter().map(|node| node.place));
            from = page.next;
        }
        assert!(seen.iter().copied().eq(0..1_502), "{seen:?}");
        assert_eq!(handle.nodes(1_501, 700).await?.items.len(), 1);
        let last = handle.node("last").await?;
        assert_eq!((last.state, last.after.len()), (NodeState::Wait, 1_500));
        assert_eq!(handle.status().await?.counts.total(), 1_502);
        lab.open("gate");
        assert_eq!(ended(run, &handle).await?, "1502 SUCCESS");
        Ok(())
    })
}
