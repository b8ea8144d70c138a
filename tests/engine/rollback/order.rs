//! The order of undos: the exact reverse of commit order, over the whole family.

use std::collections::BTreeSet;

use procession::status::{CauseKind, ProcedureState};
use procession::testkit::{Fault, FaultPlan, Run, Trouble, World};

use super::helper::{Order, committed, enumerate_client, fails, lives, rolled_back, submit, under_seeds};
use crate::support::{
    Act, Lab, Plan, Planned, Tested, each_crash, enumerate_plan, failing, kinds, live, plan, rows, spawn,
};

fn nested() -> Plan {
    plan(
        "r",
        [
            spawn([plan("s", [spawn([failing("t", 1)]), Act::Done(1)])]),
            Act::Done(1),
        ],
    )
}

#[test]
fn e_024_order_through_a_nested_family() -> Tested {
    let (done, lab) = enumerate_plan(&nested())?;
    assert_eq!(done.commits, 7);
    assert_eq!(lab.line(), "r1 s1 t1 t1' s1' r1'");
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(nested()), "k").await?;
        let (cause, not_undone) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!((cause.kind, cause.text.as_str()), (CauseKind::Failed, "boom"));
        assert_eq!(Some(cause.origin), lab.id("t"));
        assert_eq!(not_undone, []);
        Ok(())
    })
}

#[test]
fn e_025_order_in_a_chain() -> Tested {
    let (done, lab) = enumerate_plan(&failing("a", 3))?;
    assert_eq!((done.commits, lab.line().as_str()), (7, "a1 a2 a3 a3' a2' a1'"));
    let (done, lab) = enumerate_plan(&failing("a", 1))?;
    assert_eq!((done.commits, lab.line().as_str()), (3, "a1 a1'"));
    Ok(())
}

#[test]
fn e_026_the_cause_is_there_before_the_first_undo() -> Tested {
    // Commit 4 is that of t's failure; a life that begins behind it undoes from its commit 1 on.
    for faults in [
        vec![4],
        vec![5],
        vec![6],
        vec![7],
        vec![4, 1],
        vec![4, 2],
        vec![4, 1, 1],
    ] {
        let faults: Vec<_> = faults.into_iter().map(|commit| (commit, Fault::CrashAfter)).collect();
        let lab = Lab::default();
        let (crashes, ()) = lives(&faults, &lab, async |run| {
            let handle = submit(run, Planned(nested()), "k").await?;
            let seen = run.executor.status(handle.id()).await?;
            let again = !lab.noted().is_empty();
            lab.note("a life");
            if again {
                let text = seen.cause.as_ref().map(|cause| cause.text.clone());
                assert_eq!(text.as_deref(), Some("boom"), "the root's row holds it at once");
            }
            let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
            let outcome = run.executor.outcome(handle.id()).await?;
            let status = run.executor.status(handle.id()).await?;
            assert_eq!(
                (outcome.cause.as_ref(), status.cause.as_ref()),
                (Some(&cause), Some(&cause))
            );
            assert!(seen.cause.is_none_or(|seen| seen == cause));
            Ok(())
        })?;
        assert_eq!(crashes, faults.len());
    }
    Ok(())
}

