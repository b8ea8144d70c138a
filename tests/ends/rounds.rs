//! Two engines side by side in one process, failed in every way, shut down and started again, round after round.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{join, join_all};
use procession::errors::{AskError, StartError, StoreError, SubmitError};
use procession::status::DrainReport;
use procession::testkit::{Fault, FaultPlan, MemoryDisk, MemoryStore};
use procession::{Executor, ProcedureId};

use crate::Outcome;
use crate::census::{Census, alone, in_system};
use crate::kinds::{Gate, Gated, Parked};

/// How many rounds there are, unless the variable says.
const ROUNDS: usize = 20;
const ROUNDS_VARIABLE: &str = "PROCESSION_END_ROUNDS";

pub(crate) fn rounds() -> Outcome<usize> {
    let given = std::env::var(ROUNDS_VARIABLE).ok();
    Ok(given.map_or(Ok(ROUNDS), |text| text.parse())?)
}

/// How an engine comes to its end.
#[derive(Clone, Copy, Debug)]
enum Way {
    Runs,
    FullDisk,
    FailingSync,
    SecondOpener,
    FailedStart,
    FailedDrain,
}

const WAYS: [Way; 6] = [
    Way::Runs,
    Way::FullDisk,
    Way::FailingSync,
    Way::SecondOpener,
    Way::FailedStart,
    Way::FailedDrain,
];

impl Way {
    /// The faults of the first life; what fails is one of the first commits behind the start's own.
    fn plan(self, round: usize) -> FaultPlan {
        let early = 1 + (round % 5) as u64;
        match self {
            Self::Runs | Self::SecondOpener => FaultPlan::none(),
            Self::FullDisk => FaultPlan::at(early, Fault::FailNoSpace),
            Self::FailingSync => FaultPlan::at(early, Fault::FailSync),
            Self::FailedStart => FaultPlan::at(0, Fault::FailWrite),
            // The start, two submissions, the stages that go out with them; what comes next fails.
            Self::FailedDrain => FaultPlan::at(3, Fault::FailWrite),
        }
    }
}

/// What whoever asked was told: an answer, that the engine has stopped, or why it has failed.
fn is_answer<T>(told: &Result<T, AskError>) -> bool {
    matches!(told, Ok(_) | Err(AskError::Stopped | AskError::JournalFailed(_)))
}

async fn start(store: Arc<MemoryStore>, gate: &Gate) -> Result<Executor, StartError> {
    let builder = Executor::builder(store).workers(1);
    builder
        .register::<Gated>(gate.clone())
        .register::<Parked>(())
        .start()
        .await
}

/// Submits, and gives the ids that were acknowledged.
async fn submit(executor: &Executor) -> Outcome<Vec<ProcedureId>> {
    let told = join(
        async { executor.submit(Gated).await.map(|handle| handle.id()) },
        async { executor.submit(Gated).await.map(|handle| handle.id()) },
    );
    let (one, other) = told.await;
    let parked = executor.submit(Parked).await.map(|handle| handle.id());
    let mut ids = Vec::new();
    for told in [one, other, parked] {
        match told {
            Ok(id) => ids.push(id),
            Err(SubmitError::JournalFailed(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(ids)
}

/// One engine's life, from its start to its shutdown; gives what was acknowledged.
async fn live(disk: &MemoryDisk, way: Way, round: usize) -> Outcome<Vec<ProcedureId>> {
    let gate = Gate::shut();
    let store = Arc::new(MemoryStore::open(disk, way.plan(round))?);
    let executor = match start(store, &gate).await {
        Ok(executor) => executor,
        Err(StartError::Journal(_)) if matches!(way, Way::FailedStart) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let ids = submit(&executor).await?;
    if matches!(way, Way::SecondOpener) {
        let refused = MemoryStore::open(disk, FaultPlan::none()).err();
        assert!(matches!(refused, Some(StoreError::Held { .. })), "{refused:?}");
    }
    let waiters: Vec<_> = ids
        .iter()
        .map(|id| {
            let (executor, id) = (executor.clone(), *id);
            actix_rt::spawn(async move { executor.outcome(id).await })
        })
        .collect();
    let drain = matches!(way, Way::FailedDrain).then(|| {
        let executor = executor.clone();
        actix_rt::spawn(async move { executor.drain(Duration::from_secs(3_600)).await })
    });
    gate.open();
    let told: Option<Result<DrainReport, AskError>> = match drain {
        Some(drain) => Some(drain.await?),
        None => None,
    };
    assert!(told.is_none_or(|told| matches!(told, Err(AskError::JournalFailed(_)))));
    let report = executor.shutdown().await;
    assert!(report.is_clean(), "{way:?}: {report:?}");
    for told in join_all(waiters).await {
        let told = told?;
        assert!(is_answer(&told), "{way:?}: {told:?}");
    }
    let late = executor.snapshot().await.map(|_| ());
    assert!(late.is_err() && is_answer(&late), "{late:?}");
    Ok(ids)
}

/// The next engine on the same disk knows all that was acknowledged, and runs it to its end.
async fn live_again(disk: &MemoryDisk, ids: &[ProcedureId]) -> Outcome {
    let gate = Gate::shut();
    gate.open();
    let executor = start(Arc::new(MemoryStore::open(disk, FaultPlan::none())?), &gate).await?;
    for id in ids {
        executor.status(*id).await?;
    }
    let report = executor.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    Ok(())
}

#[test]
fn two_engines_that_fail_in_every_way_leave_nothing_however_often() -> Outcome {
    let _alone = alone();
    let rounds = rounds()?;
    in_system(async {
        let before = Census::take()?;
        for round in 0..rounds {
            // Each way meets each other, from one lap to the next.
            let way = WAYS[round % WAYS.len()];
            let other = WAYS[(round + round / WAYS.len()) % WAYS.len()];
            let (disk, other_disk) = (MemoryDisk::new(), MemoryDisk::new());
            let lives = join(live(&disk, way, round), live(&other_disk, other, round / 2));
            let (ids, other_ids) = lives.await;
            let again = join(live_again(&disk, &ids?), live_again(&other_disk, &other_ids?)).await;
            again.0?;
            again.1?;
            before
                .is_all_there_is()
                .await
                .map_err(|error| format!("round {round}, {way:?} beside {other:?}: {error}"))?;
        }
        Ok(())
    })
}
