//! A pause while families roll back: undos stop, and go on at the resume in their order.

use std::time::Duration;

use procession::operate::PauseScope;
use procession::procedure::Kind;
use procession::status::{ProcedureState as State, WaitReason};
use procession::testkit::Run;

use super::pause::{pause, paused, resume};
use crate::rollback::helper::{enumerate_client, rolled_back, submit};
use crate::support::{Act, Lab, Patient, Plan, Planned, Tested, UndoAct, chain, failing, live, live_in, plan};

fn held_undo(name: &str) -> Plan {
    failing(name, 3).undo(3, UndoAct::Held(name.to_owned()))
}

#[test]
fn undos_stop_and_go_on_in_the_right_order() -> Tested {
    for what in [PauseScope::Kind(Kind::from("planned")), PauseScope::All] {
        let (done, lab) = enumerate_client(async |lab, run| {
            let a = submit(run, Planned(held_undo("a")), "a").await?;
            run.settle().await;
            pause(run, &what).await?;
            lab.open("a");
            run.settle().await;
            if !lab.is_open("resumed") {
                run.pass(Duration::from_secs(3600)).await;
                let status = a.status().await?;
                assert_eq!((status.state, status.wait), (State::Failed, Some(WaitReason::Paused)));
                assert_eq!((lab.has("a3'"), lab.has("a2'")), (true, false));
            }
            lab.open("resumed");
            resume(run, &what).await?;
            rolled_back(run.wait(a.outcome()).await?)?;
            Ok(())
        })?;
        // Submit, three stages, pause, three undos, resume: the first undo's commit holds the next back.
        assert_eq!((done.commits, lab.line().as_str()), (9, "a1 a2 a3 a3' a2' a1'"));
    }
    Ok(())
}

#[test]
fn several_families_go_on_side_by_side() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run: &Run| {
        let a = submit(run, Planned(held_undo("a")), "a").await?;
        let b = submit(run, Planned(held_undo("b")), "b").await?;
        run.settle().await;
        pause(run, &PauseScope::All).await?;
        lab.open("b");
        run.settle().await;
        run.pass(Duration::from_secs(1)).await;
        lab.open("a");
        run.settle().await;
        assert!(paused(run, a.id()).await? && paused(run, b.id()).await?);
        resume(run, &PauseScope::All).await?;
        rolled_back(run.wait(a.outcome()).await?)?;
        rolled_back(run.wait(b.outcome()).await?)?;
        Ok(())
    })?;
    let undos: Vec<String> = lab
        .line()
        .split(' ')
        .filter(|call| call.ends_with('\''))
        .map(str::to_owned)
        .collect();
    // b was held back first, so it goes first.
    assert_eq!(undos.join(" "), "a3' b3' b2' a2' b1' a1'");
    Ok(())
}

/// Only the undos of the kind that is paused are held back, and all that come after them.
#[test]
fn a_member_of_a_paused_kind_holds_its_familys_rollback_up() -> Tested {
    let child = failing("c", 1).undo(1, UndoAct::Held("gate".to_owned()));
    let join = procession::procedure::JoinPolicy::AllSucceeded;
    let root = plan(
        "r",
        [Act::Next, Act::Spawn(vec![chain("b", 2), child], join, 1), Act::Done(1)],
    );
    let kind = PauseScope::Kind(Kind::from("patient"));
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Patient(root.clone()), "r").await?;
        run.settle().await;
        pause(run, &kind).await?;
        lab.open("gate");
        run.settle().await;
        if !lab.is_open("resumed") {
            assert!(paused(run, handle.id()).await?);
            assert_eq!((lab.has("c1'"), lab.has("r2'")), (true, false));
        }
        lab.open("resumed");
        resume(run, &kind).await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        Ok(())
    })?;
    // Submit, r1, r2, b1, b2, c1, pause, c1', resume, r2', r1'.
    assert_eq!((done.commits, lab.line().as_str()), (11, "r1 r2 b1 b2 c1 c1' r2' r1'"));
    Ok(())
}

/// A backoff of an undo ends while it is paused.
#[test]
fn an_undo_in_backoff_is_tried_again_at_the_resume() -> Tested {
    let root = failing("a", 1).undo(1, UndoAct::Fail(1));
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.settle().await;
        let one = PauseScope::One(handle.id());
        pause(run, &one).await?;
        if !lab.is_open("resumed") {
            run.pass(Duration::from_secs(3600)).await;
            assert!(paused(run, handle.id()).await?);
            assert_eq!(lab.count("a1'").min(1), 1);
        }
        lab.open("resumed");
        resume(run, &one).await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        Ok(())
    })?;
    // Submit, a1, an undo that fails, pause, the end of the backoff, resume, the undo.
    assert_eq!((done.commits, lab.line().as_str()), (7, "a1 a1' a1'"));
    Ok(())
}

#[test]
fn a_restart_in_between_changes_nothing() -> Tested {
    let (world, lab) = (procession::testkit::World::new(), Lab::default());
    let id = live_in(&world, &lab, async |run| {
        let a = submit(run, Planned(held_undo("a")), "a").await?;
        run.settle().await;
        pause(run, &PauseScope::All).await?;
        lab.open("a");
        run.settle().await;
        Ok(a.id())
    })?;
    for _ in 0..2 {
        live_in(&world, &lab, async |run| {
            run.pass(Duration::from_secs(3600)).await;
            assert!(paused(run, id).await?);
            Ok(())
        })?;
    }
    live_in(&world, &lab, async |run| {
        resume(run, &PauseScope::All).await?;
        run.settle().await;
        assert_eq!(run.executor.status(id).await?.state, State::RolledBack);
        Ok(())
    })?;
    assert_eq!(lab.line(), "a1 a2 a3 a3' a2' a1'");
    Ok(())
}
