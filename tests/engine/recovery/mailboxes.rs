//! How much waits in the engine's mailboxes, and what has a worker before it counts as blocked.

use std::future::IntoFuture;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join_all;
use procession::Builder;
use procession::health::UserCall;
use procession::provider::SystemClock;
use procession::status::Mailboxes;
use procession::testkit::{FaultPlan, Run, World};

use super::blocked::{FreeAll, Grip, Holding, holding, until};
use super::metrics::limited;
use crate::support::{Act, Lab, Limited, Planned, Tested, chain, failing, kinds, plan};

/// What comes at once waits, and when all have ended nothing does.
#[test]
fn what_was_sent_and_not_taken_is_shown() -> Tested {
    let lab = Lab::default();
    let set_up = |builder: Builder| limited(&lab, builder);
    World::new()
        .run(FaultPlan::none(), set_up, async |run| {
            run.settle().await;
            assert_eq!(run.executor.mailboxes(), Mailboxes::default());
            let submit = |number: u32| {
                let plan = plan(&format!("a{number}"), [Act::Sleep(1), Act::Done(1)]);
                run.executor.submit(Limited(plan)).into_future()
            };
            let mut submits = join_all((0..20).map(submit)).boxed_local();
            assert!((&mut submits).now_or_never().is_none());
            assert_eq!(run.executor.mailboxes().supervisor, 20);
            for handle in run.wait(submits).await? {
                run.wait(handle?.outcome()).await??;
            }
            // Reports, grants, what is given back, an undo, and calls that are lost with their actors.
            let failed = run.executor.submit(Planned(failing("f", 3))).await?;
            assert!(run.wait(failed.outcome()).await?.is_err());
            run.settle().await;
            assert_eq!(run.executor.mailboxes(), Mailboxes::default());
            Ok(())
        })?
        .done()
}

/// Far below the threshold, and with others that wait for their turn behind it.
#[test]
fn what_has_a_worker_is_told_before_it_counts_as_blocked() -> Tested {
    let (lab, grip) = (Lab::default(), Grip::default());
    let _free = FreeAll(grip.clone());
    let set_up = |builder: Builder| {
        kinds(&lab, builder)
            .register::<Holding>(grip.clone())
            .clock(Arc::new(SystemClock))
            .workers(1)
            .blocked_after(Duration::from_hours(1))
    };
    let drive = async |run: &Run| {
        let a = holding(run, &grip, "a").await?;
        let snapshot = run.executor.snapshot().await?;
        let [worker] = &snapshot.workers[..] else {
            return Err("there is one worker".into());
        };
        let busy = worker.busy.as_ref().ok_or("it is busy")?;
        assert_eq!(
            (busy.procedure, busy.call, busy.stage.as_str()),
            (a.id(), UserCall::Stage, "Tight")
        );
        assert!(worker.blocked.is_none() && worker.waiting == 0);
        let others = [chain("b", 2), chain("c", 2)].map(|plan| run.executor.submit(Planned(plan)).into_future());
        let others = join_all(others).await.into_iter().collect::<Result<Vec<_>, _>>()?;
        let later = until(run, "both wait for the worker", |snapshot| {
            snapshot.workers.iter().all(|worker| worker.waiting == 2)
        })
        .await?;
        assert_eq!(run.executor.mailboxes().workers, 2);
        let time =
            |snapshot: &procession::status::Snapshot| snapshot.workers.first()?.busy.as_ref().map(|busy| busy.time);
        assert!(time(&later) > time(&snapshot), "nothing else had it meanwhile");

        grip.free("a");
        assert_eq!(a.outcome().await?, 9);
        for other in others {
            assert_eq!(other.outcome().await?, 7);
        }
        until(run, "nothing has the worker", |snapshot| {
            let rests = |worker: &procession::status::WorkerStatus| worker.busy.is_none() && worker.waiting == 0;
            snapshot.workers.iter().all(rests)
        })
        .await?;
        Ok(())
    };
    World::new().run(FaultPlan::none(), set_up, drive)?.done()
}