/// On the disk, between any two lives: from the failure on the root's row says why, and it says so to its end.
#[test]
fn e_026_the_cause_is_on_the_disk_from_the_failure_on_however_it_crashes() -> Tested {
    let set_up = |(lab, world): &(Lab, World), builder| {
        let rows = rows(&world.disk).unwrap_or_default();
        let failed = |state| [ProcedureState::Failed, ProcedureState::RolledBack].contains(&state);
        if rows
            .iter()
            .any(|row| row.kind.as_str() == "planned" && failed(row.state))
        {
            let cause = rows.first().and_then(|root| root.rare().cause.as_ref());
            lab.note(cause.map_or("no cause", |cause| &cause.text));
        }
        kinds(lab, builder)
    };
    let drive = async |(lab, _): &(Lab, World), run: &Run| {
        let handle = submit(run, Planned(nested()), "k").await?;
        let seen = run.executor.status(handle.id()).await?.cause;
        let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!((cause.kind, cause.text.as_str()), (CauseKind::Failed, "boom"));
        assert_eq!(Some(cause.origin), lab.id("t"));
        let outcome = run.executor.outcome(handle.id()).await?.cause;
        let status = run.executor.status(handle.id()).await?.cause;
        assert_eq!((outcome.as_ref(), status.as_ref()), (Some(&cause), Some(&cause)));
        assert!(seen.is_none_or(|seen| seen == cause));
        lab.note(cause.text);
        Ok(())
    };
    let told = std::cell::Cell::new(0);
    let check = |(lab, _): &(Lab, World), _: &[(u64, Fault)]| {
        let mut noted = lab.noted();
        told.set(told.get() + noted.len() - 1);
        noted.dedup();
        assert_eq!(noted.len(), 1, "the same text in every life: {noted:?}");
        Ok(())
    };
    let done = each_crash(|world| (Lab::default(), world.clone()), set_up, drive, check)?;
    assert_eq!(done.commits, 7);
    assert!(told.get() > done.runs, "many lives began behind the failure");
    Ok(())
}

/// Two children of three stages, of which the second fails in its third.
fn race(order: &mut Order) -> Plan {
    let mut late = |act| order.late(act);
    let a = plan("a", [late(Act::Next), late(Act::Next), late(Act::Done(1))]).compensated();
    let b = plan(
        "b",
        [late(Act::Next), late(Act::Next), late(Act::Fail("boom".to_owned()))],
    );
    plan("r", [spawn([a, b]), Act::Done(1)])
}

/// One that is after both of two, which are after a first; the last fails.
fn diamond(order: &mut Order) -> Plan {
    let mut late = |act| order.late(act);
    let mut middle = |name: &str| {
        plan(name, [late(Act::Next), late(Act::Done(1))])
            .compensated()
            .after([0])
    };
    let (b, c) = (middle("b"), middle("c"));
    let a = plan("a", [late(Act::Done(1))]).compensated().named("a");
    let d = plan("d", [late(Act::Fail("boom".to_owned()))]).after([1, 2]);
    plan("r", [spawn([a, b, c, d]), Act::Done(1)])
}

/// Runs a plan that fails under each of the seeds, and returns the orders in which its stages were committed. Each was
/// undone in the exact reverse.
fn orders_of(drawn: impl Fn(&mut Order) -> Plan) -> Result<BTreeSet<Vec<(u32, u32)>>, Trouble> {
    let orders = std::cell::RefCell::new(BTreeSet::new());
    under_seeds(|seed| {
        let (lab, mut order) = (Lab::default(), Order::new(seed));
        let race = drawn(&mut order);
        let (merge, flights) = (1 + order.below(8), 1 + order.below(2));
        let set_up = |builder| {
            let merge = usize::try_from(merge).unwrap_or(1);
            kinds(&lab, builder)
                .merge(merge)
                .in_flight(usize::try_from(flights).unwrap_or(1))
        };
        let ended = World::new().run(FaultPlan::none(), set_up, async |run| {
            let handle = submit(run, Planned(race.clone()), "k").await?;
            rolled_back(run.wait(handle.outcome()).await?)?;
            let all = committed(run, handle.id()).await?;
            let stages: Vec<_> = all
                .iter()
                .filter(|(.., undo)| !undo)
                .map(|(member, visit, _)| (*member, *visit))
                .collect();
            let mut undos: Vec<_> = all
                .iter()
                .filter(|(.., undo)| *undo)
                .map(|(member, visit, _)| (*member, *visit))
                .collect();
            let calls: Vec<_> = lab
                .calls()
                .iter()
                .filter(|call| call.undo)
                .map(|call| call.short())
                .collect();
            undos.reverse();
            if undos != stages || calls.len() != stages.len() {
                return Err(format!("committed {stages:?}, and undone, from the last, {undos:?}").into());
            }
            orders.borrow_mut().insert(stages);
            Ok(())
        })?;
        ended.done()
    })?;
    Ok(orders.into_inner())
}

