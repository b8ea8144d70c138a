//! The output of one that succeeded is replaced: who asks from then on gets the new one.

use std::time::Duration;

use procession::ProcedureId;
use procession::errors::{AskError, NotNow, ProcedureError};
use procession::operate::{BypassScope, OperatorRequest};
use procession::status::Mark;
use procession::testkit::{Run, World};

use super::bypass::bypass;
use super::pause::by;
use crate::rollback::helper::{commits, enumerate_client, submit};
use crate::support::{Act, Lab, Planned, Tested, chain, live, live_in, plan, spawn};

#[test]
fn of_a_finished_root() -> Tested {
    let (done, lab) = enumerate_client(async |_, run| {
        let handle = submit(run, Planned(chain("a", 1)), "a").await?;
        run.wait(handle.outcome()).await??;
        run.settle().await;
        run.wait(run.executor.override_result(handle.id(), &9_i64, by("override")))
            .await??;
        assert_eq!(handle.outcome().await?, 9);
        assert_eq!(handle.status().await?.mark, Some(Mark::Overridden));
        Ok(())
    })?;
    assert_eq!((done.commits, lab.line().as_str()), (3, "a1"));
    Ok(())
}

#[test]
fn it_survives_a_restart_and_goes_with_the_result() -> Tested {
    let (world, lab) = (World::new(), Lab::default());
    let id = live_in(&world, &lab, async |run| {
        let handle = submit(run, Planned(chain("a", 1)), "a").await?;
        run.wait(handle.outcome()).await??;
        run.pass(Duration::from_secs(600)).await;
        run.executor
            .override_result(handle.id(), &9_i64, OperatorRequest::new("ann", "wrong"))
            .await?;
        Ok(handle.id())
    })?;
    live_in(&world, &lab, async |run| {
        assert_eq!(run.executor.outcome(id).await?.output::<i64>()?, Some(9));
        run.pass(Duration::from_secs(299)).await;
        assert_eq!(run.executor.outcome(id).await?.output::<i64>()?, Some(9));
        run.pass(Duration::from_secs(2)).await;
        assert!(
            matches!(run.executor.outcome(id).await, Err(AskError::Unknown(_))),
            "it is kept no longer for it"
        );
        let before = commits(run).await?;
        let gone = run
            .executor
            .override_result(id, &1_i64, OperatorRequest::new("ann", "wrong"))
            .await;
        assert!(matches!(gone, Err(AskError::Unknown(other)) if other == id), "{gone:?}");
        assert_eq!(commits(run).await?, before);
        Ok(())
    })
}

/// Its parent has not looked yet, and sees the new output.
#[test]
fn of_a_child_in_a_live_family() -> Tested {
    let children = [
        chain("a", 1),
        plan("b", [Act::Wait("go".to_owned(), None), Act::Done(2)]),
    ];
    let root = plan("r", [spawn(children), Act::See(Box::new(Act::Done(3)))]);
    let (done, lab) = enumerate_client(async |lab, run| {
        let handle = submit(run, Planned(root.clone()), "r").await?;
        run.settle().await;
        let (a, b) = (
            ProcedureId::new(handle.id().family, 1),
            ProcedureId::new(handle.id().family, 2),
        );
        run.wait(run.executor.override_result(a, &9_i64, by("override")))
            .await??;
        match run.wait(run.executor.signal(b, "go", &1_i64).key("go")).await? {
            Ok(_) | Err(AskError::Finished { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        assert_eq!(run.wait(handle.outcome()).await??, 3);
        assert!(lab.noted().contains(&"r2 saw 1 Success Some(9) None".to_owned()));
        Ok(())
    })?;
    // Submit, r1, a1, b1, override, signal, b2, r2.
    assert_eq!((done.commits, lab.line().as_str()), (8, "r1 a1 b1 b2 r2"));
    Ok(())
}

#[test]
fn of_what_has_not_succeeded_is_refused() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run: &Run| {
        let live = submit(run, Planned(plan("a", [Act::Wait("go".to_owned(), None)])), "a").await?;
        let failed = submit(run, Planned(crate::support::failing("b", 1)), "b").await?;
        run.wait(failed.outcome()).await?.err().ok_or("it succeeded")?;
        for id in [live.id(), failed.id()] {
            let refused = run
                .executor
                .override_result(id, &1_i64, OperatorRequest::new("ann", "wrong"))
                .await;
            assert!(
                matches!(&refused, Err(AskError::NotNow { kind: NotNow::NotSucceeded, text: why }) if why.contains("that succeeded")),
                "{refused:?}"
            );
        }
        let unknown = run
            .executor
            .override_result(ProcedureId::root(9), &1_i64, OperatorRequest::new("ann", "wrong"))
            .await;
        assert!(matches!(unknown, Err(AskError::Unknown(_))));
        let ended = submit(run, Planned(chain("c", 1)), "c").await?;
        run.wait(ended.outcome()).await??;
        let large = run
            .executor
            .override_result(ended.id(), &vec![0_u8; 2 << 20], OperatorRequest::new("ann", "wrong"))
            .await;
        assert!(matches!(large, Err(AskError::TooLarge { .. })));
        Ok(())
    })
}

/// The revision that the operator saw counts for a finished root as well.
#[test]
fn an_older_revision_of_a_finished_root_is_refused() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(chain("a", 1)), "a").await?;
        run.wait(handle.outcome()).await??;
        let seen = handle.status().await?.revision;
        let expecting = || OperatorRequest::new("ann", "wrong").expecting(seen);
        run.executor.override_result(handle.id(), &8_i64, expecting()).await?;
        let now = handle.status().await?;
        let refused = run.executor.override_result(handle.id(), &9_i64, expecting()).await;
        let fits = matches!(refused, Err(AskError::Revised { expected, found, state })
            if (expected, found, state) == (seen, now.revision, now.state));
        assert!(fits, "{refused:?}");
        assert_eq!(handle.outcome().await?, 8);
        Ok(())
    })
}

/// One that was bypassed gets an output later, and stays marked as it was.
#[test]
fn of_one_that_was_bypassed() -> Tested {
    let lab = Lab::default();
    live(&lab, async |run| {
        let handle = submit(run, Planned(plan("a", [Act::Wait("go".to_owned(), None)])), "a").await?;
        run.settle().await;
        bypass(run, handle.id(), BypassScope::Alone).await?;
        assert!(matches!(handle.outcome().await, Err(ProcedureError::Bypassed)));
        run.executor
            .override_result(handle.id(), &4_i64, OperatorRequest::new("ann", "known by now"))
            .await?;
        assert_eq!(handle.outcome().await?, 4);
        assert_eq!(handle.status().await?.mark, Some(Mark::Bypassed));
        Ok(())
    })
}
