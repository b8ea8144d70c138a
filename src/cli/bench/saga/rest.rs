//! Sagas at rest, and beside them plain procedures that ask: what each takes in memory, and how long a start takes with
//! so many.
//!
//! Processes of their own build the states, and are killed. Memory is theirs: what one with many has in the machine's
//! more than one with few. Each round starts engines on copies. Timed for the rate: from the first answer until all have
//! ended.

use std::path::{Path, PathBuf};
use std::time::Duration;

use procession::Executor;
use procession::saga::Decision;
use serde::Serialize;
use serde_json::Map;

use super::host::Host;
use super::state::{self, State};
use super::turns::{Measured, Turns};
use super::{Sizes, machines};
use crate::bench::common::{remove, until};
use crate::bench::figure::Figure;
use crate::bench::killed::copy;
use crate::bench::parked::answer_all;
use crate::bench::recovery::Life;
use crate::bench::taken::{Probe, Taken, count, now};
use crate::bench::{BenchError, STOP_TIME};

/// Builds the states, and runs the rounds.
pub(super) async fn measure(rounds: u32, seed: u64, sizes: &Sizes, directory: &Path) -> Result<Measured, BenchError> {
    let sagas = Killed::build(State::Resting, seed, sizes, directory).await?;
    let plain = Killed::build(State::Asking, seed, sizes, directory).await?;
    let forward = Decision::Forward(Map::from_iter([(machines::FAILS.to_owned(), false.into())]));
    let start_sagas = async |engine: PathBuf| Ok(Host::start(&engine, sizes, Life::Before).await?.executor);
    let start_plain = async |engine: PathBuf| state::start_asking(&engine).await;
    let mut turns = Turns::new(directory, sizes);
    for _ in 0..rounds {
        let (restart, taken) = sagas.round(sizes.sagas, &forward, start_sagas).await?;
        let (plain_restart, beside) = plain.round(sizes.sagas, &true, start_plain).await?;
        let figures = vec![
            Figure::bytes(
                "bytes_per_saga",
                sagas.bytes_each,
                "memory of a saga at rest",
                "resident memory, of a process of its own",
            ),
            Figure::bytes(
                "bytes_per_procedure",
                plain.bytes_each,
                "of a plain procedure that asks",
                "the same",
            ),
            Figure::time("restart_ms", restart, "to start the engine", "all sagas at rest"),
            Figure::time(
                "plain_restart_ms",
                plain_restart,
                "the same with plain procedures",
                "as many",
            ),
            super::restart_ratio(restart, plain_restart),
        ];
        turns.add_restart(taken, beside, figures).await?;
    }
    turns.summarize().await
}

/// What a process has left that was killed.
struct Killed {
    place: PathBuf,
    /// Memory of each, while they were at rest; none where the system does not tell.
    bytes_each: Option<f64>,
}

impl Killed {
    async fn build(state: State, seed: u64, sizes: &Sizes, directory: &Path) -> Result<Self, BenchError> {
        let place = directory.join(state.name());
        let few = Sizes {
            sagas: (sizes.sagas / 100).max(1),
            ..sizes.clone()
        };
        let with_few = state::build_and_kill(state, seed, &few, &place).await?;
        remove(&place)?;
        let with_all = state::build_and_kill(state, seed, sizes, &place).await?;
        let more = f64::from(sizes.sagas - few.sagas).max(1.0);
        let grown = with_all.zip(with_few).map(|(all, few)| all.saturating_sub(few));
        let bytes_each = grown.map(|grown| count(grown) / more);
        Ok(Self { place, bytes_each })
    }

    /// Starts an engine on a copy, and answers all that ask. Returns how long the start took, and what the rest took.
    async fn round<A: Serialize>(
        &self,
        number: u32,
        answer: &A,
        start: impl AsyncFnOnce(PathBuf) -> Result<Executor, BenchError>,
    ) -> Result<(Duration, Taken), BenchError> {
        let engine = self.place.with_extension("copy");
        copy(&self.place, &engine)?;
        let begun = now();
        let executor = start(engine.clone()).await?;
        let restart = begun.elapsed();
        let found = executor.snapshot().await?.recovered.procedures;
        if u32::try_from(found) != Ok(number) {
            let expected = number;
            return Err(BenchError::Lost { expected, found });
        }
        let probe = Probe::begin(&executor).await?;
        answer_all(&executor, answer).await?;
        until(&executor, |snapshot| snapshot.live_families == 0).await?;
        let taken = probe.end(&executor, f64::from(number)).await?;
        executor.drain(STOP_TIME).await?;
        remove(&engine)?;
        Ok((restart, taken))
    }
}
