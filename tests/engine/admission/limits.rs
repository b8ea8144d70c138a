//! Limits: who gets a permit and when, what changes it, and that it comes back once.

use std::future::IntoFuture;

use procession::limits::LimitUse;
use procession::operate::OperatorRequest;
use procession::status::{Epoch, ProcedureState, WaitReason};
use procession::testkit::{FaultPlan, Run, Trouble, World};
use procession::{Builder, Handle, Procedure};

use crate::support::{Act, Lab, Limited, Patient, Plan, Planned, Tested, chain, enumerate, kinds, plan, spawn};

/// One stage, held open by the gate of its name.
pub(crate) fn held(name: &str) -> Plan {
    plan(name, [Act::Held(name.to_owned(), Box::new(Act::Done(7)))])
}

pub(crate) async fn submit<P: Procedure>(run: &Run, procedure: P, key: &str) -> Result<Handle<P>, Trouble> {
    Ok(run
        .wait(run.executor.submit(procedure).key(key).into_future())
        .await??)
}

pub(crate) async fn usage(run: &Run, key: &str) -> Result<LimitUse, Trouble> {
    let all = run.executor.limits().await?;
    Ok(all
        .into_iter()
        .find(|usage| usage.key.as_str() == key)
        .ok_or("the limit is not known")?)
}

/// Tells whether no crash came before: what a second one meets runs one at a time.
pub(crate) async fn is_first_life(run: &Run) -> Result<bool, Trouble> {
    Ok(run.executor.snapshot().await?.epoch == Epoch(1))
}

/// Tells whose first stage has begun, by name.
pub(crate) fn begun(lab: &Lab) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for call in lab.calls() {
        if !names.contains(&call.name) {
            names.push(call.name);
        }
    }
    names
}

/// One life with limits, without faults.
fn live<T>(
    lab: &Lab,
    limits: &[(&str, u32)],
    drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    live_in(&World::new(), lab, limits, drive)
}

pub(crate) fn live_in<T>(
    world: &World,
    lab: &Lab,
    limits: &[(&str, u32)],
    drive: impl AsyncFnOnce(&Run) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    world
        .run(FaultPlan::none(), |builder| limited(lab, builder, limits), drive)?
        .done()
}

pub(crate) fn limited(lab: &Lab, builder: Builder, limits: &[(&str, u32)]) -> Builder {
    limits
        .iter()
        .fold(kinds(lab, builder), |builder, (key, limit)| builder.limit(key, *limit))
}

/// Submits so many of the limited kind and of the unlimited one, all held
/// open, lets the first end, then the others.
async fn one_waits(lab: &Lab, run: &Run, limit: usize, others: usize) -> Tested {
    let mut handles = Vec::new();
    for number in 0..=limit {
        handles.push(submit(run, Limited(held(&format!("k{number}"))), &format!("k{number}")).await?);
    }
    let mut free = Vec::new();
    for number in 0..others {
        free.push(submit(run, Planned(held(&format!("l{number}"))), &format!("l{number}")).await?);
    }
    run.settle().await;
    let last = format!("k{limit}1");
    if !lab.is_open("k0") {
        if is_first_life(run).await? {
            assert_eq!(begun(lab).len(), limit + others);
        }
        assert!(!lab.has(&last));
        let used = usage(run, "limited").await?;
        assert_eq!((used.used as usize, used.waiting), (limit, 1));
        let status = handles.last().ok_or("one was submitted")?.status().await?;
        assert_eq!(status.state, ProcedureState::Initializing);
        assert_eq!(status.wait, Some(WaitReason::Permit("limited".into())));
        assert_eq!(status.since, status.submitted);
    }
    lab.open("k0");
    assert_eq!(
        run.wait(handles.first().ok_or("one was submitted")?.outcome())
            .await??,
        7
    );
    if is_first_life(run).await? {
        run.until("the last begins when one has ended", || lab.has(&last))
            .await?;
    }
    for number in 0..=limit.max(others) {
        lab.open(&format!("k{number}"));
        lab.open(&format!("l{number}"));
    }
    for handle in &handles {
        assert_eq!(run.wait(handle.outcome()).await??, 7);
    }
    for handle in &free {
        assert_eq!(run.wait(handle.outcome()).await??, 7);
    }
    assert_eq!(usage(run, "limited").await?.used, 0);
    Ok(())
}

