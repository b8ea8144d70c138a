//! An engine is killed when each saga has run half of its tasks: how long until another one has ended them all. Beside
//! it as many procedures of `recovery`, which are killed in their second stage as well.

use std::path::{Path, PathBuf};

use super::Sizes;
use super::host::Host;
use super::state::{self, State};
use super::turns::{Measured, Turns};
use crate::bench::BenchError;
use crate::bench::common::remove;
use crate::bench::figure::Figure;
use crate::bench::killed::copy;
use crate::bench::recovery::{self, Life};
use crate::bench::taken::Taken;

/// Builds both states, and starts engines on copies of them in turns.
pub(super) async fn measure(rounds: u32, seed: u64, sizes: &Sizes, directory: &Path) -> Result<Measured, BenchError> {
    let payload = u32::try_from(sizes.payload.len()).unwrap_or(u32::MAX);
    let live = recovery::Sizes::of_live(sizes.sagas, payload);
    let (sagas, plain) = (directory.join("killed"), directory.join("plain-killed"));
    state::build_and_kill(State::HalfDone, seed, sizes, &sagas).await?;
    recovery::build_and_kill(live, seed, &plain).await?;
    let start_sagas = async |engine: PathBuf, life| Ok(Host::start(&engine, sizes, life).await?.executor);
    let mut turns = Turns::new(directory, sizes);
    for _ in 0..rounds {
        let taken = round(live, &sagas, start_sagas).await?;
        let beside = round(live, &plain, recovery::start).await?;
        let figures = vec![
            Figure::time(
                "done_ms",
                taken.cost.elapsed,
                "until all have ended",
                "from before the start",
            ),
            Figure::time(
                "plain_done_ms",
                beside.cost.elapsed,
                "the same of plain procedures",
                "as many",
            ),
            super::restart_ratio(taken.cost.elapsed, beside.cost.elapsed),
        ];
        turns.add_restart(taken, beside, figures).await?;
    }
    turns.summarize().await
}

async fn round(
    live: recovery::Sizes,
    killed: &Path,
    start: impl AsyncFnOnce(PathBuf, Life) -> Result<procession::Executor, BenchError>,
) -> Result<Taken, BenchError> {
    let engine = killed.with_extension("copy");
    copy(killed, &engine)?;
    let starting = async |life| start(engine.clone(), life).await;
    let (taken, _) = recovery::run_round(live, starting).await?;
    remove(&engine)?;
    Ok(taken)
}
