//! Shutdowns of engines on the real store, from each state.

use std::time::Duration;

use procession::errors::{AskError, SubmitError};
use procession::provider::Clock;
use procession::{Builder, Executor};

use crate::Outcome;
use crate::census::{Census, alone, in_system};
use crate::kinds::{Gate, Gated, Holding, Parked};

fn builder(path: &std::path::Path, gate: &Gate) -> Builder {
    Executor::builder(path)
        .workers(2)
        .register::<Gated>(gate.clone())
        .register::<Holding>(gate.clone())
        .register::<Parked>(())
}

#[test]
fn a_running_engine_is_shut_down_and_everybody_is_answered() -> Outcome {
    let _alone = alone();
    in_system(async {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("journal");
        let before = Census::take()?;
        for _ in 0..5 {
            let gate = Gate::shut();
            let executor = builder(&path, &gate).start().await?;
            let out = executor.submit(Gated).await?;
            let parked = executor.submit(Parked).await?;
            let waiters = [out.id(), parked.id()].map(|id| {
                let executor = executor.clone();
                actix_rt::spawn(async move { executor.outcome(id).await })
            });
            let draining = executor.clone();
            let drain = actix_rt::spawn(async move { draining.drain(Duration::from_secs(3_600)).await });
            while !executor.snapshot().await?.draining {
                actix_rt::task::yield_now().await;
            }
            let report = executor.shutdown().await;
            assert!(report.is_clean(), "{report:?}");
            for waiter in waiters {
                let told = waiter.await?.err();
                assert!(matches!(told, Some(AskError::Stopped)), "{told:?}");
            }
            let told = drain.await?.err();
            assert!(matches!(told, Some(AskError::Stopped)), "{told:?}");
            let late = executor.submit(Parked).await.err();
            assert!(matches!(late, Some(SubmitError::Stopped)), "{late:?}");
            assert!(executor.shutdown().await.is_clean(), "a second time it is as it was");
            before.is_all_there_is().await?;
        }
        let gate = Gate::shut();
        gate.open();
        let executor = builder(&path, &gate).start().await?;
        let all = executor
            .list(procession::status::ListFilter::default(), None, 100)
            .await?;
        assert_eq!(all.items.len(), 10, "all that was acknowledged is there");
        assert!(executor.shutdown().await.is_clean());
        before.is_all_there_is().await
    })
}

#[test]
fn a_drained_engine_has_left_nothing_when_the_drain_returns() -> Outcome {
    let _alone = alone();
    in_system(async {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("journal");
        let before = Census::take()?;
        for _ in 0..5 {
            let gate = Gate::shut();
            let executor = builder(&path, &gate).start().await?;
            executor.submit(Parked).await?;
            executor.drain(Duration::from_secs(30)).await?;
            // At once, as whoever drains does to make room for a successor.
            let next = builder(&path, &gate).start().await?;
            assert!(next.shutdown().await.is_clean());
        }
        before.is_all_there_is().await
    })
}

#[test]
fn code_that_holds_its_thread_is_named_and_the_journal_is_free_all_the_same() -> Outcome {
    let _alone = alone();
    in_system(async {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("journal");
        let before = Census::take()?;
        let gate = Gate::shut();
        let executor = builder(&path, &gate).start().await?;
        let holding = executor.submit(Holding).await?;
        let clock = procession::provider::SystemClock;
        let begun = clock.now();
        while executor
            .snapshot()
            .await?
            .workers
            .iter()
            .all(|worker| worker.busy.is_none())
        {
            actix_rt::task::yield_now().await;
        }
        let report = executor.shutdown().await;
        assert!(clock.now().since(begun) < Duration::from_secs(30), "it is bounded");
        assert_eq!(report.threads, 1, "{report:?}");
        assert_eq!(report.procedures, [holding.id()]);
        assert_eq!(report.journal, None);

        let opened = Gate::shut();
        opened.open();
        let next = builder(&path, &opened).start().await?;
        next.handle::<Holding>(holding.id()).outcome().await?;
        assert!(next.shutdown().await.is_clean());

        gate.open();
        before.is_all_there_is().await?;
        assert!(executor.shutdown().await.is_clean(), "it has let go since");
        Ok(())
    })
}
