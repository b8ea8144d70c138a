//! A broadcast wakes those who wait for the event's name now, first waiter first.

use std::time::Duration;

use procession::messages::Broadcast;
use procession::status::{ProcedureState as State, WaitReason};
use procession::testkit::{FaultPlan, Run, World};

use crate::rollback::helper::{commits, enumerate_client, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, enumerate, kinds, live, plan};

fn waits(name: &str, event: &str, after_ms: u64) -> Plan {
    let acts = [
        Act::Sleep(after_ms),
        Act::Wait(event.to_owned(), None),
        Act::Seen(Box::new(Act::Done(1))),
    ];
    plan(name, acts)
}

#[test]
fn e_082_first_waiter_first_in_one_commit() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let mut five = Vec::new();
        for (name, after) in [("a", 3_000), ("b", 1_000), ("c", 5_000), ("d", 2_000), ("e", 4_000)] {
            five.push(submit(run, Planned(waits(name, "open", after)), name).await?);
        }
        let shut = submit(run, Planned(waits("s", "shut", 1_000)), "s").await?;
        let later = submit(run, Planned(waits("l", "open", 60_000)), "l").await?;
        run.pass(std::time::Duration::from_secs(10)).await;
        let before = (commits(run).await?, lab.calls().len());
        assert_eq!(run.executor.broadcast("open", &7_i64).await?, 5);
        for handle in &five {
            assert_eq!(run.wait(handle.outcome()).await??, 1);
        }
        // The broadcast, and five stages.
        assert_eq!(commits(run).await?, before.0 + 6);
        let woken: Vec<String> = lab
            .calls()
            .iter()
            .skip(before.1)
            .map(crate::support::Call::short)
            .collect();
        assert_eq!(woken.join(" "), "b3 d3 a3 e3 c3");
        assert_eq!(lab.noted()[0], "b3 saw 7");
        assert!(matches!(shut.status().await?.wait, Some(WaitReason::Event(..))));
        run.pass(std::time::Duration::from_secs(60)).await;
        let status = later.status().await?;
        assert_eq!(status.state, State::WaitingTimeout, "it is not kept");
        assert!(matches!(status.wait, Some(WaitReason::Event(..))));
        Ok(())
    })
}

/// Waits until it is answered, with a key, so that a repeat wakes nobody twice.
async fn broadcast(run: &Run, name: &str) -> Result<u32, procession::testkit::Trouble> {
    let message = Broadcast::new(name, &7_i64)?.key("once");
    Ok(run.wait(run.executor.supervisor().send(message)).await???)
}

#[test]
fn e_082_through_crashes() -> Tested {
    let root = |name: &str, event: &str| {
        plan(
            name,
            [
                Act::Wait(event.to_owned(), None),
                Act::Wait(event.to_owned(), Some(1_000)),
                Act::Done(1),
            ],
        )
    };
    let (done, lab) = enumerate_client(async |_, run| {
        let mut handles = Vec::new();
        for name in ["a", "b"] {
            handles.push(submit(run, Planned(root(name, "open")), name).await?);
        }
        let shut = submit(run, Planned(root("s", "shut")), "s").await?;
        run.settle().await;
        assert_eq!(broadcast(run, "open").await?, 2);
        for handle in &handles {
            assert_eq!(run.wait(handle.outcome()).await??, 1);
        }
        assert!(shut.status().await?.ended.is_none());
        Ok(())
    })?;
    // Three submissions and waits, the broadcast, two waits, their ends, two last stages.
    assert_eq!((done.commits, lab.line().as_str()), (13, "a1 b1 s1 a2 b2 a3 b3"));
    Ok(())
}

#[test]
fn nobody_waits() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        assert_eq!(run.executor.broadcast("open", &7_i64).await?, 0);
        assert_eq!(commits(run).await?, 0, "it leaves nothing");
        let keyed = Broadcast::new("open", &7_i64)?.key("k");
        assert_eq!(run.executor.supervisor().send(keyed).await??, 0);
        assert_eq!(commits(run).await?, 1, "its key is remembered");
        Ok(())
    })
}

const DAY: Duration = Duration::from_secs(24 * 3_600);

#[test]
fn more_than_one_commit_wakes_are_woken_by_commits_after_it() -> Tested {
    let lab = Lab::default();
    let set_up = |builder| kinds(&lab, builder).wake_at_once(2);
    World::new()
        .run(FaultPlan::none(), set_up, async |run| {
            let mut five = Vec::new();
            for (name, after) in [("a", 3_000), ("b", 1_000), ("c", 5_000), ("d", 2_000), ("e", 4_000)] {
                five.push(submit(run, Planned(waits(name, "open", after)), name).await?);
            }
            run.pass(Duration::from_secs(10)).await;
            let before = (commits(run).await?, lab.calls().len());
            assert_eq!(
                run.executor.broadcast("open", &7_i64).await?,
                5,
                "all are told of at once"
            );
            for handle in &five {
                assert_eq!(run.wait(handle.outcome()).await??, 1);
            }
            // The broadcast, two and two and one, and five stages.
            assert_eq!(commits(run).await?, before.0 + 9);
            let woken = lab.calls();
            let woken = woken.iter().skip(before.1).map(crate::support::Call::short);
            assert_eq!(woken.collect::<Vec<_>>().join(" "), "b3 d3 a3 e3 c3");
            assert_eq!(lab.noted()[0], "b3 saw 7");
            Ok(())
        })?
        .done()
}

/// A crash before, after and in each commit, the broadcast's own and those of its wakes included, so that there is
/// a start between any two of them.
#[test]
fn a_broadcast_in_three_parts_through_crashes() -> Tested {
    let root = |name: &str| {
        let acts = [
            Act::Wait("open".to_owned(), None),
            Act::Wait("open".to_owned(), Some(1_000)),
            Act::Seen(Box::new(Act::Done(1))),
        ];
        plan(name, acts)
    };
    let set_up = |lab: &Lab, builder| kinds(lab, builder).retention(DAY, DAY).wake_at_once(1);
    let drive = async |lab: &Lab, run: &Run| {
        let mut handles = Vec::new();
        for name in ["a", "b", "c"] {
            handles.push(submit(run, Planned(root(name)), name).await?);
        }
        run.settle().await;
        assert_eq!(broadcast(run, "open").await?, 3);
        for handle in &handles {
            assert_eq!(run.wait(handle.outcome()).await??, 1);
        }
        for name in ["a", "b", "c"] {
            let saw = format!("{name}3 saw no signal");
            assert!(lab.noted().contains(&saw), "it is woken once: {:?}", lab.noted());
        }
        Ok(())
    };
    let done = enumerate(Lab::default, set_up, drive, &["rows"], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    // Three submissions and waits, the broadcast, three wakes, three waits, their ends, three last stages.
    assert_eq!(done.commits, 19);
    Ok(())
}
