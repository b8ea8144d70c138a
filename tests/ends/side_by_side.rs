//! Four engines side by side in one process, each on a store of its own; one of the stores is reached by others as
//! well, and one of those takes it. Started and shut down round after round.

use std::sync::Arc;

use futures::future::{join_all, try_join_all};
use procession::errors::{AskError, SubmitError};
use procession::status::{DrainReport, Epoch};
use procession::testkit::{FaultPlan, MemoryDisk, MemoryStore};
use procession::{Executor, ProcedureId};

use crate::Outcome;
use crate::census::{Census, alone, in_system};
use crate::kinds::{Gate, Gated, Parked};
use crate::rounds::rounds;

/// How many engines there are.
const ENGINES: usize = 4;

fn is_moved<T>(told: &Result<T, AskError>) -> bool {
    matches!(told, Err(AskError::Moved { .. }))
}

/// An engine with work in hand, and callers who wait for it.
struct Life {
    executor: Executor,
    gate: Gate,
    gated: ProcedureId,
    parked: ProcedureId,
    waiters: Vec<actix_rt::task::JoinHandle<Result<(), AskError>>>,
}

impl Life {
    async fn start(store: MemoryStore) -> Outcome<Self> {
        let gate = Gate::shut();
        let builder = Executor::builder(Arc::new(store)).workers(1);
        let executor = builder
            .register::<Gated>(gate.clone())
            .register::<Parked>(())
            .start()
            .await?;
        let gated = executor.submit(Gated).await?.id();
        let parked = executor.submit(Parked).await?.id();
        let wait = |id: ProcedureId| {
            let executor = executor.clone();
            actix_rt::spawn(async move { executor.outcome(id).await.map(|_| ()) })
        };
        let waiters = vec![wait(gated), wait(parked)];
        Ok(Self {
            executor,
            gate,
            gated,
            parked,
            waiters,
        })
    }

    async fn shut_down(self) -> Outcome<Vec<Result<(), AskError>>> {
        let report = self.executor.shutdown().await;
        assert!(report.is_clean(), "{report:?}");
        let told = join_all(self.waiters).await;
        Ok(told.into_iter().collect::<Result<_, _>>()?)
    }
}

/// Another opener takes the store under a running engine: the engine's callers hear that it moved, and the other one
/// goes on with what was acknowledged.
async fn fence(disk: &MemoryDisk, overtaken: Life) -> Outcome {
    let other = Life::start(MemoryStore::open_shared(disk, FaultPlan::none())?).await?;
    // It learns of it from the next commit that it tries.
    overtaken.gate.open();
    let refused = overtaken.executor.submit(Parked).await.err();
    assert!(
        matches!(refused, Some(SubmitError::Moved { newer: Epoch(2) })),
        "{refused:?}"
    );
    let asked = overtaken.executor.status(overtaken.gated).await;
    assert!(is_moved(&asked), "{asked:?}");
    let drained: Result<DrainReport, _> = overtaken.executor.drain(std::time::Duration::from_secs(60)).await;
    assert!(is_moved(&drained), "{drained:?}");
    let (gated, parked) = (overtaken.gated, overtaken.parked);
    let told = overtaken.shut_down().await?;
    assert!(told.iter().all(is_moved), "{told:?}");

    other.gate.open();
    other.executor.outcome(gated).await?;
    other.executor.status(parked).await?;
    other.shut_down().await?;
    Ok(())
}

/// One round of all.
async fn round() -> Outcome {
    let shared = MemoryDisk::new();
    let overtaken = Life::start(MemoryStore::open_shared(&shared, FaultPlan::none())?).await?;
    let mut lives = Vec::new();
    for _ in 1..ENGINES {
        lives.push(Life::start(MemoryStore::open(&MemoryDisk::new(), FaultPlan::none())?).await?);
    }
    fence(&shared, overtaken).await?;
    // The others have not noticed.
    for life in &lives {
        life.gate.open();
        life.executor.outcome(life.gated).await?;
    }
    for told in try_join_all(lives.into_iter().map(Life::shut_down)).await? {
        assert!(matches!(told[..], [Ok(()), Err(AskError::Stopped)]), "{told:?}");
    }
    Ok(())
}

#[test]
fn four_engines_one_of_them_fenced_leave_nothing_however_often() -> Outcome {
    let _alone = alone();
    let rounds = rounds()?;
    in_system(async {
        let before = Census::take()?;
        for number in 0..rounds {
            round().await.map_err(|error| format!("round {number}: {error}"))?;
            let left = before.is_all_there_is().await;
            left.map_err(|error| format!("round {number}: {error}"))?;
        }
        Ok(())
    })
}
