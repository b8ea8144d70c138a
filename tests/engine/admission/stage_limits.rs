//! Limits of stages: a permit for one attempt, and for the undo of the stage; nothing of it while the procedure is
//! parked.

use std::time::Duration;

use procession::health::Particulars;
use procession::operate::{OperatorRequest, PauseScope};
use procession::status::{ProcedureState, WaitReason};
use procession::testkit::{Enumeration, Run, Trouble};
use procession::{Builder, Handle};

use super::limits::{is_first_life, limited, live_in, submit, usage};
use crate::lifecycle::kit::enumerate_in;
use crate::support::{Act, Lab, Limited, Once, Plan, Planned, Tested, UndoAct, plan, spawn};
use procession::testkit::World;

const CALLS: &str = "calls";

fn enumerated(
    limits: &[(&str, u32)],
    drive: impl AsyncFn(&Lab, &Run) -> Tested,
) -> Result<(Enumeration, Lab), Trouble> {
    let set_up = |lab: &Lab, builder: Builder| limited(lab, builder, limits);
    enumerate_in(Lab::default, set_up, drive)
}

/// Its second stage is a call, held open by the gate of its name; the third is none.
fn calling(name: &str) -> Plan {
    let call = Act::Held(name.to_owned(), Box::new(Act::Next));
    plan(name, [Act::Next, call, Act::Done(7)]).limited_in(2, CALLS)
}

/// Waits until a call is the only one, and this procedure waits for a permit of it.
async fn waits_for_a_permit(run: &Run, waiter: &Handle<Planned>) -> Tested {
    let status = run.executor.status(waiter.id()).await?;
    assert_eq!(status.wait, Some(WaitReason::Permit(CALLS.into())));
    assert!(!status.holds);
    let usage = usage(run, CALLS).await?;
    assert_eq!((usage.used, usage.waiting), (1, 1));
    assert_eq!(usage.waiters.first().map(|(id, _)| *id), Some(waiter.id()));
    Ok(())
}

#[test]
fn a_stage_holds_its_permit_for_one_call() -> Tested {
    let (done, lab) = enumerated(&[(CALLS, 1)], async |lab: &Lab, run: &Run| {
        let a = submit(run, Planned(calling("a")), "a").await?;
        run.settle().await;
        let b = submit(run, Planned(calling("b")), "b").await?;
        run.settle().await;
        if is_first_life(run).await? {
            waits_for_a_permit(run, &b).await?;
            let explained = run.executor.explain(b.id()).await?;
            assert!(matches!(&explained.particulars, Some(Particulars::Permit(limit)) if limit.key.as_str() == CALLS));
            assert_eq!(explained.links.first().map(|link| link.to), Some(a.id()));
        }
        lab.open("a");
        assert_eq!(run.wait(a.outcome()).await??, 7);
        lab.open("b");
        assert_eq!(run.wait(b.outcome()).await??, 7);
        assert_eq!(
            (usage(run, CALLS).await?.used, usage(run, CALLS).await?.waiting),
            (0, 0)
        );
        Ok(())
    })?;
    assert!(lab.line().starts_with("a1 a2 b1"));
    // Two submissions, six stages, the grant of the one that waits.
    assert_eq!(done.commits, 2 + 6 + 1);
    Ok(())
}

#[test]
fn a_permit_that_is_free_costs_no_commit() -> Tested {
    let (done, lab) = enumerated(&[(CALLS, 1)], async |lab: &Lab, run: &Run| {
        lab.open("a");
        let a = submit(
            run,
            Planned(calling("a").limited_in(1, CALLS).limited_in(3, CALLS)),
            "a",
        )
        .await?;
        assert_eq!(run.wait(a.outcome()).await??, 7);
        assert_eq!(usage(run, CALLS).await?.used, 0);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "a1 a2 a3"));
    Ok(())
}

#[test]
fn between_two_stages_others_have_their_turn() -> Tested {
    let (_, lab) = enumerated(&[(CALLS, 1)], async |lab: &Lab, run: &Run| {
        let both = calling("a").limited_in(3, CALLS);
        let a = submit(run, Planned(both), "a").await?;
        let b = submit(run, Planned(calling("b")), "b").await?;
        run.settle().await;
        lab.open("a");
        run.settle().await;
        lab.open("b");
        for handle in [a, b] {
            assert_eq!(run.wait(handle.outcome()).await??, 7);
        }
        Ok(())
    })?;
    let line = lab.line();
    let place = |call: &str| line.find(call);
    assert!(place("b2") < place("a3"), "{line}");
    Ok(())
}

