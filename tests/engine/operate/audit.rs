//! The audit: in the verb's own commit, newest first, paged, bounded, durable.

use procession::ProcedureId;
use procession::errors::AskError;
use procession::operate::{AuditEntry, OperatorRequest, PauseScope};
use procession::testkit::{Ended, Fault, FaultPlan, Run, World};

use crate::rollback::helper::{commits, enumerate_client, submit};
use crate::support::{Act, Lab, Planned, Tested, kinds, live, live_in, plan, spawn};

const KEPT: usize = 10_000;

async fn act(run: &Run, number: u32) -> Result<(), AskError> {
    let by = OperatorRequest::new("ann", format!("act {number}"));
    run.executor.set_limit("some", Some(number), by).await.map(|_| ())
}

fn reasons(entries: &[AuditEntry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.why.as_str()).collect()
}

#[test]
fn newest_first_and_paged() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        assert!(run.executor.audit(None, 10).await?.is_empty());
        for number in 0..5 {
            act(run, number).await?;
        }
        assert_eq!(commits(run).await?, 5, "an entry costs no commit of its own");
        Ok(())
    })?;
    live_in(&world, &lab, async |run| {
        act(run, 5).await?;
        let first = run.executor.audit(None, 4).await?;
        assert_eq!(reasons(&first), ["act 5", "act 4", "act 3", "act 2"]);
        let second = run.executor.audit(first.last().map(|entry| entry.number), 4).await?;
        assert_eq!(reasons(&second), ["act 1", "act 0"]);
        let third = run.executor.audit(second.last().map(|entry| entry.number), 4).await?;
        assert!(third.is_empty());
        let verbs: Vec<_> = first.iter().map(|entry| entry.words.as_str()).collect();
        assert_eq!(verbs[0], "set the limit some to 5");
        Ok(())
    })
}

#[test]
fn the_entry_is_on_disk_exactly_when_the_verb_is() -> Tested {
    for (fault, expected) in [(Fault::CrashBefore, 0), (Fault::CrashAfter, 1)] {
        let (world, lab) = (World::new(), Lab::default());
        let root = || Planned(plan("a", [Act::Wait("go".to_owned(), None), Act::Done(1)]));
        let ended = world.run(
            FaultPlan::at(3, fault),
            |builder| kinds(&lab, builder),
            async |run| {
                let handle = submit(run, root(), "a").await?;
                run.settle().await;
                run.wait(
                    run.executor
                        .pause(PauseScope::One(handle.id()), OperatorRequest::new("ann", "look")),
                )
                .await??;
                Ok(())
            },
        )?;
        assert!(matches!(ended, Ended::Crashed));
        live_in(&world, &lab, async |run| {
            let handle = submit(run, root(), "a").await?;
            assert_eq!(handle.status().await?.paused, expected == 1);
            assert_eq!(run.executor.audit(None, 10).await?.len(), expected);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn the_oldest_go() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    live_in(&world, &lab, async |run| {
        let first = OperatorRequest::new("ann", "the first").key("first");
        run.executor.set_limit("some", Some(1), first).await?;
        for number in 0..KEPT - 1 {
            act(run, u32::try_from(number)?).await?;
        }
        let again = OperatorRequest::new("ann", "the first").key("first");
        assert_eq!(
            run.executor.set_limit("some", Some(1), again).await?.number,
            Some(0),
            "its key is known"
        );
        for number in 0..3 {
            act(run, number).await?;
        }
        Ok(())
    })?;
    live_in(&world, &lab, async |run| {
        let (mut all, mut before) = (0, None);
        loop {
            let page = run.executor.audit(before, 1_000).await?;
            let Some(last) = page.last() else { break };
            before = Some(last.number);
            all += page.len();
        }
        assert_eq!((all, before), (KEPT, Some(3)));
        // The key went with its entry: it is a new request.
        let again = OperatorRequest::new("ann", "the first").key("first");
        assert_eq!(
            run.executor.set_limit("some", Some(1), again).await?.number,
            Some(KEPT as u64 + 3)
        );
        Ok(())
    })
}

/// One entry names a hundred at most, and counts them all.
#[test]
fn an_entry_names_a_hundred_changes_and_counts_all() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let child = |name: &str| plan(name, [Act::Wait("never".to_owned(), None), Act::Done(1)]);
        let children: Vec<_> = (0..150).map(|number| child(&format!("c{number}"))).collect();
        let handle = submit(run, Planned(plan("r", [spawn(children), Act::Done(1)])), "r").await?;
        run.settle().await;
        let by = OperatorRequest::new("ann", "it hangs");
        let bypassed = procession::operate::BypassAs::Success;
        let done = run
            .executor
            .bypass(handle.id(), procession::operate::BypassScope::Descendants, bypassed, by)
            .await?;
        assert_eq!((done.changes.len(), done.changed), (100, 151));
        let entry = run.executor.audit(None, 1).await?.remove(0);
        assert_eq!((entry.changes, entry.changed), (done.changes, 151));
        Ok(())
    })
}

#[test]
fn an_abort_is_in_the_audit_and_one_that_meets_it_is_not() -> Tested {
    let root = plan("a", [Act::Wait("never".to_owned(), None), Act::Done(1)]);
    let (done, _) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(root.clone()), "a").await?;
        run.settle().await;
        if handle.status().await?.cause.is_none() {
            run.wait(
                run.executor
                    .abort(handle.id(), OperatorRequest::new("ann", "wrong table")),
            )
            .await??;
        }
        run.wait(handle.outcome()).await?.err().ok_or("it succeeded")?;
        let audit = run.executor.audit(None, 10).await?;
        assert_eq!(reasons(&audit), ["wrong table"]);
        assert_eq!(audit[0].words, format!("abort {}", handle.id()));
        Ok(())
    })?;
    assert_eq!(done.commits, 4);
    Ok(())
}

#[test]
fn a_name_or_reason_over_the_bound_is_refused() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let long = "x".repeat(1_025);
        let bys = [
            OperatorRequest::new(&*long, "w"),
            OperatorRequest::new("w", &*long),
            OperatorRequest::new("w", "w").key(&*long),
        ];
        for by in bys {
            let refused = run.executor.pause(PauseScope::All, by).await;
            assert!(
                matches!(
                    refused,
                    Err(AskError::TooLarge {
                        size: 1_025,
                        limit: 1_024
                    })
                ),
                "{refused:?}"
            );
        }
        let unknown = run
            .executor
            .retry_now(ProcedureId::root(4), OperatorRequest::new("ann", "why"))
            .await;
        assert!(matches!(unknown, Err(AskError::Unknown(_))));
        assert_eq!(commits(run).await?, 0);
        Ok(())
    })
}
