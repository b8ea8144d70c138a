//! A dry run changes nothing, and lists exactly what the real one then does.

use std::future::Future;

use procession::ProcedureId;
use procession::errors::AskError;
use procession::operate::{AbortAnswer, BypassAs, BypassScope, Operated, OperatorRequest, PauseScope};
use procession::procedure::Kind;
use procession::status::{ProcedureState as State, Status};
use procession::testkit::{Run, Trouble};

use crate::rollback::helper::{commits, submit};
use crate::support::{Act, Lab, Limited, Plan, Planned, Tested, UndoAct, chain, failing, live, plan, spawn};

async fn everything(run: &Run) -> Result<(u64, Vec<Status>, usize), Trouble> {
    let commits = commits(run).await?;
    let page = run
        .executor
        .list(procession::status::ListFilter::default(), None, 1_000)
        .await?;
    Ok((commits, page.items, run.executor.audit(None, 1_000).await?.len()))
}

/// Asks first, then does it: it is one commit, and changes what was said. Returns what changed.
async fn both<F>(run: &Run, verb: impl Fn(OperatorRequest) -> F) -> Result<Operated, Trouble>
where
    F: Future<Output = Result<Operated, AskError>>,
{
    let by = || OperatorRequest::new("ann", "see first");
    let before = everything(run).await?;
    let dry = verb(by().dry_run()).await?;
    assert_eq!(dry.number, None);
    assert_eq!(everything(run).await?, before, "a dry run changes nothing");
    let done = verb(by()).await?;
    assert!(done.number.is_some());
    assert_eq!(
        (&done.changes, done.changed, &done.abort, done.reach),
        (&dry.changes, dry.changed, &dry.abort, dry.reach)
    );
    for change in &dry.changes {
        let status = before
            .1
            .iter()
            .find(|status| status.id == change.id)
            .ok_or("it is not listed")?;
        assert_eq!((status.state, &status.wait), (change.before.state, &change.before.wait));
    }
    Ok(done)
}

fn ids(operated: &Operated) -> Vec<ProcedureId> {
    operated.changes.iter().map(|change| change.id).collect()
}

fn waiting(name: &str) -> Plan {
    plan(name, [Act::Wait("never".to_owned(), None), Act::Done(1)])
}

#[test]
fn of_pause_and_resume() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(plan("a", [Act::Sleep(1_000), Act::Done(1)])), "a").await?;
        run.settle().await;
        let one = || PauseScope::One(handle.id());
        assert_eq!(
            ids(&both(run, |by| run.executor.pause(one(), by)).await?),
            [handle.id()]
        );
        run.pass(std::time::Duration::from_secs(2)).await;
        let resumed = both(run, |by| run.executor.resume(one(), by)).await?;
        assert_eq!(
            (ids(&resumed), resumed.changes[0].after.in_flight),
            (vec![handle.id()], true)
        );
        for what in [PauseScope::Kind(Kind::from("planned")), PauseScope::All] {
            // It holds nobody back yet, so it changes nobody.
            assert_eq!(both(run, |by| run.executor.pause(what.clone(), by)).await?.changed, 0);
            let held = submit(run, Planned(chain("b", 1)), &what.to_string()).await?;
            let resumed = both(run, |by| run.executor.resume(what.clone(), by)).await?;
            assert_eq!(ids(&resumed), [held.id()]);
            assert_eq!(run.wait(held.outcome()).await??, 7);
        }
        Ok(())
    })
}

#[test]
fn of_retry_now_and_abort() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let a = submit(run, Planned(plan("a", [Act::Retry(1, Box::new(Act::Done(1)))])), "a").await?;
        run.settle().await;
        both(run, |by| run.executor.retry_now(a.id(), by)).await?;
        assert_eq!(run.wait(a.outcome()).await??, 1);
        let b = submit(run, Planned(plan("b", [spawn([waiting("c")]), Act::Done(1)])), "b").await?;
        run.settle().await;
        let aborted = both(run, |by| run.executor.abort(b.id(), by)).await?;
        assert_eq!(aborted.abort, Some(AbortAnswer::WillRollBack));
        assert_eq!(aborted.changes[0].after.state, State::Failed);
        run.wait(b.outcome()).await?.err().ok_or("it succeeded")?;
        Ok(())
    })
}

#[test]
fn of_a_bypass() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(
            run,
            Planned(plan("r", [spawn([waiting("a"), waiting("b")]), Act::Done(3)])),
            "r",
        )
        .await?;
        run.settle().await;
        let (a, b) = (
            ProcedureId::new(handle.id().family, 1),
            ProcedureId::new(handle.id().family, 2),
        );
        let alone = both(run, |by| {
            run.executor.bypass(a, BypassScope::Alone, BypassAs::Success, by)
        })
        .await?;
        assert_eq!(ids(&alone), [a]);
        let last = both(run, |by| {
            run.executor.bypass_with_output(b, BypassScope::Alone, &5_i64, by)
        })
        .await?;
        assert_eq!(ids(&last), [handle.id(), b], "its parent goes on");
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        Ok(())
    })
}

#[test]
fn of_retry_undo_and_skip_undo() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let root = failing("a", 1).undo(1, UndoAct::FailUntil("never".to_owned()));
        let handle = submit(run, Planned(root), "a").await?;
        run.pass(std::time::Duration::from_secs(10)).await;
        both(run, |by| run.executor.retry_undo(handle.id(), by)).await?;
        run.pass(std::time::Duration::from_secs(10)).await;
        let skipped = both(run, |by| run.executor.skip_undo(handle.id(), by)).await?;
        assert_eq!(skipped.changes[0].after.state, State::RolledBack);
        Ok(())
    })
}

#[test]
fn of_override_priority_and_limit() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let ended = submit(run, Planned(chain("a", 1)), "a").await?;
        run.wait(ended.outcome()).await??;
        both(run, |by| run.executor.override_result(ended.id(), &9_i64, by)).await?;
        assert_eq!(ended.outcome().await?, 9);
        both(run, |by| run.executor.set_limit("limited", Some(1), by)).await?;
        assert_eq!(run.executor.limits().await?.len(), 1);
        let holder = submit(run, Limited(waiting("h")), "h").await?;
        let waiter = submit(run, Limited(chain("w", 1)), "w").await?;
        both(run, |by| run.executor.set_priority(waiter.id(), 5, by)).await?;
        assert_eq!(waiter.status().await?.priority, 5);
        assert!(!lab.has("w1"));
        assert_eq!(holder.status().await?.priority, 0);
        Ok(())
    })
}

/// A dry run is refused as the real one would be.
#[test]
fn of_what_would_be_refused() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(waiting("a")), "a").await?;
        run.settle().await;
        let (id, before) = (handle.id(), everything(run).await?);
        let dry = || OperatorRequest::new("ann", "see first").dry_run();
        assert!(matches!(
            run.executor.retry_now(id, dry()).await,
            Err(AskError::NotNow { .. })
        ));
        assert!(matches!(
            run.executor.resume(PauseScope::One(id), dry()).await,
            Err(AskError::NotNow { .. })
        ));
        assert!(matches!(
            run.executor.skip_undo(id, dry()).await,
            Err(AskError::NotNow { .. })
        ));
        assert!(matches!(
            run.executor.override_result(id, &1_i64, dry()).await,
            Err(AskError::NotNow { .. })
        ));
        let unknown = ProcedureId::root(9);
        assert!(matches!(
            run.executor.abort(unknown, dry()).await,
            Err(AskError::Unknown(_))
        ));
        assert_eq!(everything(run).await?, before);
        Ok(())
    })
}
