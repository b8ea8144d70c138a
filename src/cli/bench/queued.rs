//! Waiting for what others hold: shared by `limits` and `locks`.
//!
//! Holders come first, take all there is, and stay in their one stage until the
//! gate opens. Then come the waiters, and all of them queue. Timed: from the
//! opening of the gate until the last waiter has ended. Each waiter is one grant.

use std::path::Path;

use futures::TryStreamExt;
use procession::{Executor, Procedure, StageContext, StageError, Step};
use tokio::sync::watch;

use super::common::{Common, at_once, until};
use super::rounds::{Rounds, Summary};
use super::taken::{Probe, Taken};
use super::{BenchError, STOP_TIME};

/// Submissions under way at once.
pub(super) const SUBMITTERS: u32 = 1_024;

/// What holders wait for.
#[derive(Clone)]
pub(super) struct Gate(watch::Sender<bool>);

impl Gate {
    /// Makes a gate that is closed.
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    fn set(&self, open: bool) {
        self.0.send_replace(open);
    }

    /// Waits in a stage until it is open, if this one holds; then ends.
    pub(super) async fn pass<P: Procedure<Output = ()>>(&self, holds: bool) -> Result<Step<P>, StageError> {
        if holds {
            self.0.subscribe().wait_for(|open| *open).await?;
        }
        Ok(Step::Done(()))
    }
}

/// What a round queues, and how it submits it.
pub(super) trait Queue {
    /// How many hold at first; that many numbers from 0 on are holders.
    fn holders(&self) -> u32;
    /// How many wait for them.
    fn waiting(&self) -> u32;
    /// Submits one; `place` says which limit or lock is its own.
    async fn submit(&self, executor: &Executor, place: u32, holds: bool) -> Result<(), BenchError>;
}

/// Runs the rounds on an engine that knows the kinds.
pub(super) async fn measure(
    queue: &impl Queue,
    gate: &Gate,
    executor: &Executor,
    common: &Common,
    directory: &Path,
) -> Result<Summary<()>, BenchError> {
    run_round(queue, gate, executor, (queue.waiting() / 10).max(1)).await?;
    let mut rounds = Rounds::new(directory);
    for _ in 0..common.rounds {
        let taken = run_round(queue, gate, executor, queue.waiting()).await?;
        rounds.add(taken, ()).await?;
    }
    let summary = rounds.summarize().await?;
    executor.drain(STOP_TIME).await?;
    Ok(summary)
}

async fn run_round(queue: &impl Queue, gate: &Gate, executor: &Executor, waiting: u32) -> Result<Taken, BenchError> {
    gate.set(false);
    let holders = queue.holders();
    submit_all(queue, executor, holders, true).await?;
    let out = usize::try_from(holders).unwrap_or(usize::MAX);
    until(executor, |snapshot| snapshot.going == out).await?;
    submit_all(queue, executor, waiting, false).await?;
    let probe = Probe::begin(executor).await?;
    gate.set(true);
    until(executor, |snapshot| snapshot.live_families == 0).await?;
    probe.end(executor, f64::from(waiting)).await
}

async fn submit_all(queue: &impl Queue, executor: &Executor, number: u32, holds: bool) -> Result<(), BenchError> {
    let mut sent = at_once(number, SUBMITTERS, |place| queue.submit(executor, place, holds));
    while sent.try_next().await?.is_some() {}
    Ok(())
}

/// A stage's context gives the gate.
pub(super) async fn wait<P>(cx: &StageContext<'_, P>, holds: bool) -> Result<Step<P>, StageError>
where
    P: Procedure<Env = Gate, Output = ()>,
{
    cx.env().pass(holds).await
}
