//! A broadcast wakes those who wait for the event's name now, first waiter first.

use procession::messages::Broadcast;
use procession::testkit::Run;
use procession::{ProcedureState as State, WaitReason};

use crate::rollback::helper::{commits, enumerate_client, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, live, plan};

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
