//! A failure that leaves nothing to read: the undo of a first stage follows at once, to the actor that has failed, and
//! a family with nothing to undo ends in the commit that fails.

use procession::procedure::JoinPolicy;
use procession::status::ProcedureState;

use super::helper::{enumerate_checked, enumerate_client, rolled_back, states, submit};
use crate::support::{Act, Lab, Planned, Tested, chain, end, enumerate_plan, failing, plan, spawn};

fn boom() -> Act {
    Act::Fail("boom".to_owned())
}

fn seen_by_undos(lab: &Lab) -> Vec<Vec<u32>> {
    let undos = lab.calls().into_iter().filter(|call| call.undo);
    undos.map(|call| call.value).collect()
}

/// The one stage adds its number to the value, and then fails in this way.
fn undo_sees(last: &Act, value: &[u32], commits: u64) -> Tested {
    let drive = async |_: &Lab, run: &procession::testkit::Run| -> Tested {
        let outcome = end(run, Planned(plan("a", [last.clone()])), "k").await?;
        rolled_back(outcome)?;
        Ok(())
    };
    let (done, lab) = enumerate_checked(drive, |plain, crashed, crashes| {
        plain.compare(crashed, crashes)?;
        let seen = seen_by_undos(crashed);
        if seen.iter().all(|seen| seen == value) {
            Ok(())
        } else {
            Err(format!("after {last:?} undos saw {seen:?}").into())
        }
    })?;
    assert_eq!(done.commits, commits, "{last:?}");
    assert_eq!(seen_by_undos(&lab), [value], "{last:?}");
    Ok(())
}

#[test]
fn the_undo_of_a_first_stage_sees_the_value_as_it_was_committed() -> Tested {
    undo_sees(&boom(), &[], 3)?;
    undo_sees(&Act::Retry(9, Box::new(boom())), &[], 7)?;
    undo_sees(&Act::Panic(9, Box::new(boom())), &[], 7)?;
    undo_sees(&Act::GiveUp("boom".to_owned()), &[1], 3)
}

#[test]
fn the_undo_of_a_stage_that_was_refused_sees_nothing_of_it() -> Tested {
    let gives_up = Box::new(Act::GiveUp("boom".to_owned()));
    undo_sees(&Act::AddChild(Box::new(chain("c", 1)), gives_up), &[], 3)
}

#[test]
fn children_that_fail_are_undone_one_by_one() -> Tested {
    let children = ["a", "b", "c"].map(|name| failing(name, 1));
    let all = Act::Spawn(children.into(), JoinPolicy::AllFinished, 0);
    let (done, lab) = enumerate_plan(&plan("r", [all, Act::Done(1)]))?;
    assert_eq!(
        done.commits, 9,
        "the submission, the spawn, three failures, three undos, the end"
    );
    for call in ["a1", "a1'", "b1", "b1'", "c1", "c1'", "r1", "r2"] {
        assert_eq!(lab.count(call), 1, "{call}");
    }
    Ok(())
}

#[test]
fn a_family_of_which_nothing_can_be_undone_ends_in_the_commit_that_fails() -> Tested {
    let child = plan("c", [boom()]).without_rollback();
    let root = plan("r", [Act::NothingToUndo(Box::new(spawn([child]))), Act::Done(1)]);
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "k").await?;
        let (cause, not_undone) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(cause.text, "boom");
        assert_eq!(not_undone.iter().map(|left| left.member).collect::<Vec<_>>(), [1]);
        let ends = states(run, handle.id()).await?;
        assert_eq!(ends, [ProcedureState::RolledBack, ProcedureState::Failed]);
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (3, "r1 c1"));
    Ok(())
}
