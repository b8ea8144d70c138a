//! Submits the operations and waits for their ends.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;

use crate::demo::error::DemoError;
use crate::demo::faults::INJECTED;
use crate::demo::pace;
use crate::demo::progress::Progress;
use crate::demo::workload::{Lane, Operation, Plan};
use procession::errors::SubmitError;
use procession::status::{Outcome, ProcedureState, WaitReason};
use procession::{Executor, ProcedureId};

/// How many lanes run at once: more tables than that wait for their turn, so that
/// the client asks for no more than the engine admits.
const LANES_AT_ONCE: usize = 256;
/// How long an operation may take before a look at what it waits for.
const LOOK_AFTER: Duration = Duration::from_secs(5);
/// How many refusals are kept in words.
const REFUSALS_KEPT: usize = 5;

/// What became of the operations.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// How many operations of each kind succeeded, and how many were undone.
    pub kinds: BTreeMap<&'static str, (u64, u64)>,
    /// How many were undone because of a fault on purpose.
    pub injected: u64,
    /// How many were refused, or failed otherwise.
    pub refused: u64,
    /// The first of those, in words.
    pub refusals: Vec<String>,
}

impl Tally {
    fn count(&mut self, operation: &Operation, outcome: &Outcome) {
        let (succeeded, undone) = self.kinds.entry(operation.action.kind()).or_default();
        if outcome.state == ProcedureState::Success {
            *succeeded += 1;
            return;
        }
        *undone += 1;
        let cause = outcome.cause.as_ref().map_or("", |cause| cause.text.as_str());
        if cause.contains(INJECTED) {
            self.injected += 1;
            return;
        }
        self.refused += 1;
        if self.refusals.len() < REFUSALS_KEPT {
            self.refusals
                .push(format!("{} ({}): {cause}", operation.key(), operation.action.kind()));
        }
    }

    fn add(&mut self, other: Self) {
        for (kind, (succeeded, undone)) in other.kinds {
            let sum = self.kinds.entry(kind).or_default();
            sum.0 += succeeded;
            sum.1 += undone;
        }
        self.injected += other.injected;
        self.refused += other.refused;
        self.refusals.extend(other.refusals);
        self.refusals.truncate(REFUSALS_KEPT);
    }
}

/// Runs all lanes to their ends.
pub(super) async fn drive(executor: &Executor, plan: &Plan) -> Result<Tally, DemoError> {
    let progress = Progress::new(plan.operations);
    let mut lanes = stream::iter(&plan.lanes)
        .map(|lane| run_lane(executor, lane, &progress))
        .buffer_unordered(LANES_AT_ONCE);
    let mut tally = Tally::default();
    while let Some(of_lane) = lanes.next().await {
        tally.add(of_lane?);
    }
    progress.finish();
    Ok(tally)
}

async fn run_lane(executor: &Executor, lane: &Lane, progress: &Progress) -> Result<Tally, DemoError> {
    let mut tally = Tally::default();
    for group in &lane.groups {
        let all = group.operations.iter().map(|operation| async move {
            let id = submit(executor, operation).await?;
            let outcome = end_of(executor, operation, id).await?;
            progress.step();
            Ok::<_, DemoError>((operation, outcome))
        });
        for ended in futures::future::join_all(all).await {
            let (operation, outcome) = ended?;
            tally.count(operation, &outcome);
        }
    }
    Ok(tally)
}

/// Submits an operation; an engine that is busy is asked again when it says so.
async fn submit(executor: &Executor, operation: &Operation) -> Result<ProcedureId, DemoError> {
    let key = operation.key();
    loop {
        match operation.action.submit(executor, &key).await {
            Ok(id) => return Ok(id),
            Err(SubmitError::Busy { retry_after, .. }) => pace::pause(retry_after).await,
            Err(why) => return Err(DemoError::Submit { key, why }),
        }
    }
}

/// Waits for the end of an operation, and gives up when it can go on only with help.
async fn end_of(executor: &Executor, operation: &Operation, id: ProcedureId) -> Result<Outcome, DemoError> {
    let mut outcome = std::pin::pin!(executor.outcome(id));
    loop {
        match tokio::time::timeout(LOOK_AFTER, outcome.as_mut()).await {
            Ok(outcome) => return Ok(outcome?),
            Err(_) => not_stuck(executor, operation, id).await?,
        }
    }
}

/// Looks whether some member of the family waits for an operator.
async fn not_stuck(executor: &Executor, operation: &Operation, id: ProcedureId) -> Result<(), DemoError> {
    for status in executor.tree(id).await? {
        let stuck = matches!(
            status.wait,
            Some(WaitReason::RollbackFailed | WaitReason::Poison | WaitReason::Quarantined)
        );
        if let Some(wait) = status.wait.as_ref().filter(|_| stuck) {
            let (key, kind, stage) = (operation.key(), &status.kind, &status.stage);
            let cause = status
                .cause
                .as_ref()
                .map_or("no cause is known", |cause| cause.text.as_str());
            return Err(DemoError::Stuck(format!(
                "{key} waits for an operator: its {kind} {} at stage {stage} is {wait}: {cause}; see to the cause and run the demo again",
                status.id
            )));
        }
    }
    Ok(())
}