#[test]
fn a_backoff_holds_no_permit() -> Tested {
    let (_, lab) = enumerated(&[(CALLS, 1)], async |lab: &Lab, run: &Run| {
        let again = plan("a", [Act::RetryAfter(vec![Some(60_000)], Box::new(Act::Done(7)))]);
        let a = submit(run, Planned(again.limited_in(1, CALLS)), "a").await?;
        run.settle().await;
        lab.open("b");
        let b = submit(run, Planned(calling("b")), "b").await?;
        assert_eq!(run.wait(b.outcome()).await??, 7, "the permit is free meanwhile");
        run.pass(Duration::from_mins(1)).await;
        assert_eq!(run.wait(a.outcome()).await??, 7);
        assert_eq!(usage(run, CALLS).await?.used, 0);
        Ok(())
    })?;
    assert!(lab.has("b2"));
    Ok(())
}

/// Calls, and fails once it may.
fn failing(name: &str) -> Plan {
    let fails = Act::Held(format!("{name} fails"), Box::new(Act::Fail("boom".to_owned())));
    plan(name, [Act::Next, fails]).limited_in(1, CALLS)
}

#[test]
fn an_undo_needs_the_permit_of_its_stage() -> Tested {
    let (_, lab) = enumerated(&[(CALLS, 1)], async |lab: &Lab, run: &Run| {
        let a = submit(run, Planned(failing("a")), "a").await?;
        run.settle().await;
        let b = submit(run, Planned(calling("b")), "b").await?;
        run.settle().await;
        lab.open("a fails");
        run.settle().await;
        if is_first_life(run).await? {
            waits_for_a_permit(run, &a).await?;
            assert!(lab.has("b2") && lab.has("a2'") && !lab.has("a1'"), "{}", lab.line());
            let explained = run.executor.explain(a.id()).await?;
            assert!(explained.deadlocks.is_empty());
            assert_eq!(explained.links.first().map(|link| link.to), Some(b.id()));
        }
        lab.open("b");
        assert!(run.wait(a.outcome()).await?.is_err());
        assert_eq!(run.wait(b.outcome()).await??, 7);
        assert_eq!(run.executor.status(a.id()).await?.state, ProcedureState::RolledBack);
        assert_eq!(usage(run, CALLS).await?.used, 0);
        Ok(())
    })?;
    assert!(lab.has("a1'"));
    Ok(())
}

