//! Starts that fail end by themselves what they had begun.

use std::sync::Arc;
use std::time::Duration;

use procession::Executor;
use procession::errors::{StartError, StoreError};
use procession::procedure::Noop;
use procession::provider::{Clock, JournalStore, SystemClock};
use procession::testkit::{Fault, FaultPlan, MemoryDisk, MemoryStore};

use crate::Outcome;
use crate::census::{Census, alone, in_system};

/// How many looks in a row tell the same when nothing starts any more.
const LOOKS: u32 = 10;

impl Census {
    /// Takes a census of what runs: again until several in a row tell the same, because a new thread bears its parent's
    /// name until it first runs.
    pub(crate) async fn of_what_runs() -> Outcome<Self> {
        let (clock, mut last, mut same) = (SystemClock, Self::take()?, 0);
        while same < LOOKS {
            clock.sleep_until(clock.now().after(Duration::from_millis(1))).await;
            let now = Self::take()?;
            same = if now == last { same + 1 } else { 0 };
            last = now;
        }
        Ok(last)
    }

    /// Waits until nothing is there but what was there at this census, and workers of the engine that runs meanwhile:
    /// its reads start them, and its runtime ends them when they have been idle for ten seconds.
    pub(crate) async fn is_all_but_workers(&self) -> Outcome {
        self.until(|now, before| {
            now.clone()
                .without_workers()
                .is_within(&before.clone().without_workers())
        })
        .await
    }

    /// Leaves out the threads on which a runtime runs what blocks.
    fn without_workers(mut self) -> Self {
        self.threads.remove("tokio-rt-worker");
        self
    }
}

#[test]
fn a_start_whose_first_commit_fails_leaves_nothing_and_the_next_one_starts() -> Outcome {
    let _alone = alone();
    in_system(async {
        let before = Census::take()?;
        for fault in [Fault::FailWrite, Fault::FailSync, Fault::FailNoSpace] {
            let disk = MemoryDisk::new();
            let store: Arc<dyn JournalStore> = Arc::new(MemoryStore::open(&disk, FaultPlan::at(0, fault))?);
            let started = Executor::builder(store).register::<Noop>(()).start().await;
            let refused = started.err().ok_or("it started")?;
            assert!(matches!(refused, StartError::Journal(_)), "{refused}");
            // The failed start was the store's last owner.
            let again = MemoryStore::open(&disk, FaultPlan::none())?;
            drop(again);
            before.is_all_there_is().await?;
        }
        Ok(())
    })
}

#[test]
fn a_second_start_on_a_directory_is_refused_and_leaves_nothing() -> Outcome {
    let _alone = alone();
    in_system(async {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("journal");
        let before = Census::take()?;
        let first = Executor::builder(&path).register::<Noop>(()).start().await?;
        let running = Census::of_what_runs().await?;
        for _ in 0..3 {
            let second = Executor::builder(&path).register::<Noop>(()).start().await;
            let refused = second.err().ok_or("two engines have one directory")?;
            assert!(
                matches!(refused, StartError::Store(StoreError::Held { .. })),
                "{refused}"
            );
            running.is_all_but_workers().await?;
        }
        first.drain(Duration::from_secs(10)).await?;
        before.is_all_there_is().await
    })
}