#[test]
fn e_027_undo_is_the_exact_reverse_for_every_order() -> Tested {
    let orders = orders_of(race)?;
    assert!(
        orders.len() > 10 || std::env::var("SEED").is_ok(),
        "the seeds give many orders"
    );
    Ok(())
}

#[test]
fn f_002_undo_of_a_graph_is_the_exact_reverse_for_every_order() -> Tested {
    let orders = orders_of(diamond)?;
    for order in &orders {
        let mut members: Vec<u32> = order.iter().map(|(member, _)| *member).collect();
        // Between the first and the last come two stages each of b and c, in whatever order.
        members.get_mut(2..6).unwrap_or_default().sort_unstable();
        assert_eq!(members, [0, 1, 2, 2, 3, 3, 4], "{order:?}");
    }
    assert!(orders.len() > 3 || std::env::var("SEED").is_ok(), "{orders:?}");
    Ok(())
}

#[test]
fn e_027_undo_is_the_exact_reverse_of_this_order() -> Tested {
    let held = |gate: &str, act| Act::Held(gate.to_owned(), Box::new(act));
    let boom = Act::Fail("boom".to_owned());
    // a waits after its second stage, so that the third is not in flight when b fails.
    let a = plan(
        "a",
        [
            held("a1", Act::Next),
            held("a2", Act::Wait("go".to_owned(), None)),
            Act::Done(1),
        ],
    );
    let b = plan("b", [held("b1", Act::Next), held("b2", Act::Next), held("b3", boom)]);
    let root = plan("r", [spawn([a, b]), Act::Done(1)]);
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "k").await?;
        for gate in ["a1", "b1", "b2", "a2", "b3"] {
            run.settle().await;
            lab.open(gate);
        }
        rolled_back(run.wait(handle.outcome()).await?)?;
        Ok(())
    })?;
    assert_eq!(done.commits, 13);
    assert!(lab.line().ends_with("b3 b3' a2' b2' b1' a1' r1'"), "{}", lab.line());
    Ok(())
}

#[test]
fn e_036_a_crash_in_the_middle_of_rollback() -> Tested {
    let before = Fault::CrashBefore;
    let cases = [
        (
            [(5, before), (2, before), (2, before)],
            "a1 a2 a3 a3' a3' a2' a2' a1' a1'",
        ),
        (
            [(5, Fault::CrashAfter), (1, Fault::CrashAfter), (1, Fault::CrashAfter)],
            "a1 a2 a3 a3' a2' a1'",
        ),
    ];
    for (faults, calls) in cases {
        let lab = Lab::default();
        let (crashes, cause) = lives(&faults, &lab, async |run| fails(run, &failing("a", 3)).await)?;
        assert_eq!((crashes, lab.line().as_str(), cause.text.as_str()), (3, calls, "boom"));
    }
    Ok(())
}

/// Whatever it crashes at, and at whatever the next life does: a crash repeats the one body
/// whose commit it met, if it met one, and no other; no stage is undone again that was.
#[test]
fn e_036_a_crash_repeats_only_the_body_whose_commit_it_met() -> Tested {
    let drive = async |_: &Lab, run: &Run| {
        assert_eq!(fails(run, &failing("a", 3)).await?.text, "boom");
        Ok(())
    };
    let check = |lab: &Lab, faults: &[(u64, Fault)]| {
        let (mut submitted, mut repeated) = (false, 0);
        for (commit, fault) in faults {
            let lost = *fault != Fault::CrashAfter;
            match (*commit, submitted) {
                // The start's own.
                (0, _) => {}
                (1, false) => submitted = !lost,
                _ => {
                    submitted = true;
                    repeated += usize::from(lost);
                }
            }
        }
        let mut calls: Vec<String> = lab.calls().iter().map(crate::support::Call::short).collect();
        assert_eq!(calls.len(), 6 + repeated, "{calls:?}");
        calls.dedup();
        assert_eq!(calls, ["a1", "a2", "a3", "a3'", "a2'", "a1'"]);
        Ok(())
    };
    let done = each_crash(|_| Lab::default(), kinds, drive, check)?;
    assert_eq!(done.commits, 7);
    assert!(done.second > 30, "{done:?}");
    Ok(())
}
