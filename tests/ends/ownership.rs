//! What a store that several machines share asks of the journal: several appends under way, and ownership that is
//! renewed in time.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use procession::errors::{AskError, StartError};
use procession::status::ProcedureState;
use procession::testkit::{Fault, FaultPlan, MemoryDisk, MemoryStore};
use procession::{Builder, Executor};

use crate::Outcome;
use crate::census::{Census, PATIENCE, alone, in_system};
use crate::kinds::Parked;
use crate::slow::SlowStore;

/// How long ownership lasts here: long enough for a renewal on a busy machine.
const LEASE: Duration = Duration::from_millis(600);
/// Renewals that take longer than a lease lasts: an owner renews three times within it.
const OVER_A_LEASE: u64 = 4;

fn builder(store: &Arc<MemoryStore>) -> Builder {
    Executor::builder(Arc::clone(store))
        .workers(1)
        .merge(1)
        .register::<Parked>(())
}

/// The journal calls a store that likes three appends under way before it has answered the first, and no more than
/// three; the callers are answered once the receipts arrive.
#[test]
fn the_journal_does_not_wait_for_one_answer_before_it_makes_the_next_call() -> Outcome {
    let _alone = alone();
    in_system(async {
        let before = Census::take()?;
        let plan = FaultPlan::at(2, Fault::Withhold).under_way(3);
        let store = Arc::new(MemoryStore::open(&MemoryDisk::new(), plan)?);
        let executor = builder(&store).in_flight(8).start().await?;
        // The start and this submission are commits 0 and 1. What comes next, its stage or another submission, is
        // withheld, and so is everything behind it.
        executor.submit(Parked).await?;
        let submits: Vec<_> = (0..8)
            .map(|_| {
                let executor = executor.clone();
                actix_rt::spawn(async move { executor.submit(Parked).await.map(|handle| handle.id()) })
            })
            .collect();
        while store.commits() < 5 {
            actix_rt::task::yield_now().await;
        }
        // Whatever the supervisor has handed over, the journal waits for an answer before the fourth call.
        for _ in 0..1_000 {
            actix_rt::task::yield_now().await;
        }
        assert_eq!(store.commits(), 5);
        assert!(
            submits.iter().all(|submit| !submit.is_finished()),
            "nothing is acknowledged without a receipt"
        );
        store.release_receipts();
        let mut ids = Vec::new();
        for told in try_join_all(submits).await? {
            ids.push(told?);
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 8);
        let report = executor.shutdown().await;
        assert!(report.is_clean(), "{report:?}");
        drop((executor, store));
        before.is_all_there_is().await
    })
}

/// One of several commits under way fails: nobody hears of success, and the next engine has what was acknowledged.
#[test]
fn after_a_failure_nothing_that_was_under_way_behind_it_is_acknowledged() -> Outcome {
    let _alone = alone();
    for fault in [Fault::FailWrite, Fault::FailSync] {
        in_system(async {
            let disk = MemoryDisk::new();
            let plan = FaultPlan::at(3, fault).under_way(3);
            let store = Arc::new(MemoryStore::open(&disk, plan)?);
            let executor = builder(&store).start().await?;
            let mut acknowledged = vec![executor.submit(Parked).await?.id()];
            let submits: Vec<_> = (0..8)
                .map(|_| {
                    let executor = executor.clone();
                    actix_rt::spawn(async move { executor.submit(Parked).await.map(|handle| handle.id()) })
                })
                .collect();
            let mut failed = 0;
            for told in try_join_all(submits).await? {
                match told {
                    Ok(id) => acknowledged.push(id),
                    Err(_) => failed += 1,
                }
            }
            assert!(
                failed >= 7,
                "{fault:?}: only the commit before the failed one succeeds, {failed} failed"
            );
            let report = executor.shutdown().await;
            assert!(report.is_clean(), "{report:?}");
            drop((executor, store));
            let store = Arc::new(MemoryStore::open(&disk, FaultPlan::none())?);
            let executor = builder(&store).start().await?;
            for id in acknowledged {
                executor.status(id).await?;
            }
            executor.shutdown().await;
            Ok(())
        })?;
    }
    Ok(())
}