#[test]
fn e_060_the_twenty_first_waits() -> Tested {
    let lab = Lab::default();
    live(&lab, &[("limited", 20)], async |run| {
        one_waits(&lab, run, 20, 100).await?;
        // Two commits for each, and the grant of the one that waited.
        assert_eq!(run.executor.snapshot().await?.commits, 121 * 2 + 1);
        Ok(())
    })
}

#[test]
fn e_060_the_one_over_the_limit_waits_through_crashes() -> Tested {
    let done = enumerate(
        Lab::default,
        |lab, builder| limited(lab, builder, &[("limited", 2)]),
        async |lab: &Lab, run: &Run| one_waits(lab, run, 2, 1).await,
        &[],
        |plain, crashed, crashes| plain.compare(crashed, crashes),
    )?;
    assert_eq!(done.commits, 4 * 2 + 1);
    Ok(())
}

/// Raises a limit of 1 to `high`, lowers it again, and lets everybody end one by one.
async fn raise_and_lower(lab: &Lab, run: &Run, all: usize, high: usize) -> Tested {
    let mut handles = Vec::new();
    for number in 0..all {
        handles.push(submit(run, Limited(held(&format!("r{number}"))), &format!("r{number}")).await?);
    }
    run.until("the first runs", || lab.has("r01")).await?;
    if !lab.is_open("raised") {
        run.executor
            .set_limit(
                "limited",
                u32::try_from(high).ok(),
                OperatorRequest::new("ann", "a test"),
            )
            .await?;
        lab.open("raised");
    }
    run.settle().await;
    let first_life = is_first_life(run).await?;
    if !lab.is_open("lowered") {
        if first_life {
            assert_eq!(begun(lab).len(), high, "exactly the difference starts");
        }
        run.executor
            .set_limit("limited", Some(1), OperatorRequest::new("ann", "a test"))
            .await?;
        lab.open("lowered");
    }
    for (number, handle) in handles.iter().enumerate() {
        run.settle().await;
        let gate = format!("r{number}");
        let ending = (0..all).filter(|number| lab.is_open(&format!("r{number}"))).count();
        assert!(begun(lab).len() <= high.max(ending + 1));
        if first_life {
            // Nobody starts until those that run over the lowered limit have ended; then one by one.
            assert_eq!(begun(lab).len(), high.max(number + 1));
        }
        lab.open(&gate);
        assert_eq!(run.wait(handle.outcome()).await??, 7);
    }
    let names: Vec<String> = (0..all).map(|number| format!("r{number}")).collect();
    let mut order = begun(lab);
    // A crash runs the bodies that were out again, in any order; without one it is first come, first served.
    order.sort();
    assert_eq!(order, names);
    let used = usage(run, "limited").await?;
    assert_eq!((used.limit, used.used, used.waiting), (Some(1), 0, 0));
    Ok(())
}

#[test]
fn e_061_raising_starts_the_difference_and_lowering_only_stops_new_grants() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, &[("limited", 1)], async |run| {
        raise_and_lower(&lab, run, 10, 4).await?;
        let names: Vec<String> = (0..10).map(|number| format!("r{number}")).collect();
        assert_eq!(begun(&lab), names, "the earliest start first");
        // Two for each, nine grants after waiting, and one for each change of the limit.
        assert_eq!(run.executor.snapshot().await?.commits, 20 + 9 + 2);
        run.executor
            .set_limit("limited", Some(3), OperatorRequest::new("ann", "a test"))
            .await?;
        assert_eq!(run.executor.snapshot().await?.commits, 20 + 9 + 3);
        Ok(())
    })?;
    // What was set at run time outlives the builder's own.
    live_in(&world, &lab, &[("limited", 1)], async |run| {
        assert_eq!(usage(run, "limited").await?.limit, Some(3));
        Ok(())
    })
}