#[test]
fn an_undo_that_is_tried_again_holds_none_meanwhile() -> Tested {
    let (_, _) = enumerated(&[(CALLS, 1)], async |lab: &Lab, run: &Run| {
        lab.open("a fails");
        let a = failing("a").undo(1, UndoAct::FailAfter(1, 60_000));
        let a = submit(run, Planned(a), "a").await?;
        run.settle().await;
        lab.open("b");
        let b = submit(run, Planned(calling("b")), "b").await?;
        assert_eq!(run.wait(b.outcome()).await??, 7);
        run.pass(Duration::from_mins(1)).await;
        assert!(run.wait(a.outcome()).await?.is_err());
        assert_eq!(usage(run, CALLS).await?.used, 0);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn the_undo_of_a_child_that_had_ended_takes_the_permit_again() -> Tested {
    let (_, lab) = enumerated(&[(CALLS, 1)], async |lab: &Lab, run: &Run| {
        lab.open("c");
        let child = calling("c").compensated();
        let fails = Act::Held("r fails".to_owned(), Box::new(Act::Fail("boom".to_owned())));
        let root = submit(run, Planned(plan("r", [spawn([child]), fails])), "r").await?;
        run.settle().await;
        let b = submit(run, Planned(calling("b")), "b").await?;
        run.settle().await;
        lab.open("r fails");
        run.settle().await;
        if is_first_life(run).await? {
            let status = run.executor.status(root.id()).await?;
            assert_eq!(status.wait, Some(WaitReason::Permit(CALLS.into())), "its undo waits");
            assert!(lab.has("c3'") && !lab.has("c2'"), "{}", lab.line());
        }
        lab.open("b");
        assert!(run.wait(root.outcome()).await?.is_err());
        assert_eq!(run.wait(b.outcome()).await??, 7);
        assert_eq!(usage(run, CALLS).await?.used, 0);
        Ok(())
    })?;
    assert!(lab.has("c2'"));
    Ok(())
}

#[test]
fn one_that_waits_can_be_paused_and_aborted() -> Tested {
    let by = |why: &str| OperatorRequest::new("ann", why).key(format!("{why} it"));
    enumerated(&[(CALLS, 1)], async |lab: &Lab, run: &Run| {
        let a = submit(run, Planned(calling("a")), "a").await?;
        run.settle().await;
        let b = submit(run, Planned(calling("b")), "b").await?;
        let c = submit(run, Planned(calling("c")), "c").await?;
        run.settle().await;
        run.executor.pause(PauseScope::One(b.id()), by("pause")).await?;
        run.executor.abort(c.id(), by("abort")).await?;
        run.settle().await;
        if is_first_life(run).await? {
            assert_eq!(run.executor.status(c.id()).await?.state, ProcedureState::RolledBack);
        }
        lab.open("a");
        assert_eq!(run.wait(a.outcome()).await??, 7);
        assert!(run.wait(c.outcome()).await?.is_err());
        run.settle().await;
        if is_first_life(run).await? {
            assert_eq!(usage(run, CALLS).await?.waiting, 0);
        }
        run.executor.resume(PauseScope::One(b.id()), by("resume")).await?;
        lab.open("b");
        assert_eq!(run.wait(b.outcome()).await??, 7);
        assert_eq!(usage(run, CALLS).await?.used, 0);
        Ok(())
    })?;
    Ok(())
}

#[test]
fn a_childs_stage_takes_its_permit_whatever_its_list_says() -> Tested {
    let (_, lab) = enumerated(&[(CALLS, 1)], async |lab: &Lab, run: &Run| {
        let root = plan("r", [spawn([calling("c"), calling("d")]), Act::Done(1)]);
        let root = submit(run, Planned(root), "r").await?;
        run.settle().await;
        if is_first_life(run).await? && !lab.is_open("c") {
            assert_eq!(
                (usage(run, CALLS).await?.used, usage(run, CALLS).await?.waiting),
                (1, 1)
            );
            assert!(lab.has("c2") != lab.has("d2"));
        }
        lab.open("c");
        lab.open("d");
        assert_eq!(run.wait(root.outcome()).await??, 1);
        Ok(())
    })?;
    assert!(lab.has("c3") && lab.has("d3"));
    Ok(())
}

#[test]
fn a_limit_that_is_set_later_counts_from_the_next_stage() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, &[], async |run| {
        let a = submit(run, Planned(calling("a")), "a").await?;
        run.settle().await;
        assert!(run.executor.limits().await?.is_empty());
        let by = OperatorRequest::new("ann", "the provider is slow");
        run.executor.set_limit(CALLS, Some(1), by).await?;
        let (b, c) = (
            submit(run, Planned(calling("b")), "b").await?,
            submit(run, Planned(calling("c")), "c").await?,
        );
        run.settle().await;
        waits_for_a_permit(run, &c).await?;
        for (gate, handle) in [("a", a), ("b", b), ("c", c)] {
            lab.open(gate);
            assert_eq!(run.wait(handle.outcome()).await??, 7);
        }
        Ok(())
    })
}

#[test]
fn permits_for_life_and_of_stages_that_block_each_other_are_found() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, &[("limited", 1), ("once", 1)], async |run| {
        let wants = |name: &str, limit: &str| {
            let first = Act::Held("both".to_owned(), Box::new(Act::Next));
            plan(name, [first, Act::Done(1)]).limited_in(2, limit)
        };
        let a = submit(run, Limited(wants("a", "once")), "a").await?;
        let b = submit(run, Once(wants("b", "limited")), "b").await?;
        run.settle().await;
        lab.open("both");
        run.settle().await;
        let explained = run.executor.explain(a.id()).await?;
        let cycle = &explained.deadlocks.first().ok_or("a deadlock is found")?.cycle;
        assert_eq!(cycle.len(), 2);
        run.executor
            .abort(a.id(), OperatorRequest::new("ann", "it is stuck"))
            .await?;
        assert!(run.wait(a.outcome()).await?.is_err());
        assert_eq!(run.wait(b.outcome()).await??, 1);
        Ok(())
    })
}
