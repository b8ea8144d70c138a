//! The times of a history entry: queued, admitted if it had to wait for that, begun, ended.

use std::future::IntoFuture;
use std::time::Duration;

use procession::ProcedureId;
use procession::operate::OperatorRequest;
use procession::procedure::Timestamp;
use procession::status::{Ending, HistoryEntry, ProcedureState, WaitReason};
use procession::testkit::{Run, Trouble};

use crate::support::{Act, Holding, Lab, Planned, Tested, UndoAct, live, plan, spawn};

const SECOND: Duration = Duration::from_secs(1);

fn second(second: u64) -> Timestamp {
    Timestamp(second * 1_000_000)
}

async fn submit(run: &Run, procedure: Planned) -> Result<ProcedureId, Trouble> {
    let handle = run.wait(run.executor.submit(procedure).into_future()).await??;
    run.settle().await;
    Ok(handle.id())
}

fn times(entry: &HistoryEntry) -> (Timestamp, Option<Timestamp>, Timestamp, Timestamp) {
    (entry.queued, entry.admitted, entry.begun, entry.ended)
}

#[test]
fn e_114_an_entry_tells_when_it_was_queued_and_admitted() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let held = plan("a", [Act::Held("a".to_owned(), Box::new(Act::Done(1)))]).exclusive("t");
        let first = submit(run, Planned(held)).await?;
        run.pass(SECOND).await;
        let waits = plan("b", [Act::Next, Act::Held("b".to_owned(), Box::new(Act::Done(1)))]).exclusive("t");
        let second_one = submit(run, Planned(waits)).await?;
        run.pass(SECOND * 2).await;
        lab.open("a");
        run.settle().await;
        run.pass(SECOND * 4).await;
        lab.open("b");
        run.settle().await;
        let history = run.executor.history(first).await?;
        assert_eq!(
            history.iter().map(times).collect::<Vec<_>>(),
            [(second(0), None, second(0), second(3))],
            "it had not to wait"
        );
        let history = run.executor.history(second_one).await?;
        assert_eq!(
            history.iter().map(times).collect::<Vec<_>>(),
            [
                (second(1), Some(second(3)), second(3), second(3)),
                (second(3), None, second(3), second(7)),
            ]
        );
        Ok(())
    })
}

#[test]
fn e_114_a_permit_waited_for_is_told_across_a_pause_of_the_limit() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        run.executor
            .set_limit("planned", Some(0), OperatorRequest::new("ann", "a test"))
            .await?;
        let id = submit(run, Planned(plan("a", [Act::Done(1)]))).await?;
        let waits = run.executor.status(id).await?;
        assert_eq!(waits.wait, Some(WaitReason::Permit("planned".into())));
        assert_eq!(
            waits.next,
            "stage 1 runs once a permit of planned is free and its turn has come"
        );
        run.pass(SECOND * 5).await;
        run.executor
            .set_limit("planned", Some(1), OperatorRequest::new("ann", "a test"))
            .await?;
        run.settle().await;
        let history = run.executor.history(id).await?;
        assert_eq!(
            history.iter().map(times).collect::<Vec<_>>(),
            [(second(0), Some(second(5)), second(5), second(5))]
        );
        Ok(())
    })
}

/// A root whose child is compensated; the child's undo needs the lock that a stranger has by then.
async fn fails_behind_a_stranger(lab: &Lab, run: &Run) -> Result<ProcedureId, Trouble> {
    let child = plan("c", [Act::Done(1)]).exclusive("t").compensated();
    let fails = Act::Held("fail".to_owned(), Box::new(Act::Fail("boom".to_owned())));
    let root = submit(run, Planned(plan("r", [spawn([child]), fails]))).await?;
    let stranger = plan("s", [Act::Held("s".to_owned(), Box::new(Act::Done(1)))]).exclusive("t");
    submit(run, Planned(stranger)).await?;
    run.pass(SECOND).await;
    lab.open("fail");
    run.settle().await;
    let waits = run.executor.status(root).await?;
    assert_eq!(waits.wait, Some(WaitReason::Lock("t".into())));
    assert_eq!(waits.next, "its rollback continues once the lock t is free");
    run.pass(SECOND).await;
    lab.open("s");
    run.settle().await;
    Ok(root)
}

#[test]
fn e_114_an_undo_tells_how_long_it_waited_for_its_lock() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let root = fails_behind_a_stranger(&lab, run).await?;
        assert_eq!(run.executor.status(root).await?.state, ProcedureState::RolledBack);
        let history = run.executor.history(root).await?;
        let undos: Vec<_> = history
            .iter()
            .filter(|entry| entry.ending == Ending::Undone)
            .map(|entry| (entry.member, times(entry)))
            .collect();
        let at = |queued, admitted, begun| (second(queued), admitted, second(begun), second(begun));
        assert_eq!(
            undos,
            [(0, at(1, None, 1)), (1, at(1, Some(second(2)), 2)), (0, at(2, None, 2)),]
        );
        Ok(())
    })
}

#[test]
fn e_114_an_undo_tells_when_its_backoff_was_over() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let fails = plan("f", [Act::Fail("boom".to_owned())]).undo(1, UndoAct::Fail(1));
        let handle = run.wait(run.executor.submit(Holding(fails)).into_future()).await??;
        run.wait(handle.outcome()).await?.ok();
        let history = run.executor.history(handle.id()).await?;
        let told: Vec<_> = history
            .iter()
            .map(|entry| (entry.ending, entry.queued, entry.begun))
            .collect();
        assert_eq!(
            told,
            [
                (Ending::Fail, second(0), second(0)),
                (Ending::UndoFailed, second(0), second(0)),
                (Ending::Undone, second(1), second(1)),
            ]
        );
        Ok(())
    })
}