#[test]
fn the_first_limit_of_a_name_is_not_for_those_who_live_and_its_plan_says_so() -> Tested {
    let lab = Lab::default();
    live_in(&World::new(), &lab, &[], async |run| {
        let by = || OperatorRequest::new("ann", "a test");
        let warned = async |limit: Option<u32>| -> Result<usize, Trouble> {
            let dry = run.executor.set_limit("limited", limit, by().dry_run()).await?;
            Ok(dry.plan.ok_or("it has a plan")?.warnings.len())
        };
        assert_eq!(warned(Some(1)).await?, 0, "nothing lives");
        let old = submit(run, Limited(held("old")), "old").await?;
        assert_eq!(warned(None).await?, 0, "it forbids nothing");
        assert_eq!(warned(Some(1)).await?, 1);
        run.executor.set_limit("limited", Some(1), by()).await?;
        assert_eq!(warned(Some(2)).await?, 0, "who asks from now on is counted");

        let new = submit(run, Limited(held("new")), "new").await?;
        let next = submit(run, Limited(held("next")), "next").await?;
        run.settle().await;
        assert_eq!(
            begun(&lab),
            ["old", "new"],
            "the first holds no permit, and keeps none from the second"
        );
        let used = usage(run, "limited").await?;
        assert_eq!((used.used, used.waiting), (1, 1));
        ["old", "new", "next"].into_iter().for_each(|gate| lab.open(gate));
        for handle in [old, new, next] {
            assert_eq!(run.wait(handle.outcome()).await??, 7);
        }
        Ok(())
    })
}

#[test]
fn e_061_raising_and_lowering_through_crashes() -> Tested {
    let done = enumerate(
        Lab::default,
        |lab, builder| limited(lab, builder, &[("limited", 1)]),
        async |lab: &Lab, run: &Run| raise_and_lower(lab, run, 3, 2).await,
        &[],
        |plain, crashed, crashes| plain.compare(crashed, crashes),
    )?;
    assert_eq!(done.commits, 6 + 2 + 2);
    Ok(())
}

#[test]
fn e_062_kinds_do_not_delay_each_other_and_priority_goes_first_within_one() -> Tested {
    let set_up = |lab: &Lab, builder| limited(lab, builder, &[("limited", 1)]);
    let drive = async |lab: &Lab, run: &Run| {
        let holder = submit(run, Limited(held("h")), "h").await?;
        let a = submit(run, Limited(chain("a", 1)), "a").await?;
        let b = submit(run, Limited(chain("b", 1)), "b").await?;
        let c = submit(run, Limited(chain("c", 1).priority(5)), "c").await?;
        let other = submit(run, Planned(chain("l", 1)), "l").await?;
        if run.executor.snapshot().await?.epoch > Epoch(2) {
            // Met by two crashes, the two that run are suspects, and go one after the other.
            lab.open("h");
        }
        // It does not wait for those before it.
        assert_eq!(run.wait(other.outcome()).await??, 7);
        lab.open("h");
        for handle in [&holder, &a, &b, &c] {
            assert_eq!(run.wait(handle.outcome()).await??, 7);
        }
        Ok(())
    };
    let order = |plain: &Lab, crashed: &Lab, crashes: usize| {
        assert_eq!(begun(plain).join(" "), "h l c a b");
        assert_eq!(
            begun(crashed)
                .into_iter()
                .filter(|name| name != "h" && name != "l")
                .collect::<Vec<_>>()
                .join(" "),
            "c a b"
        );
        plain.compare(crashed, crashes)
    };
    let done = enumerate(Lab::default, set_up, drive, &[], order)?;
    assert_eq!(done.commits, 5 * 2 + 3);
    Ok(())
}

#[test]
fn e_064_children_need_no_permit_by_default() -> Tested {
    let set_up = |lab: &Lab, builder| limited(lab, builder, &[("planned", 2)]);
    let drive = async |lab: &Lab, run: &Run| {
        let root = plan("p", [spawn([held("a"), held("b"), held("c")]), Act::Done(1)]);
        let root = submit(run, Patient(root), "p").await?;
        if is_first_life(run).await? {
            run.until("all three run at once", || {
                ["a1", "b1", "c1"].iter().all(|body| lab.has(body))
            })
            .await?;
        }
        let used = usage(run, "planned").await?;
        assert_eq!((used.used, used.waiting), (0, 0));
        for gate in ["a", "b", "c"] {
            lab.open(gate);
        }
        assert_eq!(run.wait(root.outcome()).await??, 1);
        Ok(())
    };
    let done = enumerate(Lab::default, set_up, drive, &[], |plain, crashed, crashes| {
        plain.compare(crashed, crashes)
    })?;
    assert_eq!(done.commits, 6);
    Ok(())
}
