//! Retry now: a backoff ends at once.

use std::time::Duration;

use procession::errors::{AskError, NotNow};
use procession::operate::OperatorRequest;
use procession::procedure::Timestamp;
use procession::status::{CauseKind, Ending, ProcedureState as State, WaitReason};
use procession::testkit::Run;

use super::pause::by;
use crate::rollback::helper::{commits, enumerate_client, rolled_back, submit};
use crate::support::{Act, Lab, Patient, Planned, Tested, UndoAct, failing, live, plan};

#[test]
fn e_058_dry_run_then_retry_now_and_the_audit() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run: &Run| {
        // The third backoff of five attempts is 4 s.
        let hour = submit(run, Patient(plan("a", [Act::Retry(3, Box::new(Act::Done(1)))])), "a").await?;
        let waits = submit(
            run,
            Planned(plan("b", [Act::Wait("go".to_owned(), None), Act::Done(2)])),
            "b",
        )
        .await?;
        run.pass(Duration::from_secs(3)).await;
        let before = (commits(run).await?, hour.status().await?);
        assert!(matches!(
            before.1.wait,
            Some(WaitReason::Backoff(3, Timestamp(7_000_000)))
        ));

        let ann = || OperatorRequest::new("ann", "the disk is back");
        let dry = run.executor.retry_now(hour.id(), ann().dry_run()).await?;
        assert_eq!((dry.number, dry.changed, dry.changes.len()), (None, 1, 1));
        assert_eq!(dry.changes[0].id, hour.id());
        assert!(matches!(dry.changes[0].before.wait, Some(WaitReason::Backoff(3, _))));
        assert_eq!(
            (dry.changes[0].after.state, dry.changes[0].after.in_flight),
            (State::Runnable, true)
        );
        assert_eq!(
            (commits(run).await?, hour.status().await?),
            before,
            "nothing has changed"
        );

        let none = run.executor.retry_now(waits.id(), ann().dry_run()).await;
        let text = format!(
            "{} is in no backoff, and asks nothing; there is nothing to retry",
            waits.id()
        );
        assert!(
            matches!(&none, Err(AskError::NotNow { kind: NotNow::NothingToRetry, text: why }) if *why == text),
            "{none:?}"
        );
        assert!(
            matches!(&run.executor.retry_now(waits.id(), ann()).await, Err(AskError::NotNow { kind: NotNow::NothingToRetry, text: why }) if *why == text)
        );
        assert_eq!(commits(run).await?, before.0);

        let done = run.executor.retry_now(hour.id(), ann()).await?;
        assert_eq!((done.number, &done.changes), (Some(0), &dry.changes));
        assert_eq!(run.wait(hour.outcome()).await??, 1);
        assert_eq!(run.now(), Timestamp(3_000_000), "at once");
        // The verb with its audit, and the stage.
        assert_eq!(commits(run).await?, before.0 + 2);
        assert_eq!(lab.line(), "a1 b1 a1 a1 a1", "it used one attempt");

        let audit = run.executor.audit(None, 10).await?;
        assert_eq!(audit.len(), 1, "neither a dry run nor a refusal leaves an entry");
        let entry = &audit[0];
        assert_eq!((entry.who.as_str(), entry.why.as_str()), ("ann", "the disk is back"));
        assert_eq!(
            (entry.words.clone(), entry.target),
            (format!("retry {} now", hour.id()), Some(hour.id()))
        );
        assert_eq!(
            (entry.at, &entry.changes, entry.changed),
            (Timestamp(3_000_000), &dry.changes, 1)
        );
        Ok(())
    })
}

#[test]
fn e_058_retry_now_through_crashes() -> Tested {
    let root = plan("a", [Act::Retry(1, Box::new(Act::Done(1)))]);
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.settle().await;
        run.wait(run.executor.retry_now(handle.id(), by("retry"))).await??;
        assert_eq!(run.wait(handle.outcome()).await??, 1);
        assert_eq!(run.now(), Timestamp(0));
        let audit = run.executor.audit(None, 10).await?;
        assert_eq!(audit.len(), 1, "it took effect once");
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (4, "a1 a1"));
    Ok(())
}

/// It is the attempt that would have come, not one more.
#[test]
fn the_last_attempt_is_the_last() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(plan("a", [Act::Retry(9, Box::new(Act::Done(1)))])), "a").await?;
        for _ in 0..2 {
            run.settle().await;
            run.executor
                .retry_now(handle.id(), OperatorRequest::new("ann", "again"))
                .await?;
        }
        let (cause, _) = rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!((cause.kind, run.now()), (CauseKind::AttemptsExhausted, Timestamp(0)));
        Ok(())
    })?;
    assert_eq!(lab.line(), "a1 a1 a1 a1'");
    Ok(())
}

#[test]
fn the_backoff_of_an_undo_ends_at_once_too() -> Tested {
    let root = failing("a", 1).undo(1, UndoAct::Fail(1));
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.settle().await;
        run.wait(run.executor.retry_now(handle.id(), by("retry"))).await??;
        rolled_back(run.wait(handle.outcome()).await?)?;
        assert_eq!(run.now(), Timestamp(0));
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (5, "a1 a1' a1'"));
    Ok(())
}

/// One more attempt of an undo, and not all of them again.
#[test]
fn a_failed_rollback_is_retried_with_its_attempts_counted() -> Tested {
    let root = failing("a", 1).undo(1, UndoAct::FailUntil("never".to_owned()));
    let (_, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.pass(Timestamp(10_000_000).since(run.now())).await;
        run.wait(run.executor.retry_now(handle.id(), by("retry"))).await??;
        run.settle().await;
        assert_eq!(handle.status().await?.wait, Some(WaitReason::RollbackFailed));
        Ok(())
    })?;
    assert_eq!(lab.count("a1'"), 4);
    Ok(())
}

/// Retry and skip of a rollback that failed, as verbs with a key.
#[test]
fn a_failed_rollback_is_retried_and_skipped_once() -> Tested {
    let root = failing("a", 2).undo(2, UndoAct::FailUntil("never".to_owned()));
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.pass(Timestamp(10_000_000).since(run.now())).await;
        run.wait(run.executor.retry_undo(handle.id(), by("retry"))).await??;
        run.pass(Timestamp(20_000_000).since(run.now())).await;
        run.wait(run.executor.skip_undo(handle.id(), by("skip"))).await??;
        rolled_back(run.wait(handle.outcome()).await?)?;
        let verbs: Vec<String> = run
            .executor
            .audit(None, 10)
            .await?
            .into_iter()
            .map(|entry| entry.words)
            .collect();
        assert_eq!(
            verbs,
            [
                format!("skip the undo of {}", handle.id()),
                format!("retry the undo of {}", handle.id())
            ]
        );
        let history = run.executor.history(handle.id()).await?;
        assert_eq!(
            history
                .iter()
                .filter(|entry| entry.ending == Ending::UndoSkipped)
                .count(),
            1
        );
        Ok(())
    })?;
    // Submit, two stages, three undos and two backoffs twice, retry, skip, the last undo.
    assert_eq!(done.commits, 3 + 5 + 1 + 5 + 1 + 1);
    assert_eq!(lab.count("a2'"), 6);
    Ok(())
}
