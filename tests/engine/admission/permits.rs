//! Permits: how long they are held, whose permits children run on, and that
//! several are given together.

use std::time::Duration;

use procession::procedure::ChildPermits;
use procession::status::{Epoch, WaitReason};
use procession::testkit::{Enumeration, Run, Trouble};
use procession::{Builder, Procedure};

use super::limits::{begun, held, is_first_life, limited, submit, usage};
use crate::lifecycle::kit::enumerate_in;
use crate::support::{Act, Active, Lab, Limited, Patient, Plan, Planned, Tested, plan};

/// Enumerates the crashes of a client of an engine with these limits.
fn enumerated(
    limits: &[(&str, u32)],
    drive: impl AsyncFn(&Lab, &Run) -> Tested,
) -> Result<(Enumeration, Lab), Trouble> {
    let set_up = |lab: &Lab, builder: Builder| limited(lab, builder, limits);
    enumerate_in(Lab::default, set_up, drive)
}

/// A sleeps after its first stage; B waits for the only permit, and holds it open.
async fn one_sleeps<P: Procedure>(lab: &Lab, run: &Run, kind: impl Fn(Plan) -> P, key: &str) -> Tested {
    let a = plan(
        "a",
        [Act::Held("a".to_owned(), Box::new(Act::Sleep(3_600_000))), Act::Done(7)],
    );
    let a = submit(run, kind(a), "a").await?;
    let b = submit(run, kind(held("b")), "b").await?;
    lab.open("a");
    run.settle().await;
    let sleeps = matches!(run.executor.status(a.id()).await?.wait, Some(WaitReason::Timer(_)));
    if sleeps {
        run.pass(Duration::from_hours(1)).await;
    }
    if !lab.is_open("b") && !lab.has("a2") {
        assert_eq!(
            run.executor.status(a.id()).await?.wait,
            Some(WaitReason::Permit(key.into()))
        );
        assert_eq!((usage(run, key).await?.used, usage(run, key).await?.waiting), (1, 1));
    }
    lab.open("b");
    run.wait(a.outcome()).await??;
    run.wait(b.outcome()).await??;
    assert_eq!((usage(run, key).await?.used, usage(run, key).await?.waiting), (0, 0));
    Ok(())
}

#[test]
fn e_063_a_permit_is_held_for_life() -> Tested {
    let (done, lab) = enumerated(&[("planned", 1)], async |lab: &Lab, run: &Run| {
        one_sleeps(lab, run, Planned, "planned").await
    })?;
    assert_eq!(lab.line(), "a1 a2 b1");
    // Two submissions, three stages, the time, B's grant.
    assert_eq!(done.commits, 2 + 3 + 1 + 1);
    Ok(())
}

#[test]
fn e_063_or_while_active() -> Tested {
    let (done, lab) = enumerated(&[("active", 1)], async |lab: &Lab, run: &Run| {
        one_sleeps(lab, run, Active, "active").await
    })?;
    assert_eq!(lab.line(), "a1 b1 a2");
    // And A's: it is ready when its time has come, and waits behind B for its turn.
    assert_eq!(done.commits, 2 + 3 + 1 + 2);
    Ok(())
}

#[test]
fn e_064_children_run_on_no_permits_their_parents_or_their_own() -> Tested {
    for (permits, at_once, used) in [
        (ChildPermits::Exempt, 3, 0),
        (ChildPermits::Inherited, 3, 0),
        (ChildPermits::Own, 2, 2),
    ] {
        let (done, _) = enumerated(&[("planned", 2)], async |lab: &Lab, run: &Run| {
            let children = vec![held("a"), held("b"), held("c")];
            let root = plan("p", [Act::SpawnOn(permits, children), Act::Done(1)]);
            let root = submit(run, Patient(root), "p").await?;
            run.settle().await;
            if is_first_life(run).await? {
                assert_eq!(begun(lab).len(), 1 + at_once, "{permits:?}");
                let usage = usage(run, "planned").await?;
                assert_eq!((usage.used, usage.waiting), (used, 3 - at_once), "{permits:?}");
            }
            for gate in ["a", "b", "c"] {
                lab.open(gate);
            }
            assert_eq!(run.wait(root.outcome()).await??, 1);
            assert_eq!(usage(run, "planned").await?.used, 0);
            Ok(())
        })?;
        // The submission, five stages, and the grant of one that waits for its own.
        assert_eq!(usize::try_from(done.commits)?, 1 + 5 + (3 - at_once), "{permits:?}");
    }
    Ok(())
}

#[test]
fn e_064_the_parent_keeps_what_its_children_run_on() -> Tested {
    let (done, lab) = enumerated(&[("active", 1)], async |lab: &Lab, run: &Run| {
        let root = plan(
            "p",
            [Act::SpawnOn(ChildPermits::Inherited, vec![held("c")]), Act::Done(1)],
        );
        let root = submit(run, Active(root), "p").await?;
        let other = submit(run, Active(held("o")), "o").await?;
        run.settle().await;
        assert!(lab.is_open("c") || !lab.has("o1"));
        lab.open("c");
        lab.open("o");
        run.wait(root.outcome()).await??;
        run.wait(other.outcome()).await??;
        assert_eq!(usage(run, "active").await?.used, 0);
        Ok(())
    })?;
    assert_eq!(lab.line(), "p1 c1 p2 o1");
    assert_eq!(done.commits, 2 + 4 + 1);
    Ok(())
}

#[test]
fn e_066_kind_key_and_global_together() -> Tested {
    let limits = [("limited", 5), ("x", 1), ("y", 1), ("*", 3)];
    let (done, _) = enumerated(&limits, async |lab: &Lab, run: &Run| {
        let mut handles = Vec::new();
        let names = ["m1", "m2", "m3", "m4", "l1", "l2"];
        for (name, server) in names
            .into_iter()
            .zip([Some("x"), Some("x"), Some("y"), Some("y"), None, None])
        {
            handles.push(match server {
                Some(server) => submit(run, Limited(held(name).limit(server)), name).await?.id(),
                None => submit(run, Planned(held(name)), name).await?.id(),
            });
        }
        run.settle().await;
        if is_first_life(run).await? {
            assert_eq!(begun(lab), ["m1", "m3", "l1"]);
            let waits = [None, Some("x"), None, Some("y"), None, Some("*")];
            for (id, key) in handles.iter().zip(waits) {
                let status = run.executor.status(*id).await?;
                assert_eq!(status.wait, key.map(|key| WaitReason::Permit(key.into())));
                assert_eq!(status.holds, key.is_none());
            }
            for (key, used) in [("limited", 2), ("x", 1), ("y", 1), ("*", 3)] {
                assert_eq!(usage(run, key).await?.used, used, "{key}");
            }
        }
        lab.open("m1");
        run.settle().await;
        if is_first_life(run).await? {
            assert_eq!(begun(lab), ["m1", "m3", "l1", "m2"], "exactly one more");
        }
        if run.executor.snapshot().await?.epoch <= Epoch(2) {
            run.wait(run.executor.outcome(handles[0])).await??;
        }
        for name in names {
            lab.open(name);
        }
        for id in handles {
            run.wait(run.executor.outcome(id)).await??;
        }
        for (key, _) in limits {
            assert_eq!(
                (usage(run, key).await?.used, usage(run, key).await?.waiting),
                (0, 0),
                "{key}"
            );
        }
        Ok(())
    })?;
    // Two for each, and a grant for each of the three that waited.
    assert_eq!(done.commits, 6 * 2 + 3);
    Ok(())
}