/// An engine that is idle learns by a renewal that another has taken its store, without a commit of its own.
#[test]
fn an_idle_engine_learns_by_its_renewals_that_it_was_fenced() -> Outcome {
    let _alone = alone();
    in_system(async {
        let before = Census::take()?;
        let disk = MemoryDisk::new();
        let plan = || FaultPlan::none().lease(LEASE);
        let first = Arc::new(MemoryStore::open_shared(&disk, plan())?);
        let overtaken = builder(&first).start().await?;
        let parked = overtaken.submit(Parked).await?.id();
        // Its first stage is a commit of its own; from then on the engine has nothing to commit.
        while overtaken.status(parked).await?.state != ProcedureState::WaitingTimeout {
            actix_rt::task::yield_now().await;
        }
        let waiter = {
            let overtaken = overtaken.clone();
            actix_rt::spawn(async move { overtaken.outcome(parked).await.map(|_| ()) })
        };
        let commits = first.commits();
        let second = Arc::new(MemoryStore::open_shared(&disk, plan())?);
        let other = builder(&second).start().await?;
        let told = waiter.await?;
        assert!(matches!(told, Err(AskError::Moved { .. })), "{told:?}");
        assert_eq!(first.commits(), commits, "it tried no commit");
        other.status(parked).await?;
        for executor in [overtaken, other] {
            let report = executor.shutdown().await;
            assert!(report.is_clean(), "{report:?}");
        }
        drop((first, second));
        before.is_all_there_is().await
    })
}

/// Starts on a store that takes long to read. If it takes too long, the store is let go, so that nothing waits any more.
async fn started(store: &Arc<SlowStore>) -> Outcome<Result<Executor, StartError>> {
    let builder = Executor::builder(Arc::clone(store)).workers(1).register::<Parked>(());
    match tokio::time::timeout(PATIENCE, builder.start()).await {
        Ok(started) => Ok(started),
        Err(late) => {
            store.free();
            Err(late.into())
        }
    }
}

/// A start that reads for longer than a lease lasts renews it meanwhile, on the thread that it was called on as beside one.
#[test]
fn a_start_that_takes_longer_than_its_lease_keeps_the_store() -> Outcome {
    let _alone = alone();
    for blocks in [false, true] {
        in_system(async {
            let before = Census::take()?;
            let disk = MemoryDisk::new();
            let store = Arc::new(SlowStore::open(&disk, LEASE, OVER_A_LEASE, blocks)?);
            let executor = started(&store).await??;
            assert!(store.renewals() >= OVER_A_LEASE);
            let parked = executor.submit(Parked).await?.id();
            executor.status(parked).await?;
            let report = executor.shutdown().await;
            assert!(report.is_clean(), "{report:?}");
            drop((executor, store));
            before.is_all_there_is().await
        })?;
    }
    Ok(())
}

/// A start whose store is taken while it reads says so at once, whatever is left to read, and leaves nothing.
#[test]
fn a_start_that_loses_the_store_while_it_reads_ends_at_once() -> Outcome {
    let _alone = alone();
    for blocks in [false, true] {
        in_system(async {
            let before = Census::take()?;
            let disk = MemoryDisk::new();
            let store = Arc::new(SlowStore::open(&disk, LEASE, u64::MAX, blocks)?);
            let slow = {
                let store = Arc::clone(&store);
                actix_rt::spawn(async move { started(&store).await.map_err(|late| late.to_string()) })
            };
            store.is_read().await;
            let plan = FaultPlan::none().lease(LEASE);
            let second = Arc::new(MemoryStore::open_shared(&disk, plan)?);
            let other = builder(&second).start().await?;
            let refused = slow.await??.err().ok_or("it started")?;
            assert!(matches!(refused, StartError::Moved { .. }), "{refused}");
            other.submit(Parked).await?;
            let report = other.shutdown().await;
            assert!(report.is_clean(), "{report:?}");
            drop((other, second, store));
            before.is_all_there_is().await
        })?;
    }
    Ok(())
}
