//! A procedure that is told that its own time is up, and does not fail for it.

use std::time::Duration;

use procession::Handle;
use procession::procedure::Timestamp;
use procession::status::ProcedureState as State;
use procession::testkit::{Run, Trouble};

use crate::rollback::helper::{commits, enumerate_client, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, live, live_in, plan, spawn};

fn told(act: Act) -> Act {
    Act::Told(Box::new(act))
}

fn waiting() -> Plan {
    let acts = [told(Act::Wait("never".to_owned(), None)), told(Act::Done(1))];
    plan("p", acts).timeout(2_500).told()
}

async fn ends_at(run: &Run, handle: &Handle<Planned>, ms: u64) -> Result<(), Trouble> {
    run.wait(handle.outcome()).await??;
    assert_eq!(handle.status().await?.ended, Some(Timestamp(ms * 1_000)));
    Ok(())
}

#[test]
fn e_083_the_next_stage_runs_and_is_told() -> Tested {
    let (world, lab) = (procession::testkit::World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        submit(run, Planned(waiting()), "p").await?;
        run.pass(Duration::from_secs(1)).await;
        assert_eq!(commits(run).await?, 2);
        Ok(())
    })?;
    live_in(&world, &lab, async |run| {
        let handle = submit(run, Planned(waiting()), "p").await?;
        ends_at(run, &handle, 2_500).await?;
        assert_eq!(commits(run).await?, 2);
        run.pass(Duration::from_secs(10)).await;
        assert_eq!(commits(run).await?, 2, "it does not fire again");
        Ok(())
    })?;
    assert_eq!(lab.noted(), ["p1 is told false", "p2 is told true"]);
    Ok(())
}

#[test]
fn e_083_the_next_stage_runs_and_is_told_through_crashes() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(waiting()), "p").await?;
        ends_at(run, &handle, 2_500).await
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "p1 p2"));
    Ok(())
}

#[test]
fn out_of_a_sleep_and_out_of_a_backoff_it_runs_at_once() -> Tested {
    for (first, second) in [
        (Act::Sleep(60_000), Act::Done(1)),
        (Act::Retry(2, Box::new(Act::Next)), Act::Done(1)),
    ] {
        let retries = matches!(first, Act::Retry(..));
        // The second backoff is from 1 s to 3 s.
        let root = plan("p", [told(first), told(second)]).timeout(2_500).told();
        let (_, lab) = enumerate_client(async |_, run| {
            let handle = submit(run, Planned(root.clone()), "p").await?;
            ends_at(run, &handle, 2_500).await
        })?;
        let line = if retries { "p1 p1 p1 p2" } else { "p1 p2" };
        assert_eq!(lab.line(), line);
        assert_eq!(lab.noted().last().map(String::as_str), Some("p2 is told true"));
    }
    Ok(())
}

/// Every later stage is told as well.
#[test]
fn every_later_stage_is_told() -> Tested {
    let lab = Lab::default();
    let acts = [
        Act::Wait("never".to_owned(), None),
        told(Act::Sleep(1_000)),
        told(Act::Done(1)),
    ];
    live(&lab, async |run| {
        let handle = submit(run, Planned(plan("p", acts).timeout(2_500).told()), "p").await?;
        ends_at(run, &handle, 3_500).await
    })?;
    assert_eq!(lab.noted(), ["p2 is told true", "p3 is told true"]);
    Ok(())
}

/// The stage that runs when its time is up was not told. If it parks, the next one
/// runs at once: nothing else would ever wake it.
#[test]
fn a_stage_that_was_not_told_does_not_park_for_ever() -> Tested {
    let acts = [
        Act::Held("gate".to_owned(), Box::new(told(Act::Wait("never".to_owned(), None)))),
        told(Act::Done(1)),
    ];
    let root = plan("p", acts).timeout(2_500).told();
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "p").await?;
        run.pass(Timestamp(4_000_000).since(run.now())).await;
        lab.open("gate");
        ends_at(run, &handle, 4_000).await
    })?;
    // Submit, expiry, p1 which goes on at once, p2.
    assert_eq!((done.commits, lab.line().as_str()), (4, "p1 p2"));
    assert_eq!(lab.noted(), ["p1 is told false", "p2 is told true"]);
    Ok(())
}

/// Its children let it go on, not the time; then it is told.
#[test]
fn one_that_waits_for_children_is_told_when_they_have_ended() -> Tested {
    let child = plan("c", [Act::Sleep(10_000), Act::Done(1)]);
    let root = plan("p", [spawn([child]), told(Act::Done(1))]).timeout(2_500).told();
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "p").await?;
        run.pass(Timestamp(5_000_000).since(run.now())).await;
        if run.now() == Timestamp(5_000_000) {
            assert_eq!(handle.status().await?.state, State::Waiting);
        }
        ends_at(run, &handle, 10_000).await
    })?;
    // Submit, p1, c1, expiry, c's wake, c2, p2.
    assert_eq!((done.commits, lab.line().as_str()), (7, "p1 c1 c2 p2"));
    assert_eq!(lab.noted(), ["p2 is told true"]);
    Ok(())
}
