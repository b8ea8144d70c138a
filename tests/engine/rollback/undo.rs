//! What an undo sees and what it writes: the committed value, in the undo's own commit.

use super::helper::{enumerate_checked, rolled_back, submit};
use crate::support::{Act, Lab, Plan, Planned, Tested, UndoAct, plan};

/// Each stage pushes its number and adds to a row; each undo takes both back if they are its own.
fn counting() -> Plan {
    let add = |then| Act::Add("n".to_owned(), 1, Box::new(then));
    let take = || UndoAct::AddIfOwn("n".to_owned(), -1);
    plan("a", [add(Act::Next), add(Act::Next), add(Act::Fail("boom".to_owned()))])
        .undo(1, take())
        .undo(2, take())
        .undo(3, take())
}

fn seen_by_undos(lab: &Lab) -> Vec<(u32, Vec<u32>)> {
    let calls = lab.calls();
    calls
        .into_iter()
        .filter(|call| call.undo)
        .map(|call| (call.stage, call.value))
        .collect()
}

#[test]
fn e_038_what_an_undo_sees_and_writes() -> Tested {
    let expected = [(3, vec![1, 2]), (2, vec![1, 2]), (1, vec![1])];
    let drive = async |_: &Lab, run: &procession::testkit::Run| -> Tested {
        let handle = submit(run, Planned(counting()), "k").await?;
        rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(run.executor.get::<i64>("rows", "n").await?, Some(0));
        Ok(())
    };
    let (done, lab) = enumerate_checked(drive, |plain, crashed, crashes| {
        plain.compare(crashed, crashes)?;
        let seen = seen_by_undos(crashed);
        if seen.iter().all(|seen| expected.contains(seen)) {
            Ok(())
        } else {
            Err(format!("undos saw {seen:?}").into())
        }
    })?;
    assert_eq!(done.commits, 7);
    assert_eq!(seen_by_undos(&lab), expected);
    Ok(())
}
